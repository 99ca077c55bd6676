"""Whether `auto` misses anything: 300 instances of all kinds beside sorting+iterative and 100 runs of SciPy.

The stopping rule is tuned on seeds below 400 and on random halves of real sets. What is reported are seeds
from 400 on and whole real sets, among them ten on which nothing is tuned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median
from typing import NamedTuple

import numpy as np
from common import console, table_of
from instances import paper
from threadpoolctl import threadpool_limits
from trainers import N_STARTS, least_squares_from, random_start

from rectifit import solve
from rectifit.instances.families import (
    Samples,
    collinear,
    counts,
    dummies,
    gaussian,
    log_normal,
    low_signal,
    noise,
    only_dummies,
    student,
)
from rectifit.instances.real import FAIR, LARGE_SETS, MORE_SETS, MROZ, SETS, load

REPORT = 400
# Share of an objective that counts as worse.
WORSE = 1e-6


class Case(NamedTuple):
    """One data set, of a kind that has a row in the table."""

    kind: str
    name: str
    X: np.ndarray
    y: np.ndarray
    fit_intercept: bool


class Excess(NamedTuple):
    """How far others end above `auto`, as a share of its objective; its CPU time in starts of SciPy."""

    chain: float
    starts: float
    in_starts: float


def half(chosen, seed: int) -> Samples:
    """A random half of the rows of a real set."""
    X, y = load(chosen)
    rows = np.random.default_rng(seed).random(len(y)) < 0.5
    return X[rows], y[rows]


def cases(first: int) -> Iterator[Case]:
    """The 300 instances, with seeds from `first` on."""
    designs = [{"sparsity": 0.1}, {"sparsity": 0.5}, {"sparsity": 0.9}, {"design": "gaussian"}]
    for p, n_seeds in ((10, 2), (20, 2), (50, 1)):
        for rho in (0.032, 0.1, 0.32, 0.5):
            for design in designs if p < 50 else designs[1:2]:
                draw = partial(paper, 20 * p, p, rho, **design)
                yield from drawn(
                    "paper's grid", f"p={p}, rho={rho:g}, {design}", draw, first, n_seeds, (False,)
                )
    for p in (5, 10, 15, 20):
        yield from drawn("pure noise", f"p={p}", partial(noise, p), first, 8)
    for p, n in ((10, 500), (20, 500), (50, 1000)):
        for sigma in (0.3, 1.0):
            yield from drawn("Gaussian", f"p={p}, sigma={sigma:g}", partial(gaussian, n, p, sigma), first, 3)
    for q in (5, 9):
        yield from drawn("low signal", f"q={q}", partial(low_signal, q), first, 8, (True,))
    for spread in (1.0, 1.5):
        name = f"log-normal, spread {spread:g}"
        yield from drawn("heavy tails", name, partial(log_normal, 1000, 7, spread), first, 4)
    yield from drawn("heavy tails", "Student", partial(student, 1000, 7, 2.0), first, 4)
    for name, draw in {
        "dummies": partial(dummies, 1000, 8, 1.0),
        "only dummies": partial(only_dummies, 1000, 1.0),
        "collinear": partial(collinear, 1000, 8, 1.0),
        "grid": partial(counts, 2000, 9, 0.0),
        "grid, log-normal": partial(counts, 2000, 9, 1.0),
    }.items():
        yield from drawn("dummies, grids", name, draw, first, 4)
    tuned = (MROZ, FAIR, *SETS, *LARGE_SETS)
    if first >= REPORT:
        for chosen in (*tuned, *MORE_SETS):
            yield from drawn("real data", chosen.name, lambda _, chosen=chosen: load(chosen), first, 1)
    else:
        for chosen in tuned:
            yield from drawn("real data", chosen.name, partial(half, chosen), first, 2, (True,))
            yield from drawn("real data", chosen.name, partial(half, chosen), first, 1, (False,))


def drawn(
    kind: str,
    name: str,
    draw: Callable[[int], Samples],
    first: int,
    n_seeds: int,
    intercepts: tuple[bool, ...] = (True, False),
) -> Iterator[Case]:
    for seed in range(first, first + n_seeds):
        X, y = draw(seed)
        for fit_intercept in intercepts:
            suffix = "" if fit_intercept else ", no intercept"
            yield Case(kind, f"{name}, seed {seed}{suffix}", X, y, fit_intercept)


def random_starts(X: np.ndarray, y: np.ndarray, fit_intercept: bool) -> tuple[float, float]:
    """The least objective of 100 runs with the analytic Jacobian, and the median CPU seconds of one."""
    spread, size = X.std(axis=0), float(np.linalg.norm(y))
    A = (X - X.mean(axis=0) * fit_intercept) / np.where(spread > 0.0, spread, 1.0)
    if fit_intercept:
        A = np.column_stack([A, np.ones(len(y))])
    rng, found, seconds = np.random.default_rng(0), [], []
    for _ in range(N_STARTS):
        start = random_start(A, rng)
        began = time.process_time()
        with np.errstate(all="ignore"):
            trained = least_squares_from(A, y / size, start, lambda c: A * (A @ c > 0.0)[:, None])
        seconds.append(time.process_time() - began)
        found.append(trained.objective * size * size)
    return min(found), median(seconds)


def excess_of(case: Case) -> Excess:
    X, y, fit_intercept = case.X, case.y, case.fit_intercept
    solve(X, y, fit_intercept=fit_intercept, random_state=0)
    began = time.process_time()
    ours = solve(X, y, fit_intercept=fit_intercept, random_state=0).objective
    taken = time.process_time() - began
    chain = solve(X, y, "sorting+iterative", fit_intercept=fit_intercept).objective
    starts, one = random_starts(X, y, fit_intercept)
    # Where data are fitted exactly, what is left is rounding.
    ours = max(ours, 1e-12 * float(y @ y))
    return Excess(chain / ours - 1.0, starts / ours - 1.0, taken / one)


def run(quick: bool) -> None:
    table = table_of(
        f"auto (random_state=0) beside sorting+iterative and {N_STARTS} starts of least_squares; worse and "
        "better: than auto, by more than 1e-6",
        "data",
        *(
            "instances",
            "s+i worse",
            "median",
            "s+i better",
            "SciPy worse",
            "median",
            "SciPy better",
            "largest",
        ),
        *("auto in starts, median", "largest"),
    )
    found: dict[str, list[Excess]] = {}
    with threadpool_limits(1):
        for case in cases(REPORT):
            if not quick or case.X.size <= 1000:
                found.setdefault(case.kind, []).append(excess_of(case))
    everything = [excess for group in found.values() for excess in group]
    for kind, group in {**found, "all": everything}.items():
        chain, starts = [one.chain for one in group], [one.starts for one in group]
        in_starts = [one.in_starts for one in group]
        table.add_row(
            kind,
            str(len(group)),
            *(*worse_than(chain), str(sum(share < -WORSE for share in chain))),
            *(*worse_than(starts), str(sum(share < -WORSE for share in starts))),
            f"{max(-min(starts), 0.0):.1e}",
            f"{median(in_starts):.1f}",
            f"{max(in_starts):.0f}",
        )
    console.print(table)


def worse_than(shares: list[float]) -> tuple[str, str]:
    """How many end higher than auto, and by how much in the median of these."""
    worse = [share for share in shares if share > WORSE]
    return str(len(worse)), f"{median(worse):.1e}" if worse else ""
