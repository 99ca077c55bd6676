"""A floor other than zero, known or estimated."""

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from rectifit import Problem, ReLURegressor, certify, solve
from rectifit.methods import estimate_floor as floors
from rectifit.methods.estimate_floor import FloorPoint, best_floor, descend
from rectifit.solution import Stop, VerificationError

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
y = np.maximum(X @ [1.0, -2.0, 0.5] + 0.3, 0.0) + 0.3 * rng.normal(size=120)
w = rng.exponential(size=120)


def fit_columns(A, y, w):
    root = np.sqrt(w)
    coefficients, *_ = np.linalg.lstsq(A * root[:, None], y * root, rcond=None)
    return coefficients, float(w @ (A @ coefficients - y) ** 2)


def least_in_one_dimension(x, y, w):
    """min over a, b, f of sum w (max(f, a x + b) - y)^2.

    Sorted by x or by -x, the first k rows are at the floor. The knot where the line leaves the floor lies
    between two rows, with line and floor fitted apart from each other, or exactly at a row.
    """
    least = fit_columns(np.ones((x.size, 1)), y, w)[1]
    for z in (x, -x):
        knots = np.unique(z)
        for knot in knots:
            (_, slope), value = fit_columns(np.column_stack([z**0, np.maximum(z - knot, 0.0)]), y, w)
            least = min(least, value if slope >= 0.0 else np.inf)
        for left, right in pairwise(knots):
            low = z <= left
            (f,), below = fit_columns(np.ones((low.sum(), 1)), y[low], w[low])
            line, above = fit_columns(np.column_stack([z**0, z])[~low], y[~low], w[~low])
            if line[1] > 0.0 and left <= (f - line[0]) / line[1] <= right:
                least = min(least, below + above)
    return least


