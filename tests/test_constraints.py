"""Constraints of coefficients as users give them, in estimators, and in what is inferred from a fit."""

import json
import pickle
from dataclasses import replace

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm
from constrained import random_constraints
from scipy import sparse
from scipy.optimize import LinearConstraint
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rectifit import ReLURegressor, certify, solve, solve_surrogate
from rectifit.constraints import read_constraints
from rectifit.inference import estimate_covariance, marginal_effects, prediction_interval
from rectifit.inference.covariance import AT_BOUND, IN_DRAWS, NEVER_LEFT, ON_LINE
from rectifit.solution import VerificationError

KINDS = ["nonrobust", "HC0", "HC1", "HC2", "HC3"]
NAMES = ("a", "b", "c", "d")

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 4))
u = X @ [1.0, -2.0, 0.0, 0.5] + 0.4
noise = 0.3 * rng.normal(size=150)
y = np.maximum(u, 0.0) + noise
w = rng.exponential(size=150) + 0.1
frame = pd.DataFrame(X, columns=NAMES)
# All rows are active: nothing but least squares with constraints.
line = u + 20.0 + (1.0 + np.abs(X[:, 0])) * noise
INF = np.inf
SUM = LinearConstraint(np.ones((1, 4)), -INF, 0.5)
# The coefficients of least squares add up to about -0.5.
TIGHT = LinearConstraint(np.ones((1, 4)), -INF, -1.0)


# ---- What a user gives ----


@pytest.mark.parametrize(
    "given",
    [
        {"bounds": (0, None)},
        {"bounds": [0.0, INF]},
        {"bounds": np.array([0.0, INF])},
        {"bounds": [(0, None), (0, INF), [0, None], np.array([0, INF])]},
        {"bounds": np.column_stack([np.zeros(4), np.full(4, INF)])},
        {"bounds": pd.DataFrame({"low": np.zeros(4), "high": np.full(4, INF)})},
        {"bounds": dict.fromkeys(NAMES, (0, None))},
        {"positive": True},
        {"positive": np.True_},
        {"monotonic_cst": [1, 1, 1, 1]},
        {"monotonic_cst": np.ones(4)},
        {"monotonic_cst": dict.fromkeys(NAMES, 1)},
        {"monotonic_cst": {"a": 1, "b": np.int64(1)}, "bounds": {"c": (0, None), "d": np.array([0, INF])}},
        {"positive": True, "bounds": (-3, None), "monotonic_cst": [0, 1, 0, 1]},
        {"positive": True, "constraints": LinearConstraint(np.ones(4), -INF, INF)},
        {"positive": True, "constraints": [LinearConstraint(np.zeros(4), -1, 1)]},
    ],
)
def test_one_meaning_in_many_forms(given):
    known = read_constraints(4, NAMES, **given)
    np.testing.assert_array_equal(known.low, np.zeros(4))
    np.testing.assert_array_equal(known.high, np.full(4, INF))
    assert not np.signbit(known.low).any()
    assert not known.is_linear


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"bounds": (None, None)},
        {"bounds": [None, (None, None), (-INF, INF), None]},
        {"bounds": {}},
        {"bounds": {"a": None}},
        {"monotonic_cst": [0, 0, 0, 0]},
        {"constraints": []},
        {"constraints": LinearConstraint(np.ones(4))},
    ],
)
def test_nothing_restricted_is_nothing_known(given):
    assert read_constraints(4, NAMES, **given) is None
    assert not solve(frame, y, **given).certificate.is_constrained


def test_everything_holds_together():
    known = read_constraints(
        4,
        NAMES,
        bounds={"a": (-1, 5), "b": (-2, -1)},
        monotonic_cst={"a": 1, "d": -1},
        constraints=[
            LinearConstraint([1, 1, 0, 0], 0, 1),
            LinearConstraint(sparse.csr_array([[0, 0, 1, 1]]), 2, INF),
        ],
    )
    np.testing.assert_array_equal(known.low, [0, -2, -INF, -INF])
    np.testing.assert_array_equal(known.high, [5, -1, INF, 0])
    np.testing.assert_array_equal(known.A, [[1, 1, 0, 0], [0, 0, 1, 1]])
    assert known.least.tolist() == [0, 2]
    assert known.most.tolist() == [1, INF]


