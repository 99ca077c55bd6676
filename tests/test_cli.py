import _thread
import errno
import io
import json
import subprocess
import sys
from dataclasses import replace
from datetime import date
from math import comb
from pathlib import Path
from threading import Timer
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from scipy.optimize import LinearConstraint

import rectifit
from rectifit import cli, precompile, solve
from rectifit.cli import certifying, fitting, streaming
from rectifit.cli.program import program
from rectifit.comparison import side_by_side
from rectifit.compiling import kernel_of
from rectifit.data import open_parquet
from rectifit.datasets import load_drug_spending, make_relu
from rectifit.inference import prediction_interval
from rectifit.model_file import SavedModel, read_model, write_model
from rectifit.preparing import prepare
from rectifit.solution import VerificationError
from rectifit.surrogate.kernel import line_search
from rectifit.tables import make_table
from rectifit.writing import write_file


def run(*arguments, **extra):
    return CliRunner().invoke(program, [str(argument) for argument in arguments], **extra)


def run_outside(*arguments, text=""):
    """In a process of its own, as from a shell."""
    command = [sys.executable, "-m", "rectifit", *map(str, arguments)]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def frame():
    X, y, *_ = make_relu(80, 3, noise=0.3, random_state=0)
    columns = {f"x{j}": X[:, j] for j in range(3)}
    return pl.DataFrame({"y": y} | columns | {"w": np.arange(80) % 3, "sky": ["blue", "grey"] * 40})


@pytest.fixture
def data(tmp_path, frame):
    path = tmp_path / "data.csv"
    frame.write_csv(path)
    return path


def test_fit_prints_the_coefficients_of_solve(data, frame):
    result = run("fit", data, "--target", "y", "--features", "x0,x1,x2", "--weights", "w", "--no-intercept")
    assert result.exit_code == 0, result.stderr
    X = frame.select("x0", "x1", "x2").to_numpy()
    solution = solve(X, frame["y"].to_numpy(), sample_weight=frame["w"].to_numpy(), fit_intercept=False)
    summary = solution.summary()
    lines = [line.split() for line in result.stdout.replace("< 0.001", "<0.001").splitlines()]
    for j in range(3):
        name, *cells = (text.replace(" ", "") for text in summary.table().texts()[j])
        assert name == f"x{j}"
        assert [name, *cells] in lines
        assert float(cells[0]) == pytest.approx(solution.beta[j], abs=5e-4)
        assert float(cells[1]) == pytest.approx(summary.std_error[j], abs=5e-4)
    assert "(intercept)" not in result.stdout
    for fact in (f"{summary.r_squared:.4g}", f"{summary.sigma:.4g}", f"{100 * summary.share_active:.1f} %"):
        assert fact in result.stdout
    assert str(solution.certificate) in result.stdout
    assert f"{solution.objective:.8g} (weighted sum of squared residuals)" in result.stdout


def test_json_is_one_object_and_nothing_else(data):
    result = run("fit", data, "--target", "y", "--one-hot", "sky", "--json", "--method", "sorting+iterative")
    record = json.loads(result.stdout)
    assert result.stderr == ""
    assert list(record["coefficients"]) == ["x0", "x1", "x2", "w", "sky=grey"]
    assert record["method"] == "sorting+iterative"
    assert record["certificate"]["lower_bound"] <= record["objective"] == record["certificate"]["objective"]
    assert len(record["notes"]) == 1
    assert "rows are predicted exactly at the floor" in record["notes"][0]


def test_what_is_left_out_is_said(data):
    assert "'sky'" in run("fit", data, "--target", "y").stderr
    assert "'sky'" in json.loads(run("fit", data, "--target", "y", "--json").stdout)["notes"][0]


def test_options_reach_the_method(data):
    record = json.loads(run("fit", data, "--target", "y", "--method", "auto+exact", "--json").stdout)
    assert record["certificate"]["status"] == "optimal"
    few, many = (
        json.loads(run("fit", data, "--target", "y", "--method", "sorting", "--splits", n, "--json").stdout)
        for n in (1, 80)
    )
    assert many["objective"] < few["objective"]
    loose = run("fit", data, "--target", "y", "--method", "exact", "--target-gap", "0.5", "--json")
    assert json.loads(loose.stdout)["certificate"]["target_gap"] == 0.5


def test_saved_model_predicts_what_the_fit_did(data, frame, tmp_path):
    model, out = tmp_path / "m.json", tmp_path / "out.parquet"
    assert run("fit", data, "--target", "y", "--one-hot", "all", "--save", model).exit_code == 0
    assert run("predict", model, data, "--out", out).exit_code == 0
    predicted = pl.read_parquet(out)
    assert predicted.drop("prediction").equals(frame)
    known = read_model(model)
    residual = predicted["prediction"].to_numpy() - frame["y"].to_numpy()
    assert np.sum(residual**2) == pytest.approx(known.objective, rel=1e-12)
    printed = run("predict", model, data)
    assert pl.read_csv(printed.stdout.encode()).equals(predicted)


def test_predict_with_missing_values(data, frame, tmp_path):
    model, gaps = tmp_path / "m.json", tmp_path / "gaps.csv"
    run("fit", data, "--target", "y", "--features", "x0,x1", "--save", model)
    frame.with_columns(x0=pl.Series([None, *frame["x0"][1:]]), x2=pl.lit(None)).write_csv(gaps)
    kept = run("predict", model, gaps)
    assert kept.exit_code == 0
    predicted = pl.read_csv(kept.stdout.encode())
    assert predicted["prediction"].is_null().to_list() == [True] + [False] * 79
    assert predicted["prediction"][1:].to_list() == read_model(model).predict(frame[1:]).tolist()
    assert (
        kept.stderr == "note: 1 of 80 rows is without a prediction, because values are missing in 'x0' (1)\n"
    )
    for word in ("error", "refuse"):
        refused = run("predict", model, gaps, "--missing", word)
        assert refused.exit_code == 2
        assert "'x0' (1)" in refused.stderr
    dropped = run("predict", model, gaps, "--missing", "drop")
    assert pl.read_csv(dropped.stdout.encode()).height == 79
    assert "1 of 80 rows is dropped" in dropped.stderr
    pl.DataFrame({"x0": ["", "NA"], "x1": ["1", "2"]}).write_csv(gaps)
    assert run("predict", model, gaps).stdout == "x0,x1,prediction\n,1,\n,2,\n"


