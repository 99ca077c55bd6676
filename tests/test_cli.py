import _thread
import json
import subprocess
import sys
from threading import Timer
from types import ModuleType

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import rectifit
from rectifit import cli, solve
from rectifit.cli.program import program
from rectifit.cli.show import round_together
from rectifit.datasets import load_drug_spending, make_relu
from rectifit.model_file import read_model
from rectifit.solution import VerificationError


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
    lines = result.stdout.splitlines()
    for j, text in enumerate(round_together(solution.beta)):
        assert any(line.split() == [f"x{j}", text] for line in lines)
    assert "(intercept)" not in result.stdout
    assert str(solution.certificate) in result.stdout
    assert f"{solution.objective:.8g} (weighted sum of squared residuals)" in result.stdout


def test_json_is_one_object_and_nothing_else(data):
    result = run("fit", data, "--target", "y", "--one-hot", "sky", "--json", "--method", "sorting+iterative")
    record = json.loads(result.stdout)
    assert result.stderr == ""
    assert list(record["coefficients"]) == ["x0", "x1", "x2", "w", "sky=grey"]
    assert record["method"] == "sorting+iterative"
    assert record["certificate"]["lower_bound"] <= record["objective"] == record["certificate"]["objective"]
    assert record["notes"] == []


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
    refused = run("predict", model, gaps)
    assert refused.exit_code == 2
    assert "'x0' (1)" in refused.stderr
    dropped = run("predict", model, gaps, "--missing", "drop")
    assert pl.read_csv(dropped.stdout.encode()).height == 79
    assert "1 of 80 rows" in dropped.stderr


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
    assert "Tobit was left out: needs outcomes of at least 0" in result.stdout
    assert "Tobit estimates another thing" in " ".join(result.stdout.split())
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


def test_demo_fits_and_certifies_the_bundled_data():
    result = run("demo", "--time-limit", 0.5)
    assert result.exit_code == 0, result.stderr
    X, y, names, *_ = load_drug_spending()
    assert f"{solve(X, y).objective:.8g}" in result.stdout
    for name in names:
        assert name in result.stdout
    assert "no fit can be more than" in result.stdout


def test_report_gets_the_fit_and_its_names(data, monkeypatch):
    calls = []
    fake = ModuleType("rectifit.report")
    fake.write_report = lambda solution, path, **names: calls.append((solution, path, names))
    monkeypatch.setitem(sys.modules, "rectifit.report", fake)
    assert run("fit", data, "--target", "y", "--features", "x0,x1", "--report", "out.html").exit_code == 0
    ((solution, path, names),) = calls
    assert path == "out.html"
    assert names == {"names": ("x0", "x1"), "target": "y", "data_name": str(data)}
    assert solution.beta.size == 2
    assert run("demo", "--time-limit", 0.2, "--report", "demo.html").exit_code == 0
    assert calls[1][2]["target"] == "drug_spending"


def test_ctrl_c_keeps_the_best_so_far(tmp_path):
    X, y, *_ = make_relu(300, 9, noise=2.0, design="gaussian", random_state=0)
    path = tmp_path / "hard.csv"
    pl.DataFrame({"y": y} | {f"x{j}": X[:, j] for j in range(9)}).write_csv(path)
    # Compiles what is not compiled yet.
    run("certify", path, "--target", "y", "--time-limit", 0.5)
    timer = Timer(1.0, _thread.interrupt_main)
    timer.start()
    result = run("certify", path, "--target", "y", "--time-limit", 500, "--json")
    timer.join()
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["status"] == "interrupted"
    assert 0.0 < record["lower_bound"] < record["objective"] <= solve(X, y).objective * (1 + 1e-9)


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
        (["fit", "data.xlsx", "--target", "y"], "extension '.xlsx'"),
        (["fit", "DATA", "--target", "y", "--colour", "red"], "No such option"),
        (["predict", "DATA", "DATA"], "is not JSON"),
        (["predict", "nowhere.json", "DATA"], "there is no file 'nowhere.json'"),
        (["predict", "DATA", "DATA", "--out", "x.docx"], "extension '.docx'"),
        (["certify", "DATA"], "'--target', or '--model'"),
        (["certify", "DATA", "--model", "m.json", "--features", "x0"], "--model decides"),
        (["make", "--samples", "2", "--features", "5", "--noise", "0", "--out", "-"], "n_samples is 2"),
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


def test_failures_have_status_1(data, monkeypatch):
    unwritable = run("fit", data, "--target", "y", "--save", data.parent / "no" / "m.json")
    assert unwritable.exit_code == 1
    assert "cannot be written: No such file or directory" in unwritable.stderr

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


def test_numbers_of_a_column_align():
    assert round_together([1234567.0, 1.0]) == ["1.23e+06", "1.00e+00"]
    assert round_together([0.0, 0.0]) == ["0.000", "0.000"]
    assert round_together([250.0, -1234.5]) == ["250.0", "-1234.5"]
