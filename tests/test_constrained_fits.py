"""Surrogates and methods under constraints: optimality, independent solvers, all engines, guarantees."""

import numpy as np
import pytest
import scipy.sparse as sp
from brute import least_objective, random_problem
from constrained import KINDS, assert_allowed, constrained_problem, random_constraints
from optimality import solve_checked
from peers import as_programme, solve_clarabel
from scipy.optimize import LinearConstraint, lsq_linear

from rectifit import Problem, SurrogateSolver, solve, solve_surrogate
from rectifit.data.arrays import ArrayData
from rectifit.datasets import make_relu
from rectifit.experiments.ratio import make_decoys
from rectifit.solution import Solution

pytestmark = pytest.mark.filterwarnings(
    "ignore:the fit is the zero function", "ignore:no outcome is positive"
)

METHODS = ("approximation", "sorting", "sorting+iterative", "multistart", "auto", "gd", "sgd", "sorting+gd")


def draw_problem(seed, kind, n_samples=None):
    base = random_problem(seed, n_samples)
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    given = random_constraints(kind, base.n_features, rng, float(rng.choice([0.1, 1.0, 10.0])))
    return constrained_problem(base, **given), given


def arguments(problem, given):
    """What `solve` is given for the same problem."""
    return {
        "sample_weight": problem.sample_weight,
        "fit_intercept": problem.fit_intercept,
        "alpha": problem.alpha,
        **given,
    }


def assert_optimal_within(problem, active, found):
    """Constraints, value, dual bound, stationarity, and multipliers of the right signs."""
    known, p = problem.constraints, problem.n_features
    assert_allowed(problem, found.beta)
    value = problem.surrogate_value(active, found.beta, found.intercept)
    scale = max(problem.null_objective, value)
    assert found.converged
    assert abs(value - found.value) <= 1e-10 * scale
    assert found.value - 1e-8 * scale <= found.dual_bound <= found.value
    ends, rows = found.multipliers[:p], found.multipliers[p:]
    size = np.sqrt(scale) * np.linalg.norm(problem.root_weight[:, None] * problem.X, axis=0)
    assert np.all((ends <= 1e-9 * size) | (found.beta == known.high))
    assert np.all((ends >= -1e-9 * size) | (found.beta == known.low))
    residual = found.dual @ problem.X + 2.0 * problem.alpha * found.beta + ends + rows @ known.A
    assert np.all(np.abs(residual) <= 1e-6 * size + 1e-9 * np.abs(found.multipliers).sum())
    if problem.fit_intercept:
        assert abs(found.dual.sum()) <= 1e-6 * np.sqrt(scale) * np.linalg.norm(problem.root_weight)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunk", range(4))
def test_surrogates_are_optimal_and_no_general_solver_finds_less(kind, chunk, engine):
    for seed in range(10 * chunk, 10 * chunk + 10):
        rng = np.random.default_rng(seed)
        problem, _ = draw_problem(seed, kind, int(rng.integers(3, 60)))
        if problem.constraints is None:
            continue
        active = rng.random(problem.n_samples) < rng.choice([0.0, 0.1, 0.5, 0.9, 1.0])
        found = SurrogateSolver(problem, engine).solve(active)
        assert_optimal_within(problem, active, found)
        programme = as_programme(
            problem.X,
            problem.y,
            active,
            sample_weight=np.square(problem.root_weight),
            fit_intercept=problem.fit_intercept,
            alpha=problem.alpha,
            constraints=problem.constraints,
        )
        peer = solve_clarabel(programme).coefficients
        if np.abs(peer).max() > 1e4:
            continue
        p = problem.n_features
        value = problem.surrogate_value(active, peer[:p], float(peer[p:].sum()))
        # The peer violates constraints by 1e-8 or so.
        slack = 1e-7 * max(problem.null_objective, value)
        assert found.dual_bound <= value + slack
        assert found.value <= value + slack


@pytest.mark.parametrize("kind", KINDS)
def test_the_minimum_does_not_depend_on_the_start(kind):
    for seed in range(10):
        problem, given = draw_problem(seed, kind, 30)
        active, options = problem.y > 0.5, arguments(problem, given)
        first = solve_surrogate(problem.X, problem.y, active, **options)
        far = np.random.default_rng(seed).normal(size=problem.n_features) * 100.0
        again = solve_surrogate(problem.X, problem.y, active, start=far, **options)
        scale = max(problem.null_objective, first.value)
        assert again.value == pytest.approx(first.value, abs=1e-10 * scale)


