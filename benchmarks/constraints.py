"""Constraints: surrogates beside PIQP, fits with bounds that do not bind, proofs with known signs.

Surrogates are the ten non-trivial ones of the sorting method, under the same constraints in both solvers.
Fits are timed with and without bounds, in turn. Proofs have the signs of the coefficients that made the data.
One BLAS thread.
"""

from __future__ import annotations

from functools import partial
from statistics import median

import numpy as np
from common import console, table_of, timed
from peers import as_programme, solve_piqp, sorting_sets
from surrogate import CASES, SEEDS, build_and_solve
from threadpoolctl import threadpool_limits

from rectifit import Problem, SurrogateSolver, certify, solve
from rectifit.constraints import read_constraints
from rectifit.datasets import make_relu
from rectifit.instances.families import gaussian_with, low_signal_with

KINDS = ("all coefficients >= 0", "true signs", "half within a box")
# Methods that are timed with bounds that do not bind.
SLOWED = ("sorting", "sorting+iterative", "auto")
# The benchmark's data with an intercept whose proofs are tree searches.
PROVED = {
    **{f"low signal, q={q}": partial(low_signal_with, q) for q in (5, 7, 9, 10)},
    **{
        f"unclipped, p={p}, sigma={sigma:g}": partial(gaussian_with, 500, p, sigma)
        for p, sigma in ((7, 0.5), (7, 1.0), (7, 2.0), (9, 0.5), (9, 1.0), (12, 0.5), (20, 0.2))
    },
}
PROVED_SEEDS = range(100, 105)
PROVED_GAP = 1e-2
# Seconds of a proof.
LIMIT = 60.0


def within_bounds(quick: bool) -> None:
    """Surrogates under constraints beside PIQP with the same, and fits whose bounds do not bind."""
    table = table_of(
        "Ten surrogates under constraints; medians",
        *("data", "constraints", "rectifit, ms", "PIQP, ms", "ratio", "target", "worst excess"),
    )
    slowdowns = table_of(
        "One fit with bounds that do not bind, over the same fit without; medians",
        *("data", *SLOWED, "target", "largest difference"),
    )
    for name, n, p, design, noise, intercept, *_ in CASES[: 2 if quick else 3]:
        seeds = SEEDS[:1] if quick else SEEDS
        for kind in KINDS:
            rows = [constrained(n, p, design, noise, intercept, seed, kind) for seed in seeds]
            ours, peer, excess = zip(*rows, strict=True)
            ratio = median(b / a for a, b in zip(ours, peer, strict=True))
            cells = (f"{1e3 * median(ours):.2f}", f"{1e3 * median(peer):,.1f}", f"{ratio:.0f}x")
            table.add_row(name, kind, *cells, ">= 15x" if p == 50 else "", f"{max(excess, key=abs):.0e}")
        found = [slowdown(n, p, design, noise, intercept, seed) for seed in seeds]
        ratios = [f"{median(ratio[e] for ratio, _ in found):.2f}" for e in range(len(SLOWED))]
        slowdowns.add_row(name, *ratios, "<= 1.2", f"{max(difference for _, difference in found):.0e}")
    console.print(table)
    console.print(slowdowns)


def constrained(
    n: int, p: int, design: str, noise: float, intercept: bool, seed: int, kind: str
) -> tuple[float, float, float]:
    """Seconds of ours and of PIQP, and the largest (PIQP's F_I - ours) / sum y^2."""
    X, y, beta, *_ = make_relu(n, p, design=design, noise=noise, random_state=seed)
    half = np.where(
        np.arange(p)[:, None] % 2, [[-np.inf, np.inf]], 0.5 * np.abs(beta).mean() * np.array([-1, 1])
    )
    given = dict(
        zip(KINDS, ({"positive": True}, {"monotonic_cst": np.sign(beta)}, {"bounds": half}), strict=True)
    )
    known = read_constraints(p, **given[kind])
    problem = Problem.from_data(X, y, fit_intercept=intercept, constraints=known)
    actives = sorting_sets(y)
    found = SurrogateSolver(problem).solve_each(actives)
    repeat = 101 if n * p < 10_000 else 11 if n * p < 100_000 else 3
    _, ours = build_and_solve(problem, actives, repeat)
    seconds, excess = 0.0, 0.0
    for active, solution in zip(actives, found, strict=True):
        programme = as_programme(X, y, active, fit_intercept=intercept, constraints=known)
        results = [solve_piqp(programme) for _ in range(min(repeat, 5))]
        seconds += median(result.seconds for result in results)
        b = known.clipped(results[0].coefficients[:p])
        value = problem.surrogate_value(active, b, float(results[0].coefficients[p:].sum()))
        excess = max(excess, (value - solution.value) / float(y @ y), key=abs)
    return ours, seconds, excess


def slowdown(
    n: int, p: int, design: str, noise: float, intercept: bool, seed: int
) -> tuple[list[float], float]:
    """Times of fits with bounds that do not bind over those without, and the largest difference of fits."""
    X, y, *_ = make_relu(n, p, design=design, noise=noise, random_state=seed)
    ratios, difference = [], 0.0
    for method in SLOWED:
        free = solve(X, y, method, fit_intercept=intercept)
        size = 1e3 * float(np.abs(free.beta).max())
        repeat = 3 if method == "auto" or n * p > 100_000 else 31
        bounded = solve(X, y, method, fit_intercept=intercept, bounds=(-size, size))
        fit = partial(solve, X, y, method, fit_intercept=intercept)
        seconds = [timed(partial(fit, **options), repeat) for options in ({}, {"bounds": (-size, size)})]
        ratios.append(seconds[1] / seconds[0])
        difference = max(difference, abs(bounded.objective / free.objective - 1.0))
    return ratios, difference


def with_known_signs(quick: bool) -> None:
    """Proofs of the same data without and with the true signs, each about its own best fit."""
    table = table_of(
        f"Proofs to a gap of {PROVED_GAP:g}, without and with the true signs; medians",
        *(
            "data",
            "nodes",
            "with signs",
            "share of nodes",
            "seconds",
            "with signs",
            "share of seconds",
            "open",
        ),
    )
    for name, draw in PROVED.items():
        pairs = []
        for seed in list(PROVED_SEEDS)[: 1 if quick else None]:
            X, y, b = draw(seed)
            pairs.append([prove(X, y, {}), prove(X, y, {"monotonic_cst": np.sign(b)})])
        nodes, seconds, left = np.moveaxis(np.array(pairs), 2, 0)
        cells = []
        for numbers, write in ((nodes, "{:,.0f}"), (seconds, "{:.2f}")):
            shares = numbers[:, 1] / numbers[:, 0]
            cells += [write.format(number) for number in np.median(numbers, axis=0)]
            cells.append(f"{np.median(shares):.2f}, at most {shares.max():.2f}")
        table.add_row(name, *cells, str(int((left > PROVED_GAP * (1 + 1e-9)).sum())))
    console.print(table)


def prove(X: np.ndarray, y: np.ndarray, signs: dict[str, np.ndarray]) -> tuple[int, float, float]:
    """Nodes, seconds and the gap that is left."""
    fit = solve(X, y, random_state=0, **signs)
    found = certify(X, y, fit, target_gap=PROVED_GAP, time_limit=LIMIT, n_jobs=1, **signs)
    return found.n_nodes, found.seconds, found.gap


def run(quick: bool) -> None:
    with threadpool_limits(1):
        within_bounds(quick)
        with_known_signs(quick)
