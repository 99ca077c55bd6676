import numpy as np
import pytest
from optimality import solve_checked
from scipy import sparse

from rectifit import Problem, SurrogateSolver, solve
from rectifit.surrogate import near_far, resident


def make(seed, n, p, density, *, weighted=False, intercept=True, alpha=0.0, dummies=False):
    rng = np.random.default_rng(seed)
    places = rng.choice(n * p, round(density * n * p), replace=False, shuffle=False)
    X = sparse.csr_array((rng.normal(size=places.size), np.divmod(places, p)), shape=(n, p))
    if dummies:
        kinds = sparse.csr_array((np.ones(n), (np.arange(n), rng.integers(0, 6, n))), shape=(n, 6))
        X = sparse.hstack([X, kinds], format="csr")
    y = np.maximum(X @ rng.normal(size=X.shape[1]) + 0.2, 0.0) + 0.3 * rng.normal(size=n)
    weight = rng.integers(0, 4, size=n).astype(float) if weighted else None
    return Problem.from_data(X, y, sample_weight=weight, fit_intercept=intercept, alpha=alpha)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dummies", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_surrogates_are_solved_as_for_dense_data(engine, weighted, dummies, alpha):
    problem = make(1, 300, 6, 0.3, weighted=weighted, dummies=dummies, alpha=alpha)
    active = problem.y > 0.2
    solution = solve_checked(problem, active, engine=engine)
    dense = Problem.from_data(
        problem.X.toarray(), problem.y, sample_weight=problem.sample_weight, alpha=problem.alpha
    )
    assert solution.value == pytest.approx(solve_checked(dense, active, engine=engine).value, rel=1e-10)


@pytest.mark.parametrize("near", [1e-2, 1e-5, 1e-8])
def test_nearly_dependent_columns(near):
    rng = np.random.default_rng(0)
    column = rng.normal(size=(200, 1)) * (rng.random((200, 1)) < 0.5)
    X = sparse.csr_array(
        np.hstack([column, column + near * rng.normal(size=(200, 1)), rng.normal(size=(200, 1))])
    )
    y = np.maximum(column[:, 0], 0.0) + 0.1 * rng.normal(size=200)
    solve_checked(Problem.from_data(X, y), y > 0.1, engine="near_far")


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_extreme_scales(size):
    problem = make(3, 100, 4, 0.5)
    scaled = Problem.from_data(problem.X * size, problem.y)
    value = SurrogateSolver(scaled, "near_far").solve(problem.positive).value
    assert value == pytest.approx(
        SurrogateSolver(problem, "near_far").solve(problem.positive).value, rel=1e-9
    )


def test_formats_and_duplicates():
    X = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, -1.0]])
    doubled = sparse.coo_array(
        (np.array([0.5, 0.5, 2.0, 3.0, -1.0]), (np.array([0, 0, 1, 2, 2]), np.array([0, 0, 1, 0, 1]))),
        shape=(3, 2),
    )
    for table in (sparse.csc_array(X), sparse.lil_array(X), doubled, sparse.csr_matrix(X.astype(int))):
        problem = Problem.from_data(table, [1.0, 2.0, 0.0])
        assert problem.X.dtype == np.float64
        np.testing.assert_array_equal(problem.X.toarray(), X)
        assert problem.objective([1.0, 1.0], 0.5) == pytest.approx(
            Problem.from_data(X, [1.0, 2.0, 0.0]).objective([1.0, 1.0], 0.5)
        )


def test_x_is_never_made_dense(monkeypatch):
    n, p = 30_000, 60
    problem = make(0, n, p, 0.02)
    largest = 0
    toarray = sparse.csr_array.toarray

    def watched(self, *given, **named):
        nonlocal largest
        largest = max(largest, self.shape[0])
        return toarray(self, *given, **named)

    monkeypatch.setattr(sparse.csr_array, "toarray", watched)
    monkeypatch.setattr(sparse.csc_array, "toarray", watched)
    solution = solve(problem.X, problem.y, "sorting+iterative")
    monkeypatch.undo()
    near = max(resident.FIRST_NEAR_FACTOR * (p + 1), near_far.MIN_NEAR_ROWS)
    # Rows without entries are all at their kinks at once where the intercept is 0, and others may be nearer.
    n_equal = np.count_nonzero(np.diff(problem.X.indptr) == 0)
    assert 0 < largest <= near + n_equal < n / 2
    dense = solve(problem.X.toarray(), problem.y, "sorting+iterative")
    assert solution.objective == pytest.approx(dense.objective, rel=1e-10)


@pytest.mark.slow
def test_a_large_sparse_table_fits():
    problem = make(0, 200_000, 500, 0.01)
    solution = solve(problem.X, problem.y, "sorting+iterative")
    solution.verify()
    # The surrogate of its own active set is minimal there, and equal to the objective.
    assert solution.surrogate_objective == pytest.approx(solution.objective, rel=1e-9)
    assert solution.surrogate.value - solution.surrogate.dual_bound <= 1e-9 * problem.null_objective
