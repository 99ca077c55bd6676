import pickle
import time

import numpy as np
import polars as pl
import pytest

from rectifit import Problem, ReLURegressor, SurrogateSolver, routing, solve
from rectifit.active import ALL, NONE, Sign
from rectifit.data import ArrayData, Data, open_parquet
from rectifit.data.sampling import hash_rows
from rectifit.datasets import make_relu
from rectifit.solution import VerificationError
from rectifit.surrogate import near_far, passes
from rectifit.surrogate.near_far import NearFar
from rectifit.surrogate.pass_engine import PassEngine
from rectifit.surrogate.passes import PassReader
from rectifit.surrogate.rows_engine import RowsEngine
from rectifit.surrogate.sweep import Probe

# The zero function is a dead end of some random data, and warned about.
pytestmark = pytest.mark.filterwarnings("ignore:.*dead neuron")


@pytest.fixture
def tight(monkeypatch):
    """So few near rows and so small a sample that small data takes many rounds of both kinds of steps."""
    monkeypatch.setattr(near_far, "MIN_NEAR_ROWS", 6)
    monkeypatch.setattr(Data, "near_factor", 1)
    monkeypatch.setattr(Data, "sample_factor", 3)
    monkeypatch.setattr(passes, "MIN_SAMPLE_COLUMNS", 7)


