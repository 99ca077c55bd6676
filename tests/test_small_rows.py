"""Rows of small data, set up in compiled code, beside those of any data."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from rectifit import Problem, SurrogateSolver, solve
from rectifit.clock import Clock
from rectifit.datasets import make_relu
from rectifit.surrogate.records import FLAT
from rectifit.surrogate.rows import WorkingRows, working_rows
from rectifit.surrogate.rows_engine import RowsEngine
from rectifit.surrogate.small_rows import SmallRows

N, P = 90, 5
rng = np.random.default_rng(7)
WEIGHT = rng.integers(0, 3, N) * 10.0 ** rng.uniform(-2, 2, N)


def data(kind):
    X, y, *_ = make_relu(N, P, design="gaussian", noise=0.5, random_state=3)
    X = X * 10.0 ** np.arange(-3, 2)
    if kind == "zero column":
        X[:, 2] = 0.0
    elif kind == "dependent columns":
        X[:, 3] = X[:, 1] * 0.5 - X[:, 0]
    elif kind == "nearly dependent columns":
        X[:, 3] = X[:, 1] + 1e-6 * X[:, 0]
    elif kind == "float32":
        X = X.astype(np.float32)
    elif kind == "sparse":
        X = sparse.csr_array(np.where(rng.random(X.shape) < 0.4, X, 0.0))
    return X, y


KINDS = ["dense", "zero column", "dependent columns", "nearly dependent columns", "float32", "sparse"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [{}, {"fit_intercept": False}, {"sample_weight": WEIGHT}, {"alpha": 2.0, "sample_weight": WEIGHT}],
    ids=["plain", "no intercept", "weights", "weights and ridge"],
)
def test_they_are_those_of_any_data(kind, options):
    problem = Problem.from_data(*data(kind), **options)
    small, any_rows = SmallRows(problem), working_rows(problem)
    np.testing.assert_allclose(small.largest, any_rows.largest, rtol=1e-14)
    assert small.n_directions == any_rows.n_directions
    assert (small.coordinates.diagonal is None) == (any_rows.coordinates.diagonal is None)
    np.testing.assert_allclose(small.gram, small.Z.T @ small.Z, atol=1e-13)
    np.testing.assert_allclose(small.ridge, small.coordinates.ridge(problem.penalty), atol=1e-15)
    np.testing.assert_array_equal(small.Z.T, small.Zt)
    np.testing.assert_allclose(small.norms, np.linalg.norm(small.Z, axis=1), rtol=1e-14)
    np.testing.assert_allclose(small.Z, small.rows(slice(None)), atol=1e-13)
    # Eigenvectors have no sign of their own: what does not depend on it is compared.
    np.testing.assert_allclose(
        small.Z @ small.T.T * small.largest,
        any_rows.rows(np.arange(N)) @ any_rows.T.T * any_rows.largest,
        atol=1e-5 if "nearly" in kind else 1e-12,
    )
    start = any_rows.preactivation(any_rows.least_squares())
    np.testing.assert_allclose(small.start, start, atol=1e-9)
    np.testing.assert_allclose(small.preactivation(small.least_squares()), start, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_determine_the_coefficients(kind, weighted):
    problem = Problem.from_data(*data(kind), sample_weight=WEIGHT if weighted else None)
    small, any_rows, shift = SmallRows(problem), WorkingRows(problem), np.linspace(-2.0, 2.0, 9)
    beta = np.array([1e3, 20.0, -3.0, 1.0, 0.2])
    for u in problem.preactivation(np.repeat(beta[:, None], 9, axis=1), shift * 3e3).T:
        assert small.are_determined_by(u) == any_rows.are_determined_by(u)
    assert not small.are_determined_by(np.full(N, -1.0))
    assert small.are_determined_by(np.ones(N)) == (kind in ("dense", "float32", "sparse"))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_minimisers_come_with_the_true_objective(engine, weighted, alpha):
    X, y = data("dense")
    problem = Problem.from_data(X, 1e3 * y, sample_weight=WEIGHT if weighted else None, alpha=alpha)
    rows_engine = RowsEngine(problem)
    rows_engine.solver = SurrogateSolver(problem, engine)
    sets = rows_engine.split_sets(20)
    minima = rows_engine.minimise(sets)
    for active, minimum in zip(sets, minima, strict=True):
        point = minimum.point
        assert minimum.active is active
        assert point.objective == pytest.approx(problem.objective(point.beta, point.intercept), rel=1e-13)
        np.testing.assert_allclose(
            point.u, problem.preactivation(point.beta, point.intercept), rtol=1e-12, atol=1e-9
        )
        value = problem.surrogate_value(active, point.beta, point.intercept)
        assert minimum.value == pytest.approx(value, rel=1e-13)
        assert minimum.dual_bound <= minimum.value * (1.0 + 1e-13)
    # Below the positive outcomes sets are equal, and so are their minima.
    n_different = len({active.key for active in sets})
    assert n_different < len(sets)
    assert len({id(minimum.point) for minimum in minima}) == n_different


def test_solutions_are_the_same_with_and_without_duals(engine):
    problem = Problem.from_data(*data("dense"))
    masks = (rng.random((12, N)) < 0.5) & problem.positive
    masks[3], masks[8] = masks[1], False
    unpacked = SurrogateSolver(problem, engine).solve_each(masks)
    found = SurrogateSolver(problem, engine).answer(masks)
    assert found.lines[3] == found.lines[1]
    for solution, line in zip(unpacked, found.lines, strict=True):
        np.testing.assert_array_equal(solution.beta, found.betas[line])
        assert solution.intercept == found.intercepts[line]
        assert (solution.value, solution.dual_bound) == (found.values[line], found.bounds[line])
        assert solution.converged == found.converged[line]
        # The optimality condition, with an intercept: slopes add up to 0.
        assert abs(solution.dual.sum()) <= 1e-8 * max(np.abs(solution.dual).max(), 1.0)
    assert unpacked[8].value == problem.null_objective == pytest.approx(float(problem.y @ problem.y))


def test_the_gram_matrix_of_the_kernel_is_that_of_its_rows():
    problem = Problem.from_data(*data("dense"), alpha=0.5)
    solver = SurrogateSolver(problem, "compiled")
    for mask in rng.random((30, N)) < 0.5:
        solver.solve(mask)
        warm, rows = solver._engine._warm, solver.rows
        on = rows.Z[warm.state != FLAT]
        expected = np.tril(on.T @ on + rows.ridge)
        np.testing.assert_allclose(np.tril(warm.gram), expected, atol=1e-12)
        # What updates may cancel is measured by the largest values that there have been.
        assert (warm.largest >= np.diag(warm.gram) - 1e-12).all()
    solver.reset()
    warm = solver._engine._warm
    np.testing.assert_array_equal(warm.largest, np.diag(warm.gram))


def test_surrogates_that_are_minimised_together_have_one_time():
    solution = solve(*data("dense"), "sorting+iterative")
    seconds = [row.seconds for row in solution.trace]
    assert len({row.seconds for row in solution.trace if row.stage == "sorting"}) == 1
    assert seconds == sorted(seconds)
    assert min(row.objective for row in solution.trace) == pytest.approx(solution.objective, rel=1e-12)
    solution.verify()


def test_a_solution_travels_and_stays_frozen():
    solution = solve(*data("dense"), "sorting")
    other = pickle.loads(pickle.dumps(solution))
    assert vars(other).keys() == vars(solution).keys()
    assert (other.objective, other.trace, other.stopped) == (
        solution.objective,
        solution.trace,
        solution.stopped,
    )
    np.testing.assert_array_equal(other.beta, solution.beta)
    other.verify()


def test_a_clock_that_was_abandoned_is_over_wherever_it_began():
    clock = Clock()
    assert not clock.is_over()
    clock.abandon()
    assert clock.is_over()
    assert not clock.is_late()
    assert not pickle.loads(pickle.dumps(clock)).is_over()
