"""The same call gives the same answer: twice in a row, with other threads, in other processes."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from rectifit import certify, clock, solve
from rectifit.certificate import driver
from rectifit.datasets import make_relu


def answer(fit):
    """Everything that a fit says, but for seconds, as plain data."""
    certificate, met = fit.certificate, fit.surrogate
    return {
        "fit": [fit.beta.tolist(), fit.intercept, fit.objective, fit.method, str(fit.stopped), fit.guarantee],
        "counts": [fit.n_iter, fit.n_surrogates, certificate.n_nodes, certificate.n_undecided],
        "trace": [[row.stage, row.step, row.objective] for row in fit.trace],
        "surrogate": None if met is None else [met.beta.tolist(), met.intercept, met.value, met.dual_bound],
        "proved": [certificate.lower_bound, certificate.status, certificate.n_active, certificate.rounding],
        "history": [row[1:] for row in certificate.history],
    }


def problem(n, p, noise, design="gaussian"):
    X, y, *_ = make_relu(n, p, noise=noise, random_state=3, design=design)
    return X, y


CALLS = {
    "auto": (problem(300, 15, 0.4), {}),
    "a bound with threads": (problem(300, 8, 0.4), {"fit_intercept": False}),
    "auto, ternary": (problem(120, 5, 0.3, "ternary"), {"random_state": 7}),
    "approximation": (problem(60, 3, 0.5), {"method": "approximation", "k": 2}),
    "multistart": (problem(150, 6, 0.5), {"method": "multistart"}),
    "signs": (problem(200, 8, 0.5), {"method": "exact", "fit_intercept": False}),
    "slabs and cells": (problem(150, 5, 0.5), {"method": "exact", "target_gap": 0.01}),
    "sgd": (problem(100, 4, 0.3), {"method": "sgd"}),
    "floor": (problem(60, 3, 0.3), {"floor": "estimate"}),
}


@pytest.mark.parametrize("name", CALLS)
def test_any_number_of_threads_gives_the_same_digits(name):
    (X, y), options = CALLS[name]
    first = answer(solve(X, y, **options))
    for n_jobs in (None, 2, 3):
        assert answer(solve(X, y, n_jobs=n_jobs, **options)) == first, n_jobs


def test_a_proof_of_a_fit_is_the_same_for_any_number_of_threads():
    X, y = problem(150, 5, 0.5)
    fit = solve(X, y)
    found = [certify(X, y, fit, time_limit=None, n_jobs=n_jobs).solution for n_jobs in (None, None, 2, 3)]
    assert all(answer(other) == answer(found[0]) for other in found[1:])


@pytest.mark.parametrize("name", ["auto", "slabs and cells", "multistart"])
def test_nothing_depends_on_how_fast_the_machine_is(name, monkeypatch):
    """With a clock that leaps by an hour or stands still, the answer is the same."""
    (X, y), options = CALLS[name]
    first, hours = answer(solve(X, y, **options)), iter(range(10**9))
    monkeypatch.setattr(clock, "now", lambda: 3600.0 * next(hours))
    monkeypatch.setattr(time, "perf_counter", lambda: 3600.0 * next(hours))
    assert answer(solve(X, y, **options)) == first
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    monkeypatch.setattr(driver, "REPORT_SECONDS", np.inf)
    assert answer(solve(X, y, **options)) == first


PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from test_same_answer import CALLS, answer
from rectifit import solve
(X, y), options = CALLS[sys.argv[2]]
print(json.dumps(answer(solve(X, y, **options))))
"""


@pytest.mark.slow
def test_another_process_gives_the_same_digits_with_a_cold_and_a_warm_cache(tmp_path):
    """Compiled anew, from the cache, with other hashes and with another number of BLAS threads."""
    name = "a bound with threads"
    (X, y), options = CALLS[name]
    expected = json.loads(json.dumps(answer(solve(X, y, **options))))
    for seed, threads in ((0, 1), (1, 2)):
        variables = {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONHASHSEED": str(seed)}
        variables |= {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(Path(__file__).parent), name],
            env=os.environ | variables,
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(done.stdout) == expected