WRONG = [
    ({"bounds": (1, 0)}, ValueError, "bounds has low 1 and high 0 for 'a'; low must not exceed high"),
    ({"bounds": (INF, INF)}, ValueError, "bounds has low inf .* at least one number must be allowed"),
    ({"bounds": 5}, ValueError, "bounds is 5; it must be a pair"),
    ({"bounds": "ab"}, TypeError, "bounds is 'ab'; it must be a pair"),
    ({"bounds": (1j, 2)}, TypeError, "bounds is .1j, 2.; it must be a pair of numbers"),
    ({"bounds": (np.nan, 0)}, ValueError, "bounds contains NaN"),
    ({"bounds": np.zeros((2, 2))}, ValueError, r"bounds has shape \(2, 2\); .* array of shape \(4, 2\)"),
    ({"bounds": [(0, 1), (0,)]}, TypeError, "bounds is .*; it must be a pair"),
    ({"bounds": {"q": (0, 1)}}, ValueError, "bounds has the key 'q'; X has the columns 'a', 'b', 'c', 'd'"),
    ({"bounds": {0: (0, 1)}}, ValueError, "bounds has the key 0; X has the columns"),
    ({"bounds": {"a": 5}}, ValueError, r"bounds\['a'\] is 5; it must be a pair"),
    ({"bounds": {"a": (0, 1, 2)}}, ValueError, r"bounds\['a'\] is \(0, 1, 2\); it must be a pair"),
    ({"bounds": {"a": ("x", 0)}}, TypeError, r"bounds\['a'\] is .'x', 0.; it must be a pair of numbers"),
    ({"positive": 1}, TypeError, "positive is 1; it must be True or False"),
    ({"positive": "yes"}, TypeError, "positive is 'yes'; it must be True or False"),
    (
        {"positive": True, "bounds": {"b": (-3, -1)}},
        ValueError,
        "together leave nothing for 'b': .* 0 and at",
    ),
    ({"monotonic_cst": 1}, ValueError, "monotonic_cst is 1; it must be an array of 4 numbers -1, 0 or 1"),
    ({"monotonic_cst": [1, -1]}, ValueError, r"monotonic_cst has shape \(2,\); it must be an array of 4"),
    ({"monotonic_cst": [1, 2, 0, 0]}, ValueError, "monotonic_cst has the entry 2; it must be"),
    ({"monotonic_cst": [1, np.nan, 0, 0]}, ValueError, "monotonic_cst has the entry nan; it must be"),
    ({"monotonic_cst": list("abcd")}, TypeError, "monotonic_cst is .*; it must be an array of 4"),
    ({"monotonic_cst": {"z": 1}}, ValueError, "monotonic_cst has the key 'z'; X has the columns"),
    ({"monotonic_cst": {"a": 2}}, ValueError, r"monotonic_cst\['a'\] is 2; it must be -1, 0 or 1"),
    ({"monotonic_cst": {"a": "up"}}, TypeError, r"monotonic_cst\['a'\] is 'up'; it must be -1, 0 or 1"),
    ({"constraints": "x"}, TypeError, "constraints is 'x'; it must be a scipy.optimize.LinearConstraint"),
    ({"constraints": ([1] * 4, 0, 1)}, TypeError, "constraints is .*; it must be a scipy"),
    ({"constraints": LinearConstraint(np.ones(4), 2, 1)}, ValueError, "lb 2 and ub 1 in row 0; lb must not"),
    ({"constraints": LinearConstraint(np.ones(4), np.nan, 1)}, ValueError, "lb nan and ub 1 in row 0"),
    ({"constraints": LinearConstraint([[1, 1]], 0, 1)}, ValueError, r"A of shape \(1, 2\); .* the 4 columns"),
    ({"constraints": LinearConstraint([INF, 1, 1, 1], 0, 1)}, ValueError, "has NaN or infinity in A"),
    ({"constraints": LinearConstraint(np.zeros(4), 1, 2)}, ValueError, "only zeros in row 0 of A, which can"),
    ({"constraints": SUM, "bounds": (1, 2)}, ValueError, "constraints allow no coefficients together with"),
    (
        {"constraints": LinearConstraint([1, 0, 0, 0], 2, 2), "bounds": {"a": (1, 1)}},
        ValueError,
        "constraints allow no coefficients together with",
    ),
    (
        {"constraints": LinearConstraint(np.ones((2, 4)), [0, 1], [0, 1])},
        ValueError,
        "constraints allow no coefficients; at least one",
    ),
]


