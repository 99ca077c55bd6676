"""Fits by a formula: its encoding, its state in model files, and what a formula may not have."""

import html
import json
import pickle

import numpy as np
import pandas as pd
import patsy
import polars as pl
import pytest
import statsmodels.formula.api as smf

import rectifit
from rectifit import load_model, relu, save_model, solve
from rectifit.formulas import FormulaEncoding, read_formula
from rectifit.inference import marginal_effects
from rectifit.report import write_report

FORMULAS = (
    "age + educ",
    "age + C(region)",
    "age * region",
    "C(year) + age - 1",
    "C(region) + C(year) + C(region):C(year)",
    "I(age**2) + np.log(age) + center(age) + standardize(educ)",
    "C(region, Treatment('south'))",
    "C(year, Sum) + age:region",
    "(age + educ + region)**2 - age:educ",
    "bs(age, df=5)",
    "age / region",
)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 120
    people = pd.DataFrame(
        {
            "age": rng.uniform(20.0, 60.0, n),
            "educ": rng.integers(8, 20, n),
            "region": rng.choice(["north", "south", "east"], n),
            "year": rng.choice([1999, 2000, 2003], n),
            "is_urban": rng.integers(0, 2, n) == 1,
            "wind speed": rng.uniform(0.0, 9.0, n),
            "w": rng.uniform(1.0, 2.0, n),
        }
    )
    u = 0.3 * people["educ"] - 0.1 * (people["age"] - 40.0) + 2.0 * (people["region"] == "south") - 3.0
    return people.assign(hours=np.maximum(u, 0.0) + 0.5 * rng.normal(size=n))


def to_polars(frame):
    return pl.DataFrame({name: frame[name].to_numpy() for name in frame.columns})


def learn(formula, frame):
    return read_formula(formula, frame.columns).learn(frame)


@pytest.mark.parametrize("formula", FORMULAS)
def test_columns_are_those_of_patsy(people, formula):
    """In some order, and of the same span where the two write splines and sums differently."""
    frame = to_polars(people)
    encoding = learn(formula, frame)
    X = encoding.encode(frame)
    design = patsy.dmatrix(formula, people)
    reference = np.asarray(design)
    if encoding.has_intercept:
        X = np.column_stack([np.ones(len(X)), X])
    assert X.shape == reference.shape
    both = np.column_stack([X, reference])
    assert np.linalg.matrix_rank(both) == np.linalg.matrix_rank(X) == np.linalg.matrix_rank(reference)
    if "bs(" not in formula and "Sum" not in formula:
        sorted_columns = [np.array(sorted(map(tuple, A.T.round(9)))) for A in (X, reference)]
        np.testing.assert_allclose(*sorted_columns, rtol=1e-8)


def test_a_fit_without_inactive_rows_is_that_of_statsmodels(people):
    raised = people.assign(hours=people["hours"] + 100.0)
    formula = "hours ~ age + I(age**2) + C(region) + educ:region"
    ours = relu(formula, raised)
    theirs = smf.ols(formula, raised).fit()
    assert ours.solution_.problem.preactivation(ours.solution_.beta, ours.solution_.intercept).min() > 0.0
    summary = ours.summary()
    np.testing.assert_allclose(sorted(summary.coefficient), sorted(theirs.params), rtol=1e-6)
    np.testing.assert_allclose(sorted(summary.std_error), sorted(theirs.bse), rtol=1e-6)
    clusters = raised["year"].to_numpy()
    ours = ours.summary(covariance="cluster", groups=clusters)
    theirs = theirs.get_robustcov_results("cluster", groups=clusters)
    np.testing.assert_allclose(sorted(ours.std_error), sorted(theirs.bse), rtol=1e-6)


def test_pandas_and_polars_agree(people):
    formula = "hours ~ age + C(region) + is_urban + `wind speed`"
    first, second = relu(formula, people, weights="w"), relu(formula, to_polars(people), weights="w")
    assert first.summary().names == second.summary().names
    np.testing.assert_array_equal(first.solution_.beta, second.solution_.beta)
    X = np.column_stack(
        [
            people["age"],
            *((people["region"] == level) * 1.0 for level in ("north", "south")),
            people["is_urban"],
            people["wind speed"],
        ]
    )
    plain = solve(X, people["hours"], sample_weight=people["w"])
    np.testing.assert_allclose(first.solution_.beta, plain.beta, rtol=1e-9)
    np.testing.assert_array_equal(first.predict(people), second.predict(to_polars(people)))


