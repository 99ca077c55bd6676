"""--formula, --cluster and --alpha on the command line say what the functions of Python say."""

import json
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from rectifit import ReLURegressorCV, load_model, relu, solve
from rectifit.cli.program import program
from rectifit.comparison import compare

FORMULA = "hours ~ educ + I(age**2) + C(region)"


def run(*arguments):
    return CliRunner().invoke(program, [str(argument) for argument in arguments])


def read_json(*arguments):
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 100
    people = pd.DataFrame(
        {
            "educ": rng.integers(8, 20, n),
            "age": rng.uniform(20.0, 60.0, n).round(2),
            "region": rng.choice(["north", "south", "east"], n),
            "firm": rng.integers(0, 15, n),
            "year": rng.integers(2000, 2004, n),
        }
    )
    u = people["educ"] - 0.01 * people["age"] ** 2 + 2.0 * (people["region"] == "south")
    return people.assign(
        hours=(np.maximum(u, 0.0) + rng.normal(size=n) + rng.normal(size=15)[people["firm"]]).round(3)
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory, people):
    path = tmp_path_factory.mktemp("data") / "people.csv"
    people.to_csv(path, index=False)
    return path


def errors_of(record):
    return {row["name"]: row["std_error"] for row in record["estimates"]}


def test_a_formula_is_that_of_python(data, people, tmp_path):
    path = tmp_path / "hours.json"
    found = read_json("fit", data, "--formula", FORMULA, "--save", path)
    model = relu(FORMULA, people)
    assert list(found["coefficients"]) == list(model.encoding.names)
    np.testing.assert_allclose(list(found["coefficients"].values()), model.solution_.beta, rtol=1e-10)
    assert found["target"] == "hours"
    gaps = people.drop(columns="hours").head(4).assign(age=[30.0, None, 45.5, 20.0])
    gaps.to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "out.csv"
    result = run("predict", path, tmp_path / "new.csv", "--out", out)
    assert result.exit_code == 0, result.stderr
    predicted = pl.read_csv(out)["prediction"].to_numpy()
    assert np.isnan(predicted).tolist() == [False, True, False, False]
    np.testing.assert_allclose(predicted[[0, 2, 3]], model.predict(gaps.dropna()), rtol=1e-10)
    np.testing.assert_allclose(load_model(path).predict(people), model.predict(people), rtol=1e-10)
    asked = ("--time-limit", 60, "--target-gap", 0.2)
    proved = read_json("certify", data, "--model", path, *asked)
    again = read_json("certify", data, "--formula", FORMULA, *asked)
    assert proved["objective"] <= found["objective"] * (1 + 1e-12)
    assert max(proved["lower_bound"], again["lower_bound"]) <= proved["objective"]
    west = run("predict", path, _write(tmp_path / "west.csv", people.head(2).assign(region="west")))
    assert west.exit_code == 2
    assert "column 'region' has the level 'west'; known levels are 'east', 'north', 'south'" in west.stderr


def _write(path, frame):
    frame.drop(columns="hours").to_csv(path, index=False)
    return path


def test_a_formula_without_a_left_side_and_without_an_intercept(data):
    found = read_json("fit", data, "--formula", "educ + region - 1", "--target", "hours")
    assert list(found["coefficients"]) == ["educ", "region[east]", "region[north]", "region[south]"]
    assert found["fit_intercept"] is False


def test_a_dot_leaves_out_weights_and_groups(data):
    asked = ("--target", "hours", "--weights", "age", "--cluster", "firm")
    found = read_json("fit", data, "--formula", "~ .", *asked)
    assert list(found["coefficients"]) == ["educ", "region[T.north]", "region[T.south]", "year"]


def test_without_formulaic(data, tmp_path, monkeypatch):
    path = tmp_path / "hours.json"
    assert run("fit", data, "--formula", FORMULA, "--save", path).exit_code == 0
    monkeypatch.setitem(sys.modules, "formulaic", None)
    for asked in (("fit", data, "--formula", FORMULA), ("predict", path, data)):
        result = run(*asked)
        assert result.exit_code == 2
        assert result.stderr == (
            "rectifit: formulas need formulaic; install it with: pip install 'rectifit[formula]'\n"
        )


def test_bounds_of_a_category_in_a_formula(data):
    found = read_json("fit", data, "--formula", FORMULA, "--negative", "C(region)", "--bounds", "educ=:0.5")
    assert found["bounds"] == {
        "educ": [None, 0.5],
        "C(region)[T.north]": [None, 0.0],
        "C(region)[T.south]": [None, 0.0],
    }
    assert found["coefficients"]["C(region)[T.south]"] == 0.0