@pytest.mark.parametrize(("given", "kind", "words"), WRONG)
def test_wrong_constraints_are_refused_in_a_sentence(given, kind, words):
    doors = [
        lambda: solve(frame, y, **given),
        lambda: certify(frame, y, **given),
        lambda: solve_surrogate(frame, y, y > 0.0, **given),
        lambda: ReLURegressor(**given).fit(frame, y),
    ]
    for door in doors:
        with pytest.raises(kind, match=words) as raised:
            door()
        assert "\n" not in str(raised.value)


def test_long_arguments_are_not_shown_in_full():
    with pytest.raises(TypeError, match=r"bounds is .*\.\.\.; it must be") as raised:
        solve(X, y, bounds=[("low", "high")] * 1000)
    assert len(str(raised.value)) < 300


def test_a_name_of_two_columns_names_neither():
    twice = pd.DataFrame(X, columns=["a", "b", "a", "d"])
    with pytest.raises(ValueError, match="bounds has the key 'a', the name of 2 columns of X"):
        solve(twice, y, bounds={"a": (0, 1)})


BOUNDS = {"a": (0, 0.5), "d": (None, 0.3)}
ARRAY = np.array([(0, 0.5), (-INF, INF), (-INF, INF), (-INF, 0.3)])


@pytest.mark.parametrize(
    "kind",
    [
        lambda: frame,
        lambda: pl.DataFrame(dict(zip(NAMES, X.T, strict=True))),
        lambda: frame.astype(pd.SparseDtype(float, 0.0)),
        lambda: dd.from_pandas(frame, npartitions=2),
    ],
)
@pytest.mark.parametrize("door", [solve, lambda X, y, **given: ReLURegressor(**given).fit(X, y).solution_])
def test_columns_have_their_names_in_every_kind_of_table(kind, door):
    outcome = da.from_array(y, chunks=75) if isinstance(kind(), dd.DataFrame) else y
    found = door(kind(), outcome, bounds=BOUNDS, monotonic_cst={"b": -1})
    expected = solve(X, y, bounds=ARRAY, monotonic_cst=[0, -1, 0, 0])
    np.testing.assert_allclose(found.beta, expected.beta, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(found.at_bound, [True, False, False, True])
    assert found.beta[[0, 3]].tolist() == [0.5, 0.3]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, lambda X: da.from_array(X, chunks=(75, 4))])
def test_columns_without_names_are_numbered(kind):
    outcome = da.from_array(y, chunks=75) if isinstance(kind(X), da.Array) else y
    found = ReLURegressor(bounds={"x0": (0, 0.5), "x3": (None, 0.3)}).fit(kind(X), outcome)
    np.testing.assert_allclose(found.coef_, solve(X, y, bounds=ARRAY).beta, rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match="bounds has the key 'a'; X has the columns 'x0', 'x1', 'x2', 'x3'"):
        ReLURegressor(bounds=BOUNDS).fit(kind(X), outcome)


# ---- Fits ----


@pytest.mark.parametrize(
    "given",
    [{"bounds": ARRAY}, {"positive": True}, {"constraints": SUM}, {"constraints": SUM, "positive": True}],
)
@pytest.mark.parametrize("floor", [0.0, 0.2, "estimate"])
def test_a_fit_verifies_its_constraints(given, floor):
    solution = solve(X, y, floor=floor, sample_weight=w, **given)
    solution.verify()
    assert solution.certificate.is_constrained
    known = read_constraints(4, **given)
    assert known.allows(solution.beta)
    np.testing.assert_array_equal(solution.at_bound, known.at_bound(solution.beta))


