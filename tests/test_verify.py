"""What a solution states, computed again; bounds and guarantees where columns nearly cancel."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from attack import unpleasant
from brute import all_active_sets, random_problem
from exact import exact_objective, exact_surrogate

from rectifit import Problem, SurrogateSolver, certify, solve, verifying
from rectifit.bounds import allowance
from rectifit.certificate.trivial_bound import floor_bound
from rectifit.coordinates import Coordinates
from rectifit.datasets import make_relu
from rectifit.solution import Solution, VerificationError

X, y, *_ = make_relu(60, 4, noise=0.5, random_state=0)
# Data without a positive outcome are among the problems.
pytestmark = pytest.mark.filterwarnings("ignore:.*dead neuron:sklearn.exceptions.ConvergenceWarning")
# Columns that are equal to 1e-9 to 1e-5, and columns whose spread is a millionth of their mean.
ILL_CONDITIONED = [
    5,
    9,
    65,
    89,
    115,
    189,
    285,
    335,
    349,
    455,
    499,
    509,
    755,
    985,
    1075,
    1185,
    1195,
    1275,
    1305,
]


def solve_problem(problem: Problem, method: str = "auto", **options) -> Solution:
    given = {"sample_weight": problem.sample_weight, "fit_intercept": problem.fit_intercept}
    return solve(problem.X, problem.y, method, alpha=problem.alpha, random_state=0, **given, **options)


@pytest.mark.parametrize("method", ["auto", "sorting+iterative", "approximation", "gd", "exact"])
def test_the_record_names_every_number_with_its_residual(method):
    record = solve(X, y, method, random_state=0).verify()
    assert all(check.holds for check in record.checks)
    assert record["objective"].residual == 0.0
    assert record["lower bound"].is_limit
    assert ("surrogate's dual bound" in str(record)) is (method != "gd")
    assert ("objective under the guarantee" in str(record)) is (method == "approximation")
    # Relative to the objective, all that rounding explains is little where columns are far from dependent.
    assert record["objective"].allowance <= 1.1e-9 * record["objective"].stated
    with pytest.raises(KeyError, match="no such number"):
        record["no such number"]


def test_what_rests_on_a_search_is_named(monkeypatch):
    assert solve(X, y, "sorting").verify().open == ()
    (sentence,) = certify(X, y, time_limit=None).solution.verify().open
    assert "comes from a search, which was not repeated" in sentence
    monkeypatch.setattr(verifying, "MAX_REPEATED", 20)
    sentence = solve(X, y, "approximation").verify().open[0]
    n_sets = np.count_nonzero(y > 0.0) + 1
    assert f"The guarantee rests on an enumeration of {n_sets} active sets" in sentence


def test_a_dual_bound_or_a_guarantee_that_does_not_follow_is_noticed():
    fit = solve(X, y, "approximation")
    assert fit.surrogate is not None
    high = replace(fit, surrogate=fit.surrogate._replace(dual_bound=fit.surrogate.value))
    high.verify()
    gd = solve(X, y, "sorting+gd", random_state=0)
    active, beta, intercept, value, _ = gd.surrogate
    # At another point the value is right, and still no bound.
    value = gd.problem.surrogate_value(active, beta + 0.1, intercept)
    moved = gd.surrogate._replace(beta=beta + 0.1, value=value, dual_bound=value)
    with pytest.raises(VerificationError, match="the dual bound is"):
        replace(gd, surrogate=moved, surrogate_objective=value).verify()
    for k in (1, 2):
        fit = solve(X, y, "approximation", k=k)
        assert fit.guarantee == 60 / k
        fit.verify()
    with pytest.raises(VerificationError, match="the guarantee 1 does not follow"):
        replace(solve(X[:8], y[:8], "approximation"), guarantee=1.0).verify()


@pytest.mark.parametrize("seed", ILL_CONDITIONED)
def test_answers_of_badly_conditioned_data_are_verified(seed):
    _, problem = unpleasant(seed)
    for method in ("auto", "exact", "approximation", "sorting+iterative"):
        fit = solve_problem(problem, method)
        fit.verify()
        rounding = problem.rounding_at(fit.beta, fit.intercept, fit.objective)
        exact = exact_objective(problem, fit.beta, fit.intercept)
        assert abs(exact - Fraction(fit.objective)) <= rounding + 1e-15 * problem.null_objective
        # In rational arithmetic: no allowance.
        assert Fraction(fit.certificate.lower_bound) <= exact


@pytest.mark.parametrize("engine", ["compiled", "near_far"])
@pytest.mark.parametrize("seed", ILL_CONDITIONED)
def test_dual_bounds_hold_exactly_where_columns_nearly_cancel(seed, engine):
    """No point has a smaller value in rational arithmetic, wherever it was found."""
    _, problem = unpleasant(seed)
    actives = all_active_sets(problem)
    actives = actives[np.random.default_rng(seed).permutation(len(actives))[:20]]
    # Warm and cold, so that one finds other digits of a minimiser than the other.
    warm, cold = SurrogateSolver(problem, engine).solve_each(actives), SurrogateSolver(problem, "compiled")
    for active, found in zip(actives, warm, strict=True):
        cold.reset()
        other = cold.solve(active)
        for point in (found, other):
            exact = exact_surrogate(problem, active, point.beta, point.intercept)
            assert Fraction(found.dual_bound) <= exact + Fraction(problem.null_objective) / 10**16


@pytest.mark.parametrize("seed", range(20))
def test_a_guarantee_holds_for_the_objective_that_is_stated(seed):
    """Nearly equal columns make the objective exceed the minimum of its surrogate: the ratio says so."""
    _, problem = unpleasant(10 * seed + 5)
    fit = solve_problem(problem, "approximation", k=problem.n_samples)
    least = min(
        float(exact_objective(problem, s.beta, s.intercept))
        for s in SurrogateSolver(problem).solve_each(all_active_sets(problem))
    )
    slack = 1e-12 * fit.objective + 1e-15 * problem.null_objective
    assert fit.guarantee is None or fit.objective <= fit.guarantee * least + fit.certificate.rounding + slack


def test_a_search_cannot_prove_more_than_the_digits_of_the_data():
    """Outcomes that are met to nine digits: what is left of sum w y^2 is a number of rounding errors."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(60, 3))
    outcomes = np.maximum(A @ [1.0, -1.0, 1.0], 0.0) + 1e-9 * rng.normal(size=60)
    for fit in (solve(A, outcomes, "exact"), solve(A, outcomes, "exact", fit_intercept=False)):
        exact = exact_objective(fit.problem, fit.beta, fit.intercept)
        slack = float(allowance(60, fit.problem.null_objective))
        assert fit.certificate.lower_bound <= max(fit.objective - slack, floor_bound(fit.problem))
        assert Fraction(fit.certificate.lower_bound) <= exact
        assert fit.certificate.status == "optimal"
        fit.verify()
    assert "proved optimal" in str(fit.certificate)


