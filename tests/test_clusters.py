"""Standard errors for clusters and for time order: those of statsmodels where all rows are active."""

from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm
from statsmodels.stats.sandwich_covariance import cov_cluster_2groups

from rectifit import ReLURegressor, solve
from rectifit.data import ArrayData
from rectifit.inference import (
    estimate_covariance,
    marginal_effects,
    predicted_margins,
    prediction_interval,
    summarise,
)
from rectifit.inference.dependence import LagSums

N = 240
rng = np.random.default_rng(0)
firm = rng.permutation(np.arange(N) % 40)
year = np.arange(N) % 12
X = rng.normal(size=(N, 3)) + 0.5 * rng.normal(size=(40, 3))[firm]
shock = 0.8 * rng.normal(size=40)[firm] + 0.4 * rng.normal(size=12)[year] + 0.5 * rng.normal(size=N)
line = X @ [1.0, -2.0, 0.5] + 0.4
active = line + 20.0 + shock
# Outcomes below the floor hold fits at kinks, where they are not least squares on the active rows.
y = np.maximum(np.maximum(line, 0.0) + shock, 0.0)
w = rng.exponential(size=N) + 0.1
A = np.column_stack([X, np.ones(N)])
WEIGHTS = [None, w]


def least_squares(y, w, rows=slice(None)):
    return (sm.OLS(y[rows], A[rows]) if w is None else sm.WLS(y[rows], A[rows], weights=w[rows])).fit()