def test_with_all_samples_active_it_is_bounded_least_squares():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 6)), 5.0 + rng.normal(size=80)
    low, high = -0.05 * np.ones(6), np.array([0.0, 0.1, np.inf, np.inf, 0.02, 1.0])
    found = solve_surrogate(X, y, y > 0, bounds=np.column_stack([low, high]))
    expected = lsq_linear(
        np.column_stack([X, np.ones(80)]), y, (np.append(low, -np.inf), np.append(high, np.inf)), tol=1e-14
    )
    assert found.beta == pytest.approx(expected.x[:-1], abs=1e-8)
    assert found.value == pytest.approx(2.0 * expected.cost, rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_keeps_to_the_constraints(method, kind):
    for seed in range(4):
        problem, given = draw_problem(seed, kind, 12)
        if problem.positive.sum() > 9 or problem.constraints is None:
            continue
        options = arguments(problem, given)
        fit = solve(problem.X, problem.y, method, random_state=0, **options)
        fit.verify()
        assert_allowed(problem, fit.beta)
        least = least_objective(problem)
        slack = 1e-8 * max(problem.null_objective, least)
        assert fit.objective >= least - slack
        assert fit.certificate.lower_bound <= least + slack


@pytest.mark.parametrize("kind", KINDS)
def test_steps_of_the_iterative_method_never_raise_the_objective(kind):
    for seed in range(10):
        problem, given = draw_problem(seed, kind, 40)
        fit = solve(problem.X, problem.y, "sorting+iterative", **arguments(problem, given))
        objectives = [row.objective for row in fit.trace if row.stage == "iterative"]
        scale = max(problem.null_objective, fit.objective)
        assert np.all(np.diff(objectives) <= 1e-10 * scale)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 2])
def test_the_guarantee_holds_under_constraints(kind, k):
    for seed in range(12):
        problem, given = draw_problem(seed, kind)
        if problem.positive.sum() > 9 or problem.constraints is None:
            continue
        fit = solve(problem.X, problem.y, "approximation", k=k, **arguments(problem, given))
        least = least_objective(problem)
        n_positive = int((problem.positive & (problem.root_weight > 0)).sum())
        slack = 1e-9 * max(problem.null_objective, least)
        assert fit.surrogate_objective <= max(1.0, n_positive / k) * least + slack
        assert fit.objective <= fit.surrogate_objective + slack


@pytest.mark.parametrize(("n", "k"), [(20, 1), (20, 2), (60, 3)])
def test_decoys_reach_the_ratio_under_constraints(n, k):
    """With beta >= 0 decoys on the other side are never on, but active ones still hold beta at 0."""
    X, y = make_decoys(n, k)
    fit = solve(X, y, "approximation", k=k, fit_intercept=False, positive=True)
    best = solve(X, y, "auto+exact", fit_intercept=False, positive=True, target_gap=1e-9)
    assert best.certificate.status == "optimal"
    assert best.objective == pytest.approx(k, rel=1e-3)
    assert 0.99 * (n - 1) / k <= fit.objective / best.objective <= n / k