@pytest.mark.parametrize("n_columns", [1, 2, 5, 40])
def test_rows_that_are_magnified_keep_their_digits(n_columns):
    rng = np.random.default_rng(n_columns)
    sizes = 10.0 ** rng.integers(-30, 31, size=n_columns)
    A = rng.normal(size=(9, n_columns)) * sizes
    A[:, -1] = A[:, 0] / sizes[0] * sizes[-1] * (1.0 + 1e-9 * rng.normal(size=9))
    largest = np.abs(A).max(axis=0)
    T = rng.normal(size=(n_columns, n_columns)) / largest[:, None]
    # Terms of size 1e9 that cancel.
    T[0] *= 1e9
    T[-1] = -T[0] * sizes[0] / sizes[-1] if n_columns > 1 else T[0]
    coordinates = Coordinates(T, None, 1.0 / largest, 1.0, False)
    fractions = np.frompyfunc(Fraction, 1, 1)
    exact = (fractions(A) @ fractions(T)).astype(float)
    np.testing.assert_allclose(
        coordinates.rows(A), exact, rtol=0.0, atol=1e-13 * n_columns + 1e-15 * 1e9 * (n_columns == 1)
    )
    if n_columns > 1:
        assert np.abs(A @ T - exact).max() > 1e-8


@pytest.mark.parametrize("seed", range(30))
def test_terms_of_u_have_the_size_that_is_said(seed):
    problem = random_problem(seed)
    rng = np.random.default_rng(seed)
    beta, intercept = rng.normal(size=problem.n_features), float(rng.normal()) * problem.fit_intercept
    sizes = problem.root_weight * (np.abs(problem.X) @ np.abs(beta) + abs(intercept))
    assert problem.data.size_of_terms(beta, intercept) == pytest.approx(np.linalg.norm(sizes), rel=1e-12)
    u = problem.root_weight * (problem.X @ beta + intercept)
    reach = float(np.quantile(np.abs(u), 0.3)) * (1.0 + 1e-9)
    near = np.linalg.norm(sizes[u >= -reach])
    assert problem.data.size_of_terms(beta, intercept, reach) == pytest.approx(near, rel=1e-12)


def test_rows_far_below_zero_do_not_round():
    X, y = np.array([[1.0], [2.0], [-1e200]]), np.array([1.0, 2.5, 0.0])
    problem = Problem.from_data(X, y, fit_intercept=False)
    assert problem.rounding_at(np.array([1.0]), 0.0, 0.25) < 1e-13
    fit = solve(X, y, fit_intercept=False)
    assert fit.certificate.rounding < 1e-13
    fit.verify()