def make(seed):
    """Data of any kind: ternary or Gaussian, float32, ties, y < 0 and y = 0, weights with zeros, ridge."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(5, 300)), int(rng.integers(1, 7))
    X = rng.standard_normal((n, p)) if seed % 3 else rng.integers(-1, 2, (n, p)).astype(float)
    y = np.maximum(X @ rng.standard_normal(p), 0.0) + rng.choice([0.0, 0.1, 1.0]) * rng.standard_normal(n)
    if seed % 4 == 1:
        y = np.round(y)
    if seed % 5 == 2:
        y = np.maximum(y, 0.0)
    w = rng.integers(0, 4, n) + (np.arange(n) == 0) if seed % 2 else None
    X = X.astype(np.float32) if seed % 7 == 3 else X
    return X, y, w, {"fit_intercept": bool(seed % 3 == 1), "alpha": [0.0, 0.0, 0.3][seed % 3]}


def in_passes(X, y, w, seed):
    return ArrayData(X, y, w, block_rows=7 + seed % 50, n_threads=1 + seed % 2)


def solve_splits(engine):
    """The surrogates of ten splits, without the empty one, and where a `NearFar` ends."""
    reader, sets = engine.reader, [active for active in engine.split_sets(10) if active != NONE]
    return sets, NearFar(reader).solve(
        sets, reader.model.starts(sets, [None] * len(sets), reader.least_squares())
    )


def split_masks(problem):
    """The active sets of ten splits of data in memory, as masks."""
    return [active.mask for active in RowsEngine(problem).split_sets(10)]


def assert_same(found, memory):
    """Equal objectives; a dead fit is rounding noise, whose direction decides what follows it."""
    scale = memory.certificate.null_objective
    assert found.surrogate_objective <= memory.surrogate_objective + 1e-10 * scale
    assert abs(found.objective - memory.objective) <= 1e-8 * memory.objective + 1e-13 * scale
    found.verify()


@pytest.mark.parametrize("seed", range(40))
def test_sorting_is_the_same(seed):
    X, y, w, options = make(seed)
    memory = solve(X, y, "sorting", sample_weight=w, **options)
    assert_same(solve(in_passes(X, y, w, seed), None, "sorting", **options), memory)


@pytest.mark.parametrize("seed", range(40))
def test_sorting_and_iterative_are_the_same(seed):
    X, y, w, options = make(seed)
    memory = solve(X, y, "sorting+iterative", sample_weight=w, **options)
    found = solve(in_passes(X, y, w, seed), None, "sorting+iterative", **options)
    if min(row.objective for row in memory.trace[:11]) < (1.0 - 1e-9) * memory.certificate.null_objective:
        assert_same(found, memory)
        # Samples without weight have no part in anything here, but change sides in memory.
        assert found.n_iter == memory.n_iter or w is not None
    if w is None and memory.problem.n_samples > 20 * X.shape[1] and memory.objective > 1e-9:
        np.testing.assert_allclose(found.beta, memory.beta, atol=1e-8 * np.abs(memory.beta).max() + 1e-12)


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize("seed", range(30))
def test_many_rounds_end_at_the_same_minima(seed):
    X, y, w, options = make(seed)
    memory = solve(X, y, "sorting", sample_weight=w, **options)
    assert_same(solve(in_passes(X, y, w, seed), None, "sorting", **options), memory)


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize("seed", range(6))
def test_every_surrogate_is_minimised_and_bounded(seed):
    X, y, *_ = make_relu(400, 5, noise=0.5, design="gaussian", random_state=seed)
    memory = Problem.from_data(X, y)
    engine, exact = PassEngine(Problem(ArrayData(X, y, block_rows=60))), SurrogateSolver(memory)
    coordinates = engine.reader.coordinates
    scale = coordinates.scale**2
    for active, one in zip(split_masks(memory), solve_splits(engine)[1], strict=False):
        expected = exact.solve(active)
        assert one.converged
        assert abs(one.at.value * scale - expected.value) <= 1e-9 * expected.value
        assert (one.at.value - one.loss) * scale <= expected.value * (1.0 + 1e-12)
        assert one.loss * scale <= 1e-9 * expected.value
        beta, intercept = coordinates.coefficients(one.at.gamma)
        np.testing.assert_allclose(beta, expected.beta, atol=1e-7)
        assert memory.objective(beta, intercept) == pytest.approx(one.at.objective * scale, rel=1e-10)


def test_bound_holds_at_every_turn(monkeypatch):
    # Cut off after one turn, before anything has converged, the bound is still below the minimum.
    monkeypatch.setattr(near_far, "MAX_TURNS", 1)
    X, y, *_ = make_relu(6000, 4, noise=0.5, design="gaussian", random_state=0)
    reader = PassReader(Problem(ArrayData(X, y)))
    (start,) = reader.model.starts([ALL], [None], reader.least_squares())
    (one,) = NearFar(reader).solve([ALL], [start._replace(gamma=1.1 * start.gamma)])
    least = SurrogateSolver(Problem.from_data(X, y)).solve(y > 0)
    scale = reader.coordinates.scale**2
    assert not one.converged
    assert (one.at.value - one.loss) * scale <= least.value
    assert one.at.value * scale > least.value


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_minima_at_zero_are_proved_in_few_looks(seed, fit_intercept):
    """At low signal many minima are at zero, where the kinks of all samples with y <= 0 meet."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30_000, 4))
    y = np.maximum(X @ np.array([0.3, -0.1, 0.2, 0.0]), 0.0) + 10.0 * rng.standard_normal(30_000)
    exact = SurrogateSolver(Problem.from_data(X, y, fit_intercept=fit_intercept))
    engine = PassEngine(Problem(ArrayData(X, y), fit_intercept))
    sets, found = solve_splits(engine)
    reader, total = engine.reader, engine.reader.total
    n_at_zero = 0
    for active, one in zip(sets, found, strict=True):
        expected = exact.solve(Problem.from_data(X, y).loaded().mask_of(active)).value
        value = one.at.value * reader.coordinates.scale**2
        assert one.converged
        assert value == pytest.approx(expected, rel=1e-10)
        assert value * (1.0 - one.loss / total) <= expected * (1.0 + 1e-13)
        assert one.loss <= 1e-9 * total
        if not one.at.gamma.any():
            n_at_zero += 1
            assert one.at.value == one.at.objective == total
            assert engine.following([engine._minimum(one)]) == [NONE]
    assert n_at_zero >= 3
    assert reader.n_passes <= 30


