import os
import pickle
import signal
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from threading import Timer

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from rectifit import ReLURegressor, solve
from rectifit.datasets import make_relu

dask = pytest.importorskip("dask", reason="dask is not installed: pip install 'rectifit[dask]'")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pytest.importorskip("dask.bag")

from rectifit.data.dask import DaskData  # noqa: E402 - needs dask


@pytest.fixture(autouse=True)
def threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


@pytest.fixture(scope="module")
def data():
    X, y, *_ = make_relu(3000, 5, noise=0.5, design="gaussian", random_state=0)
    w = np.random.default_rng(0).uniform(0.0, 2.0, y.size)
    return X, y, w, solve(X, y, "sorting+iterative", sample_weight=w)


def assert_same(found, expected):
    assert found.objective == pytest.approx(expected.objective, rel=1e-10)
    np.testing.assert_allclose(found.beta, expected.beta, atol=1e-8)
    found.verify()


@pytest.mark.parametrize("chunks", [(3000, 5), (700, 2), ((1, 2000, 999), 5)])
def test_arrays(data, chunks):
    X, y, w, expected = data
    # Chunks of y and X need not agree, nor the chunks of columns be whole.
    lazy = da.from_array(X, chunks=chunks)
    found = solve(lazy, da.from_array(y, chunks=400), "sorting+iterative", sample_weight=w)
    assert_same(found, expected)


def test_large_tasks_are_shared_and_summaries_merged_by_workers(data, monkeypatch):
    X, y, w, expected = data
    monkeypatch.setattr("rectifit.data.dask.MAX_COPIED_BYTES", 0)
    monkeypatch.setattr("rectifit.data.dask.FAN_IN", 2)
    found = solve(*(da.from_array(a, chunks=400) for a in (X, y)), "sorting+iterative", sample_weight=w)
    assert_same(found, expected)


def test_frames(data):
    X, y, w, expected = data
    table = pd.DataFrame(X, columns=list("abcde")).assign(y=y, w=w)
    frame = dd.from_pandas(table, npartitions=4)
    model = ReLURegressor("sorting+iterative")
    model.fit(frame[list("abcde")], frame["y"], sample_weight=frame["w"])
    assert_same(model.solution_, expected)
    assert model.feature_names_in_.tolist() == list("abcde")


def test_chunks_of_unknown_length(data):
    X, y, w, _ = data
    lazy, outcome = da.from_array(X, chunks=(500, 5)), da.from_array(y, chunks=500)
    chosen = outcome > -0.5
    found = solve(
        lazy[chosen], outcome[chosen], "sorting", sample_weight=da.from_array(w, chunks=500)[chosen]
    )
    keep = y > -0.5
    assert_same(found, solve(X[keep], y[keep], "sorting", sample_weight=w[keep]))


def make_lazy(X, y, w, frames):
    if not frames:
        return da.from_array(X, chunks=(1000, 3)), da.from_array(y, chunks=700), da.from_array(w, chunks=3000)
    table = dd.from_pandas(pd.DataFrame(X, columns=list("abcde")).assign(y=y, w=w), npartitions=3)
    return table[list("abcde")], table["y"], table["w"]


@pytest.fixture
def _nothing_comes_here(monkeypatch):
    """Collections are not computed as a whole, not even to be looked at."""

    def refuse(self, *_args, **_options):
        raise AssertionError(f"{type(self).__name__} came to the client")

    for collection in (da.Array, dd.DataFrame, dd.Series):
        for name in ("compute", "persist", "__array__", "__len__"):
            monkeypatch.setattr(collection, name, refuse)


