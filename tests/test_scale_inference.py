"""Standard errors of data read in passes: those of the same fit with its data in memory."""

import pickle
from dataclasses import replace

import dask
import dask.array as da
import numpy as np
import polars as pl
import pytest
from scipy import sparse

from rectifit import Problem, ReLURegressor, solve
from rectifit.data import ArrayData, open_parquet
from rectifit.data.blocks import Block
from rectifit.data.sampling import SampleTask
from rectifit.inference import estimate_covariance, marginal_effects, prediction_interval, summarise

KINDS = ["nonrobust", "HC0", "HC1", "HC2", "HC3"]


def make(kind):
    """Data with what can go wrong: scales, offsets, dependent and constant columns, weights of 0."""
    rng = np.random.default_rng(3)
    n, options, w = 400, {}, None
    X = rng.normal(size=(n, 4)) * [1.0, 1e-3, 1e4, 1.0] + [0.0, 0.0, 1e4, 5.0]
    y = np.maximum((X - X.mean(axis=0)) @ [1.0, 800.0, -1e-4, 0.5] + 0.5, 0.0) + 0.4 * rng.normal(size=n)
    if kind == "weights":
        w = rng.exponential(size=n) * (rng.random(n) > 0.1)
    elif kind == "no intercept":
        X, options = X - X.mean(axis=0), {"fit_intercept": False}
        X[:5] = 0.0
    elif kind == "ridge":
        options = {"alpha": 3.0}
    elif kind == "float32":
        X = (X - [0.0, 0.0, 1e4, 0.0]).astype(np.float32)
    elif kind == "collinear":
        X = np.column_stack([X, X[:, 0] - 2.0 * X[:, 3], np.full(n, 7.0), np.zeros(n)])
    elif kind == "far":
        X[:, 0] += 1e7
    elif kind == "above":
        y = np.maximum(y, 0.0)
    return X, y, w, options


DATA = ["plain", "weights", "no intercept", "ridge", "float32", "collinear", "far", "above"]


def fit_both(kind, **more):
    """A fit in passes, and the same with its data in memory."""
    X, y, w, options = make(kind)
    options |= more
    streamed = solve(ArrayData(X, y, w, block_rows=37, n_threads=2), None, "sorting+iterative", **options)
    options.pop("floor", None)
    return streamed, replace(streamed, problem=Problem.from_data(X, y, sample_weight=w, **options)), X


