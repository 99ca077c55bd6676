"""Fits that certify themselves, that know their data's names, and that are stored without the data."""

import copy
import io
import pickle
from dataclasses import replace

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rectifit import ReLURegressor, Solution, certify, solve
from rectifit.inference import marginal_effects, prediction_interval, summarise
from rectifit.report import write_report

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(150, 3)), columns=["age", "price", "size"])
y = pd.Series(np.maximum(X @ [1.0, -1.0, 0.5] + 0.3, 0.0) + 0.3 * rng.normal(size=150), name="kwh")
w = rng.exponential(size=150)
OTHER = {
    "alpha": {"alpha": 30.0},
    "no intercept": {"fit_intercept": False},
    "weights": {"sample_weight": w},
    "signs": {"positive": True},
    "floor": {"floor": 0.2},
}


def through_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


STORES = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "twice": lambda model: pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(model)))),
    "joblib": through_joblib,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("options", OTHER.values(), ids=OTHER)
def test_a_fit_is_certified_as_the_model_that_it_is(options):
    fit = solve(X, y, **options)
    own = fit.certify(target_gap=1e-3)
    assert own.status == "optimal"
    assert own.given_objective is None
    asked = certify(X, y, fit, target_gap=1e-3)
    assert asked.lower_bound == own.lower_bound
    assert asked.objective == own.objective
    assert isinstance(own.solution, Solution)
    own.solution.verify()
    # The plain model has another least objective.
    assert certify(X, y, target_gap=1e-3).objective != pytest.approx(own.objective, rel=1e-6)


@pytest.mark.parametrize("options", OTHER.values(), ids=OTHER)
def test_an_estimator_is_certified_with_and_without_the_data(options):
    options = dict(options)
    weight = options.pop("sample_weight", None)
    model = ReLURegressor(**options).fit(X, y, sample_weight=weight)
    alone, given = model.certify(), model.certify(X, y, sample_weight=weight)
    assert alone.objective == pytest.approx(model.objective_)
    assert given.lower_bound == pytest.approx(alone.lower_bound)
    stored = pickle.loads(pickle.dumps(model))
    with pytest.raises(ValueError, match="stored without its data; pass X and y"):
        stored.certify()
    assert stored.certify(X, y, sample_weight=weight).lower_bound == pytest.approx(alone.lower_bound)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"alpha": 2.0}, "alpha is 2.0, but the fit in question has 1.0"),
        ({"fit_intercept": False}, "fit_intercept is False, but the fit in question has True"),
        ({"positive": True}, "the constraints given differ from those of the fit in question"),
        ({"sample_weight": np.ones(150)}, "sample_weight differs from the weights of the fit in question"),
        ({"floor": 1.0}, "floor is 1.0, but the fit in question has 0.0"),
    ],
)
def test_arguments_that_contradict_the_fit_are_refused(given, words):
    fit = solve(X, y, "sorting", alpha=1.0, sample_weight=w, bounds=(-2.0, 2.0))
    with pytest.raises(ValueError, match=words):
        certify(X, y, fit, **given)
    same = certify(X, y, fit, alpha=1.0, fit_intercept=True, bounds=(-2.0, 2.0), sample_weight=w, floor=0.0)
    assert same.is_constrained


def test_weights_that_a_fit_does_not_carry_are_asked_for():
    fit = solve(X, y, "sorting", sample_weight=w)
    with pytest.raises(ValueError, match="has weights, which it does not carry"):
        certify(X, y, fit.without_data())
    with pytest.raises(ValueError, match="has weights, which it does not carry"):
        certify(X[:100], y[:100], fit)
    with pytest.raises(ValueError, match="the fit in question has no weights"):
        certify(X, y, solve(X, y, "sorting"), sample_weight=w)


@pytest.mark.parametrize("store", STORES.values(), ids=STORES)
@pytest.mark.parametrize("options", [{}, {"floor": "estimate"}, {"bounds": {"size": (0.0, 0.2)}}])
def test_inference_survives_storing(store, options):
    model = ReLURegressor(**options).fit(X, y)
    stored = store(model)
    assert stored.solution_.problem is None
    for kind in ("nonrobust", "HC0", "HC1", "HC2", "HC3"):
        assert str(stored.summary(covariance=kind)) == str(model.summary(covariance=kind))
        assert str(marginal_effects(stored, covariance=kind)) == str(marginal_effects(model, covariance=kind))
    for at in ("average", "means"):
        assert str(marginal_effects(stored, at)) == str(marginal_effects(model, at))
    for ours, theirs in zip(prediction_interval(stored, X), prediction_interval(model, X), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ValueError, match="stored without its data"):
        stored.summary(bootstrap=20)