def test_predict_with_intervals(data, frame, tmp_path):
    model, gaps, out = tmp_path / "model.json", tmp_path / "gaps.csv", tmp_path / "out.csv"
    assert run("fit", data, "--target", "y", "--covariance", "HC1", "--save", model).exit_code == 0
    frame.with_columns(x0=pl.when(pl.arange(80) != 3).then("x0")).write_csv(gaps)
    result = run("predict", model, gaps, "--interval", "0.8", "--out", out)
    assert result.exit_code == 0, result.stderr
    predicted = pl.read_csv(out)
    assert predicted.columns[-3:] == ["prediction", "prediction_low", "prediction_high"]
    X = frame.select(read_model(model).columns).to_numpy()
    fit = solve(X, frame["y"].to_numpy())
    expected = np.array(prediction_interval(fit, X, 0.8, covariance="HC1"))
    expected[:, 3] = np.nan
    np.testing.assert_allclose(predicted[:, -3:].to_numpy().T, expected, rtol=1e-9)
    for level in ("0", "1", "1.5", "x"):
        assert run("predict", model, gaps, "--interval", level).exit_code == 2
    taken = tmp_path / "taken.csv"
    frame.with_columns(prediction_low=0.0).write_csv(taken)
    assert run("predict", model, taken).exit_code == 0
    refused = run("predict", model, taken, "--interval", "0.8")
    assert refused.exit_code == 2
    assert "has a column 'prediction_low' already" in refused.stderr
    write_model(read_model(model).model_copy(update={"sums": None}), model)
    refused = run("predict", model, gaps, "--interval", "0.8")
    assert refused.exit_code == 2
    assert "has no sums for prediction intervals" in refused.stderr


def test_an_enumeration_that_cannot_end_is_told_first(tmp_path):
    X, y, *_ = make_relu(400, 2, noise=1.0, random_state=0)
    path = tmp_path / "long.csv"
    pl.DataFrame({"y": y, "a": X[:, 0], "b": X[:, 1]}).write_csv(path)
    n_positive = int(np.count_nonzero(y > 0.0))
    n_sets = sum(comb(n_positive, j) for j in range(7))
    result = run("fit", path, "--target", "y", "--method", "approximation", "--k", "6", "--time-limit", "0.1")
    assert result.exit_code == 0, result.stderr
    assert "the time limit was reached" in " ".join(result.stdout.split())
    first = result.stderr.splitlines()[0]
    assert first.startswith(f"warning: approximation with k = 6 means {n_sets:,} active sets, which take")
    options = ("--method", "approximation", "--k", "2")
    assert "active sets" not in run("fit", path, "--target", "y", *options).stderr


def test_certify_a_new_fit(data):
    result = run("certify", data, "--target", "y", "--json")
    record = json.loads(result.stdout)
    assert record["status"] == "optimal"
    assert record["gap"] <= 1.0001e-4
    assert "no fit can be more than" in run("certify", data, "--target", "y").stdout


def test_certify_finds_what_a_bad_model_missed(data, tmp_path):
    model, better = tmp_path / "m.json", tmp_path / "better.json"
    run("fit", data, "--target", "y", "--weights", "w", "--method", "sgd", "--save", model)
    result = run("certify", data, "--model", model, "--save", better)
    assert result.exit_code == 0, result.stderr
    assert "a better one was found" in result.stderr
    bad, good = read_model(model), read_model(better)
    assert good.objective < bad.objective
    assert (good.target, good.weights, good.encoding) == (bad.target, bad.weights, bad.encoding)
    assert "a better one" not in run("certify", data, "--model", better).stderr


def test_compare_shows_every_row(data):
    result = run("compare", data, "--target", "y", "--features", "x0,x1,x2")
    assert result.exit_code == 0, result.stderr
    for name in ("OLS clipped at 0", "MLPRegressor", "rectifit auto", "rectifit sorting+iterative"):
        assert name in result.stdout
    assert "Tobit was left out: it needs outcomes of at least 0" in result.stdout
    assert "Tobit estimates something else" in " ".join(result.stdout.split())
    record = json.loads(run("compare", data, "--target", "y", "--json").stdout)
    assert {"name", "in_sample", "cross_validated", "seconds", "gap"} < set(record["rows"][0])


def test_make_writes_an_instance(tmp_path):
    out = tmp_path / "made.csv"
    options = ("--samples", 30, "--features", 2, "--noise", 0.2, "--sparsity", 0.9, "--seed", 3)
    assert run("make", *options, "--out", out).exit_code == 0
    X, y, *_ = make_relu(30, 2, noise=0.2, sparsity=0.9, random_state=3)
    made = pl.read_csv(out)
    assert made.columns == ["y", "x1", "x2"]
    np.testing.assert_array_equal(made.to_numpy(), np.column_stack([y, X]))
    assert run("make", *options, "--out", "-").stdout == out.read_text()


@pytest.mark.parametrize("options", [("--covariance", "HC3"), ("--bootstrap", 20)])
def test_standard_errors_of_the_kind_asked_for(data, frame, options):
    record = json.loads(run("fit", data, "--target", "y", "--features", "x0,x1", *options, "--json").stdout)
    solution = solve(frame.select("x0", "x1").to_numpy(), frame["y"].to_numpy())
    name, value = options
    summary = solution.summary(**{name[2:]: value}, names=["x0", "x1"], random_state=0)
    assert record["covariance"] == summary.covariance
    assert [row["name"] for row in record["estimates"]] == ["x0", "x1", "intercept"]
    for row, error, high in zip(record["estimates"], summary.std_error, summary.high, strict=True):
        assert (row["std_error"], row["high"]) == pytest.approx((error, high))