@pytest.mark.parametrize("method", ["sorting", "sorting+iterative", "auto"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_data_give_the_same_fit(kind, method):
    torch = pytest.importorskip("torch")
    da = pytest.importorskip("dask.array")
    from rectifit.data.tensors import TensorData

    rng = np.random.default_rng(KINDS.index(kind))
    X = rng.normal(size=(1500, 5)) * [1.0, 100.0, 1.0, 0.01, 1.0]
    X[rng.random(X.shape) < 0.2] = 0.0
    y = np.maximum(X @ (rng.normal(size=5) / [1.0, 100.0, 1.0, 0.01, 1.0]) + 0.3, 0.0) + rng.normal(size=1500)
    given = random_constraints(kind, 5, rng, 0.5)
    fit = solve(X, y, method, random_state=0, **given)
    problem = fit.problem
    for data in (
        (sp.csr_matrix(X), y),
        (ArrayData(X, y, None), None),
        (da.from_array(X, chunks=(400, 5)), da.from_array(y, chunks=400)),
        (TensorData(torch.tensor(X), torch.tensor(y), None), None),
    ):
        other = solve(*data, method, random_state=0, **given)
        other.verify()
        assert_allowed(problem, other.beta)
        assert other.certificate.lower_bound <= fit.objective * (1 + 1e-9)
        if method == "auto":
            # Random starts differ between data in memory and data in passes.
            least = solve(X, y, "sorting+iterative", **given).objective
            assert other.objective <= least * (1 + 1e-9)
        else:
            assert other.objective == pytest.approx(fit.objective, rel=1e-9)


@pytest.mark.parametrize("method", ["sorting", "sorting+iterative", "approximation", "gd"])
@pytest.mark.parametrize("seed", range(4))
def test_constraints_that_do_not_bind_change_nothing(method, seed):
    X, y, *_ = make_relu(120, 5, noise=0.3, design="gaussian", random_state=seed)
    free = solve(X, y, method)
    size = 1e3 * np.abs(free.beta).max()
    order = LinearConstraint(np.ones((1, 5)), -1e4 * size, 1e4 * size)
    for given in ({"bounds": (-size, size)}, {"constraints": order}):
        fit = solve(X, y, method, **given)
        assert fit.objective == pytest.approx(free.objective, rel=1e-9)
        assert fit.beta == pytest.approx(free.beta, rel=1e-6, abs=1e-9 * np.abs(free.beta).max())
        assert not fit.at_bound.any()


def test_units_of_columns_do_not_matter():
    X, y, *_ = make_relu(200, 4, noise=0.5, design="gaussian", random_state=1)
    unit = np.array([1e-6, 1.0, 1e3, 1e8])
    bounds = np.array([[0.0, 0.3], [-0.1, 0.2], [0.0, np.inf], [-np.inf, 0.0]])
    fit = solve(X, y, "sorting+iterative", bounds=bounds)
    scaled = solve(X * unit, y, "sorting+iterative", bounds=bounds / unit[:, None])
    assert scaled.objective == pytest.approx(fit.objective, rel=1e-9)
    assert scaled.beta * unit == pytest.approx(fit.beta, rel=1e-6, abs=1e-9)
    assert np.array_equal(scaled.at_bound, fit.at_bound)


def test_bounds_determine_what_the_data_do_not():
    """A column twice: only the sum of its coefficients is determined, and bounds hold for each."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=60)
    X, y = np.column_stack([x, x, rng.normal(size=60)]), np.maximum(2.0 * x, 0.0)
    fit = solve(X, y, bounds={"x0": (0.5, 0.75), "x1": (None, 1.5)})
    assert fit.objective <= 1e-18 * float(y @ y)
    assert fit.beta[:2].sum() == pytest.approx(2.0)
    assert 0.5 <= fit.beta[0] <= 0.75
    fit.verify()


def test_where_zero_is_not_allowed_the_dead_fit_is_the_nearest_to_it():
    rng = np.random.default_rng(0)
    X, y = np.abs(rng.normal(size=(30, 2))), -1.0 - rng.random(30)
    fit = solve(X, y, fit_intercept=False, bounds=[(0.5, 2.0), (-1.0, 1.0)])
    # Without an intercept the least slope is best, and the other coefficient works against it.
    assert fit.beta[0] == 0.5
    assert fit.objective == pytest.approx(float(np.square(np.maximum(X @ fit.beta, 0.0) - y).sum()))
    assert fit.objective > float(y @ y)
    fit.verify()


def test_the_surrogate_of_the_empty_set_is_solved_where_zero_is_not_allowed():
    rng = np.random.default_rng(1)
    X, y = np.abs(rng.normal(size=(40, 2))), rng.normal(size=40)
    problem = constrained_problem(Problem.from_data(X, y, fit_intercept=False), bounds=(1.0, 2.0))
    nobody = np.zeros(40, dtype=bool)
    found = SurrogateSolver(problem).solve(nobody)
    assert_optimal_within(problem, nobody, found)
    assert found.value > problem.null_objective


def test_a_start_outside_is_moved_inside():
    X, y, *_ = make_relu(60, 3, noise=0.3, random_state=0)
    fit = solve(X, y, "iterative", start=np.array([5.0, -5.0, 5.0]), bounds=(-1.0, 1.0))
    fit.verify()
    assert np.abs(fit.beta).max() <= 1.0


def test_fits_outside_of_their_constraints_do_not_pass():
    X, y, *_ = make_relu(60, 3, noise=0.3, random_state=0)
    fit = solve(X, y, "sorting", positive=True)
    assert isinstance(fit, Solution)
    fit.verify()
    wrong = solve(X, y, "sorting")
    wrong = type(fit)(**{**vars(fit), "beta": wrong.beta - 10.0, "objective": 0.0})
    with pytest.raises(ValueError, match="a constraint does not hold"):
        wrong.verify()


def test_without_constraints_nothing_is_different():
    """The optimality conditions of the plain case are those that the constrained one ends in."""
    problem = random_problem(5, 30)
    solve_checked(problem, problem.y > 0.2)
    wide = constrained_problem(problem, bounds=(-1e6, 1e6))
    found = SurrogateSolver(wide).solve(problem.y > 0.2)
    assert_optimal_within(wide, problem.y > 0.2, found)
    assert not found.multipliers.any()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("is_linear", [False, True])
def test_loose_constraints_leave_the_shortest_of_many_equal_fits(seed, is_linear):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(8, 12)), rng.normal(size=8)
    bounds, constraints = (
        (None, LinearConstraint(np.ones(12), -1e6, 1e6)) if is_linear else ((-1e6, 1e6), None)
    )
    free, within = solve(X, y), solve(X, y, bounds=bounds, constraints=constraints)
    np.testing.assert_allclose(within.beta, free.beta, atol=1e-9)
    assert within.objective == pytest.approx(free.objective, rel=1e-9, abs=1e-12)