@pytest.mark.usefixtures("_nothing_comes_here")
@pytest.mark.parametrize("frames", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_those_of_data_in_memory(data, frames, weighted):
    X, y, w, _ = data
    lazy_X, lazy_y, lazy_w = make_lazy(X, y, w, frames)
    model = ReLURegressor("iterative").fit(lazy_X, lazy_y)
    table = pd.DataFrame(X, columns=list("abcde")) if frames else X
    for shift in (0.0, 1e6):
        expected = model.score(table, y + shift, w if weighted else None)
        found = model.score(lazy_X, lazy_y + shift, lazy_w if weighted else None)
        assert found == pytest.approx(expected, rel=1e-9)
    # Outcomes and weights in memory go to the chunks.
    assert model.score(lazy_X, y, w if weighted else None) == pytest.approx(
        model.score(table, y, w if weighted else None)
    )


def test_scores_of_constant_outcomes_are_as_in_scikit_learn(data):
    X, y, *_ = data
    model = ReLURegressor("iterative").fit(X, y)
    lazy = da.from_array(X, chunks=(1000, 5))
    assert model.score(lazy, np.ones(3000)) == model.score(X, np.ones(3000)) == 0.0
    with pytest.raises(ValueError, match="contains NaN"):
        model.score(lazy, da.where(lazy[:, 0] > 1.0, np.nan, 0.0))


@pytest.mark.parametrize("frames", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_predictions_are_lazy(data, frames, dtype):
    X, y, w, _ = data
    lazy_X, lazy_y, _ = make_lazy(X.astype(dtype), y, w, frames)
    model = ReLURegressor("iterative").fit(lazy_X, lazy_y)
    lazy = model.predict(lazy_X)
    assert isinstance(lazy, da.Array)
    assert lazy.dtype == dtype
    table = pd.DataFrame(X, columns=list("abcde")) if frames else X
    found = lazy.compute()
    assert found.dtype == dtype
    np.testing.assert_allclose(found, model.predict(table), atol=1e-14 if dtype == np.float64 else 1e-5)
    np.testing.assert_array_equal(model.solution_.predict(lazy_X).compute(), found)
    # A partition without rows has no predictions.
    if frames:
        assert model.predict(lazy_X[lazy_X["a"] > 100.0]).compute().shape == (0,)


def test_columns_are_checked_as_in_scikit_learn(data):
    X, y, w, _ = data
    frame, outcome, _ = make_lazy(X, y, w, True)
    lazy = da.from_array(X, chunks=(1000, 5))
    named, plain = ReLURegressor("iterative").fit(frame, outcome), ReLURegressor("iterative").fit(lazy, y)
    for method in (named.predict, lambda table: named.score(table, outcome)):
        with pytest.raises(ValueError, match="Feature names must be in the same order"):
            method(frame[list("bacde")])
        with pytest.raises(ValueError, match="Feature names seen at fit time, yet now missing"):
            method(frame[list("abcd")])
    with pytest.raises(ValueError, match="X has 4 features, but ReLURegressor is expecting 5"):
        plain.predict(lazy[:, :4])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        named.predict(lazy)
    with pytest.warns(UserWarning, match="has feature names, but ReLURegressor was fitted without"):
        plain.predict(frame)
    # Names do not stay behind when there are none any more, and numbers are none.
    assert not hasattr(named.fit(lazy, y), "feature_names_in_")
    numbered = dd.from_pandas(pd.DataFrame(X), npartitions=2)
    assert not hasattr(named.fit(numbered, y), "feature_names_in_")
    np.testing.assert_allclose(named.predict(pd.DataFrame(X)), named.predict(numbered).compute(), atol=1e-12)


def test_models_of_chunks_can_be_copied_stored_and_validated(data):
    X, y, *_ = data
    lazy_X, lazy_y = da.from_array(X, chunks=(1000, 5)), da.from_array(y, chunks=1000)
    half = FunctionTransformer(lambda table: 0.5 * table, validate=False)
    pipeline = make_pipeline(half, ReLURegressor("iterative"))
    scores = cross_val_score(pipeline, lazy_X, lazy_y, cv=3)
    np.testing.assert_allclose(scores, cross_val_score(pipeline, X, y, cv=3), rtol=1e-8)
    model = ReLURegressor("iterative").fit(lazy_X, lazy_y)
    stored = pickle.loads(pickle.dumps(model))
    assert stored.score(lazy_X, lazy_y) == model.score(lazy_X, lazy_y)
    assert not hasattr(clone(model), "coef_")


@pytest.mark.parametrize("scheduler", ["synchronous", pytest.param("processes", marks=pytest.mark.slow)])
def test_any_scheduler_gives_the_same(data, scheduler):
    X, y, w, expected = data
    lazy_X, lazy_y, lazy_w = make_lazy(X, y, w, False)
    # Processes that stay: without a pool, every pass begins with new ones.
    with (
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool,
        dask.config.set(scheduler=scheduler, pool=pool),
    ):
        model = ReLURegressor("sorting+iterative").fit(lazy_X, lazy_y, sample_weight=lazy_w)
        assert_same(model.solution_, expected)
        assert model.score(lazy_X, lazy_y) == pytest.approx(model.score(X, y))
        np.testing.assert_allclose(model.predict(lazy_X).compute(), model.predict(X), atol=1e-12)


def test_errors(data):
    X, y, *_ = data
    lazy = da.from_array(X, chunks=(1000, 5))
    with pytest.raises(ValueError, match="y has 2999 entries but X has 3000 rows"):
        solve(lazy, y[1:])
    with pytest.raises(ValueError, match="y has 2999 rows in 3 chunks, X has 3000 in 3"):
        solve(lazy, da.from_array(y[1:], chunks=1000))
    with pytest.raises(ValueError, match="X contains NaN"):
        solve(da.where(lazy > 2.0, np.nan, lazy), y)
    with pytest.raises(ValueError, match="stage 'gd', which needs all rows in memory"):
        solve(lazy, y, "gd")


def bad_data():
    """What is wrong, as (X, y, error, sentence)."""
    X = da.ones((40, 2), chunks=(20, 2))
    y = da.ones(40, chunks=20)
    frame = dd.from_pandas(pd.DataFrame({"a": np.ones(40), "t": "u"}), npartitions=2)
    missing = frame[["a"]].astype("Float64").mask(frame["a"] > 0.0)
    dates = frame[["a"]].assign(d=pd.Timestamp("2020-01-01"))
    yield X[:, :, None], y, ValueError, r"X has shape \(40, 2, 1\); it must be a dask array or data frame"
    yield X[:, 0], y, ValueError, r"X has shape \(40,\); it must be"
    yield frame["a"], y, ValueError, "X is a dask Series; it must be"
    yield dask.bag.from_sequence([1, 2]), y, TypeError, "X is a dask Bag; it must be"
    yield dask.delayed(np.ones((40, 2))), y, TypeError, "X is a dask Delayed"
    yield X.astype(complex), y, TypeError, "X has dtype complex128; it must be real numbers"
    yield X, y * 1j, TypeError, "y has dtype complex128; it must be real numbers"
    yield X.map_blocks(sparse.csr_array), y, TypeError, "X is a sparse matrix .* a dense array is needed"
    yield frame, y, TypeError, "X has entries that are not numbers but text"
    yield dates, y, TypeError, "X has entries that are missing or not numbers"
    yield missing, y, ValueError, "X contains NaN"
    yield X, frame["t"], TypeError, "y has entries that are not numbers but text"
    yield X, frame[["a"]], ValueError, "y is a dask DataFrame; it must be an array, dask array or dask series"
    yield X, y[:, None], ValueError, r"y has shape \(40, 1\); it must be an array, dask array or dask series"
    yield X, frame["a"].repartition(npartitions=1), ValueError, "y has 40 rows in 1 chunks, X has 40 in 2"
    yield X, da.where(y > 0.0, np.nan, y), ValueError, "y contains NaN"


@pytest.mark.parametrize(("X", "y", "error", "sentence"), list(bad_data()))
def test_bad_chunks_are_named(X, y, error, sentence):
    with pytest.raises(error, match=sentence):
        ReLURegressor("iterative").fit(X, y)


def test_bad_chunks_are_named_when_they_are_predicted(data):
    X, y, *_ = data
    model, lazy = ReLURegressor("iterative").fit(X, y), da.from_array(X, chunks=(1000, 5))
    with pytest.raises(ValueError, match="X has shape"):
        model.predict(lazy[:, 0])
    with pytest.raises(ValueError, match="X contains NaN"):
        model.predict(da.where(lazy > 2.0, np.nan, lazy)).compute()
    with pytest.raises(TypeError, match="X is a sparse matrix"):
        model.predict(lazy.map_blocks(sparse.csr_array)).compute()
    with pytest.raises(ValueError, match="X has 4 columns; the fit has 5"):
        model.solution_.predict(lazy[:, :4])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "options"), [("approximation", {"k": 2}), ("multistart", {"n_starts": 40})]
)
def test_joblib_on_a_cluster(method, options):
    distributed = pytest.importorskip("distributed")
    X, y, *_ = make_relu(60, 3, noise=0.5, random_state=1)
    expected = solve(X, y, method, **options)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config("dask"),
    ):
        found = solve(X, y, method, n_jobs=2, **options)
        done = sum(client.run(lambda dask_worker: dask_worker.state.executed_count).values())
    assert done > 0
    assert found.objective == pytest.approx(expected.objective, rel=1e-12)
    assert found.guarantee == expected.guarantee