@pytest.mark.parametrize("seed", range(8))
def test_cuts_are_those_of_sorting(seed):
    X, y, w, _ = make(4 * seed + 1)
    y, X = np.tile(y, 3), np.tile(X, (3, 1))
    w = None if w is None else np.tile(w, 3)
    memory = Problem.from_data(X, y, sample_weight=w)
    engine = PassEngine(Problem(ArrayData(X, y, w, block_rows=11)))
    v = memory.root_weight * memory.y
    weighted = memory.root_weight > 0.0
    for active, cut in zip(split_masks(memory), engine.split_sets(10), strict=True):
        tied = (v == cut.value) & (np.arange(v.size) >= cut.first)
        found = ((v > cut.value) | tied) & (v > 0.0)
        np.testing.assert_array_equal(found[weighted], active[weighted])
        np.testing.assert_array_equal(memory.data.mask_of(cut), found)


def test_same_answer_with_blocks_of_any_size_and_any_threads():
    X, y, *_ = make_relu(3000, 6, noise=0.4, random_state=1)
    fits = [
        solve(ArrayData(X, y, block_rows=rows, n_threads=threads), None, "sorting+iterative")
        for rows, threads in ((3000, 1), (100, 2), (1, 3))
    ]
    for fit in fits[1:]:
        assert fit.objective == pytest.approx(fits[0].objective, rel=1e-12)
        np.testing.assert_allclose(fit.beta, fits[0].beta, atol=1e-9)


@pytest.mark.parametrize("method", ["sorting+iterative", "auto"])
def test_threads_do_not_change_a_digit(method):
    X, y, *_ = make_relu(4000, 6, noise=0.4, design="gaussian", random_state=1)
    fits = [
        solve(ArrayData(X, y, block_rows=130), None, method, n_jobs=n_jobs, random_state=0)
        for n_jobs in (1, 2, 5)
    ]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.beta, fits[0].beta)
        assert (fit.intercept, fit.objective) == (fits[0].intercept, fits[0].objective)
        assert fit.certificate.lower_bound == fits[0].certificate.lower_bound


def test_weights_are_repeated_rows():
    X, y, *_ = make_relu(500, 4, noise=0.4, random_state=2)
    w = np.random.default_rng(0).integers(1, 4, y.size)
    weighted = solve(ArrayData(X, y, w), None, "iterative")
    repeated = solve(ArrayData(np.repeat(X, w, axis=0), np.repeat(y, w)), None, "iterative")
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-9)


@pytest.mark.parametrize("method", ["auto", "multistart"])
def test_a_search_is_at_least_as_good_as_sorting_and_iterative(method):
    X, y, *_ = make_relu(2000, 5, noise=0.8, random_state=3)
    found, plain = (solve(ArrayData(X, y), None, name) for name in (method, "sorting+iterative"))
    assert found.objective <= plain.objective * (1.0 + 1e-9)
    assert found.certificate.status in ("bound_only", "optimal")
    found.verify()


@pytest.mark.parametrize("seed", range(12))
def test_auto_is_the_same(seed):
    X, y, w, options = make(seed)
    memory = solve(X, y, sample_weight=w, **options)
    found = solve(in_passes(X, y, w, seed), None, **options)
    scale = memory.certificate.null_objective
    assert abs(found.objective - memory.objective) <= 1e-8 * memory.objective + 1e-13 * scale
    found.verify()


@pytest.mark.parametrize("seed", range(12))
def test_multistart_is_at_least_as_good_as_sorting_and_iterative(seed):
    X, y, w, options = make(seed)
    found, plain = (
        solve(in_passes(X, y, w, seed), None, method, **options)
        for method in ("multistart", "sorting+iterative")
    )
    slack = 1e-13 * plain.certificate.null_objective
    assert found.objective <= plain.objective * (1.0 + 1e-9) + slack
    assert found.n_surrogates > plain.n_surrogates
    found.verify()


