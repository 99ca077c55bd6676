import pickle
from dataclasses import FrozenInstanceError, replace

import clarabel
import numpy as np
import pytest
from brute import least_objective, random_problem
from scipy import sparse

from rectifit import Certificate, Problem, solve
from rectifit.certificate.trivial_bound import floor_bound
from rectifit.datasets import make_relu
from rectifit.solution import VerificationError

X, y, *_ = make_relu(60, 4, noise=0.5, random_state=0)
solution = solve(X, y)


def test_it_is_frozen():
    with pytest.raises(FrozenInstanceError):
        solution.objective = 0.0
    with pytest.raises(FrozenInstanceError):
        solution.certificate.lower_bound = 0.0


def test_predict_is_the_rectified_linear_function():
    expected = np.maximum(X @ solution.beta + solution.intercept, 0.0)
    np.testing.assert_array_equal(solution.predict(X), expected)
    np.testing.assert_allclose(solution.predict(sparse.csr_matrix(X)), expected, rtol=1e-13)
    assert np.sum((solution.predict(X) - y) ** 2) == pytest.approx(solution.objective, rel=1e-13)
    with pytest.raises(ValueError, match="X has 3 columns; the fit has 4"):
        solution.predict(X[:, :3])


LIES = [
    ({"objective": solution.objective * 0.9}, "the objective is"),
    ({"beta": solution.beta + 0.1}, "the objective is"),
    ({"beta": solution.beta[:2]}, "coefficient per column"),
    ({"beta": solution.beta * np.nan}, "coefficient per column"),
    ({"surrogate_objective": solution.surrogate_objective * 0.9}, "surrogate's minimum"),
    ({"trace": (solution.trace[0]._replace(objective=0.0),)}, "trace"),
    ({"certificate": replace(solution.certificate, lower_bound=solution.objective * 1.01)}, "lower bound"),
    ({"certificate": replace(solution.certificate, status="optimal")}, "called optimal"),
    ({"certificate": replace(solution.certificate, objective=1.0)}, "another objective"),
    ({"surrogate": solution.surrogate._replace(dual_bound=1e9)}, "dual bound"),
]


@pytest.mark.parametrize(("lie", "words"), LIES)
def test_verify_notices(lie, words):
    solution.verify()
    with pytest.raises(VerificationError, match=words):
        replace(solution, **lie).verify()


def test_verify_notices_an_intercept_where_there_is_none():
    plain = solve(X, y, fit_intercept=False)
    with pytest.raises(VerificationError, match="intercept"):
        replace(plain, intercept=1.0).verify()


def test_without_data_it_is_small_and_says_so():
    bare = pickle.loads(pickle.dumps(solution.without_data()))
    np.testing.assert_array_equal(bare.predict(X), solution.predict(X))
    with pytest.raises(ValueError, match="problem is None"):
        bare.verify()
    pickle.loads(pickle.dumps(solution)).verify()


@pytest.mark.parametrize("seed", range(60))
def test_the_floor_is_below_every_objective(seed):
    problem = random_problem(seed)
    floor = floor_bound(problem)
    assert floor <= least_objective(problem) + 1e-12 * problem.null_objective
    w = np.square(problem.root_weight)
    assert floor == pytest.approx(np.sum((w * problem.y**2)[problem.y <= 0]), rel=1e-12)


@pytest.mark.parametrize("seed", range(15))
def test_the_floor_is_the_minimum_of_the_convex_relaxation(seed):
    """R with max(0, u - y)^2 for positive samples, minimised by an independent solver."""
    problem = random_problem(seed, n_samples=20)
    n, p = problem.n_samples, problem.n_features
    A = np.column_stack([problem.X, np.ones(n)]) if problem.fit_intercept else problem.X
    q, root = A.shape[1], problem.root_weight
    # Variables: coefficients and v >= max(0, u - max(y, 0)); sum w (v + max(-y, 0))^2 is R for both kinds.
    off = np.maximum(-problem.y, 0.0)
    P = np.diag(np.concatenate([np.full(p, problem.alpha), np.zeros(q - p), root**2])) * 2.0
    c = np.concatenate([np.zeros(q), 2.0 * root**2 * off])
    rows = np.block([[A, -np.eye(n)], [np.zeros((n, q)), -np.eye(n)]])
    bounds = np.concatenate([np.maximum(problem.y, 0.0), np.zeros(n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(P)),
        c,
        sparse.csc_matrix(rows),
        bounds,
        [clarabel.NonnegativeConeT(2 * n)],
        settings,
    )
    least = solver.solve().obj_val + float(root**2 @ off**2)
    assert floor_bound(problem) == pytest.approx(least, abs=1e-6 * problem.null_objective)


def test_gaps():
    problem = Problem.from_data([[1.0]], [2.0])

    def gap(objective, bound, target=None):
        return Certificate.from_bound(problem, objective, bound, target)

    assert gap(2.0, 1.0).gap == 0.5
    assert gap(2.0, 1.0).status == "bound_only"
    assert gap(2.0, 1.0, 0.5).status == "optimal"
    assert gap(0.0, 0.0).gap == 0.0
    assert gap(0.0, 0.0).status == "optimal"
    # Rounding against sum w y^2 = 4.
    assert gap(1e-25, 0.0).gap == 0.0
    assert gap(1e-15, 0.0).gap == 1.0
    assert gap(2.0, 2.0 - 1e-13).gap == 0.0
    # A bound above the objective by rounding is brought down to it.
    assert gap(2.0, 2.0 + 1e-13).lower_bound == 2.0
    assert gap(2.0, 1.0).n_undecided == 1
    assert gap(2.0, 1.0).box is None
