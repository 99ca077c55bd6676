from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from rectifit.comparison import METHODS, compare
from rectifit.comparison.baselines import BASELINES, ClippedLinearRegression, baselines_within
from rectifit.datasets import make_relu
from rectifit.tobit import fit_tobit, negative_log_likelihood


def simulate(n, seed, sigma=1.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 100.0, 0.01] + [0.0, 5.0, 1.0]
    beta, intercept = np.array([2.0, -0.01, 50.0]), -50.0
    latent = X @ beta + intercept + sigma * rng.standard_normal(n)
    return X, np.maximum(latent, 0.0), beta, intercept


@pytest.mark.parametrize("seed", range(5))
def test_gradient_of_the_likelihood(seed):
    rng = np.random.default_rng(seed)
    A = np.column_stack([rng.normal(size=(40, 2)), np.ones(40)])
    y = np.maximum(rng.normal(size=40), 0.0)
    theta = rng.normal(size=4)
    numeric = approx_fprime(theta, lambda t: negative_log_likelihood(t, A, y)[0], 1e-7)
    np.testing.assert_allclose(negative_log_likelihood(theta, A, y)[1], numeric, rtol=1e-4, atol=1e-4)


def test_likelihood_far_in_the_tail_is_finite():
    value, gradient = negative_log_likelihood(np.array([1e3, 0.0]), np.ones((2, 1)), np.array([0.0, 1.0]))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_tobit_recovers_the_latent_coefficients():
    X, y, beta, intercept = simulate(20_000, 0)
    model = fit_tobit(X, y)
    np.testing.assert_allclose(model.beta, beta, rtol=0.05)
    assert model.intercept == pytest.approx(intercept, rel=0.05)
    assert model.sigma == pytest.approx(1.5, rel=0.03)


def test_tobit_is_at_a_maximum():
    X, y, *_ = simulate(300, 1)
    model = fit_tobit(X, y)
    theta = np.array([*model.beta, model.intercept, np.log(model.sigma)])
    A = np.column_stack([X, np.ones(len(y))])
    value, gradient = negative_log_likelihood(theta, A, y)
    assert -value == pytest.approx(model.log_likelihood, rel=1e-12)
    scale = np.array([*X.std(axis=0), 1.0, 1.0])
    np.testing.assert_allclose(gradient / scale / len(y), 0.0, atol=1e-5)


def test_tobit_without_censoring_is_least_squares():
    X, y, *_ = simulate(200, 2)
    y = y + 1.0
    model = fit_tobit(X, y)
    line = LinearRegression().fit(X, y).predict(X)
    np.testing.assert_allclose(X @ model.beta + model.intercept, line, atol=1e-5)
    assert model.sigma == pytest.approx(np.sqrt(np.mean((y - line) ** 2)), rel=1e-5)


def test_tobit_of_the_published_example():
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


def test_tobit_predicts_the_mean():
    X, y, *_ = simulate(20_000, 3)
    predicted = fit_tobit(X, y).predict(X)
    assert predicted.min() > 0.0
    for part in np.array_split(np.argsort(predicted), 5):
        # Five standard errors of a mean.
        assert abs((predicted - y)[part].mean()) < 5 * (predicted - y)[part].std() / np.sqrt(len(part))


@pytest.mark.parametrize(("y", "words"), [([-1.0, 1.0], "negative entry"), ([0.0, 0.0], "0 everywhere")])
def test_tobit_refuses(y, words):
    with pytest.raises(ValueError, match=words):
        fit_tobit([[1.0], [2.0]], y)


def test_tobit_where_the_likelihood_has_no_maximum():
    model = fit_tobit([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0])
    np.testing.assert_allclose(model.predict(np.array([[4.0]])), 4.0, atol=1e-6)


def test_general_solver_reaches_realizable_data():
    X, y, *_ = make_relu(100, 3, noise=0.0, random_state=0)
    starts = next(baseline.estimator for baseline in BASELINES if "starts" in baseline.name)
    np.testing.assert_allclose(clone(starts).fit(X, y).predict(X), y, atol=1e-5)
    line = LinearRegression().fit(X, y).predict(X)
    np.testing.assert_array_equal(ClippedLinearRegression().fit(X, y).predict(X), np.maximum(line, 0.0))