@pytest.mark.slow
@pytest.mark.parametrize("floor", [0.0, "estimate"])
def test_bootstrap_on_a_cluster(floor):
    distributed = pytest.importorskip("distributed")
    X, y, *_ = make_relu(300, 3, noise=0.5, random_state=1)
    solution = solve(X, y, "sorting+iterative", floor=floor)
    options = {"bootstrap": 30, "random_state": 3}
    expected = solution.summary(**options)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config("dask"),
    ):
        found = solution.summary(**options)
        done = client.run(lambda dask_worker: dask_worker.state.executed_count)
    assert all(count > 0 for count in done.values())
    np.testing.assert_array_equal(found.std_error, expected.std_error)


@pytest.mark.slow
@pytest.mark.parametrize("in_memory", [False, True])
def test_cluster_that_loses_a_worker(monkeypatch, in_memory):
    distributed = pytest.importorskip("distributed")
    rng = da.random.default_rng(0)
    X = rng.normal(size=(60_000, 6), chunks=(3000, 6))
    y = da.maximum(X @ np.linspace(-1.0, 2.0, 6), 0.0) + rng.normal(size=60_000, chunks=3000)
    with dask.config.set(scheduler="threads"):
        data = dask.compute(X, y)
    memory = ReLURegressor("sorting+iterative").fit(*data)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
        # By its name: a client cannot be sent to the worker that takes the place of the lost one.
        dask.config.set(scheduler="distributed"),
    ):
        before = set(client.run(os.getpid).values())
        kept = dask.persist(X, y)
        distributed.wait(kept)
        # Outcomes that are here are sent to the chunks.
        kept = (kept[0], data[1]) if in_memory else kept
        passes, reduce = [], DaskData.reduce

        def reduce_and_kill(self, task, *, design=True):
            passes.append(type(task).__name__)
            # In the middle of the third look at the surrogates a worker is lost, with half of the data.
            if passes.count("SweepTask") == 3 and passes[-1] == "SweepTask":
                Timer(0.02, os.kill, (min(before), signal.SIGKILL)).start()
            return reduce(self, task, design=design)

        monkeypatch.setattr(DaskData, "reduce", reduce_and_kill)
        found = ReLURegressor("sorting+iterative").fit(*kept)
        assert_same(found.solution_, memory.solution_)
        assert found.score(*kept) == pytest.approx(memory.score(*data), rel=1e-12)
        client.wait_for_workers(2)
        assert min(before) not in client.run(os.getpid).values()
    assert passes.count("SweepTask") > 3