def test_a_proof_of_a_formula_is_checked(data, tmp_path):
    path = tmp_path / "hours.rproof"
    shared = ("--formula", "hours ~ educ + C(region)")
    assert run("certify", data, *shared, "--target-gap", 0.2, "--proof", path).exit_code == 0
    assert run("check", path, data, *shared).exit_code == 0
    other = run("check", path, data, "--formula", "hours ~ educ + age")
    assert other.exit_code == 1


def test_clusters(data, people, tmp_path):
    """One way, two ways, of whole groups, and in a saved proof; the groups are no features."""
    fit = solve(people[["educ", "age"]], people["hours"])
    asked = ("--features", "educ,age")
    one = read_json("fit", data, *asked, "--target", "hours", "--cluster", "firm")
    expected = fit.summary(covariance="cluster", groups=people["firm"])
    assert one["covariance"] == expected.covariance
    np.testing.assert_allclose(list(errors_of(one).values()), expected.std_error, rtol=1e-9)
    two = read_json("fit", data, *asked, "--target", "hours", "--cluster", "firm,year")
    expected = fit.summary(covariance="cluster", groups=people[["firm", "year"]]).std_error
    np.testing.assert_allclose(list(errors_of(two).values()), expected, rtol=1e-9)
    drawn = read_json("fit", data, *asked, "--target", "hours", "--cluster", "firm", "--bootstrap", 4)
    assert drawn["covariance"] == "cluster bootstrap, 4 draws"
    assert set(read_json("fit", data, "--target", "hours", "--cluster", "firm")["columns"]) == {
        "educ",
        "age",
        "year",
    }
    both = read_json("fit", data, "--formula", "hours ~ educ + C(year)", "--cluster", "year")
    assert list(both["coefficients"])[1:] == [f"C(year)[T.{year}]" for year in (2001, 2002, 2003)]
    path = tmp_path / "saved.json"
    saved = ("certify", data, *asked, "--target", "hours", "--target-gap", 0.5, "--cluster", "firm")
    assert run(*saved, "--save", path).exit_code == 0
    assert load_model(path).summary().covariance.startswith("cluster, 1")


def test_rows_without_a_group(people, tmp_path):
    path = tmp_path / "gaps.csv"
    people.assign(firm=people["firm"].where(people["firm"] > 0)).to_csv(path, index=False)
    asked = ("fit", path, "--target", "hours", "--features", "educ", "--cluster", "firm")
    refused = run(*asked)
    assert refused.exit_code == 2
    assert "values are missing in 'firm'" in refused.stderr
    kept = people[people["firm"] > 0]
    expected = solve(kept[["educ"]], kept["hours"]).summary(covariance="cluster", groups=kept["firm"])
    found = read_json(*asked, "--missing", "drop")
    np.testing.assert_allclose(list(errors_of(found).values()), expected.std_error, rtol=1e-9)


def test_errors_correlated_in_time(data, people):
    found = read_json("fit", data, "--target", "hours", "--features", "educ", "--covariance", "HAC")
    expected = solve(people[["educ"]], people["hours"]).summary(covariance="HAC")
    assert found["covariance"] == expected.covariance
    np.testing.assert_allclose(list(errors_of(found).values()), expected.std_error, rtol=1e-9)


def test_a_ridge(data, people):
    asked = ("--target", "hours", "--features", "educ,age")
    found = read_json("fit", data, *asked, "--alpha", 50)
    expected = solve(people[["educ", "age"]], people["hours"], alpha=50.0)
    np.testing.assert_allclose(list(found["coefficients"].values()), expected.beta, rtol=1e-9)
    assert found["alpha"] == 50.0
    assert "plus 50 |beta|^2" in run("fit", data, *asked, "--alpha", 50).stdout
    proved = read_json("certify", data, *asked, "--alpha", 50, "--target-gap", 0.5)
    assert proved["objective"] == pytest.approx(expected.objective)


def test_a_ridge_that_is_chosen(data, people):
    asked = ("--target", "hours", "--features", "educ,age")
    found = read_json("fit", data, *asked, "--alpha", "cv")
    folds = KFold(5, shuffle=True, random_state=0)
    expected = ReLURegressorCV(cv=folds).fit(people[["educ", "age"]], people["hours"])
    assert found["alpha"] == pytest.approx(expected.alpha_)
    np.testing.assert_allclose(list(found["coefficients"].values()), expected.coef_, rtol=1e-7)
    assert any("was chosen by 5-fold cross-validation" in note for note in found["notes"])
    grouped = read_json("fit", data, *asked, "--alpha", "cv", "--cluster", "firm")
    assert np.isclose(expected.alphas_, grouped["alpha"], rtol=1e-9).any()