def test_dead_data_is_settled():
    # Every non-positive sample has its kink at the minimum, far more than are ever kept as near rows.
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 2))
    y = np.where(rng.random(20_000) < 0.02, 0.1, -1.0)
    with pytest.warns(UserWarning, match="dead neuron"):
        found = solve(ArrayData(X, y), None, "sorting", fit_intercept=False)
    assert found.objective == pytest.approx(float(y @ y), rel=1e-9)
    assert found.surrogate.value - found.surrogate.dual_bound <= 1e-8 * found.surrogate.value


def test_dead_sorting_is_followed_from_least_squares():
    rng = np.random.default_rng(1)
    X = rng.integers(-1, 2, (5000, 2)).astype(float)
    y = np.maximum(X @ [0.3, 0.4], 0.0) + 2.0 * rng.standard_normal(5000)
    dead, followed, plain = (
        solve(ArrayData(X, y), None, method, fit_intercept=False)
        for method in ("sorting", "sorting+iterative", "iterative")
    )
    assert dead.objective == pytest.approx(float(y @ y), rel=1e-12)
    assert followed.objective == pytest.approx(plain.objective, rel=1e-12)
    assert followed.objective < 0.999 * dead.objective


@pytest.mark.parametrize("dependent", [False, True])
def test_extreme_scales_and_dependent_columns(dependent):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 3)) * [1e-120, 1.0, 1e120]
    if dependent:
        X = np.column_stack([X, X[:, 1] + 1e-9 * rng.standard_normal(300), X[:, 1]])
    y = np.maximum(X[:, 0] * 1e120 - X[:, 1], 0.0) + 0.1 * rng.standard_normal(300)
    memory = solve(X, y, "sorting")
    assert_same(solve(ArrayData(X, y, block_rows=70), None, "sorting"), memory)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mapped_file_is_read_in_passes(tmp_path, dtype, monkeypatch):
    monkeypatch.setattr(routing, "MAPPED_BYTES", 1)
    X, y, *_ = make_relu(2000, 4, noise=0.3, design="gaussian", random_state=4)
    np.save(tmp_path / "X.npy", X.astype(dtype))
    np.save(tmp_path / "y.npy", y)
    mapped, outcome = (np.load(tmp_path / name, mmap_mode="r") for name in ("X.npy", "y.npy"))
    assert isinstance(mapped, np.memmap)
    expected = solve(X.astype(dtype), y, "sorting+iterative")
    assert_same(solve(mapped, outcome, "sorting+iterative"), expected)
    # A part of a file, which begins elsewhere.
    part = solve(mapped[500:], outcome[500:], "sorting")
    assert_same(part, solve(X[500:].astype(dtype), y[500:], "sorting"))
    model = ReLURegressor("sorting+iterative", n_jobs=2).fit(mapped, outcome)
    assert model.objective_ == pytest.approx(expected.objective, rel=1e-9)
    assert model.active_ is None
    np.testing.assert_array_equal(model.predict(X[:5]), model.solution_.predict(X[:5]))


def test_parquet(tmp_path):
    X, y, *_ = make_relu(3000, 3, noise=0.3, design="gaussian", random_state=5)
    w = np.random.default_rng(0).uniform(0.5, 2.0, y.size)
    table = pl.DataFrame({"b": X[:, 0], "a": X[:, 1], "y": y, "c": X[:, 2], "w": w})
    table[:2000].write_parquet(tmp_path / "1.parquet", row_group_size=700)
    table[2000:].write_parquet(tmp_path / "2.parquet", row_group_size=500)
    data = open_parquet(tmp_path / "*.parquet", target="y", weights="w")
    assert (data.n_samples, data.feature_names) == (3000, ("b", "a", "c"))
    memory = solve(X, y, "sorting+iterative", sample_weight=w)
    assert_same(solve(data, None, "sorting+iterative"), memory)
    model = ReLURegressor("sorting").fit(
        open_parquet([tmp_path / "1.parquet"], target="y", features=["a", "c"]), None
    )
    assert model.feature_names_in_.tolist() == ["a", "c"]
    expected = solve(X[:2000, 1:], y[:2000], "sorting")
    assert model.objective_ == pytest.approx(expected.objective, rel=1e-9)


