"""The methods: A1's enumeration, sorting+iterative against least squares, and `auto` against other trainers.

One thread. Targets in seconds are scaled by the yardstick, measured beside each table.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np
from common import REFERENCE, console, table_of, timed
from threadpoolctl import threadpool_limits
from trainers import TRAINERS, Trained, in_standard_units, least_squares_from, random_start

from rectifit import Problem, solve
from rectifit.datasets import make_relu
from rectifit.experiments.machine import yardstick
from rectifit.instances.families import Samples, gaussian
from rectifit.instances.real import FAIR, LARGE_SETS, MROZ, SETS, load
from rectifit.methods.approximation import Enumeration
from rectifit.methods.search import Search
from rectifit.surrogate.rows_engine import RowsEngine

# samples, features, k, target in seconds
ENUMERATIONS = [(200, 10, 2, 1.0), (200, 10, 3, 30.0), (1000, 50, 2, 60.0)]
# samples, features, target as a multiple of one lstsq
CHAINS = [(200, 10, 40), (1000, 50, 30)]


def enumeration(quick: bool) -> None:
    table = table_of(
        "A1 on the paper's instances (rho 0.5, ternary 0.5), one thread",
        *("data", "sets", "solved", "share", "seconds", "target", "min F", "objective", "guarantee"),
    )
    for n, p, k, target in ENUMERATIONS:
        if quick and target > 1.0:
            continue
        X, y, *_ = make_relu(n, p, noise=0.5, random_state=0)
        problem = Problem.from_data(X, y, fit_intercept=False)
        total = Enumeration(Search(RowsEngine(problem)), k, True).total
        solve(X, y, "approximation", fit_intercept=False)
        unit = yardstick()
        solution = solve(X, y, "approximation", k=k, fit_intercept=False)
        table.add_row(
            f"p={p}, n={n}, k={k}",
            f"{total:,}",
            f"{solution.n_surrogates:,}",
            f"{solution.n_surrogates / total:.0%}",
            f"{solution.seconds:.2f}",
            f"<= {target * unit / REFERENCE:.1f}",
            f"{solution.surrogate_objective:.4f}",
            f"{solution.objective:.4f}",
            f"{solution.guarantee:g}",
        )
    console.print(table)


def chain() -> None:
    table = table_of(
        "sorting+iterative, warm, against one lstsq on the same data; medians over 5 seeds",
        *("data", "lstsq ms", "sorting+iterative ms", "ratio", "target"),
    )
    for n, p, target in CHAINS:
        ratios, ours, theirs = [], [], []
        for seed in range(5):
            X, y, *_ = make_relu(n, p, noise=0.5, random_state=seed)
            least = timed(lambda X=X, y=y: np.linalg.lstsq(X, y, rcond=None), 101)
            mine = timed(lambda X=X, y=y: solve(X, y, "sorting+iterative", fit_intercept=False), 51)
            theirs.append(least)
            ours.append(mine)
            ratios.append(mine / least)
        table.add_row(
            f"p={p}, n={n}",
            f"{1e3 * median(theirs):.3f}",
            f"{1e3 * median(ours):.2f}",
            f"{median(ratios):.1f}",
            f"<= {target}",
        )
    console.print(table)


def start_data(quick: bool) -> Iterator[tuple[str, Samples]]:
    for chosen in (MROZ, FAIR, *SETS, *LARGE_SETS):
        if not quick or chosen is MROZ:
            yield chosen.name, load(chosen)
    for p, n in [(5, 100), (10, 200), (20, 400)]:
        if not quick or p == 5:
            rng = np.random.default_rng(100)
            yield f"noise p={p}, n={n}", (rng.standard_normal((n, p)), rng.normal(0.5, 1.0, n))
    for p, n in [(10, 500), (20, 500), (50, 1000)]:
        if not quick or p == 10:
            yield f"Gaussian p={p}, n={n}, sigma=0.3", gaussian(n, p, 0.3, 100)


def in_starts(quick: bool) -> None:
    """`auto` in units of one random start of `least_squares` with the analytic Jacobian."""
    table = table_of(
        "auto against one start of scipy's least_squares, CPU time, with intercept",
        *(
            "data",
            "auto ms",
            "sorting+iterative ms",
            "one start ms",
            "starts at the best",
            "in starts",
            "target",
        ),
    )
    for name, (X, y) in start_data(quick):
        A, b = in_standard_units(X, y)
        solution = solve(X, y)
        auto = timed(lambda X=X, y=y: solve(X, y), 5, time.process_time)
        chain = timed(lambda X=X, y=y: solve(X, y, "sorting+iterative"), 5, time.process_time)
        rng, times, hits = np.random.default_rng(0), [], 0
        for _ in range(10):
            start = random_start(A, rng)
            began = time.process_time()
            with np.errstate(all="ignore"):
                trained = least_squares_from(A, b, start, lambda c, A=A: A * (A @ c > 0.0)[:, None])
            times.append(time.process_time() - began)
            hits += trained.objective * float(y @ y) <= solution.objective * (1.0 + 1e-6)
        one = median(times)
        row = [f"{1e3 * auto:.1f}", f"{1e3 * chain:.1f}", f"{1e3 * one:.1f}", f"{hits} of 10"]
        table.add_row(name, *row, f"{auto / one:.1f}", "<= 10")
    console.print(table)


def data_sets(quick: bool) -> Iterator[tuple[str, Samples]]:
    for n, p, noise in [(200, 10, 0.5), (400, 20, 0.32), (1000, 50, 0.1)]:
        if not quick or n == 200:
            X, y, *_ = make_relu(n, p, noise=noise, random_state=0)
            yield f"paper p={p}, n={n}, rho={noise}", (X, y)
    for n, p in [(50, 5), (200, 10), (400, 20)]:
        for seed in range(1 if quick else 3):
            rng = np.random.default_rng(seed)
            yield f"noise p={p}, n={n}, seed {seed}", (rng.standard_normal((n, p)), rng.normal(0.5, 1.0, n))
    if not quick:
        yield MROZ.name, load(MROZ)
        yield FAIR.name, load(FAIR)


def trainers(quick: bool) -> None:
    table = table_of(
        "auto against other trainers of the same neuron, with intercept",
        *("data", "trainer", "objective", "excess over auto", "seconds", "times auto's"),
    )
    worse = 0
    slower_than_ten = 0
    for name, (X, y) in data_sets(quick):
        A, b = in_standard_units(X, y)
        solve(X, y)
        solution = solve(X, y)
        table.add_row(name, "rectifit auto", f"{solution.objective:.8g}", "", f"{solution.seconds:.4f}", "1")
        for trainer, train in TRAINERS.items():
            trained, seconds = run_trainer(train, A, b)
            objective = trained.objective * float(y @ y)
            excess = objective / solution.objective - 1.0
            worse += excess < -1e-8
            if trainer.startswith("scipy"):
                slower_than_ten += solution.seconds > seconds / 10 and name.startswith("noise")
            table.add_row(
                "",
                trainer,
                f"{objective:.8g}",
                f"{excess:+.2%}" if abs(excess) > 1e-4 else f"{excess:+.1e}",
                f"{seconds:.3f}",
                f"{seconds / solution.seconds:.1f}",
            )
        table.add_section()
    console.print(table)
    console.print(
        f"auto was worse than some trainer {worse} times; on noise it took longer than 10 of the 100 runs of "
        f"scipy {slower_than_ten} times.\nThe others see standardised columns. MLPRegressor also trains an "
        "output weight and an output bias; what counts is\nthe best multiple of its hidden node.\n"
    )


def run_trainer(train: Callable[[np.ndarray, np.ndarray], Trained], A: np.ndarray, b: np.ndarray):
    started = time.perf_counter()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        trained = train(A, b)
    return trained, time.perf_counter() - started


def run(quick: bool) -> None:
    with threadpool_limits(1):
        enumeration(quick)
        chain()
        in_starts(quick)
        trainers(quick)