def test_levels_keep_the_order_of_categories(people):
    region = pd.Categorical(people["region"], ["south", "unused", "north", "east"])
    names = relu("hours ~ region", people.assign(region=region)).summary().names
    assert names == ("region[T.north]", "region[T.east]", "intercept")
    enum = to_polars(people).with_columns(pl.col("region").cast(pl.Enum(["south", "north", "east"])))
    assert relu("hours ~ region", enum).summary().names == names


def test_a_dot_stands_for_all_other_columns(people):
    some = people[["hours", "age", "region"]]
    assert relu("hours ~ .", some).summary().names == (
        "age",
        "region[T.north]",
        "region[T.south]",
        "intercept",
    )


def test_names_that_are_no_words(people):
    odd = people.rename(columns={"region": "größe der Stadt", "educ": "2nd", "age": "np"})
    formula = "hours ~ C(`größe der Stadt`) + log(`2nd`):`np` + `2nd`"
    plain = relu("hours ~ C(region) + log(educ):age + educ", people)
    model = relu(formula, odd, weights="w")
    assert model.encoding.columns == ("größe der Stadt", "2nd", "np")
    np.testing.assert_array_equal(relu(formula, odd).solution_.beta, plain.solution_.beta)
    np.testing.assert_array_equal(model.predict(odd.iloc[:3]), model.predict(odd)[:3])
    assert "w" not in relu("hours ~ .", people[["hours", "age", "w"]], weights="w").encoding.columns


def test_no_intercept(people):
    model = relu("hours ~ region - 1", people)
    assert model.summary().names == ("region[east]", "region[north]", "region[south]")
    assert not model.solution_.fit_intercept
    assert model.solution_.intercept == 0.0


@pytest.mark.parametrize(
    "formula", [*FORMULAS, "poly(age, 3) + cr(age, df=4) + cc(educ, df=4)", "I(region == 'north')"]
)
def test_predictions_need_one_row_only(people, formula):
    """What was learned from the data of the fit is remembered, in memory and as plain text."""
    frame = to_polars(people)
    encoding = learn(formula, frame)
    whole = encoding.encode(frame)
    plain = json.loads(
        json.dumps([encoding.terms, encoding.has_intercept, encoding.names, encoding.levels, encoding.states])
    )
    stored = FormulaEncoding(
        tuple(map(tuple, plain[0])),
        plain[1],
        tuple(plain[2]),
        {text: tuple(levels) for text, levels in plain[3].items()},
        plain[4],
    )
    for one in (0, 57):
        np.testing.assert_array_equal(encoding.encode(frame[one]), whole[[one]])
        np.testing.assert_array_equal(stored.encode(frame[one]), whole[[one]])


def test_a_stored_model(people, tmp_path):
    model = relu("hours ~ bs(age, df=4) + C(region)*educ + `wind speed`", people, weights="w", alpha=0.1)
    path = tmp_path / "hours.json"
    save_model(model, path, covariance="HC1")
    stored = load_model(path)
    rows = people.iloc[[5, 9]].drop(columns=["hours", "w"])
    np.testing.assert_array_equal(stored.predict(rows), model.predict(rows))
    np.testing.assert_array_equal(stored.predict(to_polars(rows)), model.predict(rows))
    assert model._repr_html_() == model.solution_._repr_html_()
    assert "bs(age, df=4)[1]" in model._repr_html_()
    assert str(stored.summary()) == str(model.summary(covariance="HC1"))
    np.testing.assert_allclose(
        marginal_effects(stored).coefficient, marginal_effects(model).coefficient, rtol=1e-9
    )
    asked = {"time_limit": None, "target_gap": 0.5}
    assert stored.certify(people, **asked).lower_bound == pytest.approx(model.certify(**asked).lower_bound)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(rows), model.predict(rows))


def test_the_report_of_a_fit_by_a_formula(people, tmp_path):
    """It names the formula, and says what its pictures of effects do not show."""
    path = tmp_path / "page.html"
    warning = "A formula made these variables."
    write_report(relu("hours ~ age*C(region) - 1", people), path)
    page = html.unescape(path.read_text(encoding="utf-8"))
    assert "relu('hours ~ age + C(region) + age:C(region) - 1', data)" in page
    assert warning in page
    write_report(solve(people[["age"]], people["hours"]), path)
    assert warning not in path.read_text(encoding="utf-8")


