import json

import numpy as np
import polars as pl
import pytest

from rectifit import solve
from rectifit.datasets import make_relu
from rectifit.model_file import Model, read_model, write_model
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
    return solution, table, Model.from_solution(solution, table, "w")


def test_what_is_written_is_read_to_the_last_digit(tmp_path, frame, fitted):
    solution, table, model = fitted
    write_model(model, tmp_path / "m.json")
    again = read_model(tmp_path / "m.json")
    assert again == model
    assert again.coefficients == tuple(solution.beta)
    assert again.objective == solution.objective
    assert again.certificate["lower_bound"] == solution.certificate.lower_bound
    np.testing.assert_array_equal(again.predict(frame), solution.predict(table.X))


def test_goodness_of_a_weighted_fit(fitted):
    solution, table, model = fitted
    residual = table.y - solution.predict(table.X)
    used = table.weights > 0
    mean = np.average(table.y, weights=table.weights)
    total = np.sum(table.weights * (table.y - mean) ** 2)
    assert model.goodness.n_samples == used.sum() == 45
    assert model.goodness.r_squared == pytest.approx(1.0 - np.sum(table.weights * residual**2) / total)
    assert model.goodness.sigma == pytest.approx(np.sqrt(solution.objective / (45 - 5)))
    assert model.goodness.share_active == np.mean(solution.predict(table.X)[used] > 0.0)


def test_goodness_where_it_is_not_defined():
    solution = solve([[1.0, 0.0], [0.0, 1.0]], [2.0, 2.0])
    table = make_table(pl.DataFrame({"y": [2.0, 2.0], "a": [1.0, 0.0], "b": [0.0, 1.0]}), "y")
    goodness = Model.from_solution(solution, table).goodness
    assert goodness.r_squared is None
    assert goodness.sigma is None


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
        (change("intercept", to="1"), "'intercept' is \"1\"; it must be a finite number"),
        (change("intercept", to=True), "'intercept' is true"),
        (change("intercept", to=10**400), "'intercept' is 1000"),
        (change("coefficients", to=[1, 2]), "'coefficients' is"),
        (change("coefficients", "a", to=None), "'coefficients' is"),
        (remove("coefficients", "a"), "one entry per feature"),
        (change("coefficients", "new", to=1.0), "one entry per feature"),
        (change("columns", to=["a", "a"]), "'columns' is"),
        (change("levels", "place", to=[]), "'levels' is"),
        (change("levels", "other", to=["x", "y"]), "not in 'columns'"),
        (change("fit_intercept", to=False), "'intercept' must be 0"),
        (change("extra", to=1), "'extra' is not known"),
        (remove("certificate", "gap"), "'certificate.gap' is missing"),
        (change("certificate", "gap", to=1.5), "'certificate.gap' is 1.5; it must be a number from 0 to 1"),
        (change("certificate", "status", to="great"), "'certificate.status' is \"great\""),
        (change("certificate", "lower_bound", to=1e9), "must not be above the objective"),
        (change("certificate", "objective", to=1e9), "must be equal to 'objective'"),
        (change("goodness", "n_samples", to=-1), "'goodness.n_samples' is -1"),
        (change("goodness", to=None), "'goodness' is null"),
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


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"rectifit_model": NaN}', "\x80"])
def test_files_that_are_no_models(tmp_path, text):
    path = tmp_path / "m.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match="the model '"):
        read_model(path)


def test_no_file(tmp_path):
    with pytest.raises(ValueError, match="there is no file"):
        read_model(tmp_path / "m.json")
    with pytest.raises(ValueError, match="cannot be read"):
        read_model(tmp_path)