def test_coefficients_outside_are_not_verified():
    solution = solve(X, y, bounds=ARRAY)
    for j, step, words in [
        (0, 0.1, "'x0' is 0.6, above its bound 0.5"),
        (0, -0.6, "'x0' is -0.1, below its"),
    ]:
        beta = solution.beta.copy()
        beta[j] += step
        moved = replace(solution, beta=beta)
        with pytest.raises(
            VerificationError, match=f"a constraint does not hold: the coefficient of {words}"
        ):
            moved.verify()
    tight = solve(X, y, constraints=TIGHT)
    beta = tight.beta.copy()
    beta[2] += 1e-3
    moved = replace(tight, beta=beta)
    with pytest.raises(VerificationError, match=r"row 0 of constraints gives -0\.999, which is not between"):
        moved.verify()


def test_a_start_outside_is_moved_for_a_fit_and_refused_for_a_proof():
    outside = [9.0, 0.0, 0.0, 9.0], 0.0
    expected = solve(X, y, bounds=ARRAY)
    found = solve(X, y, bounds=ARRAY, start=outside)
    assert found.objective == pytest.approx(expected.objective, rel=1e-6)
    found.verify()
    with pytest.raises(
        ValueError, match=r"solution_or_beta does not satisfy .* 'x0' is 9, above its bound 0\.5"
    ):
        certify(X, y, outside, bounds=ARRAY)


@pytest.mark.parametrize("kind", ["linear", "ties", "redundant"])
def test_projections_end_where_everything_holds_whatever_the_units(kind):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        unit = 10.0 ** rng.integers(-4, 5, size=4)
        linear = random_constraints(kind, 4, rng)["constraints"]
        low = np.where(rng.random(4) < 0.5, -1e3, -INF) * unit
        known = read_constraints(
            4,
            bounds=np.column_stack([low, np.full(4, INF)]),
            constraints=LinearConstraint(linear.A / unit, linear.lb, linear.ub),
        )
        point = 10.0 * unit * rng.normal(size=4)
        assert known.violation(known.nearest(point)) is None
        assert known.violation(known.nearest(point, unit)) is None


@pytest.mark.filterwarnings("ignore:no outcome is positive")
def test_solutions_so_far_away_that_digits_are_lost_satisfy_linear_constraints():
    """No outcome is positive, the columns are dependent, and the best intercept is as low as you like."""
    x = np.random.default_rng(4).normal(size=10)
    far = np.column_stack([1e2 * x, 1e-2 * x])
    order = LinearConstraint([[1e2, -1e-2], [1e2, 0.0]], [-0.53, 0.57], [0.16, 1.05])
    for method in ("sorting", "auto"):
        solve(far, -np.abs(x), method, constraints=order, random_state=0).verify()


def test_a_projection_to_zero_that_rounding_misses_leaves_the_rest_alone():
    known = read_constraints(2, constraints=LinearConstraint([[1e4, 0], [-1e4, 0]], 0, INF))
    np.testing.assert_allclose(known.nearest(np.array([6.7e-17, 2.8])), [0.0, 2.8], atol=1e-15)


@pytest.mark.parametrize("method", ["gd", "sgd"])
def test_gradient_methods_satisfy_constraints_in_mixed_units(method):
    rng = np.random.default_rng(2)
    far, unit = rng.normal(size=(30, 3)), np.array([1e2, 1e3, 1e-3])
    bounds = np.column_stack([-1.0 / unit, np.full(3, INF)])
    fit = solve(
        far * unit,
        np.maximum(far.sum(axis=1), 0.0),
        method,
        bounds=bounds * [[1.0], [1.0], [1e3]],
        constraints=LinearConstraint(unit * [[-1.0, -2.0, 0.1], [-1.0, 3.0, 0.1]], 0.5, INF),
        random_state=0,
    )
    fit.verify()


def test_a_certificate_says_that_it_is_about_constraints():
    free, tight = (certify(X, y, bounds=bounds, time_limit=5.0) for bounds in (None, ARRAY))
    assert "constraints" not in str(free)
    assert str(tight).endswith(", among fits that satisfy the constraints")
    # With fewer coefficients to choose from, the least objective is no smaller.
    assert tight.objective >= free.lower_bound
    floored = solve(X, y, "auto+exact", bounds=ARRAY, floor="estimate", target_gap=0.3).certificate
    assert floored.is_constrained
    assert "that satisfy the constraints" in str(floored)