def test_more_coefficients_than_samples(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 30)), rng.normal(size=20)
    path = tmp_path / "wide.csv"
    pl.DataFrame({"y": y} | {f"x{j}": X[:, j] for j in range(30)}).write_csv(path)
    result = run("fit", path, "--target", "y")
    assert result.exit_code == 0, result.stderr
    assert "proved optimal" in result.stdout
    assert "for 31 coefficients: no standard errors" in " ".join(result.stdout.split())
    row = next(line.split() for line in result.stdout.splitlines() if line.startswith("  x29"))
    assert row[2:] == ["-"] * 5
    record = json.loads(run("fit", path, "--target", "y", "--json").stdout)
    # Positive outcomes are met exactly, and for the others nothing is better than 0.
    assert record["objective"] == pytest.approx(np.sum(np.minimum(y, 0.0) ** 2))
    assert {entry["std_error"] for entry in record["estimates"]} == {None}
    assert any("no standard errors" in note for note in record["notes"])


def test_a_floor_is_fitted_saved_and_certified(frame, tmp_path):
    path, model, out = tmp_path / "raised.csv", tmp_path / "m.json", tmp_path / "out.csv"
    frame.with_columns(y=pl.col("y") + 7.0).write_csv(path)
    columns = ("--features", "x0,x1,x2")
    known = json.loads(run("fit", path, "--target", "y", *columns, "--floor", 7, "--json").stdout)
    plain = solve(frame.select("x0", "x1", "x2").to_numpy(), frame["y"].to_numpy())
    assert known["objective"] == pytest.approx(plain.objective)
    assert known["intercept"] == pytest.approx(plain.intercept + 7.0)
    assert "y ~ max(7, X beta + intercept)" in run("fit", path, "--target", "y", "--floor", 7).stdout

    result = run("fit", path, "--target", "y", *columns, "--floor", "estimate", "--save", model)
    fitted = read_model(model)
    assert f"max({fitted.floor:.6g}, X beta + intercept), the floor estimated" in result.stdout
    assert "(floor)" in result.stdout
    assert fitted.objective <= known["objective"]
    assert run("predict", model, path, "--out", out).exit_code == 0
    predicted = pl.read_csv(out)["prediction"].to_numpy()
    assert predicted.min() == fitted.floor
    assert np.sum((predicted - frame["y"].to_numpy() - 7.0) ** 2) == pytest.approx(fitted.objective)

    again = json.loads(run("certify", path, "--model", model, "--json").stdout)
    new = json.loads(run("certify", path, "--target", "y", *columns, "--floor", "estimate", "--json").stdout)
    for record in (again, new):
        assert record["floor"] == pytest.approx(fitted.floor)
        assert record["gap"] <= 1.0001e-4
    fixed = json.loads(run("certify", path, "--target", "y", *columns, "--floor", 7, "--json").stdout)
    assert fixed["floor"] is None
    assert fixed["objective"] == pytest.approx(plain.objective)


@pytest.mark.parametrize(
    ("options", "low", "high"),
    [
        (("--positive", "x0,x2"), [0, -np.inf, 0], [np.inf] * 3),
        (("--positive", "all"), [0] * 3, [np.inf] * 3),
        (("--negative", "x1"), [-np.inf] * 3, [np.inf, 0, np.inf]),
        (("--bounds", "x0=0.1:0.2,x1=:-1e-1,x2=-3:"), [0.1, -np.inf, -3], [0.2, -0.1, np.inf]),
        (("--bounds", "all=-.5:0.5", "--positive", "x1"), [-0.5, 0, -0.5], [0.5] * 3),
        (
            ("--bounds", "x0=-9:9, x0 = -1 : 1", "--negative", "x0"),
            [-1, -np.inf, -np.inf],
            [0, np.inf, np.inf],
        ),
        (("--bounds", "x0=:"), [-np.inf] * 3, [np.inf] * 3),
    ],
)
def test_constraints_on_the_command_line(data, frame, options, low, high):
    command = ("fit", data, "--target", "y", "--features", "x0,x1,x2", *options)
    record = json.loads(run(*command, "--json").stdout)
    X = frame.select("x0", "x1", "x2").to_numpy()
    solution = solve(X, frame["y"].to_numpy(), bounds=np.column_stack([low, high]))
    assert list(record["coefficients"].values()) == solution.beta.tolist()
    ends = [[end if np.isfinite(end) else None for end in pair] for pair in zip(low, high, strict=True)]
    bounds = dict(zip(["x0", "x1", "x2"], ends, strict=True))
    assert record["bounds"] == {name: pair for name, pair in bounds.items() if pair != [None, None]}
    assert record["certificate"]["is_constrained"] == bool(record["bounds"])
    for j, estimate in enumerate(record["estimates"][:3]):
        assert estimate["at_bound"] == (solution.beta[j] in (low[j], high[j]))
        assert (estimate["std_error"] is None) == estimate["at_bound"]
    printed = run(*command).stdout
    summary = solution.summary(names=("x0", "x1", "x2"))
    for words in summary.constraints:
        assert words in printed
    for name, value, is_held in zip(summary.names, solution.beta, summary.at_bound, strict=False):
        assert (f"{name}, at its bound {value:.4g}" in printed) == is_held
    assert ("have no standard error of their own" in printed) == any(summary.at_bound)


def test_a_category_stands_for_its_levels(data):
    options = ("--features", "x0,sky", "--one-hot", "sky", "--json")
    for name in ("sky", "sky=grey"):
        record = json.loads(run("fit", data, "--target", "y", *options, "--bounds", f"{name}=2:3").stdout)
        assert record["bounds"] == {"sky=grey": [2.0, 3.0]}
        assert 2.0 <= record["coefficients"]["sky=grey"] <= 3.0


def test_a_model_keeps_its_bounds(data, frame, tmp_path):
    model, again, out = tmp_path / "m.json", tmp_path / "again.json", tmp_path / "out.csv"
    options = ("--target", "y", "--features", "x0,x1,x2", "--positive", "x1", "--bounds", "x0=:0.2")
    run("fit", data, *options, "--save", model)
    known = read_model(model)
    X, y = frame.select("x0", "x1", "x2").to_numpy(), frame["y"].to_numpy()
    limits = [(None, 0.2), (0, None), (None, None)]
    assert tuple(known.coefficients.values()) == tuple(solve(X, y, bounds=limits).beta)
    assert run("predict", model, data, "--out", out).exit_code == 0
    np.testing.assert_allclose(pl.read_csv(out)["prediction"], known.predict(frame))

    proof = json.loads(run("certify", data, "--model", model, "--save", again, "--json").stdout)
    assert proof["is_constrained"]
    assert proof["objective"] == pytest.approx(known.objective, rel=1e-4)
    assert read_model(again).bounds == known.bounds
    new = json.loads(run("certify", data, *options, "--json").stdout)
    assert new["objective"] == pytest.approx(proof["objective"], rel=1e-4)
    # Both bounds bind: without them there are better fits.
    free = json.loads(run("certify", data, *options[:4], "--json").stdout)
    assert free["objective"] < 0.9 * proof["lower_bound"]
    assert "among fits that satisfy the constraints" in run("certify", data, "--model", model).stdout