def test_parquet_errors_name_the_column(tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"x": [1.0, None], "t": ["a", "b"], "y": [1.0, 2.0]}).write_parquet(path)
    with pytest.raises(ValueError, match="no column 'z'"):
        open_parquet(path, target="z")
    with pytest.raises(ValueError, match="no file"):
        open_parquet(tmp_path / "none*.parquet", target="y")
    with pytest.raises(ValueError, match="'x' has missing entries"):
        solve(open_parquet(path, target="y", features=["x"]), None)
    with pytest.raises(TypeError, match="'t' has type"):
        solve(open_parquet(path, target="y", features=["t"]), None)


def test_errors():
    X, y = np.ones((4, 2)), np.ones(4)
    with pytest.raises(ValueError, match="must be None"):
        solve(ArrayData(X, y), y)
    with pytest.raises(ValueError, match="X contains NaN"):
        solve(ArrayData(np.full((4, 2), np.nan), y), None)
    with pytest.raises(ValueError, match="y contains an infinite value"):
        solve(ArrayData(X, np.full(4, np.inf)), None)
    with pytest.raises(ValueError, match="negative entry"):
        solve(ArrayData(X, y, -y), None)
    with pytest.raises(ValueError, match="zero everywhere"):
        solve(ArrayData(X, y, 0 * y), None)
    with pytest.raises(ValueError, match="floor is 'estimate', which needs all rows in memory"):
        solve(ArrayData(X, y), None, floor="estimate")
    with pytest.raises(ValueError, match=r"floor is 1\.0; with fit_intercept=False it must be 0"):
        solve(ArrayData(X, y), None, floor=1.0, fit_intercept=False)
    with pytest.raises(ValueError, match="floor is inf; it must be finite"):
        solve(ArrayData(X, y), None, floor=np.inf)
    with pytest.raises(TypeError, match="floor is None; it must be a number or 'estimate'"):
        solve(ArrayData(X, y), None, floor=None)
    with pytest.raises(ValueError, match="y has 3 entries but X has 4 rows"):
        ArrayData(X, y[:3])


@pytest.mark.parametrize("stage", ["approximation", "exact", "gd", "sgd"])
def test_stages_that_need_all_rows_are_refused(stage):
    X, y, *_ = make_relu(50, 2, noise=0.3, random_state=0)
    for method in (stage, f"sorting+{stage}"):
        with pytest.raises(ValueError, match=f"'{stage}'") as refused:
            solve(ArrayData(X, y), None, method)
        sentence = str(refused.value)
        assert "all rows in memory" in sentence
        assert "read in passes" in sentence
        assert ". " not in sentence


@pytest.mark.parametrize("seed", range(6))
def test_large_arrays_are_fitted_in_passes(seed, monkeypatch):
    X, y, w, options = make(seed)
    memory = solve(X, y, "sorting+iterative", sample_weight=w, **options)
    monkeypatch.setattr(routing, "LARGE_ENTRIES", 1)
    monkeypatch.setattr(routing, "MANY_ROWS", 1)
    monkeypatch.setattr(routing, "MANY_ROWS_PER_COLUMN", 0)
    found = solve(X, y, "sorting+iterative", sample_weight=w, **options)
    # The solution has its data, and masks of active sets, like any other.
    assert found.problem.data.in_memory
    assert found.problem.data.mask_of(found.surrogate.active).shape == y.shape
    assert_same(found, memory)
    model = ReLURegressor("sorting+iterative", **options).fit(X, y, sample_weight=w)
    assert model.active_.shape == y.shape
    # Stages that need the data at hand have it.
    assert solve(X, y, "gd", sample_weight=w, **options).problem is not None