@pytest.mark.parametrize("weight", WEIGHTS)
def test_one_way_clusters_where_all_rows_are_active(weight):
    expected = least_squares(active, weight).get_robustcov_results("cluster", groups=firm, use_t=False)
    solution = solve(X, active, sample_weight=weight)
    summary = solution.summary(covariance="cluster", groups=firm)
    np.testing.assert_allclose(summary.std_error, expected.bse, rtol=1e-8)
    np.testing.assert_allclose(summary.cov, expected.cov_params(), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(summary.p_value, expected.pvalues, rtol=1e-6, atol=1e-300)
    assert summary.covariance == "cluster, 40 groups"
    assert not summary.notes
    assert "for noise that is correlated within groups" in summary.table().note


@pytest.mark.parametrize("weight", WEIGHTS)
def test_two_way_clusters_where_all_rows_are_active(weight):
    expected = cov_cluster_2groups(least_squares(active, weight), firm, year)[0]
    solution = solve(X, active, sample_weight=weight)
    for groups in (
        np.column_stack([firm, year]),
        pd.DataFrame({"firm": firm, "year": year}),
        pl.DataFrame({"firm": firm, "year": year}),
        (firm, year),
        [firm.tolist(), [f"year {value}" for value in year]],
    ):
        found = estimate_covariance(solution, "cluster", groups=groups)
        np.testing.assert_allclose(found.matrix, expected, rtol=1e-7, atol=1e-12)
        assert found.label == "cluster, 40 x 12 groups"
        assert found.notes == (
            "only 12 groups: standard errors are mostly too small, and normal intervals too narrow",
        )


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("maxlags", [0, 1, 4, N - 1])
def test_lags_where_all_rows_are_active(weight, maxlags):
    fitted = least_squares(active, weight)
    expected = fitted.get_robustcov_results("HAC", maxlags=maxlags, use_correction=False).cov_params()
    found = estimate_covariance(solve(X, active, sample_weight=weight), "HAC", maxlags=maxlags)
    np.testing.assert_allclose(found.matrix, expected, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_otherwise_clusters_are_those_of_the_active_rows(weight):
    solution = solve(X, y, sample_weight=weight)
    on = solution.predict(X) > 0.0
    assert 80 < on.sum() < 180
    assert not solution.summary().notes
    fitted = least_squares(y, weight, on)
    one = fitted.get_robustcov_results("cluster", groups=firm[on], use_t=False)
    np.testing.assert_allclose(
        solution.summary(covariance="cluster", groups=firm).std_error, one.bse, rtol=1e-7
    )
    two = cov_cluster_2groups(fitted, firm[on], year[on])[0]
    found = estimate_covariance(solution, "cluster", groups=(firm, year)).matrix
    np.testing.assert_allclose(found, two, rtol=1e-6, atol=1e-12)


def test_lags_count_rows_at_the_floor():
    """Time goes on while the outcome is at the floor."""
    solution = solve(X, y)
    on = solution.predict(X) > 0.0
    scores = A * (on * (y - solution.predict(X)))[:, None]
    bread = np.linalg.inv(A[on].T @ A[on])
    L = 3
    meat = scores.T @ scores
    for lag in range(1, L + 1):
        cross = scores[lag:].T @ scores[:-lag]
        meat += (1.0 - lag / (L + 1.0)) * (cross + cross.T)
    found = estimate_covariance(solution, "HAC", maxlags=L)
    np.testing.assert_allclose(found.matrix, bread @ meat @ bread, rtol=1e-7, atol=1e-12)
    assert found.label == "HAC, 3 lags"


def test_groups_of_one_row_are_hc1():
    solution = solve(X, y, sample_weight=w)
    single = estimate_covariance(solution, "cluster", groups=np.arange(N)).matrix
    n = int((solution.predict(X) > 1e-9).sum())
    # Both correct for degrees of freedom: n / (n - 1) (n - 1) / (n - k) and n / (n - k).
    np.testing.assert_allclose(single, estimate_covariance(solution, "HC1").matrix, rtol=1e-9, atol=1e-14)
    assert estimate_covariance(solution, "cluster", groups=np.arange(N)).label == f"cluster, {n} groups"


def test_an_estimated_floor_shares_the_groups_of_the_coefficients():
    raised = np.maximum(line, 0.0) + 3.0 + shock
    solution = solve(X, raised, floor="estimate")
    on = solution.predict(X) > solution.floor
    e = raised - solution.predict(X)
    Z = np.zeros((N, 5))
    Z[on, :4], Z[~on, 4] = A[on], 1.0
    bread = np.linalg.inv(Z.T @ Z)
    sums = np.array([(Z * e[:, None])[firm == g].sum(axis=0) for g in range(40)])
    expected = 40 / 39 * (N - 1) / (N - 5) * bread @ sums.T @ sums @ bread
    found = estimate_covariance(solution, "cluster", groups=firm)
    np.testing.assert_allclose(found.matrix, expected, rtol=1e-7, atol=1e-12)
    # The line and the floor move together with the shocks of a group.
    assert found.matrix[3, 4] != 0.0


@pytest.mark.parametrize("kind", ["cluster", "HAC"])
def test_data_read_in_passes_have_the_same(kind):
    data = ArrayData(X, y, w, block_rows=37)
    solution = solve(X, y, "sorting+iterative", sample_weight=w)
    streamed = solve(data, None, "sorting+iterative")
    options = {"groups": (firm, year)} if kind == "cluster" else {"maxlags": 50}
    np.testing.assert_allclose(
        estimate_covariance(streamed, kind, **options).matrix,
        estimate_covariance(solution, kind, **options).matrix,
        rtol=1e-7,
        atol=1e-12,
    )


@pytest.mark.parametrize("n_lags", [0, 1, 3, 7, 30])
def test_sums_of_parts_of_a_series_are_those_of_the_whole(n_lags):
    scores = rng.normal(size=(23, 2))
    whole = LagSums.of(scores, n_lags)
    cuts = [0, 1, 4, 5, 15, 23]
    parts = [LagSums.of(scores[a:b], n_lags) for a, b in pairwise(cuts)]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merge(part)
    np.testing.assert_allclose(merged.matrix, whole.matrix, rtol=1e-12, atol=1e-12)


def test_the_bootstrap_of_groups_is_close_to_the_clustered_sandwich():
    solution = solve(X, np.maximum(line, 0.0) + shock)
    drawn = solution.summary(bootstrap=300, groups=firm, random_state=0)
    assert drawn.covariance == "cluster bootstrap, 300 draws"
    clustered = solution.summary(covariance="cluster", groups=firm)
    np.testing.assert_allclose(drawn.std_error, clustered.std_error, rtol=0.25)
    rows = solution.summary(bootstrap=300, random_state=0)
    # Shocks that rows of a firm share are one observation, and not six.
    assert drawn.std_error[-1] > 1.3 * rows.std_error[-1]
    again = solution.summary(bootstrap=300, groups=firm, random_state=0, n_jobs=2)
    np.testing.assert_array_equal(drawn.std_error, again.std_error)
    same = solution.summary(covariance="cluster", bootstrap=300, groups=firm, random_state=0)
    np.testing.assert_array_equal(drawn.std_error, same.std_error)


@pytest.mark.slow
def test_clustered_intervals_cover_where_the_plain_ones_fail():
    rng = np.random.default_rng(7)
    groups = np.repeat(np.arange(200), 5)
    x = rng.normal(size=(200, 1))[groups] + 0.3 * rng.normal(size=(1000, 1))
    hits = {"nonrobust": [], "cluster": []}
    for _ in range(300):
        noise = 0.7 * rng.normal(size=200)[groups] + 0.5 * rng.normal(size=1000)
        solution = solve(x, np.maximum(x[:, 0] + 0.5, 0.0) + noise, "sorting+iterative")
        for kind, shares in hits.items():
            summary = solution.summary(covariance=kind, groups=groups if kind == "cluster" else None)
            shares.append(summary.low[0] <= 1.0 <= summary.high[0])
    assert 0.91 < np.mean(hits["cluster"]) < 0.98
    assert np.mean(hits["nonrobust"]) < 0.8


def test_all_functions_of_inference_take_groups():
    model = ReLURegressor().fit(X, y)
    options = {"covariance": "cluster", "groups": firm}
    summary = model.summary(**options)
    for function, given in ((marginal_effects, ()), (predicted_margins, ("x0",))):
        found = function(model, *given, **options)
        assert found.covariance == summary.covariance == "cluster, 39 groups"
        np.testing.assert_array_equal(function(model, *given, covariance=summary).std_error, found.std_error)
    wide, narrow = prediction_interval(model, X, **options), prediction_interval(model, X)
    assert (wide.high - wide.low).mean() > (narrow.high - narrow.low).mean()


def test_missing_and_odd_groups():
    solution = solve(X, y)
    expected = solution.summary(covariance="cluster", groups=firm).std_error
    for groups in (
        firm.astype(str),
        [f"firm {value}" for value in firm],
        pd.Series(firm).astype("category"),
        pl.Series(firm).cast(pl.String).cast(pl.Categorical),
        np.datetime64("2020-01-01") + firm,
        firm[:, None],
        pd.DataFrame({"firm": firm}),
    ):
        found = solution.summary(covariance="cluster", groups=groups).std_error
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"covariance": "cluster"}, "covariance is 'cluster' without groups"),
        ({"groups": firm}, "groups is given with covariance='nonrobust'"),
        ({"covariance": "cluster", "groups": firm[:-1]}, "groups has 239 entries but X has 240 rows"),
        ({"covariance": "cluster", "groups": np.where(firm == 3, np.nan, firm)}, "groups has . missing val"),
        ({"covariance": "cluster", "groups": np.zeros((N, 3))}, "groups has 3 columns; one or two"),
        ({"bootstrap": 10, "groups": (firm, year)}, "a bootstrap draws groups of one kind"),
        ({"covariance": "HC1", "bootstrap": 10, "groups": firm}, "only one of them"),
        ({"maxlags": 3}, "maxlags is 3 with covariance='nonrobust'"),
        ({"covariance": "HAC", "maxlags": N}, "maxlags is 240; it must be a whole number of at least 0"),
    ],
)
def test_errors(options, words):
    with pytest.raises(ValueError, match=words):
        summarise(solve(X, y, "sorting"), **options)


def test_one_group_has_no_standard_errors():
    summary = solve(X, y).summary(covariance="cluster", groups=np.zeros(N))
    assert np.isnan(summary.std_error).all()
    assert summary.notes == ("all rows that count are in one group: no standard errors",)


def test_groups_of_another_type():
    with pytest.raises(TypeError, match="groups is 'firm'; it must be an array with one group per row"):
        solve(X, y).summary(covariance="cluster", groups="firm")
