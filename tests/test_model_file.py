import json
import math
import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.optimize import LinearConstraint

from rectifit import load_model, solve
from rectifit.constraints import read_constraints
from rectifit.datasets import load_drug_spending, make_relu
from rectifit.inference import marginal_effects, prediction_interval
from rectifit.model_file import SavedModel, read_model, write_model
from rectifit.tables import make_table


@pytest.fixture(scope="module")
def frame():
    X, y, *_ = make_relu(60, 2, noise=0.3, random_state=0)
    return pl.DataFrame(
        {
            "y": y,
            "a": X[:, 0] / 3.0,
            "b": X[:, 1],
            "place": ["north", "south", "east"] * 20,
            "w": np.arange(60) % 4,
        }
    )


@pytest.fixture(scope="module")
def fitted(frame):
    table = make_table(frame, "y", weights="w", one_hot=["place"])
    solution = solve(table.X, table.y, "sorting+iterative", sample_weight=table.weights)
    return (
        solution,
        table,
        SavedModel.from_solution(solution, solution.summary(names=table.names), table, "w"),
    )


def test_what_is_written_is_read_to_the_last_digit(tmp_path, frame, fitted):
    solution, table, model = fitted
    write_model(model, tmp_path / "m.json")
    again = read_model(tmp_path / "m.json")
    assert again == model
    assert tuple(again.coefficients.values()) == tuple(solution.beta)
    assert again.objective == solution.objective
    assert again.certificate.lower_bound == solution.certificate.lower_bound
    np.testing.assert_array_equal(again.predict(frame), solution.predict(table.X))


def test_goodness_and_estimates_are_those_of_the_summary(fitted):
    solution, table, model = fitted
    summary = solution.summary(names=table.names)
    assert model.goodness.n_samples == (table.weights > 0).sum() == 45
    assert model.goodness.n_positive == ((table.weights > 0) & (table.y > 0)).sum()
    for name in ("r_squared", "sigma", "share_active"):
        assert getattr(model.goodness, name) == getattr(summary, name)
    assert [row.name for row in model.estimates] == [*table.names, "intercept"]
    assert [row.std_error for row in model.estimates] == summary.std_error.tolist()
    assert (model.covariance, model.level) == ("nonrobust", 0.95)


def test_what_is_not_defined_is_null():
    solution = solve([[1.0, 0.0], [0.0, 1.0]], [2.0, 2.0])
    table = make_table(pl.DataFrame({"y": [2.0, 2.0], "a": [1.0, 0.0], "b": [0.0, 1.0]}), "y")
    model = SavedModel.from_solution(solution, solution.summary(names=table.names), table)
    assert model.goodness.r_squared is None
    assert model.goodness.sigma is None
    assert {row.std_error for row in model.estimates} == {None}


def test_the_floor_is_kept(tmp_path, frame):
    table = make_table(frame, "y", features=["a", "b"])
    for floor in (0.5, "estimate"):
        solution = solve(table.X, table.y, floor=floor)
        summary = solution.summary(names=table.names)
        write_model(SavedModel.from_solution(solution, summary, table), tmp_path / "m.json")
        model = read_model(tmp_path / "m.json")
        assert model.floor == solution.floor == model.predict(frame).min()
        assert model.floor_is_estimated == (floor == "estimate") == (model.estimates[-1].name == "floor")
        np.testing.assert_array_equal(model.predict(frame), solution.predict(table.X))


@pytest.fixture(scope="module")
def constrained(frame):
    table = make_table(frame, "y", features=["a", "b"], one_hot=["place"])
    order = LinearConstraint([[0, 1, -1, 0], [0, 1, 1, 1]], [0.0, -2.0], [np.inf, 3.0])
    solution = solve(table.X, table.y, bounds=[(0, 0.5), None, (None, 0.1), None], constraints=order)
    summary = solution.summary(names=table.names)
    return solution, table, SavedModel.from_solution(solution, summary, table)