@pytest.mark.parametrize("seed", range(1, 40, 3))
@pytest.mark.parametrize("floor", [0.7, -20.0])
def test_known_floors(seed, floor):
    X, y, w, options = make(seed)
    assert options["fit_intercept"]
    memory = solve(X, y + floor, "sorting", sample_weight=w, floor=floor, **options)
    found = solve(in_passes(X, y + floor, w, seed), None, "sorting", floor=floor, **options)
    assert found.floor == floor
    assert_same(found, memory)
    # From a fit, its intercept as it is.
    again = solve(in_passes(X, y + floor, w, seed), None, "iterative", floor=floor, start=found, **options)
    assert again.objective <= found.objective * (1.0 + 1e-9) + 1e-13 * found.certificate.null_objective
    again.verify()


def test_a_known_floor_shifts_the_fit():
    """max(f, u) - y = max(0, u - f) - (y - f): the same fit, f higher."""
    X, y, *_ = make_relu(500, 3, noise=0.3, random_state=1)
    plain = solve(ArrayData(X, y, block_rows=90), None, "sorting+iterative")
    high = solve(ArrayData(X, y + 5.0, block_rows=90), None, "sorting+iterative", floor=5.0)
    np.testing.assert_allclose(high.beta, plain.beta, rtol=1e-9)
    assert high.intercept == pytest.approx(plain.intercept + 5.0, rel=1e-9)
    assert high.objective == pytest.approx(plain.objective, rel=1e-9)
    assert high.certificate.lower_bound == pytest.approx(plain.certificate.lower_bound, rel=1e-9)
    np.testing.assert_allclose(high.predict(X), plain.predict(X) + 5.0, rtol=1e-9)


def test_known_floors_of_large_arrays(monkeypatch):
    X, y, *_ = make_relu(500, 3, noise=0.3, random_state=1)
    memory = solve(X, y, "sorting+iterative", floor=0.5)
    monkeypatch.setattr(routing, "LARGE_ENTRIES", 1)
    monkeypatch.setattr(routing, "MANY_ROWS", 1)
    monkeypatch.setattr(routing, "MANY_ROWS_PER_COLUMN", 0)
    found = solve(X, y, "sorting+iterative", floor=0.5)
    assert found.trace != memory.trace
    assert found.floor == 0.5
    assert_same(found, memory)
    assert solve(X, y, "sorting", floor="estimate").floor_is_estimated


def test_start_and_time_limit():
    X, y, *_ = make_relu(3000, 5, noise=0.3, random_state=6)
    good = solve(X, y, "sorting+iterative")
    again = solve(ArrayData(X, y), None, "iterative", start=good)
    assert again.objective <= good.objective * (1.0 + 1e-12)
    stopped = solve(ArrayData(X, y), None, "sorting+iterative", start=good, time_limit=1e-9)
    assert stopped.stopped.name == "TIME_LIMIT"
    assert stopped.objective == pytest.approx(good.objective, rel=1e-12)


def test_time_runs_out_within_a_solve(monkeypatch):
    X, y, *_ = make_relu(3000, 5, noise=0.3, random_state=6)
    now, perf_counter = [0.0], time.perf_counter
    monkeypatch.setattr("rectifit.clock.time.perf_counter", lambda: perf_counter() + now[0])
    sweep = PassReader.sweep

    def late(self, *arguments, **options):
        now[0] += 1000.0
        return sweep(self, *arguments, **options)

    monkeypatch.setattr(PassReader, "sweep", late)
    stopped = solve(ArrayData(X, y), None, "sorting", time_limit=500.0)
    # The points of the one pass that was made count.
    assert stopped.stopped.name == "TIME_LIMIT"
    assert stopped.objective < 0.5 * stopped.certificate.null_objective


def test_verify_reads_the_data_again():
    X, y, *_ = make_relu(500, 3, noise=0.3, random_state=7)
    fit = solve(ArrayData(X, y), None, "sorting+iterative")
    fit.verify()
    X[:100] *= 2.0
    with pytest.raises(VerificationError, match="the objective is"):
        fit.verify()


