"""Speed of the surrogate solver beside its peers, in one process.

All tables are about the ten non-trivial problems of the sorting method with ten splits. A peer's time is its
set-up plus its solve, from matrices built beforehand; ours is `solve_each` on a solver built beforehand, with
the time of building it beside it, and below that the time of a whole `solve(X, y, "sorting")`. Medians of
several runs; one BLAS thread unless stated.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from common import console, timed
from peers import PEERS, as_programme, sorting_sets
from rich.table import Table
from threadpoolctl import threadpool_limits

from rectifit import Problem, SurrogateSolver, solve
from rectifit.datasets import make_relu

# name, samples, features, design, noise, intercept; times faster than the fastest peer: surrogates, whole fit
CASES = [
    ("p=10, n=200, ternary", 200, 10, "ternary", 0.5, False, 25, 15),
    ("p=50, n=1000, ternary", 1000, 50, "ternary", 0.5, False, 15, None),
    ("p=50, n=10,000, Gaussian, intercept", 10_000, 50, "gaussian", 0.5, True, 60, None),
    ("p=100, n=20,000, Gaussian, intercept", 20_000, 100, "gaussian", 0.5, True, 150, None),
]
SEEDS = (0, 1, 2, 3, 4)


def build_and_solve(problem: Problem, actives: np.ndarray, repeat: int) -> tuple[float, float]:
    """Seconds to build a solver, and to answer all active sets with it."""
    builds, solves = [], []
    for _ in range(repeat):
        started = time.perf_counter()
        solver = SurrogateSolver(problem)
        built = time.perf_counter()
        solver.solve_each(actives)
        builds.append(built - started)
        solves.append(time.perf_counter() - built)
    return median(builds), median(solves)


def against_peers(quick: bool) -> None:
    table = Table(title="Ten surrogates of the sorting method, total ms; medians over seeds")
    names = [
        "data",
        "build",
        "rectifit",
        *PEERS,
        "ratio",
        "target",
        "with build",
        "solve only",
        "worst excess",
    ]
    for name in names:
        table.add_column(name, justify="left" if name == "data" else "right")
    fits = Table(title="One solve(X, y, 'sorting'), validation, evaluation and trace included")
    for name in ("data", "ms", "fastest peer's ten surrogates over it", "target"):
        fits.add_column(name, justify="left" if name == "data" else "right")
    for name, n, p, design, noise, intercept, target, fit_target in CASES:
        seeds = SEEDS[:1] if n * p > 1_000_000 or quick else SEEDS
        if quick and n * p > 1_000_000:
            continue
        rows = [compare(n, p, design, noise, intercept, seed) for seed in seeds]
        build, ours = (median(row[key] for row in rows) for key in ("build", "rectifit"))
        times = {peer: median(row[peer] for row in rows) for peer in PEERS}
        ratio = median(min(row[peer] for peer in PEERS) / row["rectifit"] for row in rows)
        whole = median(min(row[peer] for peer in PEERS) / (row["rectifit"] + row["build"]) for row in rows)
        fit_ratio = median(min(row[peer] for peer in PEERS) / row["fit"] for row in rows)
        fits.add_row(
            name,
            f"{1e3 * median(row['fit'] for row in rows):.2f}",
            f"{fit_ratio:.0f}x",
            f">= {fit_target}x" if fit_target else "",
        )
        bare = median(min(row[peer + " solve"] for peer in PEERS) / row["rectifit"] for row in rows)
        table.add_row(
            name,
            f"{1e3 * build:.2f}",
            f"{1e3 * ours:.2f}",
            *(f"{1e3 * times[peer]:,.1f}" for peer in PEERS),
            f"{ratio:.0f}x",
            f">= {target}x",
            f"{whole:.0f}x",
            f"{bare:.0f}x",
            " ".join(f"{peer[0]}:{max(row[peer + ' excess'] for row in rows):.0e}" for peer in PEERS),
        )
    console.print(table)
    console.print(
        "ratio: fastest peer (set-up and solve) over rectifit. with build: rectifit's build counted too.\n"
        "solve only: the peers' set-up not counted. worst excess: largest (peer's F_I - rectifit's F_I) /\n"
        "sum y^2 of the ten, evaluated from the data at each solution (P, O, C: PIQP, OSQP, Clarabel).\n"
    )
    console.print(fits)


def compare(n: int, p: int, design: str, noise: float, intercept: bool, seed: int) -> dict[str, float]:
    X, y, *_ = make_relu(n, p, design=design, noise=noise, random_state=seed)
    problem = Problem.from_data(X, y, fit_intercept=intercept)
    actives = sorting_sets(y)
    solutions = SurrogateSolver(problem).solve_each(actives)
    repeat = 201 if n * p < 10_000 else 21 if n * p < 100_000 else 5
    build, ours = build_and_solve(problem, actives, repeat)
    fit = timed(lambda: solve(X, y, "sorting", fit_intercept=intercept), repeat)
    row = {"build": build, "rectifit": ours, "fit": fit}
    for name in PEERS:
        row[name] = row[name + " solve"] = row[name + " excess"] = 0.0
    for active, solution in zip(actives, solutions, strict=True):
        programme = as_programme(X, y, active, fit_intercept=intercept)
        for name, minimise in PEERS.items():
            results = [minimise(programme)]
            while len(results) < 5 and sum(r.seconds for r in results) < 0.1:
                results.append(minimise(programme))
            row[name] += median(r.seconds for r in results)
            row[name + " solve"] += median(r.solve_seconds for r in results)
            b = results[0].coefficients
            value = problem.surrogate_value(active, b[:p], float(b[p:].sum()))
            excess = (value - solution.value) / float(y @ y)
            row[name + " excess"] = max(row[name + " excess"], excess, key=abs)
    return row


def against_lstsq() -> None:
    table = Table(
        title="Ten surrogates at n=100,000, p=100, Gaussian, intercept, noise 0.3, against one lstsq"
    )
    for name in ("threads", "lstsq s", "build s", "ten solves s", "ratio (build counted)", "target"):
        table.add_column(name, justify="right")
    X, y, *_ = make_relu(100_000, 100, design="gaussian", noise=0.3, random_state=0)
    actives = sorting_sets(y)
    problem = Problem.from_data(X, y)
    for threads in sorted({1, os.cpu_count() or 1}):
        with threadpool_limits(threads):
            lstsq = timed(lambda: np.linalg.lstsq(X, y, rcond=None), 5)
            build, solve = build_and_solve(problem, actives, 5)
            table.add_row(
                str(threads),
                f"{lstsq:.3f}",
                f"{build:.3f}",
                f"{solve:.3f}",
                f"{(build + solve) / lstsq:.2f}",
                "<= 4",
            )
    console.print(table)


MEMORY = """
import sys
import numpy as np
from rectifit import Problem, SurrogateSolver
sys.path.insert(0, sys.argv[1])
from common import peak_memory
from peers import sorting_sets
# A small problem first, so that the libraries and compiled code are not counted as data.
X = np.random.default_rng(0).standard_normal((30_000, 10))
SurrogateSolver(Problem.from_data(X, X[:, 0])).solve(X[:, 0] > 0)
before = peak_memory()
rng = np.random.default_rng(0)
X = np.empty((100_000, 100))
for j in range(100):
    X[:, j] = rng.standard_normal(100_000)