# ---- The estimator ----


def test_the_estimator_is_solve_with_another_face():
    given = {"bounds": ARRAY, "monotonic_cst": [0, -1, 0, 0], "constraints": TIGHT}
    model = ReLURegressor(**given).fit(frame, y, sample_weight=w)
    solution = solve(X, y, sample_weight=w, **given)
    np.testing.assert_array_equal(model.coef_, solution.beta)
    assert model.objective_ == solution.objective
    np.testing.assert_allclose(model.predict(frame), solution.predict(X), rtol=1e-12)
    model.solution_.verify()


def test_parameters_are_kept_as_they_were_given():
    bounds = {"a": (0, 0.5)}
    model = ReLURegressor(bounds=bounds, positive=True, monotonic_cst={"a": 1}, constraints=SUM)
    copy = clone(model)
    assert copy.get_params()["bounds"] == bounds
    assert copy.get_params()["positive"] is True
    model.fit(frame, y)
    assert model.bounds is bounds
    assert model.constraints is SUM
    copy.set_params(bounds=None, positive=False, monotonic_cst=None, constraints=None)
    np.testing.assert_array_equal(copy.fit(frame, y).coef_, ReLURegressor().fit(frame, y).coef_)


def test_a_stored_model_keeps_its_constraints_and_not_its_data():
    model = ReLURegressor(bounds=BOUNDS).fit(frame, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.solution_.problem is None
    np.testing.assert_array_equal(again.solution_.at_bound, [True, False, False, True])
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(clone(again).fit(frame, y).coef_, model.coef_)


def test_names_of_an_earlier_fit_do_not_remain():
    model = ReLURegressor(bounds=BOUNDS).fit(frame, y)
    with pytest.raises(ValueError, match="bounds has the key 'a'; X has the columns 'x0'"):
        model.fit(X, y)


def test_names_reach_the_end_of_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), ReLURegressor(bounds={"b": (-0.5, None)}))
    pipeline.set_output(transform="pandas").fit(frame, y)
    assert pipeline[-1].coef_[1] == -0.5
    assert pipeline[-1].summary().names == (*NAMES, "intercept")