def assert_close(found, expected):
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-11 * np.nanmax(np.abs(expected)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", DATA)
def test_the_summary_is_the_one_of_data_in_memory(data, kind):
    streamed, memory, _ = fit_both(data)
    found, expected = streamed.summary(covariance=kind), memory.summary(covariance=kind)
    assert_close(found.std_error, expected.std_error)
    assert 0 < expected.n_active < expected.n_samples
    assert np.isnan(expected.std_error).any() == (data == "collinear")
    for name in ("sigma", "sigma_floor", "r_squared", "share_active", "df"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9)
    for name in ("names", "n_samples", "n_active", "n_positive", "notes", "certificate"):
        assert getattr(found, name) == getattr(expected, name)
    matrix = estimate_covariance(streamed, kind).matrix
    scale = np.sqrt(np.outer(matrix.diagonal(), matrix.diagonal()))
    assert_close(matrix / scale, estimate_covariance(memory, kind).matrix / scale)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_least_squares_on_the_active_rows(kind):
    """From scratch: the formulas with all rows in one array, without means and units."""
    streamed, _, X = fit_both("weights")
    y, w = make("weights")[1:3]
    on = (streamed.predict(X) > 0.0) & (w > 0.0)
    A, e, w = np.column_stack([X, np.ones(len(y))])[on], (y - streamed.predict(X))[on], w[on]
    A = A / np.abs(A).max(axis=0)
    bread = np.linalg.inv(A.T @ (w[:, None] * A))
    h, df = w * np.einsum("ij,jk,ik->i", A, bread, A), len(e) - 5
    omega = {"HC1": len(e) / df, "HC2": 1.0 / (1.0 - h), "HC3": 1.0 / (1.0 - h) ** 2}.get(kind, 1.0)
    meat = A.T @ ((omega * (w * e) ** 2)[:, None] * A)
    meat = (w @ e**2) / df * np.linalg.inv(bread) if kind == "nonrobust" else meat
    expected = np.sqrt(np.diag(bread @ meat @ bread)) / np.append(np.abs(X[on]).max(axis=0), 1.0)
    np.testing.assert_allclose(streamed.summary(covariance=kind).std_error, expected, rtol=1e-7)


@pytest.mark.parametrize("at", ["average", "means"])
@pytest.mark.parametrize("data", ["plain", "weights", "no intercept", "float32"])
def test_effects_and_prediction_intervals_are_those_of_data_in_memory(data, at):
    streamed, memory, X = fit_both(data)
    found, expected = marginal_effects(streamed, at), marginal_effects(memory, at)
    assert_close(found.coefficient, expected.coefficient)
    assert_close(found.std_error, expected.std_error)
    for ours, theirs in zip(prediction_interval(streamed, X), prediction_interval(memory, X), strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize("kind", ["nonrobust", "HC3"])
def test_known_floors(kind):
    streamed, memory, X = fit_both("weights", floor=0.3)
    assert streamed.floor == 0.3
    found, expected = streamed.summary(covariance=kind), memory.summary(covariance=kind)
    assert_close(found.std_error, expected.std_error)
    for name in ("n_samples", "n_active", "n_positive", "notes"):
        assert getattr(found, name) == getattr(expected, name)
    for name in ("sigma", "sigma_floor", "r_squared"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9)
    assert_close(marginal_effects(streamed).std_error, marginal_effects(memory).std_error)
    for ours, theirs in zip(prediction_interval(streamed, X), prediction_interval(memory, X), strict=True):
        assert_close(ours, theirs)


def test_nothing_is_below_the_floor_where_no_outcome_is():
    streamed, _, X = fit_both("above")
    assert prediction_interval(streamed, X).low.min() == 0.0
    assert prediction_interval(fit_both("plain")[0], X).low.min() < 0.0


def test_the_order_and_size_of_blocks_do_not_matter():
    X, y, w, _ = make("weights")
    solution = solve(ArrayData(X, y, w), None, "sorting")
    expected = solution.summary(covariance="HC3").std_error
    back = np.arange(len(y))[::-1]
    for rows, block_rows in ((back, 400), (back, 1), (np.arange(len(y)), 399)):
        other = solve(ArrayData(X[rows], y[rows], w[rows], block_rows=block_rows), None, "sorting")
        assert_close(replace(solution, problem=other.problem).summary(covariance="HC3").std_error, expected)


@pytest.mark.parametrize("kind", ["nonrobust", "HC2"])
def test_parquet_files(tmp_path, kind):
    X, y, w, _ = make("weights")
    frame = pl.DataFrame({f"x{j}": X[:, j] for j in range(4)} | {"y": y, "w": w})
    frame[:150].write_parquet(tmp_path / "a.parquet", row_group_size=40)
    frame[150:].write_parquet(tmp_path / "b.parquet")
    data = open_parquet(tmp_path / "*.parquet", target="y", weights="w")
    model = ReLURegressor("sorting+iterative").fit(data, None)
    found = model.summary(covariance=kind)
    assert found.names == ("x0", "x1", "x2", "x3", "intercept")
    memory = replace(model.solution_, problem=Problem.from_data(X, y, sample_weight=w))
    assert_close(found.std_error, memory.summary(covariance=kind).std_error)


@pytest.mark.parametrize("kind", ["nonrobust", "HC2"])
def test_dask(kind):
    X, y, w, _ = make("weights")
    chunks = (60, 4)
    with dask.config.set(scheduler="threads"):
        lazy = (da.from_array(X, chunks), da.from_array(y, 60), "sorting+iterative")
        solution = solve(*lazy, sample_weight=da.from_array(w, 60), floor=0.2)
        found = solution.summary(covariance=kind)
    memory = replace(solution, problem=Problem.from_data(X, y, sample_weight=w))
    assert_close(found.std_error, memory.summary(covariance=kind).std_error)


def test_torch():
    torch = pytest.importorskip("torch")
    from rectifit.data import TensorData

    X, y, w, _ = make("weights")
    tensors = [torch.from_numpy(values) for values in (X, y, w)]
    solution = solve(TensorData(*tensors, block_rows=70), None, "sorting+iterative")
    memory = replace(solution, problem=Problem.from_data(X, y, sample_weight=w))
    for kind in ("nonrobust", "HC3"):
        assert_close(
            summarise(solution, covariance=kind).std_error, memory.summary(covariance=kind).std_error
        )
    assert_close(marginal_effects(solution).std_error, marginal_effects(memory).std_error)


def test_sparse_rows_in_memory_are_read_as_dense_ones():
    X, y, w, _ = make("weights")
    dense = solve(X, y, "sorting", sample_weight=w)
    thin = replace(dense, problem=Problem.from_data(sparse.csr_array(X), y, sample_weight=w))
    assert_close(thin.summary(covariance="HC3").std_error, dense.summary(covariance="HC3").std_error)


class Watched(ArrayData):
    """Keeps the size of what every pass sends and gets."""

    def __init__(self, *arrays, **options):
        super().__init__(*arrays, **options)
        self.sizes = []

    def reduce(self, task, *, design=True):
        found = super().reduce(task, design=design)
        self.sizes.append(max(len(pickle.dumps(task)), len(pickle.dumps(found))))
        return found


def test_passes_are_few_and_what_travels_does_not_grow_with_the_rows():
    sizes = []
    for n in (1000, 16_000):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 3))
        watched = Watched(X, np.maximum(X @ [1.0, 2.0, -1.0], 0.0) + rng.normal(size=n), block_rows=100)
        solution = solve(watched, None, "iterative")
        watched.sizes.clear()
        solution.summary()
        assert len(watched.sizes) == 2
        solution.summary(covariance="HC3")
        assert len(watched.sizes) == 3
        solution.summary(covariance="HC3")
        assert len(watched.sizes) == 3
        sizes.append(watched.sizes)
    assert max(sizes[1]) <= max(sizes[0]) + 16