def test_a_copy_with_other_data_has_its_own_sums():
    fit = solve(X, y)
    expected = fit.summary().std_error
    half = replace(fit, problem=solve(X[:75], y[:75]).problem)
    assert half.summary().n_samples == 75
    assert (half.summary().std_error > 1.1 * expected).all()
    np.testing.assert_array_equal(fit.summary().std_error, expected)
    stored = fit.without_data()
    again = replace(stored, problem=half.problem)
    assert again.summary().n_samples == 75
    np.testing.assert_array_equal(stored.summary().std_error, expected)


def test_stored_fits_are_small():
    many = np.random.default_rng(1).normal(size=(20_000, 4))
    model = ReLURegressor("sorting").fit(many, np.maximum(many[:, 0], 0.0) + many[:, 1])
    assert len(pickle.dumps(model)) < many.nbytes / 10


def test_fits_of_a_cross_validation_have_a_summary():
    found = cross_validate(ReLURegressor(), X, y, cv=3, return_estimator=True, n_jobs=2)
    for model in found["estimator"]:
        assert model.summary().names == ("age", "price", "size", "intercept")


def test_names_of_a_data_frame_survive():
    fit = solve(X, y, positive=True)
    assert fit.feature_names == ("age", "price", "size")
    assert fit.target == "kwh"
    assert fit.summary().names == ("age", "price", "size", "intercept")
    assert marginal_effects(fit).names == ("age", "price", "size")
    model = ReLURegressor(positive=True).fit(X, y)
    assert model.solution_.feature_names == fit.feature_names
    assert model.solution_.target == "kwh"
    assert model.solution_.constraints.names == fit.feature_names
    assert fit.certify().solution.feature_names == fit.feature_names
    assert solve(X.to_numpy(), y.to_numpy()).summary().names == ("x0", "x1", "x2", "intercept")
    with pytest.raises(ValueError, match="X has the columns size, age, price; the fit has age, price, size"):
        fit.predict(X[["size", "age", "price"]])


def test_functions_of_inference_take_a_fitted_estimator():
    model = ReLURegressor().fit(X, y)
    assert str(summarise(model)) == str(model.summary())
    assert marginal_effects(model).names == ("age", "price", "size")
    assert prediction_interval(model, X).mean.tolist() == model.predict(X).tolist()
    with pytest.raises(TypeError, match="solution is float; it must be a Solution or a fitted estimator"):
        summarise(1.0)


def test_columns_in_another_order_are_refused():
    model = ReLURegressor().fit(X, y)
    turned = X[X.columns[::-1]]
    for ask in (lambda: certify(turned, y, model), lambda: model.certify(turned, y)):
        with pytest.raises(ValueError, match="X has the columns size, price, age; the fit has age"):
            ask()
    assert certify(X.to_numpy(), y, model, target_gap=1e-3).status == "optimal"


@pytest.mark.parametrize(
    "other",
    [
        ReLURegressor(),
        make_pipeline(StandardScaler(), ReLURegressor()),
        GridSearchCV(ReLURegressor(), {"alpha": [0.0, 1.0]}),
    ],
)
def test_what_has_no_coefficients_is_not_certified(other):
    kind = type(other).__name__
    with pytest.raises(TypeError, match=f"solution_or_beta is a {kind} without coefficients; it must be"):
        certify(X, y, other)


def test_the_outcome_is_named_in_titles():
    model = ReLURegressor(floor="estimate").fit(X, y)
    for fit in (model, pickle.loads(pickle.dumps(model)), certify(X, y, model, floor=0.0).solution):
        assert "kwh ~ max(" in str(fit.summary()).splitlines()[0]
        assert "dE[kwh]/dx" in str(marginal_effects(fit))
    assert "  y ~ max(0, X coef" in str(solve(X.to_numpy(), y.to_numpy()).summary())


def test_a_report_needs_the_data(tmp_path):
    stored = pickle.loads(pickle.dumps(ReLURegressor("sorting").fit(X, y)))
    with pytest.raises(ValueError, match="stored without its data, which this needs"):
        write_report(stored, tmp_path / "page.html")
    assert not any(tmp_path.iterdir())
