"""Linear hypotheses about estimates, and the point at which the line meets the floor."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import optimize, stats

from rectifit import ReLURegressor, load_model, solve
from rectifit.inference.hypotheses import describe, read_hypotheses
from rectifit.model_file import SavedModel, write_model
from rectifit.tables import make_table

rng = np.random.default_rng(0)
N = 300
frame = pd.DataFrame(rng.normal(size=(N, 3)), columns=["educ", "exper", "tenure"])
frame["wage"] = 20.0 + frame[["educ", "exper", "tenure"]] @ [1.0, -0.1, 0.2] + rng.normal(size=N)
X, y = frame[["educ", "exper", "tenure"]], frame["wage"]
summary = solve(X, y).summary(covariance="HC1")
peer = smf.ols("wage ~ educ + exper + tenure", frame).fit(cov_type="HC1")


@pytest.mark.parametrize(
    "hypotheses",
    [
        "educ = 0",
        "educ = 0, exper = 0",
        "educ = 1, exper + tenure = 0.1",
        "2*educ - exper/4 = 3",
        "educ = exper = tenure",
        "exper, tenure",
        "-(educ - 2*tenure) + 1 = exper*3",
        "Intercept = 20",
        "(educ = 0), (2*(exper - tenure) = 0.1)",
    ],
)
def test_wald_is_that_of_statsmodels_where_all_rows_are_active(hypotheses):
    found, expected = summary.wald(hypotheses), peer.wald_test(hypotheses, use_f=False, scalar=True)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-7)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-300)
    assert found.df == expected.df_denom
    assert found.p_value == pytest.approx(stats.chi2.sf(found.statistic, found.df), abs=1e-300)
    # What is tested can be read again.
    assert summary.wald(found.hypotheses).statistic == pytest.approx(found.statistic, rel=1e-12)


def test_matrices_and_lists_mean_what_text_does():
    expected = summary.wald("educ = 1, exper - tenure = 0")
    R, r = [[1, 0, 0, 0], [0, 1, -1, 0]], [1, 0]
    for hypotheses in ((R, r), (np.array(R), np.array(r)), ["educ = 1", "exper = tenure"]):
        assert summary.wald(hypotheses).statistic == pytest.approx(expected.statistic, rel=1e-12)
    assert summary.wald(R).statistic == summary.wald("educ, exper - tenure").statistic
    assert summary.wald([1, 0, 0, 0]).df == 1
    assert str(summary.wald((R, r))) == str(expected)


def test_one_hypothesis_is_the_z_test_of_the_summary():
    for j, name in enumerate(summary.names):
        found = summary.wald(name)
        assert found.statistic == pytest.approx(summary.z[j] ** 2, rel=1e-10)
        assert found.p_value == pytest.approx(summary.p_value[j], rel=1e-8, abs=1e-300)


def test_units_do_not_matter():
    units = [1e-9, 1.0, 1e9]
    scaled = solve(X * units, y).summary(covariance="HC1")
    found = scaled.wald((np.diag([*units, 1.0])[:3], [1.0, 0.0, 0.0]))
    expected = summary.wald("educ = 1, exper = 0, tenure = 0")
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-6)


def test_rejections_have_the_level_of_the_test():
    rng = np.random.default_rng(3)
    p_values = []
    for _ in range(200):
        X = rng.normal(size=(300, 3))
        y = np.maximum(X @ [1.0, 1.0, 0.0] + 0.5, 0.0) + 0.5 * rng.normal(size=300)
        p_values.append(solve(X, y, "sorting+iterative").summary().wald("x0 = x1, x2").p_value)
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3


NAMES = (
    "educ",
    "a:b",
    "a",
    "C(region)[T.north]",
    "price of bread",
    "region=south",
    "2",
    "x-1",
    "x",
    "I(age ** 2)",
)


@pytest.mark.parametrize(
    ("text", "factors"),
    [
        ("C(region)[T.north] = 0", {3: 1}),
        ("2*C(region)[T.north] - a:b", {3: 2, 1: -1}),
        ("a:b = a", {1: 1, 2: -1}),
        ("price of bread + region=south = a", {4: 1, 5: 1, 2: -1}),
        ("I(age ** 2)", {9: 1}),
        ("x-1", {7: 1}),
        ("`x` - 1*a", {8: 1, 2: -1}),
        ("`2` - 2*a", {6: 1, 2: -2}),
        ("educ", {0: 1}),
    ],
)
def test_names_of_any_kind(text, factors):
    row = np.zeros(len(NAMES))
    row[list(factors)] = list(factors.values())
    found = read_hypotheses(text, NAMES)
    assert found.R.tolist() == [row.tolist()]
    assert found.r.tolist() == [0.0]
    assert read_hypotheses(describe(found, NAMES), NAMES).R.tolist() == found.R.tolist()


@pytest.mark.parametrize(
    ("hypotheses", "words"),
    [
        ("edu = 0", "hypotheses has 'edu'; the estimates are educ, exper, tenure, intercept"),
        ("educ*exper = 0", "one estimate is multiplied or divided by another"),
        ("educ/0 = 0", "something is divided by 0"),
        ("educ = ", "the end is unexpected after '='"),
        ("educ exper = 0", "'exper' is unexpected after 'educ'"),
        ("educ = 0,", "the end is unexpected after ','"),
        ("(educ = 0", "the end is unexpected after '0'"),
        ("educ = 1 ?", "'.' cannot be read"),
        ("", "the end is unexpected"),
        ("1 = 1", "has one that is about no estimate"),
        ("educ = 0, 2*educ = 0", "hypotheses are 2, but at most 1 of them say something independent"),
        (
            [[1.0, 0.0]],
            "hypotheses has 2 columns; it must have 4, one for each of educ, exper, tenure, intercept",
        ),
        (([[1, 0, 0, 0]], [1, 2]), "r of hypotheses has 2 entries; it must have 1"),
        ([[np.nan, 0, 0, 0]], "hypotheses contains NaN"),
    ],
)
def test_errors(hypotheses, words):
    with pytest.raises(ValueError, match=words) as raised:
        summary.wald(hypotheses)
    assert "\n" not in str(raised.value)
    with pytest.raises(TypeError, match="hypotheses is 3"):
        summary.wald(3)


def test_coefficients_without_a_standard_error_are_refused():
    limited = solve(X, y, bounds={"educ": (None, 0.5)}).summary()
    assert limited.wald("exper = 0").df == 1
    with pytest.raises(ValueError, match="hypotheses are about 'educ', which has no standard error"):
        limited.wald("educ = exper")
    twins = solve(np.column_stack([X, X["educ"]]), y).summary()
    with pytest.raises(ValueError, match="hypotheses are about 'x3', which has no standard error"):
        twins.wald("x3")


def test_fewer_groups_than_hypotheses_are_refused():
    few = solve(X, y).summary(covariance="cluster", groups=np.arange(N) % 2)
    with pytest.raises(ValueError, match="fewer groups or draws than hypotheses"):
        few.wald("educ, exper, tenure")


def test_the_covariance_has_names():
    cov = summary.cov
    assert cov.names == summary.names
    np.testing.assert_allclose(
        cov, peer.cov_params().loc[["educ", "exper", "tenure", "Intercept"]].iloc[:, [1, 2, 3, 0]]
    )
    assert cov["educ", "exper"] == cov["exper", "educ"] == cov.values[0, 1]
    assert cov["educ"].tolist() == cov.values[0].tolist()
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), summary.std_error)
    table = cov.to_frame()
    assert list(table.index) == list(table.columns) == list(summary.names)
    with pytest.raises(KeyError, match="'edu' is not one of educ, exper, tenure, intercept"):
        cov["edu"]


# The balance point.

degrees = rng.uniform(-5.0, 25.0, size=N)
wind = rng.exponential(size=N)
noise = 4.0 * rng.normal(size=N)
weather = pd.DataFrame({"degrees": degrees, "wind": wind})
line = 3.0 * (16.0 - degrees) + 2.0 * (wind - 1.0)
kwh = np.maximum(line, 0.0) + noise


def implied_point(values, wind):
    """Where b_0 x + b_1 wind + b_2 = floor."""
    slope, other, intercept, *floor = values
    return ((floor[0] if floor else 0.0) - intercept - other * wind) / slope


@pytest.mark.parametrize("floor", [0.0, 2.0, "estimate"])
@pytest.mark.parametrize("at", [None, {"wind": 0.5}])
def test_the_balance_point_and_its_delta_method(floor, at):
    shift = 7.0 if floor == "estimate" else 0.0
    found = solve(weather, kwh + shift, floor=floor).summary(covariance="HC1")
    point = found.balance_point("degrees", at)
    value = wind.mean() if at is None else at["wind"]
    values = found.coefficient if floor == "estimate" else np.append(found.coefficient, floor)
    assert point.at == {"wind": pytest.approx(value)}
    assert point.estimate == pytest.approx(implied_point(values, value), rel=1e-9)
    slope = optimize.approx_fprime(values, implied_point, 1e-7, value)[: len(found.names)]
    assert point.std_error == pytest.approx(np.sqrt(slope @ found.cov.values @ slope), rel=1e-4)
    half = stats.norm.ppf(0.975) * point.std_error
    assert (point.low, point.high) == pytest.approx((point.estimate - half, point.estimate + half))
    # The prediction is at the floor there.
    row = pd.DataFrame({"degrees": [point.estimate - 1e-6], "wind": [value]})
    base = found.floor
    assert solve(weather, kwh + shift, floor=floor).predict(row)[0] == pytest.approx(base, abs=1e-4)


def test_fiellers_interval_is_where_the_line_does_not_differ_from_the_floor():
    found = solve(weather, kwh).summary()
    point = found.balance_point("degrees", {"wind": 1.0}, level=0.9)
    q = stats.norm.ppf(0.95)

    def excess(x):
        row = np.array([x, 1.0, 1.0])
        return (row @ found.coefficient) ** 2 - q**2 * row @ found.cov.values @ row

    low, high = point.fieller
    scale = found.coefficient[0] ** 2
    assert excess(low) == pytest.approx(0.0, abs=1e-8 * scale)
    assert excess(high) == pytest.approx(0.0, abs=1e-8 * scale)
    assert excess(point.estimate) < 0.0 < min(excess(low - 0.1), excess(high + 0.1))
    assert point.level == 0.9
    # Far from the mean of the column the interval is longer on that side.
    assert (low, high) != pytest.approx((point.low, point.high), abs=1e-6)


def test_units_of_the_balance_point():
    found = solve(weather, kwh).summary().balance_point("degrees")
    fahrenheit = weather.assign(degrees=1.8 * degrees + 32.0)
    other = solve(fahrenheit, 1e-6 * kwh).summary().balance_point("degrees")
    assert other.estimate == pytest.approx(1.8 * found.estimate + 32.0, rel=1e-6)
    assert other.std_error == pytest.approx(1.8 * found.std_error, rel=1e-5)
    assert other.fieller == pytest.approx([1.8 * end + 32.0 for end in found.fieller], rel=1e-5)


def test_balance_points_from_a_bootstrap():
    solution = solve(weather, kwh)
    drawn = solution.summary(bootstrap=400, random_state=0)
    point = drawn.balance_point("degrees")
    expected = solution.summary().balance_point("degrees")
    points = implied_point(drawn.draws.T, wind.mean())
    assert point.method == "bootstrap"
    assert (point.low, point.high) == pytest.approx(np.quantile(points, [0.025, 0.975]).tolist())
    assert point.std_error == pytest.approx(points.std(ddof=1))
    assert point.estimate == pytest.approx(expected.estimate)
    assert point.std_error == pytest.approx(expected.std_error, rel=0.25)


@pytest.mark.slow
def test_intervals_of_the_balance_point_cover():
    rng = np.random.default_rng(2)
    x = rng.uniform(-5.0, 25.0, size=(200, 1))
    hits = []
    for _ in range(400):
        y = np.maximum(3.0 * (16.0 - x[:, 0]), 0.0) + 5.0 * rng.normal(size=200)
        point = solve(x, y, "sorting+iterative").summary().balance_point("x0")
        hits.append((point.low <= 16.0 <= point.high, point.fieller[0] <= 16.0 <= point.fieller[1]))
    assert (np.mean(hits, axis=0) > 0.92).all()
    assert (np.mean(hits, axis=0) < 0.98).all()


def test_a_slope_that_may_be_zero_has_no_fieller_interval():
    flat = solve(weather[["wind"]], 5.0 + noise).summary()
    assert abs(flat.z[0]) < 2.5
    point = flat.balance_point("wind", level=0.99)
    assert point.fieller is None
    assert "the slope does not differ from 0 at this level" in str(point)


def test_balance_points_of_stored_fits(tmp_path):
    expected = solve(weather, kwh).summary().balance_point("degrees")
    model = ReLURegressor().fit(weather, kwh)
    assert model.summary().balance_point("degrees").estimate == pytest.approx(expected.estimate)
    import polars as pl

    table = make_table(pl.from_dict({"kwh": kwh, "degrees": degrees, "wind": wind}), "kwh")
    solution = solve(table.X, table.y)
    model = SavedModel.from_solution(solution, solution.summary(names=table.names), table)
    write_model(model, tmp_path / "m.json")
    again = load_model(tmp_path / "m.json").summary().balance_point("degrees")
    assert (again.estimate, *again.fieller) == pytest.approx((expected.estimate, *expected.fieller))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("rain",), "feature is 'rain'; it must be one of degrees, wind"),
        ((2,), "feature is 2; it must be a column from 0 to 1"),
        (("degrees", {"rain": 1.0}), "at is 'rain'; it must be one of degrees, wind"),
        (("degrees", {"degrees": 1.0}), "at has 'degrees', whose balance point is asked for"),
        (("degrees", {"wind": np.inf}), r"at\['wind'\] is inf"),
    ],
)
def test_errors_of_the_balance_point(arguments, words):
    found = solve(weather, kwh).summary()
    with pytest.raises(ValueError, match=words):
        found.balance_point(*arguments)
    with pytest.raises(TypeError, match="at is 3; it must be a dict"):
        found.balance_point("degrees", 3)
    held = solve(weather, kwh, bounds={"degrees": (-1.0, 0.0)}).summary()
    with pytest.raises(ValueError, match="feature is 'degrees', whose coefficient has no standard error"):
        held.balance_point("degrees")