def test_a_floor_is_estimated_within_bounds(frame, tmp_path):
    path, model = tmp_path / "raised.csv", tmp_path / "m.json"
    frame.with_columns(y=pl.col("y") + 7.0).write_csv(path)
    options = ("--target", "y", "--features", "x0,x1,x2", "--bounds", "all=-0.5:0.5", "--floor", "estimate")
    run("fit", path, *options, "--save", model)
    assert np.abs(read_model(model).beta).max() <= 0.5
    record = json.loads(run("certify", path, "--model", model, "--json").stdout)
    assert record["is_constrained"]
    assert record["floor"] == read_model(model).floor
    said = " ".join(run("certify", path, "--model", model).stdout.split())
    assert f"among fits with the floor {record['floor']:.6g} that satisfy the constraints" in said


def test_linear_constraints_of_a_model_are_those_of_its_proof(data, frame, tmp_path):
    table = make_table(frame, "y", features=["x0", "x1", "x2"])
    tight = solve(table.X, table.y, constraints=LinearConstraint([1, 1, 1], 0.1, 0.1))
    path = tmp_path / "m.json"
    write_model(SavedModel.from_solution(tight, tight.summary(names=table.names), table), path)
    record = json.loads(run("certify", data, "--model", path, "--save", path, "--json").stdout)
    assert record["is_constrained"]
    assert record["objective"] == pytest.approx(tight.objective, rel=1e-4)
    assert record["lower_bound"] > solve(table.X, table.y).objective
    assert read_model(path).beta.sum() == pytest.approx(0.1, rel=1e-9)


def test_compare_within_bounds(data, frame):
    options = ("--target", "y", "--features", "x0,x1,x2", "--positive", "x0,x1,x2", "--time-limit", 5)
    rows = {row["name"]: row for row in json.loads(run("compare", data, *options, "--json").stdout)["rows"]}
    X = frame.select("x0", "x1", "x2").to_numpy()
    fit = solve(X, frame["y"].to_numpy(), positive=True)
    assert rows["auto"]["in_sample"] == pytest.approx(fit.objective / 80, rel=1e-6)
    printed = run("compare", data, *options).stdout
    assert "* ignores the bounds of the coefficients." in printed
    for name, row in rows.items():
        if row["skipped"] is None:
            assert (f" {name} * " in printed) == row["ignores_bounds"]
    said = " ".join(printed.split())
    assert "no fit of the form max(0, X beta + intercept) whose coefficients satisfy the constraints" in said


@pytest.mark.parametrize(("width", "n_numbers"), [(46, 2), (54, 4), (90, 6)])
def test_a_narrow_terminal_shows_names_and_estimates(data, monkeypatch, width, n_numbers):
    monkeypatch.setattr("rectifit.cli.show.WIDTH", width)
    result = run("fit", data, "--target", "y")
    lines = result.stdout.replace("< 0", "<0").splitlines()
    assert max(map(len, lines)) <= width
    for name in ("x0", "(intercept)"):
        (row,) = (line.split() for line in lines if line.startswith(f"  {name} "))
        assert len(row) == 1 + n_numbers
    compared = run("compare", data, "--target", "y", "--features", "x0", "--time-limit", 1)
    assert "OLS clipped at 0" in compared.stdout


def test_demo_fits_and_certifies_the_bundled_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("demo", "--time-limit", 0.5)
    assert result.exit_code == 0, result.stderr
    X, y, names, *_ = load_drug_spending()
    assert f"{solve(X, y).objective:.8g}" in result.stdout
    for name in names:
        assert name in result.stdout
    assert "no fit can be more than" in result.stdout
    assert "The fit took " in result.stdout
    assert "the search for a proof " in result.stdout
    assert "note: the report is in rectifit-demo.html\n" in result.stderr
    page = (tmp_path / "rectifit-demo.html").read_text(encoding="utf-8")
    for words in ("Poisson GLM", "rectifit demo --time-limit 0.5", "drug_spending (dollars)"):
        assert words in page


@pytest.mark.parametrize("seconds", [0.0, 12.0])
def test_demo_tells_compiling_from_fitting(tmp_path, monkeypatch, seconds):
    monkeypatch.setattr("rectifit.cli.examples.perf_counter", iter([100.0, 105.0 + seconds]).__next__)
    fitted = solve(*load_drug_spending()[:2])
    certificate = replace(fitted.certificate, seconds=3.0, solution=replace(fitted, seconds=2.0))
    monkeypatch.setattr("rectifit.cli.examples.solve", lambda *_, **__: certificate.solution)
    monkeypatch.setattr("rectifit.cli.examples.certify", lambda *_, **__: certificate)
    monkeypatch.setattr("rectifit.cli.examples.write_report", lambda *_: "no report")
    said = " ".join(run("demo", "--report", tmp_path / "x.html").stdout.split())
    assert ("Compiling and loading code took 12.0 s, less from now on. " in said) == (seconds > 0.0)
    assert "The fit took 2.0 s, and the search for a proof 3.0 s." in said


def test_report_of_fit(data, tmp_path):
    out = tmp_path / "out.html"
    result = run(
        *("fit", data, "--target", "y", "--features", "x0,x1", "--bootstrap", 10, "--weights", "w"),
        *("--report", out),
    )
    assert f"the report is in {out}" in result.stderr
    text = out.read_text(encoding="utf-8")
    command = "rectifit fit data.csv --target y --features x0,x1 --bootstrap 10 --weights w --report out.html"
    assert command in text
    assert f"rectifit {rectifit.__version__}" in text
    assert f"{date.today():%B %Y}" in text
    assert "bootstrap, 10 draws" in text
    assert "data.csv" in text
    assert str(data.parent) not in text
    assert "no comparison with other ways to fit: the rows are weighted" in text


