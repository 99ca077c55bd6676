"""Standard errors: agreement with least squares where that is what they are, and coverage where it is not."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import sparse, stats

from rectifit import ReLURegressor, solve
from rectifit.datasets import make_relu
from rectifit.inference import estimate_covariance, marginal_effects, prediction_interval, summarise

KINDS = ["nonrobust", "HC0", "HC1", "HC2", "HC3"]
BETA, INTERCEPT = np.array([1.0, -1.0, 0.5, 2.0, -0.5]), 0.3

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
u = X @ [1.0, -2.0, 0.5] + 0.4
noise = 0.5 * rng.normal(size=300)
y = np.maximum(u, 0.0) + noise
w = rng.exponential(size=300) + 0.1
part = solve(X, y)


def least_squares(X, y, w=None, kind="nonrobust"):
    A = np.column_stack([X, np.ones(len(y))])
    model = sm.OLS(y, A) if w is None else sm.WLS(y, A, weights=w)
    return model.fit(cov_type=kind, use_t=False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", [None, w])
def test_where_all_rows_are_active_it_is_least_squares(kind, weight):
    outcome = u + 20.0 + (1.0 + np.abs(X[:, 0])) * noise
    summary = summarise(solve(X, outcome, sample_weight=weight), covariance=kind)
    expected = least_squares(X, outcome, weight, kind)
    np.testing.assert_allclose(summary.coefficient, expected.params, rtol=1e-8)
    np.testing.assert_allclose(summary.std_error, expected.bse, rtol=1e-8)
    np.testing.assert_allclose(summary.z, expected.tvalues, rtol=1e-8)
    np.testing.assert_allclose(summary.p_value, expected.pvalues, rtol=1e-6, atol=1e-300)
    np.testing.assert_allclose(np.column_stack([summary.low, summary.high]), expected.conf_int(), rtol=1e-8)
    assert summary.sigma == pytest.approx(np.sqrt(expected.scale), rel=1e-10)
    assert summary.r_squared == pytest.approx(expected.rsquared, rel=1e-10)
    assert summary.df == expected.df_resid
    assert summary.share_active == 1.0
    covariance = estimate_covariance(solve(X, outcome, sample_weight=weight), kind)
    np.testing.assert_allclose(covariance.matrix, expected.cov_params(), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("floor", [0.0, "estimate"])
def test_otherwise_it_is_least_squares_on_the_active_rows(kind, floor):
    solution = solve(X, y, sample_weight=w, floor=floor)
    on = solution.predict(X) > solution.floor
    summary = summarise(solution, covariance=kind)
    expected = least_squares(X[on], y[on], w[on], kind)
    assert 100 < on.sum() < 200
    np.testing.assert_allclose(summary.coefficient[:4], expected.params, rtol=1e-8)
    np.testing.assert_allclose(summary.std_error[:4], expected.bse, rtol=1e-7)
    assert summary.sigma == pytest.approx(np.sqrt(expected.scale), rel=1e-9)
    assert not summary.notes
    if floor == "estimate":
        mean = sm.WLS(y[~on], np.ones(len(y[~on])), weights=w[~on]).fit(cov_type=kind)
        assert summary.names[-1] == "floor"
        assert summary.coefficient[-1] == pytest.approx(mean.params[0], rel=1e-9)
        assert summary.std_error[-1] == pytest.approx(mean.bse[0], rel=1e-9)
        assert summary.sigma_floor == pytest.approx(np.sqrt(mean.scale), rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_with_a_ridge_it_is_the_sandwich_of_the_penalised_estimate(kind):
    alpha, outcome = 30.0, u + 20.0 + noise
    solution = solve(X, outcome, sample_weight=w, alpha=alpha)
    A = np.column_stack([X, np.ones(300)])
    root = np.sqrt(w)
    Z, e = A * root[:, None], root * (outcome - solution.predict(X))
    bread = np.linalg.inv(Z.T @ Z + alpha * np.diag([1.0, 1.0, 1.0, 0.0]))
    H = Z @ bread @ Z.T
    h, df = H.diagonal(), 300 - np.trace(H)
    variance = {
        "nonrobust": np.full(300, e @ e / df),
        "HC0": e**2,
        "HC1": e**2 * 300 / df,
        "HC2": e**2 / (1 - h),
        "HC3": e**2 / (1 - h) ** 2,
    }[kind]
    expected = bread @ (Z.T * variance) @ Z @ bread
    found = estimate_covariance(solution, kind)
    np.testing.assert_allclose(found.matrix, expected, rtol=1e-8, atol=1e-14)
    assert found.df == pytest.approx(df, rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_units_of_columns(kind):
    units, far = np.array([1e-9, 1.0, 1e9]), np.array([0.0, 1e4, 0.0])
    plain, scaled = summarise(part, covariance=kind), summarise(solve(X * units, y), covariance=kind)
    np.testing.assert_allclose(scaled.std_error[:3] * units, plain.std_error[:3], rtol=1e-6)
    assert scaled.std_error[3] == pytest.approx(plain.std_error[3], rel=1e-6)
    np.testing.assert_allclose(scaled.z, plain.z, rtol=1e-5)
    moved = summarise(solve(X + far, y), covariance=kind)
    np.testing.assert_allclose(moved.std_error[:3], plain.std_error[:3], rtol=1e-4)


def test_units_of_outcomes_and_weights_and_rows_without_weight():
    plain = summarise(solve(X, y, sample_weight=w), covariance="HC3")
    other = summarise(solve(X, 4.0 * y, sample_weight=9.0 * w), covariance="HC3")
    np.testing.assert_allclose(other.std_error, 4.0 * plain.std_error, rtol=1e-7)
    assert other.sigma == pytest.approx(12.0 * plain.sigma, rel=1e-7)
    more = np.vstack([X, 5.0 * X[:50]])
    padded = solve(more, np.append(y, -y[:50]), sample_weight=np.append(w, np.zeros(50)))
    again = summarise(padded, covariance="HC3")
    np.testing.assert_allclose(again.std_error, plain.std_error, rtol=1e-6)
    assert (again.n_samples, again.n_active) == (300, plain.n_active)


@pytest.mark.parametrize("kind", ["nonrobust", "HC3"])
def test_sparse_and_single_precision(kind):
    thin = X * (rng.random(X.shape) < 0.5)
    dense = estimate_covariance(solve(thin, y), kind).matrix
    np.testing.assert_allclose(
        estimate_covariance(solve(sparse.csr_matrix(thin), y), kind).matrix, dense, rtol=1e-6
    )
    single = estimate_covariance(solve(thin.astype(np.float32), y), kind).matrix
    np.testing.assert_allclose(single, dense, rtol=1e-3, atol=1e-7)


def draw(rng, X, spread=1.0):
    return np.maximum(X @ BETA + INTERCEPT, 0.0) + spread * rng.normal(size=len(X))


def simulate(n_replicates, seed, spread=1.0, kinds=("nonrobust",), quiet_floor=False):
    """Shares of intervals that cover, per kind and coefficient, and other results, over draws of y."""
    rng = np.random.default_rng(seed)
    X, true = rng.normal(size=(1000, 5)), np.append(BETA, INTERCEPT)
    if callable(spread):
        spread = spread(X)
    covered = {kind: [] for kind in kinds}
    solutions = []
    for _ in range(n_replicates):
        y = draw(rng, X, spread)
        if quiet_floor:
            y[X @ BETA + INTERCEPT <= 0.0] = 0.0
        solutions.append(solve(X, y, "sorting+iterative"))
        for kind in kinds:
            summary = summarise(solutions[-1], covariance=kind)
            covered[kind].append((summary.low <= true) & (true <= summary.high))
    return {kind: np.mean(hits, axis=0) for kind, hits in covered.items()}, solutions


@pytest.mark.slow
def test_intervals_cover_in_the_model_of_the_paper():
    shares, solutions = simulate(1000, seed=1)
    assert ((shares["nonrobust"] > 0.92) & (shares["nonrobust"] < 0.98)).all()
    summaries = [summarise(solution) for solution in solutions]
    # The noise of active rows and of rows at the floor is the same, and both are estimated without bias.
    assert np.mean([s.sigma**2 for s in summaries]) == pytest.approx(1.0, abs=0.01)
    assert np.mean([s.sigma_floor**2 for s in summaries]) == pytest.approx(1.0, abs=0.01)
    errors = np.std([s.coefficient for s in summaries], axis=0)
    np.testing.assert_allclose(np.mean([s.std_error for s in summaries], axis=0), errors, rtol=0.08)


@pytest.mark.slow
def test_average_effects_have_the_spread_that_is_stated():
    _, solutions = simulate(600, seed=2)
    effects = [marginal_effects(solution) for solution in solutions]
    stated = np.mean([e.std_error for e in effects], axis=0)
    np.testing.assert_allclose(np.std([e.coefficient for e in effects], axis=0), stated, rtol=0.12)
    # With the share taken as known, the largest effect would seem less precise than it is.
    plain = np.mean(
        [e.share_active * summarise(s).std_error[3] for e, s in zip(effects, solutions, strict=True)]
    )
    assert plain > 1.2 * np.std([e.coefficient[3] for e in effects])


@pytest.mark.slow
def test_robust_intervals_cover_where_the_plain_ones_fail():
    shares, _ = simulate(600, seed=3, spread=lambda X: 0.3 + np.abs(X[:, 0]), kinds=("nonrobust", "HC3"))
    assert ((shares["HC3"] > 0.92) & (shares["HC3"] < 0.98)).all()
    assert shares["nonrobust"][0] < 0.88


@pytest.mark.slow
def test_sigma_is_that_of_the_active_rows():
    """Rows that pile up exactly at the floor do not make the intervals narrower."""
    shares, solutions = simulate(400, seed=4, quiet_floor=True)
    assert (shares["nonrobust"] > 0.92).all()
    pooled = [np.sqrt(s.objective / (1000 - 6)) for s in solutions]
    sigmas = [summarise(s).sigma for s in solutions]
    assert np.mean(sigmas) == pytest.approx(1.0, abs=0.02)
    assert np.mean(pooled) < 0.8


@pytest.mark.slow
def test_estimated_floors_are_covered():
    rng = np.random.default_rng(5)
    hits = []
    for _ in range(60):
        x = rng.normal(size=(300, 1))
        y = 3.0 + np.maximum(2.0 * x[:, 0] + 0.5, 0.0) + 0.5 * rng.normal(size=300)
        summary = summarise(solve(x, y, "iterative", floor="estimate"))
        true = np.array([2.0, 3.5, 3.0])
        hits.append((summary.low <= true) & (true <= summary.high))
    assert (np.mean(hits, axis=0) > 0.88).all()


def test_the_bootstrap_is_close_to_the_sandwich():
    X, y, *_ = make_relu(800, 4, noise=0.3, design="gaussian", random_state=3)
    solution = solve(X, y, fit_intercept=False)
    drawn = summarise(solution, bootstrap=400, random_state=0)
    np.testing.assert_allclose(drawn.std_error, summarise(solution, covariance="HC1").std_error, rtol=0.15)
    assert drawn.covariance == "bootstrap, 400 draws"
    same = summarise(solution, bootstrap=400, random_state=0, n_jobs=2)
    np.testing.assert_array_equal(drawn.std_error, same.std_error)
    assert (summarise(solution, bootstrap=400, random_state=1).std_error != drawn.std_error).all()


def test_the_bootstrap_of_an_estimated_floor_and_of_weights():
    solution = solve(X, y + 2.0, sample_weight=w, floor="estimate")
    drawn = summarise(solution, bootstrap=200)
    np.testing.assert_allclose(drawn.std_error, summarise(solution, covariance="HC1").std_error, rtol=0.3)


def test_effects():
    summary, average, means = summarise(part), marginal_effects(part), marginal_effects(part, "means")
    on = part.predict(X) > 0.0
    np.testing.assert_allclose(average.coefficient, on.mean() * part.beta, rtol=1e-12)
    assert average.share_active == on.mean()
    assert X.mean(axis=0) @ part.beta + part.intercept > 0.0
    np.testing.assert_array_equal(means.coefficient, part.beta)
    np.testing.assert_allclose(means.std_error, summary.std_error[:3], rtol=1e-12)
    weighted = solve(X, y, sample_weight=w)
    share = w[weighted.predict(X) > 0.0].sum() / w.sum()
    np.testing.assert_allclose(marginal_effects(weighted).coefficient, share * weighted.beta, rtol=1e-12)
    # The average effect is the derivative of the average mean.
    step = 1e-6
    for j in range(3):
        rise = part.predict(X + step * np.eye(3)[j]).mean() - part.predict(X - step * np.eye(3)[j]).mean()
        assert average.coefficient[j] == pytest.approx(rise / (2 * step), rel=1e-3, abs=1e-3)


def test_effects_at_means_that_are_not_active_are_zero_and_say_so():
    low = solve(X - [1.0, 0.0, 0.0], np.maximum(u - 3.0, 0.0) + 0.1 * noise)
    effects = marginal_effects(low, "means", covariance="HC3")
    assert effects.coefficient.tolist() == effects.std_error.tolist() == [0.0, 0.0, 0.0]
    assert "at the floor" in effects.notes[-1]


def test_prediction_intervals_are_those_of_least_squares_far_from_the_kink():
    outcome = u + 20.0 + noise
    solution = solve(X, outcome)
    expected = least_squares(X, outcome).get_prediction(np.column_stack([X[:9], np.ones(9)]))
    mean, low, high = prediction_interval(solution, X[:9], level=0.9)
    ends = expected.summary_frame(alpha=0.1)
    np.testing.assert_allclose(mean, ends["mean"], rtol=1e-9)
    # The noise is taken as normal, not as Student's t: the same ends for the same quantile.
    half = stats.norm.ppf(0.95) * np.sqrt(expected.var_pred_mean + expected.var_resid)
    np.testing.assert_allclose(high - mean, half, rtol=1e-6)
    np.testing.assert_allclose(mean - low, half, rtol=1e-6)
    of_sparse = prediction_interval(solution, sparse.csr_matrix(X[:9]), 0.9)
    np.testing.assert_allclose(of_sparse.mean, mean, rtol=1e-14)


def test_prediction_intervals_below_the_kink_are_those_of_the_floor():
    far = np.array([[-20.0, 20.0, 0.0]])
    summary = summarise(part)
    mean, low, high = prediction_interval(part, far)
    assert mean[0] == 0.0
    assert high[0] == pytest.approx(stats.norm.ppf(0.975) * summary.sigma_floor, rel=1e-12)
    assert low[0] == -high[0]
    piled = solve(X, np.where(u > 0.0, np.abs(y), 0.0))
    assert (prediction_interval(piled, X).low >= 0.0).all()
    raised = solve(X, np.where(u > 0.0, np.abs(y), 0.0) + 7.0, floor="estimate")
    assert (prediction_interval(raised, X).low >= raised.floor).all()


def test_prediction_intervals_cover():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 5))
    solution = solve(X, draw(rng, X))
    new = rng.normal(size=(20_000, 5))
    outcome, u = draw(rng, new), new @ BETA + INTERCEPT
    _, low, high = prediction_interval(solution, new)
    covered = (low <= outcome) & (outcome <= high)
    for rows in (u < -1.0, np.abs(u) < 0.5, u > 1.0):
        assert 0.92 < covered[rows].mean() < 0.98


def test_too_few_rows():
    few = summarise(solve(X[:3], y[:3] + 10.0))
    assert np.isnan(few.std_error).all()
    assert np.isnan(few.sigma)
    assert few.notes == ("3 rows predicted above the floor for 4 coefficients: no standard errors",)
    for kind in KINDS:
        assert np.isnan(summarise(solve(X[:3], y[:3] + 10.0), covariance=kind).std_error).all()
    assert np.isnan(prediction_interval(solve(X[:3], y[:3] + 10.0), X).high).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_dead_neuron():
    dead = solve(X, -np.abs(y) - 1.0)
    summary = summarise(dead)
    assert np.isnan(summary.std_error).all()
    assert "no row is predicted above the floor" in str(summary)
    assert np.isnan(marginal_effects(dead).std_error).all()
    assert np.isfinite(prediction_interval(solve(X, np.zeros(300)), X).mean).all()
    constant = summarise(solve(X, np.full(300, 7.0), floor="estimate"))
    assert np.isnan(constant.r_squared)


def test_coefficients_that_are_not_determined():
    twins = np.column_stack([X, X[:, 0]])
    for kind in KINDS:
        summary = summarise(solve(twins, y), covariance=kind)
        assert np.isnan(summary.std_error).tolist() == [True, False, False, True, False]
        np.testing.assert_allclose(
            summary.std_error[[1, 2, 4]], summarise(part, covariance=kind).std_error[1:], rtol=1e-4
        )
        assert "do not determine 2 coefficients" in summary.notes[0]
    constant = summarise(solve(np.column_stack([X, np.full(300, 0.1)]), y))
    assert np.isnan(constant.std_error).tolist() == [False, False, False, True, True]
    assert np.isnan(summarise(solve(twins, y), bootstrap=10).std_error).tolist()[0]


def test_a_row_that_determines_a_coefficient_alone():
    alone = np.column_stack([X, np.arange(300) == int(np.argmax(u))])
    solution = solve(alone, y)
    assert np.isfinite(summarise(solution, covariance="HC1").std_error).all()
    careful = summarise(solution, covariance="HC3")
    assert np.isnan(careful.std_error).all()
    assert "HC3 does not exist" in careful.notes[0]


def test_rows_at_the_kink_are_named():
    """Outcomes far below the floor hold the fit at their kinks."""
    x = np.array([[0.0], [1.0], [1.0], [2.0], [3.0], [4.0]])
    solution = solve(x, [-1.0, -9.0, -9.0, 2.0, 2.0, 3.0])
    assert solution.predict([[1.0]])[0] == pytest.approx(0.0, abs=1e-12)
    summary = summarise(solution)
    assert "2 rows are predicted exactly at the floor" in summary.notes[0]
    assert summary.n_active == 3


def test_the_table():
    names = ["age", "price of bread", "z"]
    summary = summarise(part, names=names, covariance="HC3")
    lines = str(summary).splitlines()
    width = len(lines[1])
    table = lines[lines.index("-" * width) + 1 :][:4]
    assert [line.split("  ")[0] for line in table] == [*names, "intercept"]
    assert {len(line) for line in lines[: 8 + 5]} == {width}
    for line, c, s, z in zip(table, summary.coefficient, summary.std_error, summary.z, strict=True):
        assert f"{c:.4f}" in line
        assert f"{s:.4f}" in line
        assert f"{z:.2f}" in line
    assert f"Certificate: {part.certificate}" in lines
    assert "HC3" in lines[3]
    assert len({len(line) for line in str(marginal_effects(part)).splitlines()}) == 1


def test_plain_data():
    plain = json.loads(json.dumps(summarise(part).to_dict()))
    assert plain["names"] == ["x0", "x1", "x2", "intercept"]
    assert plain["coefficient"] == [*part.beta.tolist(), part.intercept]
    assert plain["certificate"] == str(part.certificate)
    assert plain["n_samples"] == 300
    few = summarise(solve(X[:3], y[:3] + 10.0)).to_dict()
    assert few["std_error"] == [None] * 4
    assert json.loads(json.dumps(marginal_effects(part).to_dict()))["at"] == "average"


def test_estimator_and_solution_give_the_same():
    model = ReLURegressor().fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    summary = model.summary(covariance="HC1", level=0.8)
    assert summary.names == ("a", "b", "c", "intercept")
    np.testing.assert_allclose(summary.std_error, part.summary(covariance="HC1").std_error)
    np.testing.assert_allclose(summary.high - summary.low, 2 * stats.norm.ppf(0.9) * summary.std_error)
    stored = pickle.loads(pickle.dumps(model))
    assert str(stored.summary(covariance="HC1", level=0.8)) == str(summary)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"covariance": "HC4"}, "covariance is 'HC4'; it must be one of 'nonrobust', 'HC0'"),
        ({"level": 1.0}, "level is 1.0"),
        ({"names": ["a"]}, "names has 1 entries; it must have 3"),
        ({"bootstrap": 1}, "bootstrap is 1"),
        ({"bootstrap": 10, "covariance": "HC3"}, "only one of them"),
    ],
)
def test_errors(options, words):
    with pytest.raises(ValueError, match=words):
        summarise(part, **options)
    with pytest.raises(ValueError, match="at is 'median'"):
        marginal_effects(part, "median")
