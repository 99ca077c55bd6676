import os
import signal
from threading import Timer

import joblib
import numpy as np
import pandas as pd
import pytest

from rectifit import ReLURegressor, solve
from rectifit.datasets import make_relu

dask = pytest.importorskip("dask", reason="dask is not installed: pip install 'rectifit[dask]'")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

from rectifit.scale.dask import DaskBlocks  # noqa: E402 - needs dask


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


def test_predict_is_lazy(data):
    X, y, *_ = data
    model = ReLURegressor("iterative").fit(da.from_array(X, chunks=(1000, 5)), da.from_array(y, chunks=1000))
    lazy = model.predict(da.from_array(X, chunks=(1000, 5)))
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), model.predict(X))


def test_errors(data):
    X, y, *_ = data
    lazy = da.from_array(X, chunks=(1000, 5))
    with pytest.raises(ValueError, match="y has 2999 entries but X has 3000 rows"):
        solve(lazy, y[1:])
    with pytest.raises(ValueError, match="y has 2999 rows in 3 chunks, X has 3000 in 3"):
        solve(lazy, da.from_array(y[1:], chunks=1000))
    with pytest.raises(ValueError, match="X contains NaN"):
        solve(da.where(lazy > 2.0, np.nan, lazy), y)
    with pytest.raises(ValueError, match="stage 'gd'; for data read in blocks"):
        solve(lazy, y, "gd")


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
def test_cluster_that_loses_a_worker(monkeypatch):
    distributed = pytest.importorskip("distributed")
    rng = da.random.default_rng(0)
    X = rng.normal(size=(60_000, 6), chunks=(3000, 6))
    y = da.maximum(X @ np.linspace(-1.0, 2.0, 6), 0.0) + rng.normal(size=60_000, chunks=3000)
    with dask.config.set(scheduler="threads"):
        memory = solve(*dask.compute(X, y), "sorting+iterative")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
        dask.config.set(scheduler=client),
    ):
        before = set(client.run(os.getpid).values())
        kept = dask.persist(X, y)
        distributed.wait(kept)
        passes, reduce = [], DaskBlocks.reduce

        def reduce_and_kill(self, task, *, design=True):
            passes.append(type(task).__name__)
            # In the middle of the third look at the surrogates a worker is lost, with half of the data.
            if passes.count("Sweep") == 3 and passes[-1] == "Sweep":
                Timer(0.02, os.kill, (min(before), signal.SIGKILL)).start()
            return reduce(self, task, design=design)

        monkeypatch.setattr(DaskBlocks, "reduce", reduce_and_kill)
        found = solve(*kept, "sorting+iterative")
        assert_same(found, memory)
        assert min(before) not in client.run(os.getpid).values()
    assert passes.count("Sweep") > 3