def test_constraints_are_kept(tmp_path, constrained):
    solution, table, model = constrained
    write_model(model, tmp_path / "m.json")
    again = read_model(tmp_path / "m.json")
    assert again == model
    assert again.bounds == {"a": (0.0, 0.5), "place=north": (None, 0.1)}
    known = read_constraints(len(table.names), table.names, **again.constraints)
    for name in ("low", "high", "A", "least", "most"):
        np.testing.assert_array_equal(getattr(known, name), getattr(solution.constraints, name))
    assert known.names == table.names == ("a", "b", "place=north", "place=south")
    at_bound = [row.at_bound for row in again.estimates]
    assert at_bound == [*solution.at_bound, False]
    assert any(at_bound)
    assert [row.std_error is None for row in again.estimates] == at_bound


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("bounds", "a"), [0.0, 0.4], "'bounds' must hold for 'coefficients'"),
        (("bounds", "a"), [2.0, 1.0], "bounds has low 2 and high 1 for 'a'"),
        (("bounds", "a"), [0.0, 0.6], "'estimates' must say which coefficients are at one of their 'bounds'"),
        (("bounds", "z"), [0.0, 1.0], "'bounds' names a coefficient that is not in 'coefficients'"),
        (("bounds", "a"), [0.0], r"'bounds.a.1.' is missing"),
        (("bounds", "a"), [0.0, "1"], r"'bounds.a.1.' is \"1\"; it must be a valid number"),
        (("bounds", "a"), 0.5, "'bounds.a' is 0.5; it must be a valid"),
        (("bounds",), None, "'bounds' is null"),
        (("coefficients", "a"), 0.7, "'bounds' must hold for 'coefficients'"),
        (("coefficients", "a"), 0.3, "'estimates' must say which coefficients are at one of their 'bounds'"),
        (("linear_constraints", 0, "factors"), {"z": 1.0}, "'linear_constraints' names a coefficient"),
        (("linear_constraints", 0, "high"), -1.0, "constraints has lb 0 and ub -1 in row 0"),
        (("linear_constraints", 0, "low"), "x", r"'linear_constraints.0..low' is \"x\""),
        (("linear_constraints", 0, "sense"), "<", "'linear_constraints.0..sense' is not known"),
        (("certificate", "is_constrained"), False, "'certificate.is_constrained' must be true"),
    ],
)
def test_damaged_constraints(tmp_path, constrained, path, value, words):
    record = json.loads(constrained[2].model_dump_json())
    change(*path, to=value)(record)
    (tmp_path / "m.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match=words) as raised:
        read_model(tmp_path / "m.json")
    assert "\n" not in str(raised.value)


def test_a_fit_under_constraints_does_not_become_one_without(tmp_path, constrained):
    record = json.loads(constrained[2].model_dump_json())
    del record["bounds"], record["linear_constraints"]
    for row in record["estimates"]:
        del row["at_bound"]
    (tmp_path / "m.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match="is_constrained' must be true where there are constraints"):
        read_model(tmp_path / "m.json")


def test_files_from_before_there_were_constraints_are_read(tmp_path, fitted):
    record = json.loads(fitted[2].model_dump_json())
    del record["bounds"], record["linear_constraints"], record["certificate"]["is_constrained"]
    for row in record["estimates"]:
        del row["at_bound"]
    (tmp_path / "m.json").write_text(json.dumps(record))
    assert read_model(tmp_path / "m.json") == fitted[2]


LATER = (
    *("alpha", "n_iter", "n_surrogates", "surrogate_objective", "guarantee"),
    *("notes", "covariance_matrix", "sums"),
)


def test_files_from_before_they_kept_what_inference_needs_predict(tmp_path, frame, fitted):
    solution, table, model = fitted
    record = json.loads(model.model_dump_json())
    for name in LATER:
        del record[name]
    del record["certificate"]["null_objective"]
    (tmp_path / "m.json").write_text(json.dumps(record))
    again = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(again.predict(frame), solution.predict(table.X))
    with pytest.raises(ValueError, match="stored without its data"):
        again.summary()


KINDS = {
    "nonrobust": {"covariance": "nonrobust"},
    "HC3": {"covariance": "HC3"},
    "cluster": {"covariance": "cluster", "groups": np.arange(60) % 12},
    "HAC": {"covariance": "HAC", "maxlags": 2},
    "bootstrap": {"bootstrap": 20},
}
FITS = {
    "weights": {"sample_weight": np.arange(60) % 4},
    "ridge": {"alpha": 2.0},
    "floor": {"floor": "estimate"},
    "no intercept": {"fit_intercept": False},
    "bounds": {"bounds": [(0, 0.5), None, (None, 0.1), None]},
    "equation": {"constraints": LinearConstraint([1, -1, 0, 0], 0.0, 0.0)},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", FITS.values(), ids=FITS)
def test_a_loaded_model_has_the_summary_of_the_fit(tmp_path, frame, options, kind):
    weights = "w" if "sample_weight" in options else None
    table = make_table(frame, "y", features=["a", "b"], one_hot=["place"], weights=weights)
    solution = solve(table.X, table.y, "sorting+iterative", **options)
    summary = solution.summary(names=table.names, **KINDS[kind])
    write_model(SavedModel.from_solution(solution, summary, table, weights), tmp_path / "m.json")
    model = load_model(tmp_path / "m.json")
    assert str(model.summary()) == str(summary)
    np.testing.assert_array_equal(model.summary().cov.values, summary.cov.values)
    for other in ("nonrobust", "HC0", "HC1", "HC2", "HC3"):
        expected = solution.summary(names=table.names, covariance=other)
        found = pickle.loads(pickle.dumps(model)).summary(covariance=other)
        assert str(found) == str(expected)
    for at in ("average", "means"):
        ours, theirs = (
            marginal_effects(one, at, discrete=True, names=table.names, covariance=covariance)
            for one, covariance in ((model, None), (solution, summary))
        )
        assert str(ours) == str(theirs)
    for rows in (frame, frame.to_pandas(), table.X):
        ours = prediction_interval(model, rows)
        np.testing.assert_array_equal(ours, prediction_interval(solution, table.X, covariance=summary))
        np.testing.assert_array_equal(model.predict(rows), ours.mean)
    with pytest.raises(ValueError, match="stored without its data"):
        model.summary(bootstrap=10)
    with pytest.raises(ValueError, match="stored without its data"):
        model.solution_.verify()


@pytest.mark.parametrize("options", FITS.values(), ids=FITS)
def test_a_loaded_model_is_certified_as_the_fit(tmp_path, frame, options):
    weights = "w" if "sample_weight" in options else None
    table = make_table(frame, "y", features=["a", "b"], one_hot=["place"], weights=weights)
    solution = solve(table.X, table.y, **options)
    summary = solution.summary(names=table.names)
    write_model(SavedModel.from_solution(solution, summary, table, weights), tmp_path / "m.json")
    model = load_model(tmp_path / "m.json")
    expected = solution.certify(target_gap=1e-3)
    for rows in (frame, frame.to_pandas()):
        found = model.certify(rows, target_gap=1e-3)
        assert found.objective == pytest.approx(expected.objective, rel=1e-9)
        assert found.is_within(1e-3)
    with pytest.raises(ValueError, match="there is no column 'place'; columns are 'a', 'b'"):
        model.predict(frame.to_pandas()[["a", "b"]])


def test_collinear_columns_are_named_in_a_loaded_model(tmp_path, frame):
    twice = frame.with_columns(double=2.0 * frame["a"], one=pl.lit(1.0))
    table = make_table(twice, "y", features=["a", "double", "one", "b"])
    solution = solve(table.X, table.y)
    summary = solution.summary(names=table.names)
    assert "double is 2 times a; one is constant" in summary.notes
    write_model(SavedModel.from_solution(solution, summary, table), tmp_path / "m.json")
    assert str(load_model(tmp_path / "m.json").summary()) == str(summary)
    assert "null" in (tmp_path / "m.json").read_text()


def test_matrices_have_a_line_per_row(tmp_path, fitted):
    write_model(fitted[2], tmp_path / "m.json")
    text = (tmp_path / "m.json").read_text()
    assert max(map(len, text.splitlines())) < 200
    first, second = fitted[2].covariance_matrix[:2]
    assert f"    [{first[0]!r}],\n    [{second[0]!r}, {second[1]!r}],\n" in text


def test_models_with_many_columns_keep_no_matrices(tmp_path, monkeypatch, frame):
    monkeypatch.setattr("rectifit.model_file.MAX_COLUMNS", 1)
    table = make_table(frame, "y", features=["a", "b"])
    solution = solve(table.X, table.y)
    model = SavedModel.from_solution(solution, solution.summary(names=table.names), table)
    assert model.sums is None
    assert model.covariance_matrix is None
    write_model(model, tmp_path / "m.json")
    assert load_model(tmp_path / "m.json").predict(frame).shape == (60,)


def change(*path, to):
    def apply(record):
        *parents, last = path
        for name in parents:
            record = record[name]
        record[last] = to

    return apply


def remove(*path):
    def apply(record):
        *parents, last = path
        for name in parents:
            record = record[name]
        del record[last]

    return apply


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (remove("rectifit_model"), "no entry 'rectifit_model'"),
        (change("rectifit_model", to=2), "version 2; this rectifit reads version 1"),
        (change("rectifit_model", to=True), "version true; this rectifit reads version 1"),
        (change("intercept", to="1"), "'intercept' is \"1\"; it must be a valid number"),
        (change("intercept", to=True), "'intercept' is true"),
        (change("intercept", to=10**400), "'intercept' is 1000.*; it must be a finite number"),
        (change("intercept", to=math.nan), "'intercept' is NaN; it must be a finite number"),
        (change("intercept", to=-math.inf), "'intercept' is -Infinity; it must be a finite number"),
        (change("coefficients", to=[1, 2]), "'coefficients' is"),
        (change("coefficients", "a", to=None), "'coefficients.a' is null; it must be a valid number"),
        (remove("coefficients", "a"), "one entry per feature"),
        (change("coefficients", "new", to=1.0), "one entry per feature"),
        (change("columns", to=["a", "a"]), "'columns' is .*; it must be a list of names, each once"),
        (change("levels", "place", to=[]), "'levels.place' is .*; it must be a list of at least one name"),
        (change("levels", "other", to=["x", "y"]), "not in 'columns'"),
        (change("fit_intercept", to=False), "'intercept' must be 0"),
        (change("extra", to=1), "'extra' is not known"),
        (remove("certificate", "gap"), "'certificate.gap' is missing"),
        (
            change("certificate", "gap", to=1.5),
            "'certificate.gap' is 1.5; it must be less than or equal to 1",
        ),
        (change("certificate", "status", to="great"), "'certificate.status' is \"great\""),
        (change("certificate", "lower_bound", to=1e9), "must not be above the objective"),
        (change("certificate", "objective", to=1e9), "must be equal to 'objective'"),
        (change("goodness", "n_samples", to=-1), "'goodness.n_samples' is -1"),
        (change("goodness", to=None), "'goodness' is null"),
        (change("certificate", "floor", to=1.0), "'certificate.floor' must be null or equal"),
        (change("floor", to="estimate"), "'floor' is \"estimate\""),
        (change("level", to=2), "'level' is 2"),
        (change("estimates", to={}), "'estimates' is {}; it must be a valid array"),
        (change("estimates", 0, "name", to="z"), "'estimates' must have one entry per coefficient"),
        (remove("estimates", -1), "'estimates' must have one entry per coefficient"),
        (change("estimates", 1, "std_error", to=-1.0), "'estimates.1..std_error' is -1.0"),
        (remove("estimates", 1, "low"), "'estimates.1..low' is missing"),
        (change("stopped", to="enough"), "'stopped' is \"enough\"; it must be 'every surrogate"),
        (change("alpha", to=-1.0), "'alpha' is -1.0"),
        (remove("covariance_matrix", -1), "'covariance_matrix' must have one line per estimate"),
        (change("covariance_matrix", 0, to=[1.0, 2.0]), "the lines of a lower triangle"),
        (change("covariance_matrix", 0, 0, to=-1.0), "without negative numbers"),
        (change("covariance_matrix", 1, 0, to=1e9), "no number exceeds the root"),
        (change("covariance_matrix", 0, 0, to=7.0), "must have the squares of the 'estimates.std_error'"),
        (change("sums", to={}), "'sums.active' is missing"),
        (change("sums", "means", to=[1.0]), "as many entries as there are columns"),
        (change("sums", "active", "gram", to=[[1.0]]), "as many entries as there are columns"),
        (change("sums", "meats", 0, "matrix", 1, to=[]), "the lines of a lower triangle"),
        (change("sums", "active", "weight", to=math.inf), "'sums.active.weight' is Infinity"),
    ],
)
def test_damaged_files(tmp_path, fitted, damage, words):
    path = tmp_path / "m.json"
    write_model(fitted[2], path)
    record = json.loads(path.read_text())
    damage(record)
    path.write_text(json.dumps(record))
    with pytest.raises(ValueError, match=words) as raised:
        read_model(path)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "{",
        '{"rectifit_model": NaN}',
        "\x80",
        "[" * 100_000,
        '{"a": ' * 100_000,
        '{"rectifit_model": ' + "[" * 150 + "]" * 150 + "}",
    ],
    ids=lambda text: text[:20],
)
def test_files_that_are_no_models(tmp_path, text):
    path = tmp_path / "m.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match="the model '") as raised:
        read_model(path)
    assert "\n" not in str(raised.value)


def test_no_file(tmp_path):
    with pytest.raises(ValueError, match="there is no file"):
        read_model(tmp_path / "m.json")
    with pytest.raises(ValueError, match="cannot be read"):
        read_model(tmp_path)


def test_a_model_saved_by_0_1_is_read():
    """tests/model_0_1.json was written by `rectifit fit drug_spending.csv` of that version."""
    model = load_model(Path(__file__).parent / "model_0_1.json")
    data = load_drug_spending()
    fit = model.solution_
    np.testing.assert_array_equal(model.predict(data.X), np.maximum(0.0, data.X @ fit.beta + fit.intercept))
    loss = ((data.y - model.predict(data.X)) ** 2).sum()
    assert fit.objective == pytest.approx(loss, rel=1e-12)
    assert (fit.certificate.status, fit.certificate.objective) == ("bound_only", fit.objective)