def test_constraints_by_name(people):
    model = relu("hours ~ age + educ", people, bounds={"educ": (None, 0.1)}, monotonic_cst={"age": 0})
    assert model.summary().at_bound == (False, True, False)
    assert model.summary().wald("age = 0").df == 1


def test_missing_values(people):
    gaps = people.copy()
    gaps.loc[3, "age"] = np.nan
    gaps.loc[[7, 8], "region"] = None
    gaps.loc[9, "wind speed"] = np.nan
    with pytest.raises(ValueError, match=r"missing in 'age' \(1\), 'region' \(2\); .* with missing='drop'"):
        relu("hours ~ age + region", gaps)
    with pytest.warns(UserWarning, match="3 of 120 rows are dropped"):
        model = relu("hours ~ age + region", gaps, missing="drop")
    rest = relu("hours ~ age + region", gaps.dropna(subset=["age", "region"]))
    np.testing.assert_array_equal(model.solution_.beta, rest.solution_.beta)
    with pytest.raises(ValueError, match="column 'region' has missing values"):
        model.predict(gaps)


def test_whole_numbers_are_levels_without_a_point(people):
    """Whether or not missing values have made them floats."""
    whole = relu("hours ~ C(year)", people)
    floats = people.assign(year=people["year"].astype(float))
    assert relu("hours ~ C(year)", floats).summary().names == whole.summary().names
    np.testing.assert_array_equal(whole.predict(floats), whole.predict(people))
    halves = relu("hours ~ C(year)", people.assign(year=people["year"] + 0.5 * (people["year"] == 2000)))
    assert halves.summary().names[0] == "C(year)[T.2000.5]"
    some = people[people["year"] != 2000]
    np.testing.assert_allclose(halves.predict(some), whole.predict(some))


def test_new_rows_that_do_not_fit_the_model(people):
    model = relu("hours ~ region + C(year) + bs(age, df=4) + educ", people)
    for change, sentence in (
        ({"region": "west"}, "'region' has the level 'west'; known levels are 'east', 'north', 'south'"),
        ({"year": 2024}, "'year' has the level 2024; known levels are 1999, 2000, 2003"),
        ({"age": 99.0}, "beyond upper and/or lower bounds"),
        ({"educ": "many"}, "'educ' has entries such as 'many'; it must be numeric"),
        ({"region": None}, "column 'region' has missing values"),
    ):
        with pytest.raises(ValueError, match=sentence):
            model.predict(people.iloc[:2].assign(**change))
    with pytest.raises(ValueError, match="there is no column 'educ'"):
        model.predict(people.drop(columns="educ"))
    whole = people.iloc[:2].assign(year=[2000.0, 1999.0], is_urban=1)
    np.testing.assert_array_equal(
        model.predict(whole), model.predict(people.iloc[:2].assign(year=[2000, 1999]))
    )


UNSAFE = (
    ("hours ~ I(age == '`') + I(age == '`.x')", "cannot be read"),
    ("hours ~ C(region, levels=['a\\'b'])", "cannot be read"),
    ("hours ~ open('secret')", "calls 'open'; it may call C, I"),
    ("hours ~ I(open('secret'))", "calls 'open'"),
    ("hours ~ np.load('secret')", "calls 'np.load'"),
    ("hours ~ np.lib.npyio.load('secret')", "calls 'np.lib.npyio.load'"),
    ("hours ~ {age.__class__}", "age.__class__"),
    ("hours ~ I(age.__class__)", "'age.__class__' is not allowed"),
    ("hours ~ I((lambda: age)())", "calls '"),
    ("hours ~ I(age if age else 0)", "is not allowed"),
    ("hours ~ I([x for x in (1,)])", "is not allowed"),
    ("hours ~ I(age[0])", r"'age\[0\]' is not allowed"),
    ("hours ~ I(age**1000)", "exponents must be numbers up to 20"),
    ("hours ~ I(9**9**9)", "only expressions with columns have exponents"),
    ("hours ~ bs(age, df=10000)", "the option '10000' is not allowed"),
    ("hours ~ bs(age, _state=3)", "the option '_state' is not allowed"),
    ("hours ~ bs(age, **{'df': 3})", "cannot be read"),
    ("hours ~ C(region, open)", "contrasts must be one of contr.SAS"),
    ("hours ~ C(region, contr.custom([[1]]))", "contrasts must be one of contr.SAS"),
    ("hours ~ lag(age)", "calls 'lag'"),
)


