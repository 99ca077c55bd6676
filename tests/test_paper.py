"""The numbers that the paper printed."""

import csv
from importlib.resources import files
from statistics import median

import numpy as np
import pytest

from rectifit import solve
from rectifit.datasets import make_relu

# Medians of 20 instances scatter by a factor of two where rows are sparse; those of 100 do not.
INSTANCES = 100


@pytest.fixture(scope="module")
def printed():
    text = files("rectifit.datasets").joinpath("realizable.csv").read_text()
    return list(csv.DictReader(text.splitlines()))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gd", "sgd"])
@pytest.mark.parametrize("sparsity", [0.1, 0.25, 0.5, 0.75, 0.9])
@pytest.mark.parametrize(("p", "n"), [(10, 200), (20, 400), (50, 1000)])
def test_medians_of_gradient_descent(printed, p, n, sparsity, method):
    rows = [row for row in printed if int(row["p"]) == p and float(row["sparsity"]) == sparsity]
    assert len(rows) == 20
    errors = []
    for seed in range(INSTANCES):
        X, y, beta, *_ = make_relu(n, p, sparsity=sparsity, noise=0.0, random_state=seed)
        solution = solve(X, y, method, fit_intercept=False, random_state=seed)
        errors.append(np.sum((solution.predict(X) - np.maximum(X @ beta, 0.0)) ** 2))
    theirs = median(float(row[f"{method}_prediction"]) for row in rows)
    assert 1 / 3.5 <= median(errors) / theirs <= 3.5


def test_sorting_prints_zero_everywhere(printed):
    for row in printed:
        for method in ("sorting", "sorting_iter", "sorting_gd"):
            assert float(row[f"{method}_prediction"]) == float(row[f"{method}_recovery"]) == 0.0
    for sparsity in (0.1, 0.9):
        for method in ("sorting", "sorting+iterative", "sorting+gd"):
            X, y, beta, *_ = make_relu(400, 20, sparsity=sparsity, noise=0.0, random_state=1)
            solution = solve(X, y, method, fit_intercept=False)
            assert round(float(np.linalg.norm(solution.beta - beta)), 3) == 0.0