def test_units_are_shown_in_the_report(data, tmp_path):
    out = tmp_path / "out.html"
    options = ("--target", "y", "--features", "x0,x1", "--report", out)
    assert run("fit", data, *options, "--units", "y=dollars a year, x1=\u00b0C").exit_code == 0
    text = out.read_text(encoding="utf-8")
    assert "Units: y in dollars a year, x1 in \u00b0C." in text
    for units, words in [
        ("y", "--units has 'y'; each entry must be COLUMN=UNIT"),
        ("z=m", "units names 'z'; it must be the outcome or one of x0, x1"),
    ]:
        refused = run("fit", data, *options, "--units", units)
        assert refused.exit_code == 2
        assert words in refused.stderr
    assert "it needs --report" in run("fit", data, *options[:4], "--units", "y=m").stderr


def test_dependent_columns_are_named(frame, tmp_path):
    path = tmp_path / "more.csv"
    frame.with_columns(
        again=pl.col("x0"), one=pl.lit(1), both=pl.col("x1") + pl.col("x2"), big=-1e6 * pl.col("x1")
    ).write_csv(path)
    said = " ".join(run("fit", path, "--target", "y").stdout.split())
    words = (
        "again repeats x0; one is constant; both is a linear combination of x1 and x2; big is -1e+06 times x1"
    )
    assert words in said
    assert words in json.loads(run("fit", path, "--target", "y", "--json").stdout)["notes"]


def test_a_model_that_is_nested_deeply_is_no_model(data, tmp_path):
    path = tmp_path / "deep.json"
    path.write_text('{"a":' * 100_000 + "1" + "}" * 100_000)
    for command in (["predict", path, data], ["certify", data, "--model", path]):
        result = run(*command)
        assert result.exit_code == 2
        assert result.stderr == f"rectifit: the model {str(path)!r} is nested too deeply to be a model\n"


def test_a_full_disk_is_named_also_for_what_is_printed(data):
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    for command in (["fit", data, "--target", "y"], ["make", "--samples", 9, "--features", 2, "--out", "-"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "rectifit", *map(str, command)],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert done.returncode == 1
        assert done.stderr.endswith("rectifit: standard output cannot be written: No space left on device\n")


def test_what_draws_is_loaded_for_reports_only(data):
    script = (
        "import sys; from rectifit.cli.program import program\n"
        f"program(['fit', {str(data)!r}, '--target', 'y'], standalone_mode=False)\n"
    )
    watch = f"import atexit, sys; atexit.register(lambda: print('LOADED', *sys.modules))\n{script}"
    done = subprocess.run([sys.executable, "-c", watch], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split("LOADED")[1].split())
    assert "rich" in loaded
    assert loaded.isdisjoint({"matplotlib", "jinja2", "rectifit.report"})


def test_a_report_that_cannot_be_made_is_refused_before_the_fit(data, monkeypatch):
    monkeypatch.setattr("rectifit.cli.options.find_spec", lambda name: None if name == "jinja2" else name)
    result = run("fit", data, "--target", "y", "--report", "out.html")
    assert result.exit_code == 2
    assert "--report needs jinja2; install it with: pip install 'rectifit[cli]'" in result.stderr


def test_ctrl_c_keeps_the_best_so_far(tmp_path):
    X, y, *_ = make_relu(300, 9, noise=2.0, design="gaussian", random_state=0)
    path, model = tmp_path / "hard.csv", tmp_path / "model.json"
    pl.DataFrame({"y": y} | {f"x{j}": X[:, j] for j in range(9)}).write_csv(path)
    # Compiles what is not compiled yet.
    run("certify", path, "--target", "y", "--time-limit", 0.5)
    assert run("fit", path, "--target", "y", "--save", model).exit_code == 0
    timer = Timer(1.0, _thread.interrupt_main)
    timer.start()
    result = run("certify", path, "--model", model, "--time-limit", 500, "--json")
    timer.join()
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["status"] == "interrupted"
    assert 0.0 < record["lower_bound"] < record["objective"] <= solve(X, y).objective * (1 + 1e-9)


INTERRUPTS = """
import os, signal, sys
from importlib.abc import MetaPathFinder

class Interrupt(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupt())
sys.argv[1:] = {arguments!r}
from rectifit.cli import main
main()
"""


def run_interrupted(name, *arguments):
    """Press Ctrl-C when a module is imported for the first time."""
    script = INTERRUPTS.format(name=name, arguments=list(map(str, arguments)))
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["click", "rectifit.cli.fitting", "numba.core.types", "numba.core.cpu"])
def test_ctrl_c_while_loading(data, name):
    result = run_interrupted(name, "fit", data, "--target", "y")
    assert (result.returncode, result.stdout, result.stderr.strip()) == (1, "", "rectifit: interrupted")