def test_grid_search_chooses_among_constraints():
    model = ReLURegressor("sorting+iterative")
    search = GridSearchCV(model, {"bounds": [(0, 1), {"b": (-3, -1)}], "positive": [False, True]}, cv=3)
    # The sign of column b and positive=True contradict each other.
    with (
        pytest.warns(FitFailedWarning, match="leave nothing for 'b'"),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        search.fit(frame, y)
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [False, False, False, True]
    # Column b has the coefficient -2 in the data.
    assert search.best_params_ == {"bounds": {"b": (-3, -1)}, "positive": False}
    assert -3.0 <= search.best_estimator_.coef_[1] <= -1.0


# ---- Inference ----


def least_squares(X, y, w=None, kind="nonrobust"):
    A = np.column_stack([X, np.ones(len(y))])
    model = sm.OLS(y, A) if w is None else sm.WLS(y, A, weights=w)
    return model.fit(cov_type=kind, use_t=False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", [None, w])
def test_standard_errors_are_those_of_the_fit_with_binding_coefficients_fixed(kind, weight):
    solution = solve(X, line, sample_weight=weight, bounds=ARRAY)
    assert (solution.predict(X) > 0.0).all()
    summary = solution.summary(covariance=kind, names=NAMES)
    expected = least_squares(X[:, 1:3], line - X[:, [0, 3]] @ [0.5, 0.3], weight, kind)
    free = [1, 2, 4]
    np.testing.assert_allclose(summary.coefficient[free], expected.params, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(summary.std_error[free], expected.bse, rtol=1e-7)
    np.testing.assert_allclose(summary.p_value[free], expected.pvalues, rtol=1e-5, atol=1e-300)
    interval = np.column_stack([summary.low, summary.high])
    np.testing.assert_allclose(interval[free], expected.conf_int(), rtol=1e-7, atol=1e-9)
    assert summary.df == expected.df_resid
    assert summary.sigma == pytest.approx(np.sqrt(expected.scale), rel=1e-8)
    for column in (summary.std_error, summary.z, summary.p_value, summary.low, summary.high):
        assert np.isnan(column[[0, 3]]).all()
    assert summary.at_bound == (True, False, False, True, False)
    assert summary.notes == (AT_BOUND,)
    matrix = estimate_covariance(solution, kind).matrix
    np.testing.assert_allclose(matrix[np.ix_(free, free)], expected.cov_params(), rtol=1e-6, atol=1e-12)
    assert (matrix[[0, 3]] == 0.0).all()
    assert (matrix[:, [0, 3]] == 0.0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_binding_coefficients_are_fixed_also_where_few_rows_are_active(kind):
    solution = solve(X, y, sample_weight=w, bounds=ARRAY)
    on = solution.predict(X) > 0.0
    assert 50 < on.sum() < 120
    expected = least_squares(X[on][:, 1:3], y[on] - X[on][:, [0, 3]] @ [0.5, 0.3], w[on], kind)
    np.testing.assert_allclose(
        solution.summary(covariance=kind).std_error[[1, 2, 4]], expected.bse, rtol=1e-6
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_binding_linear_constraint_is_an_equation(kind):
    solution = solve(X, line, constraints=TIGHT)
    assert solution.beta.sum() == pytest.approx(-1.0, rel=1e-9)
    summary = solution.summary(covariance=kind)
    # beta_3 = -1 - the others: least squares on differences of columns.
    expected = least_squares(X[:, :3] - X[:, 3:], line + X[:, 3], None, kind)
    np.testing.assert_allclose(summary.std_error[[0, 1, 2, 4]], expected.bse, rtol=1e-6)
    rest = -np.ones(3)
    last = np.sqrt(rest @ expected.cov_params()[:3, :3] @ rest)
    assert summary.std_error[3] == pytest.approx(last, rel=1e-6)
    assert summary.df == expected.df_resid
    assert summary.notes == (ON_LINE,)
    assert not any(summary.at_bound)


def test_what_linear_constraints_determine_has_no_standard_error():
    ties = LinearConstraint([[1, 1, 0, 0], [1, -1, 0, 0]], [0.5, 1.5], [0.5, 1.5])
    summary = solve(X, line, constraints=ties).summary()
    np.testing.assert_allclose(summary.coefficient[:2], [1.0, -0.5], rtol=1e-9)
    np.testing.assert_array_equal(np.isnan(summary.std_error), [True, True, False, False, False])
    assert summary.notes == (ON_LINE,)


def test_bounds_that_do_not_bind_change_nothing():
    free, wide = (solve(X, line, bounds=bounds).summary() for bounds in (None, (-50, 50)))
    np.testing.assert_allclose(wide.std_error, free.std_error, rtol=1e-7)
    assert wide.notes == free.notes == ()
    assert wide.constraints == ("-50 <= every coefficient <= 50",)
    assert free.constraints == ()


def test_nothing_but_the_intercept_left():
    summary = solve(X, line, bounds=(0, 0)).summary()
    expected = sm.OLS(line, np.ones(150)).fit()
    assert summary.std_error[-1] == pytest.approx(expected.bse[0], rel=1e-9)
    assert np.isnan(summary.std_error[:-1]).all()
    assert summary.constraints == ("every coefficient = 0",)


def test_an_interval_for_a_new_row_takes_fixed_coefficients_as_known():
    found = prediction_interval(solve(X, line, bounds=ARRAY), X[:7])
    fixed = X[:, [0, 3]] @ [0.5, 0.3]
    expected = prediction_interval(solve(X[:, 1:3], line - fixed), X[:7, 1:3])
    for end, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(end, other + fixed[:7], rtol=1e-7)


@pytest.mark.parametrize("at", ["average", "means"])
def test_marginal_effects_where_all_rows_are_active_are_the_coefficients(at):
    solution = solve(X, line, bounds=ARRAY)
    summary, effects = solution.summary(), marginal_effects(solution, at, names=NAMES)
    np.testing.assert_allclose(effects.coefficient, solution.beta)
    np.testing.assert_allclose(effects.std_error, summary.std_error[:4], rtol=1e-7)
    assert effects.at_bound == (True, False, False, True)
    assert effects.notes == (AT_BOUND,)
    assert "a, coefficient at its bound" in str(effects)


def test_an_effect_is_not_called_a_bound():
    # The effect of a coefficient of 0.5 is less where some rows are at the floor.
    text = str(marginal_effects(solve(X, y, bounds=ARRAY), names=NAMES))
    assert "at its bound 0." not in text
    assert text.count("coefficient at its bound") == 2


def test_bootstrap_draws_keep_the_constraints(monkeypatch):
    drawn = []
    covariance = np.cov
    monkeypatch.setattr(np, "cov", lambda rows, **options: drawn.append(rows) or covariance(rows, **options))
    # In about half of the draws, the first bound does not bind; the second always does.
    bounds = {"x1": (float(solve(X, y).beta[1]), None), "x3": (None, 0.0)}
    solution = solve(X, y, bounds=bounds)
    summary = solution.summary(bootstrap=40, random_state=0)
    (estimates,) = drawn
    assert estimates.shape == (40, 5)
    low = bounds["x1"][0]
    assert (estimates[:, 1] >= low).all()
    assert 0 < (estimates[:, 1] == low).sum() < 40
    assert (estimates[:, 3] == 0.0).all()
    np.testing.assert_allclose(summary.std_error[:3], estimates.std(axis=0, ddof=1)[:3], rtol=1e-12)
    assert np.isnan(summary.std_error[3])
    assert np.isnan([summary.z[3], summary.low[3], summary.high[3]]).all()
    assert summary.notes == (IN_DRAWS, NEVER_LEFT)
    effects = marginal_effects(solution, bootstrap=10, random_state=0)
    assert np.isnan(effects.std_error).tolist() == [False, False, False, True]


def test_bootstrap_draws_satisfy_linear_constraints(monkeypatch):
    drawn = []
    covariance = np.cov
    monkeypatch.setattr(np, "cov", lambda rows, **options: drawn.append(rows) or covariance(rows, **options))
    solve(X, y, constraints=TIGHT).summary(bootstrap=20, random_state=0)
    sums = drawn[0][:, :4].sum(axis=1)
    assert (sums <= -1.0 + 1e-8).all()
    # Without the constraint, none of the draws would be there.
    np.testing.assert_allclose(sums, -1.0, rtol=1e-8)


def test_the_summary_says_what_is_at_its_bound():
    summary = solve(X, y, bounds=ARRAY).summary(names=NAMES)
    lines = str(summary).splitlines()
    table = [text for text in lines if text.startswith(("a,", "b ", "c ", "d,", "intercept"))]
    assert table[0].startswith("a, at its bound 0.5 ")
    assert table[3].startswith("d, at its bound 0.3 ")
    assert table[0].split()[-6:] == ["0.5", "-", "-", "-", "-", "-"]
    assert len({len(text) for text in table}) == 1
    assert "Constraints: 0 <= a <= 0.5, d <= 0.3" in lines
    assert f"Note: {AT_BOUND}" in lines
    record = json.loads(json.dumps(summary.to_dict(), allow_nan=False))
    assert record["at_bound"] == [True, False, False, True, False]
    assert record["std_error"][0] is None
    assert record["constraints"] == ["0 <= a <= 0.5", "d <= 0.3"]


def test_many_bounds_are_counted():
    wide = np.random.default_rng(1).normal(size=(60, 20))
    bounds = np.column_stack([-np.arange(20.0), np.full(20, INF)])
    summary = solve(
        wide, wide.sum(axis=1), bounds=bounds, constraints=LinearConstraint(np.ones(20), 0, 90)
    ).summary()
    assert summary.constraints[0] == "x0 >= 0"
    assert summary.constraints[-2:] == ("bounds of 8 more coefficients", "1 linear constraint")
    assert len(summary.constraints) == 14