def test_comparison_with_a_ridge_and_groups(data, people):
    X, y = people[["educ", "age"]].to_numpy(), people["hours"].to_numpy()
    asked = ("--target", "hours", "--features", "educ,age", "--alpha", 50, "--time-limit", 5)
    found = read_json("compare", data, *asked, "--cluster", "firm")
    rows = {row["name"]: row for row in found["rows"]}
    ours = solve(X, y, alpha=50.0)
    assert found["alpha"] == 50.0
    assert found["certificate"]["objective"] == pytest.approx(ours.objective)
    assert rows["auto"]["gap"] == pytest.approx(found["certificate"]["gap"], abs=1e-6)
    ridge = Ridge(50.0).fit(X, y)
    assert rows["ridge regression"]["in_sample"] == pytest.approx(np.mean((y - ridge.predict(X)) ** 2))
    assert rows["ridge regression"]["gap"] is None
    # The penalty of other fits counts, too, and none of them beats the bound.
    gaps = [row["gap"] for row in rows.values() if row["gap"] is not None]
    assert min(gaps) >= 0.0
    assert rows["OLS clipped at 0"]["gap"] > 0.0


def test_folds_keep_groups_together(people):
    """A column that tells groups apart predicts nothing about groups that were not seen."""
    rng = np.random.default_rng(0)
    level = rng.uniform(1.0, 20.0, size=15)
    firms = people["firm"].to_numpy()
    X = (firms[:, None] == np.arange(15)).astype(float)
    asked = {"methods": ("sorting",), "time_limit": 5.0, "target_gap": 0.5}
    apart = {row.name: row for row in compare(X, level[firms], **asked).rows}
    together = {row.name: row for row in compare(X, level[firms], groups=firms, **asked).rows}
    assert together["sorting"].cross_validated > 3.0 * apart["sorting"].cross_validated
    with pytest.raises(ValueError, match="groups has 4 groups; a comparison needs at least 5"):
        compare(X, level[firms], groups=firms % 4, **asked)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["fit", "DATA"], "Missing option '--target', or '--formula' with the target on its left side."),
        (["fit", "DATA", "--formula", "hours ~ open(age)"], "the formula calls 'open'; it may call C, I"),
        (["fit", "DATA", "--formula", "hours ~ agee"], "no column 'agee'; did you mean 'age'"),
        (["fit", "DATA", "--formula", "~ age"], "--formula has no left side"),
        (["fit", "DATA", "--formula", "hours ~ age", "--target", "age"], "the formula is about 'hours'"),
        (["fit", "DATA", "--formula", "age", "--target", "age"], "has the target 'age' on its right side"),
        (["fit", "DATA", "--formula", "hours ~ age", "--features", "educ"], "remove --features"),
        (["fit", "DATA", "--formula", "hours ~ age", "--one-hot", "region"], "remove --one-hot"),
        (["fit", "DATA", "--formula", "hours ~ age", "--no-intercept"], "write '- 1' in it"),
        (["compare", "DATA", "--formula", "hours ~ age - 1"], "--formula has no intercept"),
        (["fit", "DATA", "--target", "hours", "--cluster", "firm,year,age"], "it must name one or two"),
        (["fit", "DATA", "--target", "hours", "--cluster", "firms"], "there is no column 'firms'; did you"),
        (
            ["fit", "DATA", "--target", "hours", "--cluster", "firm", "--covariance", "HC1"],
            "--cluster and --covariance are alternative kinds",
        ),
        (
            ["fit", "DATA", "--target", "hours", "--cluster", "firm,year", "--alpha", "cv"],
            "--alpha cv needs groups of one kind",
        ),
        (["certify", "DATA", "--target", "hours", "--cluster", "firm"], "it needs --save"),
        (["fit", "DATA", "--target", "hours", "--alpha", "some"], "neither a number of at least 0 nor 'cv'"),
        (["fit", "DATA", "--target", "hours", "--alpha=-1"], "neither a number of at least 0 nor 'cv'"),
        (["fit", "DATA", "--target", "hours", "--alpha", "nan"], "neither a number of at least 0 nor 'cv'"),
        (["fit", "a.parquet", "b.parquet", "--formula", "y ~ a"], "--formula needs all rows at once"),
        (["fit", "a.parquet", "b.parquet", "--target", "y", "--cluster", "c"], "--cluster needs all rows"),
        (["fit", "a.parquet", "b.parquet", "--target", "y", "--alpha", "cv"], "--alpha cv needs all rows"),
        (["fit", "a.parquet", "b.parquet"], "Missing option '--target'."),
    ],
)
def test_errors(data, arguments, sentence):
    result = run(*(str(data) if argument == "DATA" else argument for argument in arguments))
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert len(result.stderr.splitlines()) == 1