def test_ctrl_c_within_code_that_is_made_of_text_has_status_1():
    script = (
        "import rectifit.cli.program as module\n"
        "kill = 'import os, signal; os.kill(os.getpid(), signal.SIGINT)'\n"
        "module.program = lambda **_: exec(kill)\n"
        "from rectifit.cli import main\n"
        "main()\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (1, "rectifit: interrupted\n")


def test_ctrl_c_during_the_report_keeps_the_fit(data, tmp_path):
    model, page = tmp_path / "model.json", tmp_path / "page.html"
    options = ["fit", data, "--target", "y", "--save", model, "--report", page]
    result = run_interrupted("rectifit.report.page", *options)
    assert result.returncode == 0
    assert "R squared" in result.stdout
    assert result.stderr.splitlines()[-1] == f"note: interrupted: the report {page} was not written"
    assert read_model(model).target == "y"
    assert [path.name for path in tmp_path.iterdir() if "page" in path.name] == []


def test_ctrl_c_in_compare_shows_what_is_finished(data, monkeypatch):
    measure, names = side_by_side._measure, []

    def interrupted(candidate, *arguments):
        names.append(candidate.name)
        if len(names) > 2:
            raise KeyboardInterrupt
        return measure(candidate, *arguments)

    monkeypatch.setattr(side_by_side, "_measure", interrupted)
    result = run("compare", data, "--target", "y", "--features", "x0,x1", "--json")
    assert result.exit_code == 0, result.stderr
    rows = json.loads(result.stdout)["rows"]
    assert [row["name"] for row in rows if row["skipped"] is None] == names[:2]
    assert {row["skipped"] for row in rows[2:]} == {"the comparison was interrupted"}
    monkeypatch.setattr(side_by_side, "_measure", measure)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fit", "DATA"], "Missing option '--target'"),
        (["fit", "DATA", "--target", "z"], "there is no column 'z'"),
        (["fit", "DATA", "--target", "sky"], "column 'sky' has entries such as 'blue'"),
        (["fit", "DATA", "--target", "y", "--method", "magic"], "unknown stage 'magic'"),
        (["fit", "DATA", "--target", "y", "--k", "0"], "'--k'"),
        (["fit", "DATA", "--target", "y", "--splits", "81"], "n_splits is 81"),
        (["fit", "DATA", "--target", "y", "--time-limit", "0"], "'--time-limit'"),
        (["fit", "DATA", "--target", "y", "--jobs", "0"], "n_jobs is 0"),
        (["fit", "nowhere.csv", "--target", "y"], "there is no file 'nowhere.csv'"),
        (["fit", "data.xls", "--target", "y"], "extension '.xls'"),
        (["fit", "DATA", "--target", "y", "--colour", "red"], "No such option"),
        (["predict", "DATA", "DATA"], "is not JSON"),
        (["predict", "nowhere.json", "DATA"], "there is no file 'nowhere.json'"),
        (["predict", "DATA", "DATA", "--out", "x.docx"], "extension '.docx'"),
        (["certify", "DATA"], "'--target', '--formula' or '--model'"),
        (["certify", "DATA", "--model", "m.json", "--features", "x0"], "--model determines"),
        (["make", "--samples", "2", "--features", "5", "--noise", "0", "--out", "-"], "n_samples is 2"),
        (["fit", "DATA", "--target", "y", "--floor", "low"], "'low' is neither a number nor 'estimate'"),
        (["fit", "DATA", "--target", "y", "--floor", "1", "--no-intercept"], "floor is 1.0"),
        (["fit", "DATA", "--target", "y", "--floor", "nan"], "floor is nan"),
        (["fit", "DATA", "--target", "y", "--covariance", "HC9"], "'--covariance'"),
        (["fit", "DATA", "--target", "y", "--covariance", "HC1", "--bootstrap", "9"], "choose one"),
        (["certify", "DATA", "--model", "m.json", "--floor", "1"], "--model determines"),
        (["fit", "DATA", "--target", "y", "--positive", "z"], "--positive has 'z'; the features are x0,"),
        (["fit", "DATA", "--target", "y", "--negative", "sky"], "--negative has 'sky'; the features are x0,"),
        (["compare", "DATA", "--target", "y", "--positive", "y"], "--positive has 'y'; the features are x0,"),
        (["fit", "DATA", "--target", "y", "--positive", ""], "--positive is empty; it must name"),
        (["fit", "DATA", "--target", "y", "--bounds", " , "], "--bounds is empty; it must name"),
        (["fit", "DATA", "--target", "y", "--bounds", "x0"], "each entry must be COLUMN=LOW:HIGH"),
        (["fit", "DATA", "--target", "y", "--bounds", "x0=1"], "each entry must be COLUMN=LOW:HIGH"),
        (["fit", "DATA", "--target", "y", "--bounds", "0:1"], "each entry must be COLUMN=LOW:HIGH"),
        (["fit", "DATA", "--target", "y", "--bounds", "x0=0:1:2"], "'1:2' is not a number"),
        (["fit", "DATA", "--target", "y", "--bounds", "x0=a:1"], "'a' is not a number"),
        (["fit", "DATA", "--target", "y", "--bounds", "x0=nan:1"], "'x0=nan:1', which allows no number"),
        (["fit", "DATA", "--target", "y", "--bounds", "x0=inf:"], "'x0=inf:', which allows no number"),
        (["fit", "DATA", "--target", "y", "--bounds", "q=0:1"], "--bounds has 'q'; the features are x0,"),
        (["fit", "DATA", "--target", "y", "--bounds", "x0=3:1"], "leave nothing for 'x0': its coefficient"),
        (
            ["certify", "DATA", "--target", "y", "--positive", "x0", "--bounds", "x0=-3:-1"],
            "leave nothing for 'x0': its coefficient would have to be at least 0 and at most -1",
        ),
        (["certify", "DATA", "--model", "m.json", "--positive", "x0"], "--model determines features, interc"),
        (["certify", "DATA", "--model", "m.json", "--bounds", "x0=0:1"], "--model determines features, inte"),
        (["paint"], "No such command 'paint'"),
    ],
)
def test_bad_usage_is_one_sentence_and_status_2(data, arguments, words):
    result = run(*[data if argument == "DATA" else argument for argument in arguments])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert words in result.stderr
    assert result.stderr.startswith("rectifit: ")
    assert result.stderr.count("\n") == 1


def test_a_folder_that_is_not_there_is_noticed_before_the_fit(data, monkeypatch):
    monkeypatch.setattr(fitting, "solve", None)
    monkeypatch.setattr(certifying, "certify", None)
    missing = data.parent / "no"
    for arguments in (
        ("fit", data, "--target", "y", "--save", missing / "m.json"),
        ("certify", data, "--target", "y", "--save", missing / "m.json"),
        ("fit", data, "--target", "y", "--report", missing / "m.html"),
        ("demo", "--report", missing / "m.html"),
        ("predict", "m.json", data, "--out", missing / "m.csv"),
        ("make", "--samples", 9, "--features", 2, "--out", missing / "m.csv"),
    ):
        unwritable = run(*arguments)
        assert unwritable.exit_code == 2
        assert f"'{arguments[-2]}': there is no folder {str(missing)!r}" in unwritable.stderr
    assert not missing.exists()


def test_a_report_is_an_html_file(data, monkeypatch):
    monkeypatch.setattr(fitting, "solve", None)
    for name in ("x.pdf", "x", "html"):
        result = run("fit", data, "--target", "y", "--report", name)
        assert result.exit_code == 2
        assert f"'--report': {name!r} is not the name of an HTML file; it must end in .html" in result.stderr