@pytest.mark.parametrize(("formula", "sentence"), UNSAFE)
def test_unsafe_formulas_are_refused(people, formula, sentence):
    with pytest.raises(ValueError, match=sentence):
        relu(formula, people)


@pytest.mark.parametrize(("formula", "sentence"), UNSAFE)
def test_unsafe_model_files_are_refused(people, tmp_path, formula, sentence):
    """The expression replaces a harmless one in a file, where nothing reads it as a formula before."""
    path = tmp_path / "model.json"
    save_model(relu("hours ~ log(age)", people), path)
    expression = formula.partition("~")[2].strip().strip("{}")
    damaged = json.loads(path.read_text().replace("log(age)", json.dumps(expression)[1:-1]))
    path.write_text(json.dumps(damaged))
    with pytest.raises(ValueError, match=sentence):
        load_model(path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"names": ["a"]}, "'coefficients' must have one entry per feature"),
        ({"terms": []}, "'formula' must use a column"),
        ({"terms": [["age"], ["2:age"]]}, "is not an expression"),
        ({"levels": {"C(nothing)": ["a"]}}, "names a factor that is not in"),
        ({"has_intercept": False}, "'fit_intercept' must be that of 'formula'"),
        ({"extra": 1}, "'formula.extra' is not known"),
        ({"states": {"center(age)": {"center": "text"}}}, "is damaged"),
    ],
)
def test_damaged_model_files_are_refused(people, tmp_path, change, sentence):
    path = tmp_path / "model.json"
    save_model(relu("hours ~ center(age)", people), path)
    damaged = json.loads(path.read_text())
    damaged["formula"] |= change
    path.write_text(json.dumps(damaged))
    with pytest.raises(ValueError, match=sentence):
        load_model(path)


def test_what_was_learned_must_be_in_the_file(people, tmp_path):
    """Otherwise new rows would be centred at their own mean."""
    path = tmp_path / "model.json"
    save_model(relu("hours ~ center(age)", people), path)
    damaged = json.loads(path.read_text())
    damaged["formula"]["states"] = {}
    path.write_text(json.dumps(damaged))
    with pytest.raises(ValueError, match="functions of which nothing is known"):
        load_model(path).predict(people)


@pytest.mark.parametrize(
    ("formula", "sentence"),
    [
        ("hours ~ educc", "there is no column 'educc'; did you mean 'educ'"),
        ("log(hours) ~ age", "the left side of formula .* must be the name of one column"),
        ("hours + age ~ educ", "must be the name of one column"),
        ("~ age", "it must name the outcome"),
        ("hours ~ age + hours", "has 'hours' on both sides"),
        ("hours ~ age | educ", "has several parts"),
        ("hours ~ age +", "cannot be read; it must be like"),
        ("hours ~ 2:age", r"write I\(...\) for arithmetic"),
        ("hours ~ 1", "no features are left"),
        (
            "hours ~ I(region * 2)",
            "column 'region' has entries such as '.*'; it must be numeric, or a",
        ),
        ("hours ~ log(age - 60)", r"'log\(age - 60\)' has entries that are not finite numbers"),
        ("hours ~ bs(age, df=1)", "cannot be evaluated"),
        ("hours ~ C(age + 1)", "C takes the name of a column"),
        ("hours ~ w + age", "is the target or the weights and cannot also be a feature"),
    ],
)
def test_errors(people, formula, sentence):
    with pytest.raises(ValueError, match=sentence):
        relu(formula, people, weights="w")


def test_names_that_cannot_be_told_apart(people):
    doubled = people.assign(wind_speed=1.0)
    with pytest.raises(ValueError, match="cannot tell the columns 'wind speed' and 'wind_speed' apart"):
        relu("hours ~ log(`wind speed` + 1) + wind_speed", doubled)


def test_arguments(people):
    with pytest.raises(TypeError, match="data is of type list; it must be a data frame"):
        relu("hours ~ age", [[1.0]])
    with pytest.raises(ValueError, match="missing is 'ignore'; it must be 'error' or 'drop'"):
        relu("hours ~ age", people, missing="ignore")
    with pytest.raises(TypeError, match='fit_intercept cannot be given with a formula; "- 1"'):
        relu("hours ~ age", people, fit_intercept=False)
    with pytest.raises(TypeError, match="formula is of type int"):
        relu(3, people)
    with pytest.raises(TypeError, match="model is of type Solution; it must be a FittedModel"):
        save_model(relu("hours ~ age", people).solution_, "never.json")
    assert rectifit.relu is relu