@pytest.fixture(scope="module")
def comparison():
    X, y, *_ = make_relu(120, 3, noise=0.4, random_state=1)
    y = np.maximum(y, 0.0)
    return X, y, compare(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_way_has_its_errors(comparison):
    X, y, found = comparison
    assert [row.name for row in found.rows] == [*(baseline.name for baseline in BASELINES), *METHODS]
    by_name = {row.name: row for row in found.rows}
    for row in found.rows:
        assert row.skipped is None
        assert row.cross_validated > 0.0
    for baseline in BASELINES:
        errors = clone(baseline.estimator).fit(X, y).predict(X) - y
        assert by_name[baseline.name].in_sample == pytest.approx(np.mean(errors**2), rel=1e-9)
        assert (by_name[baseline.name].gap is None) == (not baseline.is_relu)


def test_gaps_rest_on_one_proof(comparison):
    _, y, found = comparison
    for row in found.rows:
        if row.gap is not None:
            least = found.certificate.lower_bound / y.size
            assert row.in_sample >= least * (1 - 1e-9)
            assert row.gap == pytest.approx(1.0 - least / row.in_sample, abs=1e-12)
    assert found.rows[-1].gap <= 1.1e-4


def test_cross_validation_is_by_the_same_seeded_folds(comparison):
    X, y, found = comparison
    again = {row.name: row.cross_validated for row in compare(X, y).rows}
    other = {row.name: row.cross_validated for row in compare(X, y, seed=1).rows}
    for row in found.rows:
        assert row.cross_validated == again[row.name]
    assert other["auto"] != again["auto"]


@pytest.mark.parametrize(
    "bounds",
    [
        [(0, np.inf)] * 3,
        [(-np.inf, 0.1), (-0.2, 0.2), (-np.inf, np.inf)],
        [(0.5, 0.5), (0, np.inf), (-1, 0)],
        [(1, 1), (0, 0), (-2, -2)],
    ],
)
def test_within_bounds(bounds):
    bounds = np.array(bounds, dtype=float)
    X, y, *_ = make_relu(120, 3, noise=0.4, random_state=1)
    X = X * [1.0, 50.0, 1.0] + [0.0, 3.0, 1e-3]
    y = np.maximum(y, 0.0)
    found = compare(X, y, bounds=bounds)
    rows = {row.name: row for row in found.rows}
    keeping = {"scipy least_squares, 20 starts", "scipy lsq_linear, bounded", *METHODS}
    is_signs = (bounds == [0, np.inf]).all()
    keeping |= {"LinearRegression(positive=True)"} if is_signs else set()
    assert {name for name, row in rows.items() if not row.ignores_bounds} == keeping
    # Bounds hold for the alternatives that say so, and their errors are those of least squares there.
    for candidate in baselines_within(bounds):
        fitted = clone(candidate.estimator).fit(X, y)
        if not candidate.ignores_bounds:
            assert ((bounds[:, 0] <= fitted.coef_) & (fitted.coef_ <= bounds[:, 1])).all()
    best = rows["auto"].in_sample
    assert rows["scipy least_squares, 20 starts"].in_sample >= best * (1 - 1e-6)
    assert rows["scipy least_squares, 20 starts"].in_sample <= best * (1 + 1e-3)
    if is_signs:
        line = rows["LinearRegression(positive=True)"].in_sample
        assert rows["scipy lsq_linear, bounded"].in_sample == pytest.approx(line, rel=1e-6)
    with_gap = {name for name, row in rows.items() if row.gap is not None}
    assert with_gap == {"scipy least_squares, 20 starts", *METHODS}
    for row in found.rows:
        assert row.gap is None or row.in_sample >= found.certificate.lower_bound / y.size * (1 - 1e-9)
    assert found.remarks() == ["* ignores the bounds of the coefficients."]
    names = [name for name, *_ in found.table().rows]
    assert sum(name.endswith(" *") for name in names) == len(rows) - len(keeping)


def test_what_cannot_be_fitted_says_why():
    X, y, *_ = make_relu(40, 2, noise=0.4, random_state=1)
    skipped = {row.name: row.skipped for row in compare(X, y).rows if row.skipped}
    assert set(skipped) == {"Poisson GLM", "Tweedie GLM, power 1.5", "Tobit"}
    assert f"{y.min():.4g}" in skipped["Tobit"]
    rows = compare(X, np.where(np.arange(40) == 7, 1.0, 0.0)).rows
    assert {row.name for row in rows if row.skipped} == set(skipped)


def test_too_few_rows_to_leave_any_out():
    rows = compare(np.eye(3), np.array([0.0, 1.0, 2.0])).rows
    assert all(row.cross_validated is None for row in rows)