def test_a_full_disk_leaves_what_was_there(data, tmp_path, monkeypatch):
    model = tmp_path / "m.json"
    assert run("fit", data, "--target", "y", "--features", "x0", "--save", model).exit_code == 0
    known = model.read_text()
    before = sorted(tmp_path.iterdir())

    def fail(path, content):
        with path.open("wb") as file:
            file.write(content[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", fail)
    for arguments in (
        ("fit", data, "--target", "y", "--features", "x0", "--save", model),
        ("fit", data, "--target", "y", "--features", "x0", "--report", tmp_path / "x.html"),
        ("certify", data, "--target", "y", "--features", "x0", "--save", model),
        *(
            ("predict", model, data, "--out", tmp_path / name)
            for name in ("x.csv", "x.parquet", "x.ndjson.gz")
        ),
        ("make", "--samples", 9, "--features", 2, "--out", tmp_path / "x.tsv"),
    ):
        result = run(*arguments)
        assert result.exit_code == 1
        # What was found is shown all the same.
        assert ("certificate" in result.stdout) == (arguments[0] in ("fit", "certify"))
        path = str(arguments[-1])
        assert (
            result.stderr.splitlines()[-1] == f"rectifit: {path} cannot be written: No space left on device"
        )
        assert sorted(tmp_path.iterdir()) == before
        assert model.read_text() == known


def test_a_full_disk_leaves_no_proof(data, tmp_path, monkeypatch):
    before = sorted(tmp_path.iterdir())
    path = tmp_path / "x.rproof"
    opened = Path.open

    class Full(io.BytesIO):
        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self):
            super().close()
            raise OSError(errno.ENOSPC, "No space left on device")

    def open_full(self, mode="r", *arguments, **options):
        file = opened(self, mode, *arguments, **options)
        if mode != "wb+":
            return file
        file.close()
        return Full()

    monkeypatch.setattr(Path, "open", open_full)
    result = run("certify", data, "--target", "y", "--features", "x0", "--proof", path)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == f"rectifit: {path} cannot be written: No space left on device"
    assert sorted(tmp_path.iterdir()) == before


def test_an_interrupt_before_anything_is_found_is_no_fit(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("rectifit.methods.auto.Auto.run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        solve([[1.0], [2.0]], [0.0, 1.0])
    # With a start there is something to return.
    assert solve([[1.0], [2.0]], [0.0, 1.0], start=[0.5]).stopped == "it was interrupted"


def test_files_are_replaced_where_links_point(tmp_path):
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    write_file(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert real.stat().st_mode & 0o777 == 0o640
    with pytest.raises(IsADirectoryError):
        write_file(tmp_path, "new")
    assert sorted(tmp_path.iterdir()) == [link, real]


@pytest.fixture
def files(frame, tmp_path):
    """The same rows in one file, and in three, of which the first has none."""
    frame.write_parquet(tmp_path / "whole.parquet")
    parts = [tmp_path / f"{name}.parquet" for name in "abc"]
    for path, rows in zip(parts, (frame[:0], frame[:30], frame[30:]), strict=True):
        rows.write_parquet(path)
    return tmp_path / "whole.parquet", parts


def assert_alike(found, expected):
    """Equal texts, equal numbers up to rounding; seconds are what they are."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected.keys() - {"seconds"}:
            assert_alike(found[key], expected[key])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other)
    else:
        assert found == (pytest.approx(expected, rel=1e-6) if isinstance(expected, float) else expected)


@pytest.mark.parametrize(
    "options",
    [
        ("--weights", "w", "--covariance", "HC3"),
        ("--no-intercept", "--features", "x2,x0"),
        ("--method", "sorting", "--splits", "4"),
        ("--floor", "0.5"),
    ],
)
def test_several_files_give_what_one_file_gives(files, options):
    whole, parts = files
    options = ("--target", "y", "--method", "sorting+iterative", *options)
    together = json.loads(run("fit", *parts, *options, "--json").stdout)
    one = json.loads(run("fit", whole, *options, "--json").stdout)
    one["notes"] = [note.replace("; --one-hot would encode it", "") for note in one["notes"]]
    assert_alike(together, one)
    assert all(row["std_error"] > 0.0 for row in together["estimates"])


def test_several_files_are_printed_as_one(files):
    whole, parts = files
    options = ("--target", "y", "--method", "sorting+iterative", "--weights", "w", "--covariance", "HC1")
    shown, expected = run("fit", *parts, *options), run("fit", whole, *options)
    assert shown.exit_code == 0, shown.stderr
    lines = [line for line in shown.stdout.splitlines() if not line.startswith("method")]
    assert lines == [line for line in expected.stdout.splitlines() if not line.startswith("method")]
    for words in ("(intercept)", "std. error", "for noise of any variance (HC1)"):
        assert words in shown.stdout


def test_a_very_large_file_is_read_in_blocks_where_the_options_allow(files, monkeypatch):
    whole, _ = files
    monkeypatch.setattr("rectifit.cli.streaming.FILE_BYTES", 0)
    opened = []

    def open_and_tell(paths, **options):
        opened.append(paths)
        return open_parquet(paths, **options)

    monkeypatch.setattr("rectifit.cli.streaming.open_parquet", open_and_tell)
    assert run("fit", whole, "--target", "y").exit_code == 0
    assert len(opened) == 1
    for options in (("--one-hot", "sky"), ("--bootstrap", "5"), ("--method", "gd")):
        assert run("fit", whole, "--target", "y", *options).exit_code == 0
    assert len(opened) == 1


def test_a_model_of_several_files_predicts(files, frame, tmp_path):
    _, parts = files
    model, page = tmp_path / "m.json", tmp_path / "page.html"
    saved = run("fit", *parts, "--target", "y", "--features", "x0,x1", "--save", model, "--report", page)
    assert saved.exit_code == 0, saved.stderr
    assert read_model(model).encoding.columns == ("x0", "x1")
    predicted = pl.read_csv(run("predict", model, parts[2]).stdout.encode())["prediction"].to_numpy()
    X = frame.select("x0", "x1").to_numpy()
    expected = solve(X, frame["y"].to_numpy()).predict(X[30:])
    np.testing.assert_allclose(predicted, expected, atol=1e-6)
    text = page.read_text()
    assert "in 3 files" in text
    # All rows were in memory, so the pictures are of all of them.
    assert "chosen at random" not in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--one-hot", "sky"), "--one-hot needs all rows at once"),
        (("--missing", "drop"), "--missing drop needs all rows at once"),
        (("--bootstrap", "10"), "--bootstrap needs all rows at once"),
        (("--target-gap", "0.1"), "--target-gap needs all rows at once"),
        (("--floor", "estimate"), "--floor estimate needs all rows at once"),
        (("--floor", "1", "--no-intercept"), "with fit_intercept=False it must be 0"),
        (("--k", "2"), "--k needs all rows at once"),
        (("--method", "gd"), "which needs all rows in memory"),
        (("--features", "x0,sky"), "column 'sky' has type"),
        (("--features", "x9"), "there is no column 'x9'"),
        (("--weights", "y"), "both target and weights"),
    ],
)
def test_what_several_files_cannot_have_is_refused(files, options, words):
    result = run("fit", *files[1], "--target", "y", *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_several_files_that_are_no_data_are_refused(files, frame, tmp_path):
    _, (empty, part, _) = files
    assert "not a Parquet file" in run("fit", part, tmp_path / "d.csv", "--target", "y").stderr
    assert "has no rows" in run("fit", empty, empty, "--target", "y").stderr
    other = tmp_path / "other.parquet"
    frame.with_columns(pl.col("x1").cast(pl.String)).write_parquet(other)
    assert "column 'x1' has type" in run("fit", part, other, "--target", "y").stderr
    frame.drop("x1").write_parquet(other)
    assert "has no column 'x1'" in run("fit", part, other, "--target", "y").stderr
    result = run("fit", part, tmp_path / "none.parquet", "--target", "y")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)


def test_a_target_gap_asks_for_a_proof(data):
    result = run("fit", data, "--target", "y", "--target-gap", "0.05", "--json")
    found = json.loads(result.stdout)
    assert found["method"] == "auto+exact"
    assert found["certificate"]["status"] == "optimal"
    assert found["certificate"]["gap"] <= 0.05 * (1 + 1e-6)


def test_failures_have_status_1(data, monkeypatch):
    def refuse(_):
        raise VerificationError("the objective is another")

    monkeypatch.setattr(rectifit.Solution, "verify", refuse)
    wrong = run("fit", data, "--target", "y")
    assert wrong.exit_code == 1
    assert "the objective is another" in wrong.stderr
    assert wrong.stdout == ""


def test_a_prediction_column_is_not_overwritten(data, frame, tmp_path):
    model = tmp_path / "m.json"
    run("fit", data, "--target", "y", "--save", model)
    frame.with_columns(prediction=pl.lit(1.0)).write_csv(data)
    result = run("predict", model, data)
    assert result.exit_code == 2
    assert "column 'prediction' already" in result.stderr


def test_a_dead_neuron_is_noted(tmp_path):
    path = tmp_path / "dead.csv"
    path.write_text("y,a\n-1,1\n-2,2\n0,3\n")
    result = run("fit", path, "--target", "y")
    assert result.exit_code == 0
    assert "note: no outcome is positive" in result.stderr


def test_help_of_every_command():
    result = run("--help")
    assert result.exit_code == run().exit_code == 0
    assert run().stdout == result.stdout
    assert "_RECTIFIT_COMPLETE=bash_source" in result.stdout
    for name in program.commands:
        assert name in result.stdout
        page = run(name, "--help")
        assert page.exit_code == 0
        assert "--" in page.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("rectifit fit DATA --target x", {"x0", "x1", "x2"}),
        ("rectifit fit DATA --features x0,s", {"x0,sky"}),
        ("rectifit fit DATA --method sorting+i", {"sorting+iterative"}),
        ("rectifit fit nowhere.csv --target x", set()),
        ("rectifit ce", {"certify"}),
    ],
)
def test_completion(data, words, expected):
    words = words.replace("DATA", str(data))
    environment = {
        "_RECTIFIT_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    result = CliRunner(env=environment).invoke(program, [], prog_name="rectifit")
    lines = filter(None, result.stdout.splitlines())
    assert {line.split(",", 1)[1] for line in lines} == expected


def test_standard_input_in_a_process(data):
    result = run_outside("fit", "-", "--target", "y", "--json", text=data.read_text())
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["goodness"]["n_samples"] == 80


@pytest.mark.parametrize(
    ("text", "words"), [("", "standard input is empty"), ("y,a\n1,b\n", "no features are left")]
)
def test_bad_data_in_a_process_leaves_no_traceback(text, words):
    result = run_outside("fit", "-", "--target", "y", text=text)
    assert result.returncode == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_output_that_nobody_reads_to_the_end(data):
    reader = f"{sys.executable} -m rectifit predict m.json {data} | head -n 1"
    assert run("fit", data, "--target", "y", "--save", data.parent / "m.json").exit_code == 0
    result = subprocess.run(reader, shell=True, cwd=data.parent, capture_output=True, text=True, check=False)
    assert result.stdout.startswith("y,x0")
    assert "Traceback" not in result.stderr


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(SystemExit, match=r"needs polars; install it with: pip install 'rectifit\[cli\]'"):
        cli.main()


def test_several_files_say_what_is_missing_to_read_them(files, monkeypatch):
    def refuse(*_, **__):
        raise ImportError("Parquet files need pyarrow; install it with: pip install 'rectifit[parquet]'")

    monkeypatch.setattr(streaming, "open_parquet", refuse)
    result = run("fit", *files[1], "--target", "y")
    assert result.exit_code == 2
    assert "need pyarrow" in result.stderr


def test_precompile_names_the_folder_of_the_cache(monkeypatch):
    known = kernel_of(line_search)
    prepare(line_search)
    monkeypatch.setattr(precompile, "all_kernels", lambda: [known])
    result = run("precompile")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.endswith(f"cached in {known.folder}\n")


def test_precompile_fails_where_nothing_can_be_kept(monkeypatch):
    lost = kernel_of(line_search)._replace(function=SimpleNamespace(__name__="lost", compile=lambda _: None))
    monkeypatch.setattr(precompile, "all_kernels", lambda: [lost._replace(name="lost")])
    result = run("precompile")
    assert result.exit_code == 1
    assert "NUMBA_CACHE_DIR" in result.stderr