def test_fingerprints_say_whether_an_active_set_changed():
    X, y, *_ = make_relu(300, 3, noise=0.5, design="gaussian", random_state=8)
    engine = PassEngine(Problem(ArrayData(X, y, block_rows=37)))
    here = engine.reader.least_squares()
    point = engine.reader.coordinates.coefficients(here)
    u, changed = X @ point[0] + point[1], []
    numbers = hash_rows(np.arange(y.size))
    for _ in range(20):
        active = Sign(*point, 0.0, here)
        (minimum,) = engine.minimise([active], follow=True)
        here, point = minimum.point.at.gamma, (minimum.point.beta, minimum.point.intercept)
        before, u = u, X @ point[0] + point[1]
        masks = [(values > 0) & (y > 0) for values in (before, u)]
        assert minimum.point.at.fingerprints == tuple(int(numbers[mask].sum()) for mask in masks)
        changed.append(int((masks[0] != masks[1]).sum()))
        assert (engine.following([minimum])[0] is None) == (changed[-1] == 0)
    assert changed[0] > 0 == changed[-1]


def test_unaligned_rows_are_copied_not_refused():
    X, y, *_ = make_relu(400, 3, noise=0.3, random_state=9)
    raw = np.zeros(X.nbytes + 1, dtype=np.uint8)
    crooked = raw[1:].view(np.float64).reshape(X.shape)
    crooked[...] = X
    assert not crooked.flags.aligned
    straight, found = (solve(ArrayData(A, y), None, "sorting+iterative") for A in (X, crooked))
    assert found.objective == straight.objective


def test_rows_are_not_brought_back_where_the_sample_says_they_are_too_many():
    X, y, *_ = make_relu(40_000, 3, noise=0.5, design="gaussian", random_state=0)
    reader = PassReader(Problem(ArrayData(X, y)))
    (start,) = reader.model.starts([ALL], [None], reader.least_squares())
    few, many = (reader.model.target(ALL, start.gamma, reach, 0) for reach in (0.0, 1.0))
    assert few.cap > 0 == many.cap
    assert many.width == 2.0
    for target in (few, many):
        n_near = int(reader.sweep([Probe(start.gamma, ALL, target.width, target.cap)]).n_near[0])
        assert (n_near > few.cap) == (target is many)


def test_coordinates_travel_light_and_arrive_whole():
    X, y, *_ = make_relu(300, 30, noise=0.5, random_state=0)
    coordinates = PassReader(Problem(ArrayData(X, y))).coordinates
    state = pickle.dumps(coordinates)
    assert len(state) < coordinates.T.nbytes / 4
    np.testing.assert_array_equal(pickle.loads(state).T, coordinates.T)


@pytest.mark.parametrize("max_turns", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(10))
def test_bounds_hold_however_soon_a_search_ends(seed, max_turns, monkeypatch):
    monkeypatch.setattr(near_far, "MAX_TURNS", max_turns)
    monkeypatch.setattr(near_far, "MIN_NEAR_ROWS", 300)
    monkeypatch.setattr(Data, "near_factor", 5)
    monkeypatch.setattr(Data, "sample_factor", 30)
    monkeypatch.setattr(passes, "MIN_SAMPLE_COLUMNS", 4)
    X, y, *_ = make_relu(3000, 4, noise=[0.1, 0.5, 2.0][seed % 3], design="gaussian", random_state=seed)
    engine, exact = PassEngine(Problem(ArrayData(X, y))), SurrogateSolver(Problem.from_data(X, y))
    scale = engine.reader.coordinates.scale**2
    for cut, found in zip(*solve_splits(engine), strict=True):
        tied = (y == cut.value) & (np.arange(y.size) >= cut.first)
        least = exact.solve(((y > cut.value) | tied) & (y > 0.0)).value / scale
        assert found.at.value - found.loss <= least * (1.0 + 1e-13)
        assert found.at.value >= least * (1.0 - 1e-12)