y = np.maximum(X @ rng.normal(0.5, 3.0, 100), 0.0) + 5.0 * rng.standard_normal(100_000)
SurrogateSolver(Problem.from_data(X, y)).solve_each(sorting_sets(y))
print((peak_memory() - before) / X.nbytes)
"""

FIRST_FIT = """
import time
started = time.perf_counter()
import numpy as np
from rectifit import solve_surrogate
rng = np.random.default_rng(0)
X = rng.standard_normal((200, 10))
y = np.maximum(X @ rng.standard_normal(10), 0.0) + 0.1 * rng.standard_normal(200)
solve_surrogate(X, y, y > 0)
print(time.perf_counter() - started)
"""

IMPORTS = """
import time
import sklearn.linear_model
started = time.perf_counter()
import rectifit
print(time.perf_counter() - started)
"""


def in_fresh_process(code: str, *arguments: str, cache: str | None = None) -> float:
    environment = dict(os.environ) | {"OPENBLAS_NUM_THREADS": "1"}
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout)


def fresh_processes() -> None:
    table = Table(title="Fresh processes")
    for name in ("what", "measured", "target"):
        table.add_column(name, justify="left" if name == "what" else "right")
    cold, warm = [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(in_fresh_process(FIRST_FIT, cache=cache))
            warm.append(in_fresh_process(FIRST_FIT, cache=cache))
    table.add_row("first fit, empty kernel cache, imports included", f"{median(cold):.2f} s", "<= 6 s")
    table.add_row("first fit, warm kernel cache, imports included", f"{median(warm):.2f} s", "<= 1.5 s")
    extra = median(in_fresh_process(IMPORTS) for _ in range(5))
    table.add_row("import rectifit after sklearn.linear_model", f"{extra:.3f} s", "<= 0.3 s")
    what = "peak memory at n=100,000, p=100 over the size of X, X included"
    if Path("/proc/self/status").exists():
        peak = in_fresh_process(MEMORY, str(Path(__file__).resolve().parent))
        table.add_row(what, f"{peak:.2f}", "<= 2.5")
    else:
        table.add_row(what, "only on Linux", "<= 2.5")
    console.print(table)


def run(quick: bool) -> None:
    with threadpool_limits(1):
        against_peers(quick)
    if not quick:
        against_lstsq()
        fresh_processes()