def test_pieces_of_a_large_block_are_merged_as_blocks_are(monkeypatch):
    expected = fit_both("weights")[0].summary(covariance="HC3").std_error
    monkeypatch.setattr(Block, "piece_numbers", 44)
    assert_close(fit_both("weights")[0].summary(covariance="HC3").std_error, expected)


@pytest.mark.filterwarnings("ignore:.*dead neuron")
def test_a_fit_without_active_rows_has_no_standard_errors():
    X = np.random.default_rng(0).normal(size=(50, 2))
    summary = solve(ArrayData(X, -np.ones(50), block_rows=20), None, "sorting").summary()
    assert np.isnan(summary.std_error).all()
    assert summary.notes == ("no row is predicted above the floor: no standard errors",)


def test_the_bootstrap_needs_the_rows():
    X, y, *_ = make("plain")
    watched = Watched(X, y)
    solution = solve(watched, None, "sorting+iterative")
    watched.sizes.clear()
    with pytest.raises(ValueError, match="bootstrap is 10, which needs all rows in memory; this data is re"):
        solution.summary(bootstrap=10)
    with pytest.raises(ValueError, match="covariance is 'HC9'"):
        solution.summary(covariance="HC9")
    # Both are refused before the data is read.
    assert not watched.sizes


def test_a_report_says_what_its_pictures_are_drawn_from(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib")
    from rectifit.plot.rows import MAX_ROWS
    from rectifit.report import write_report

    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 2))
    y = np.maximum(X @ [1.0, 2.0], 0.0) + rng.normal(size=5000)
    monkeypatch.setattr("rectifit.report.contents.N_SAMPLED_ROWS", 1000)
    data = ArrayData(X, y, block_rows=500)
    solution = solve(data, None, "sorting+iterative", alpha=2.0, floor=0.5)
    sample = solution.problem.sampled(1000)
    *_, index = data.reduce(SampleTask(1000 / 5000)).joined()
    np.testing.assert_array_equal(sample.y, y[index])
    np.testing.assert_array_equal(sample.X, X[index])
    assert 900 < sample.n_samples < 1100
    assert sample.alpha == pytest.approx(2.0 * sample.n_samples / 5000)
    write_report(solution, tmp_path / "page.html", names=["a", "b"])
    text = (tmp_path / "page.html").read_text()
    assert f"The sums are those of {sample.n_samples:,} of the 5,000 rows, chosen at random." in text
    n_drawn = min(solution.problem.sampled(MAX_ROWS).n_samples, MAX_ROWS)
    assert 3900 < n_drawn < 5000
    assert f"Drawn from {n_drawn:,} of the 5,000 rows, chosen at random." in text
    assert "no comparison with other ways to fit: the data are read in passes" in text