def one_dimension(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 35))
    x = rng.normal(size=n) if seed % 3 else rng.integers(-3, 4, size=n).astype(float)
    noise = rng.choice([0.1, 0.5, 1.0, 3.0])
    y = 5.0 * rng.normal() + np.maximum(rng.normal() * x + rng.normal(), 0.0) + noise * rng.normal(size=n)
    return x, y, rng.exponential(size=n) + 0.1 if seed % 2 else np.ones(n)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_joint_minimum_by_brute_force(seed):
    x, y, weight = one_dimension(seed)
    solution = solve(x[:, None], y, sample_weight=weight, floor="estimate")
    solution.verify()
    assert solution.objective == pytest.approx(least_in_one_dimension(x, y, weight), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("floor", [-3.0, 2.5])
@pytest.mark.parametrize("method", ["auto", "sorting+iterative", "gd"])
def test_a_known_floor_is_a_shift(floor, method):
    plain = solve(X, y, method, sample_weight=w, alpha=0.5)
    raised = solve(X, y + floor, method, sample_weight=w, alpha=0.5, floor=floor)
    raised.verify()
    assert raised.floor == floor
    assert not raised.floor_is_estimated
    np.testing.assert_allclose(raised.beta, plain.beta, rtol=1e-7)
    assert raised.intercept == pytest.approx(plain.intercept + floor, rel=1e-7)
    assert raised.objective == pytest.approx(plain.objective, rel=1e-10)
    assert raised.certificate.lower_bound == pytest.approx(plain.certificate.lower_bound, rel=1e-6)
    np.testing.assert_allclose(raised.predict(X), plain.predict(X) + floor, rtol=1e-7)
    fitted = np.maximum(X @ raised.beta + raised.intercept, floor)
    expected = w @ (fitted - y - floor) ** 2 + 0.5 * raised.beta @ raised.beta
    assert raised.objective == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("shift", [-7.0, 1e3])
def test_an_estimated_floor_moves_with_the_outcomes_and_their_unit(shift):
    plain = solve(X, y, sample_weight=w, floor="estimate")
    moved = solve(X, 4.0 * y + shift, sample_weight=w, floor="estimate")
    moved.verify()
    assert moved.floor == pytest.approx(4.0 * plain.floor + shift, rel=1e-6)
    assert moved.objective == pytest.approx(16.0 * plain.objective, rel=1e-8)
    np.testing.assert_allclose(moved.beta, 4.0 * plain.beta, rtol=1e-5)


def test_an_estimated_floor_is_at_least_as_good_as_any_given_one():
    estimated = solve(X, y, floor="estimate")
    for floor in np.linspace(y.min(), y.mean(), 15):
        assert estimated.objective <= solve(X, y, floor=floor).objective * (1.0 + 1e-9)
    assert estimated.objective < solve(X, y).objective


def test_the_estimate_is_the_mean_of_the_rows_at_the_floor():
    estimated = solve(X, y, sample_weight=w, floor="estimate")
    u = X @ estimated.beta + estimated.intercept
    low = u < estimated.floor - 1e-9
    np.testing.assert_array_equal(u > estimated.floor, ~low)
    assert estimated.floor == pytest.approx(np.average(y[low], weights=w[low]), rel=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_the_best_floor_for_a_given_u_is_exact(seed):
    x, y, weight = one_dimension(seed)
    weight[0] = 0.0
    problem = Problem.from_data(x[:, None], y, sample_weight=weight)
    u = y + 2.0 * np.random.default_rng(seed).normal(size=y.size)
    found = FloorPoint.at(problem, np.zeros(1), 0.0, best_floor(problem, u))

    def loss(floor):
        return float(weight @ (np.maximum(u, floor) - y) ** 2)

    knots = np.sort(np.concatenate([u, [y.min() - 1.0, y.max() + 1.0]]))
    least = min(
        minimize_scalar(loss, bounds=pair, method="bounded", options={"xatol": 1e-10}).fun
        for pair in pairwise(knots)
        if pair[0] < pair[1]
    )
    assert loss(found.floor) <= min(least, loss(y.min())) * (1.0 + 1e-12)


def test_no_step_raises_the_objective():
    problem = Problem.from_data(X, y, sample_weight=w, alpha=0.3)
    for _ in range(20):
        begin = FloorPoint.at(problem, rng.normal(size=3), rng.normal(), rng.normal())
        end = descend(problem, begin)
        assert end.objective <= begin.objective
        fitted = np.maximum(X @ end.beta + end.intercept, end.floor)
        assert end.objective == pytest.approx(w @ (fitted - y) ** 2 + 0.3 * end.beta @ end.beta, rel=1e-12)


def test_heating_energy():
    """A base load of 12 kWh a day, and 1.8 kWh more per degree below a balance temperature of 15."""
    rng = np.random.default_rng(5)
    day = np.arange(365)
    outside = 10.0 - 9.0 * np.cos(2.0 * np.pi * day / 365.0) + 3.0 * rng.normal(size=365)
    energy = 12.0 + 1.8 * np.maximum(15.0 - outside, 0.0) + 2.0 * rng.normal(size=365)
    model = ReLURegressor(floor="estimate").fit(outside[:, None], energy)
    model.solution_.verify()
    assert model.floor_ == pytest.approx(12.0, abs=0.5)
    assert model.coef_[0] == pytest.approx(-1.8, abs=0.1)
    assert (model.floor_ - model.intercept_) / model.coef_[0] == pytest.approx(15.0, abs=0.5)
    warm = np.array([[25.0], [30.0]])
    assert model.predict(warm).tolist() == [model.floor_] * 2
    np.testing.assert_array_equal(model.active_, model.predict(outside[:, None]) > model.floor_)
    assert model.score(outside[:, None], energy) > ReLURegressor().fit(outside[:, None], energy).score(
        outside[:, None], energy
    )


def test_exact_data_are_recovered():
    values = 3.0 + np.maximum(X @ [1.0, -2.0, 0.5] + 0.3, 0.0)
    solution = solve(X, values, floor="estimate")
    solution.verify()
    assert solution.floor == 3.0
    np.testing.assert_allclose(solution.beta, [1.0, -2.0, 0.5], rtol=1e-8)
    assert solution.intercept == pytest.approx(3.3, rel=1e-8)
    assert solution.certificate.status == "optimal"


def test_where_no_row_is_at_the_floor_it_is_the_least_outcome():
    values = X @ [1.0, -2.0, 0.5] + 0.3
    solution = solve(X, values, floor="estimate")
    assert solution.objective == pytest.approx(0.0, abs=1e-18)
    assert solution.floor == pytest.approx(values.min(), rel=1e-9)


def test_a_constant_outcome():
    with pytest.warns(ConvergenceWarning, match="the constant function is the best fit"):
        solution = solve(X, np.full(120, 7.0), floor="estimate")
    assert solution.floor == 7.0
    assert solution.predict(X).tolist() == [7.0] * 120


def test_what_is_proved_names_the_estimated_floor():
    solution = solve(X, y, floor="estimate")
    assert f"with the floor {solution.floor:.6g}" in str(solution.certificate)
    assert solution.certificate.floor == solution.floor
    certificate = certify(X, y, solution)
    assert certificate.status == "optimal"
    assert f"with the floor {solution.floor:.6g}" in str(certificate)
    certificate.solution.verify()
    known = certify(X, y, solution, floor=0.1)
    assert known.floor is None
    assert known.solution.floor == 0.1
    assert known.objective >= certificate.lower_bound
    with pytest.raises(ValueError, match="a proof is about one floor"):
        certify(X, y, floor="estimate")


def test_certify_takes_the_floor_of_a_model():
    model = ReLURegressor(floor=1.0).fit(X, y + 1.0)
    certificate = certify(X, y + 1.0, model)
    assert certificate.floor is None
    assert certificate.solution.floor == 1.0
    assert certificate.objective == pytest.approx(certify(X, y).objective, rel=1e-4)


@pytest.mark.parametrize("lie", [{"floor": 0.5}, {"intercept": 1.0}])
def test_verify_notices(lie):
    solution = solve(X, y + 2.0, floor=2.0)
    solution.verify()
    with pytest.raises(VerificationError, match="the objective is"):
        replace(solution, **lie).verify()
    estimated = solve(X, y, "sorting", floor="estimate")
    with pytest.raises(VerificationError, match="another floor"):
        replace(estimated, floor=0.5).verify()


def test_starts_are_on_the_scale_of_the_user():
    values, begin = y + 5.0, solve(X, y + 5.0, floor=5.0)
    warm = solve(X, values, "iterative", floor=5.0, start=begin)
    assert warm.n_surrogates == 1
    assert warm.objective == pytest.approx(begin.objective, rel=1e-9)
    start = (np.array([1.0, -2.0, 0.5]), 5.3)
    value = min(np.sum((np.maximum(X @ start[0] + start[1], f) - values) ** 2) for f in np.linspace(4, 6, 50))
    assert solve(X, values, "iterative", floor="estimate", start=start, time_limit=1e-9).objective <= value


def test_limits_and_interrupts(monkeypatch):
    with pytest.warns(ConvergenceWarning, match="the fit is the constant function"):
        late = solve(X, y, floor="estimate", time_limit=1e-9)
    late.verify()
    assert late.stopped == Stop.TIME_LIMIT
    improve = floors._improve

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(floors, "_improve", interrupt)
    stopped = solve(X, y, floor="estimate")
    stopped.verify()
    assert stopped.stopped == Stop.INTERRUPTED
    monkeypatch.setattr(floors, "_improve", improve)
    assert solve(X, y, floor="estimate").objective <= stopped.objective * (1.0 + 1e-12)


def test_a_floor_far_away_is_verified_all_the_same():
    for floor in (1e8, -1e8):
        solve(X, y + floor, "sorting+iterative", floor=floor).verify()


@pytest.mark.parametrize(
    ("floor", "error", "words"),
    [
        ("guess", ValueError, "floor is 'guess'; it must be a number or 'estimate'"),
        (None, TypeError, "floor is None; it must be a number or 'estimate'"),
        (True, TypeError, "floor is True"),
        (np.nan, ValueError, "floor is nan; it must be finite"),
        (np.inf, ValueError, "floor is inf; it must be finite"),
    ],
)
def test_errors(floor, error, words):
    with pytest.raises(error, match=words):
        solve(X, y, floor=floor)
    with pytest.raises(error, match=words):
        ReLURegressor(floor=floor).fit(X, y)


@pytest.mark.parametrize("floor", [1.0, "estimate"])
def test_a_floor_needs_an_intercept(floor):
    with pytest.raises(ValueError, match="with fit_intercept=False it must be 0"):
        solve(X, y, floor=floor, fit_intercept=False)
    solve(X, y, floor=0, fit_intercept=False)


def test_the_estimator_keeps_it():
    model = ReLURegressor("sorting+iterative", floor=1.5).fit(X, y + 1.5)
    assert clone(model).floor == 1.5
    stored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(stored.predict(X), model.predict(X))
    np.testing.assert_array_equal(model.solution_.predict(X), model.predict(X))