def test_rounding_that_leaves_nothing_known_closes_no_gap():
    certificate = solve([[1.0], [2.0], [-1.0]], [1.0, 2.5, 0.5]).certificate
    for rounding, is_closed in ((1e-3, True), (1.0, False), (math.inf, False)):
        wide = replace(
            certificate, objective=1.0, lower_bound=1.0 - 5e-4, rounding=rounding, null_objective=10.0
        )
        assert wide.is_closed is is_closed


@pytest.mark.parametrize(
    ("scale", "size"), [(1e155, "large"), (1e300, "large"), (1e-160, "small"), (1e-300, "small")]
)
def test_outcomes_whose_squares_are_no_numbers_are_refused_in_a_sentence(scale, size):
    with pytest.raises(
        ValueError, match=rf"y and sample_weight are too {size}: sum w y\^2 is .*; it must be"
    ):
        solve(X, y * scale)


@pytest.mark.parametrize("scale", [1e-150, 1e-120, 1e120, 1e150])
@pytest.mark.parametrize("options", [{}, {"covariance": "HC3"}, {"covariance": "HAC"}])
def test_standard_errors_follow_the_scale_of_columns(scale, options):
    plain, scaled = solve(X, y, "sorting"), solve(X * scale, y, "sorting")
    scaled.verify()
    p = X.shape[1]
    expected, found = plain.summary(**options).std_error, scaled.summary(**options).std_error
    np.testing.assert_allclose(found[:p] * scale, expected[:p], rtol=1e-6)
    np.testing.assert_allclose(found[p:], expected[p:], rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"covariance": "HC1"}, {"covariance": "HAC"}, {"bootstrap": 3}])
@pytest.mark.parametrize("scale", [1e160, 1e300])
def test_variances_that_are_no_numbers_are_refused_in_a_sentence(scale, options):
    fit = solve(X * scale, y, "sorting")
    fit.verify()
    with pytest.raises(ValueError, match=r"make a variance of about 1e-\d+, which is no number; divide"):
        fit.summary(**options)
    # It can be stored all the same.
    np.testing.assert_array_equal(fit.without_data().beta, fit.beta)


def test_columns_that_are_no_numbers_when_squared_are_refused_in_a_sentence():
    for scale in (1e-160, 1e-300):
        for method in ("auto", "sorting"):
            with pytest.raises(
                ValueError, match="X and sample_weight are too small: the largest entry of column 0"
            ):
                solve(X * scale, y, method)
    with pytest.raises(ValueError, match="the sum of a column of X exceeds the largest number"):
        solve(np.abs(X) / np.abs(X).max() * 1.7e308, y, "sorting").summary()


def altered(value):
    """Other values of the same type."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, float):
        return [-abs(value) - 1.0, np.nan]
    return [-1]


@pytest.mark.parametrize("method", ["auto", "approximation", "exact"])
def test_every_field_that_follows_from_data_or_others_is_checked(method):
    fit = solve(X, y, method, random_state=0, alpha=0.1, sample_weight=np.arange(60.0) + 1.0)
    fit.verify()
    for name in (
        *("objective", "surrogate_objective", "intercept", "floor", "n_iter", "n_surrogates", "seconds"),
        *("fit_intercept", "alpha", "is_weighted"),
    ):
        for value in altered(getattr(fit, name)):
            with pytest.raises(VerificationError):
                replace(fit, **{name: value}).verify()
    for name in ("n_active", "n_inactive", "n_undecided", "n_nodes", "seconds", "is_constrained"):
        for value in altered(getattr(fit.certificate, name)):
            with pytest.raises(VerificationError):
                replace(fit, certificate=replace(fit.certificate, **{name: value})).verify()
    for name, value in (
        ("status", "proved"),
        ("null_objective", 1.0),
        ("objective", 0.0),
        ("lower_bound", 1e9),
    ):
        with pytest.raises(VerificationError):
            replace(fit, certificate=replace(fit.certificate, **{name: value})).verify()
    for name, value in (("surrogate", None), ("surrogate_objective", None), ("beta", fit.beta[:-1])):
        with pytest.raises(VerificationError):
            replace(fit, **{name: value}).verify()
    assert fit.surrogate is not None
    for name in ("value", "dual_bound", "intercept"):
        surrogate = fit.surrogate._replace(**{name: 2.0 * getattr(fit.surrogate, name) + 1.0})
        with pytest.raises(VerificationError):
            replace(fit, surrogate=surrogate).verify()


def test_a_guarantee_whose_bounds_lost_to_rounding_is_verified():
    """Two columns that are parallel up to 1e-12, with signs: dual bounds are far below their minima."""
    rng = np.random.default_rng(5)
    A = rng.normal(size=(14, 2))
    A[:, 1] = 3.0 * A[:, 0] + 1e-12 * rng.normal(size=14)
    outcomes = np.maximum(-A[:, 0] + 0.3 * rng.normal(size=14), 0.0)
    for method in ("auto", "approximation"):
        for k in (1, 2):
            solve(A, outcomes, method, k=k, fit_intercept=False, positive=True, random_state=0).verify()
