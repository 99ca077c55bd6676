"""The certificate: seconds to prove a gap, on one core, with SCIP beside it where it can run.

The fit is made before and not counted. Targets in seconds are scaled by the yardstick.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

import numpy as np
from common import REFERENCE, console, table_of
from methods import mroz
from peers import prove_by_scip
from threadpoolctl import threadpool_limits

from rectifit import Certificate, certify, solve
from rectifit.datasets import make_relu
from rectifit.experiments.machine import yardstick

# How long a proof may take beyond its target before it is given up.
PATIENCE = 2.0

Case = tuple[str, bool, float, float, list[tuple[np.ndarray, np.ndarray]]]


def cases(quick: bool) -> Iterator[Case]:
    """Name, intercept, gap, target in seconds, data sets."""
    designs = [{"sparsity": 0.1}, {"sparsity": 0.5}, {"sparsity": 0.9}, {"design": "gaussian"}]
    seeds = range(1 if quick else 5)
    for p in (5, 10, 20):
        for noise in (0.032, 0.1, 0.32, 0.5):
            instances = [
                make_relu(20 * p, p, noise=noise, random_state=seed, **design)[:2]
                for design in designs
                for seed in seeds
            ]
            yield f"p={p}, n={20 * p}, rho={noise}", False, 1e-4, 0.5, instances
    if not quick:
        for noise, target in ((0.1, 3.0), (0.32, 8.0), (0.5, 30.0)):
            instance = make_relu(1000, 50, noise=noise, random_state=0)[:2]
            yield f"p=50, n=1000, rho={noise}", False, 1e-4, target, [instance]
    for noise, target in ((0.1, 1.0), (0.5, 10.0)):
        instance = make_relu(200, 10, noise=noise, random_state=0)[:2]
        yield f"p=10, n=200, rho={noise}, intercept", True, 1e-3, target, [instance]
    if not quick:
        yield "mroz hours, intercept", True, 1e-3, 10.0, [mroz()]
        for p, target in ((5, 0.1), (7, 1.0), (9, 20.0)):
            yield f"noise twice the signal, p={p} with intercept", True, 1e-2, target, [low_signal(p)]


def low_signal(p: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(p)
    X = rng.standard_normal((500, p - 1))
    b = rng.standard_normal(p - 1)
    u = X @ b / np.linalg.norm(b) + 0.3 + 2.0 * rng.standard_normal(500)
    return X, np.maximum(u, 0.0)


def prove(
    X: np.ndarray, y: np.ndarray, intercept: bool, gap: float, limit: float
) -> tuple[Certificate, float]:
    fit = solve(X, y, "auto", fit_intercept=intercept)
    started = time.perf_counter()
    certificate = certify(X, y, fit, fit_intercept=intercept, target_gap=gap, time_limit=limit)
    return certificate, time.perf_counter() - started


def proofs(quick: bool) -> None:
    table = table_of(
        "Seconds to prove a gap",
        *("data", "sets", "gap", "closed", "median s", "worst s", "target", "nodes", "worst gap left", "box"),
    )
    X, y, *_ = make_relu(60, 3, noise=0.5, random_state=0)
    certify(X, y)
    for name, intercept, gap, target, instances in cases(quick):
        limit = target * yardstick() / REFERENCE
        results = [prove(X, y, intercept, gap, PATIENCE * limit) for X, y in instances]
        closed = sum(c.status == "optimal" and seconds <= limit for c, seconds in results)
        table.add_row(
            name,
            str(len(results)),
            f"{gap:g}",
            str(closed),
            f"{median(seconds for _, seconds in results):.3f}",
            f"{max(seconds for _, seconds in results):.3f}",
            f"<= {limit:.2f}",
            f"{max(c.n_nodes for c, _ in results):,}",
            f"{max(c.gap for c, _ in results):.2%}",
            "none" if all(c.box is None for c, _ in results) else "some",
        )
    console.print(table)
    console.print("closed: to the gap, within the target. A proof is given up after twice its target.\n")


def carried(quick: bool) -> None:
    """The bound that comes with every fit of auto on the paper's instances."""
    table = table_of(
        "The bound that a fit by auto carries",
        *("data", "sets", "fit s", "bound s", "median gap", "worst gap", "gap <= 5 %"),
    )
    gaps = []
    for n, p in ((200, 10), (400, 20), (1000, 50)):
        for noise in (0.0, 0.032, 0.1):
            results = []
            for sparsity in (0.1, 0.25, 0.5, 0.75, 0.9):
                for seed in range(1 if quick else 4):
                    X, y, *_ = make_relu(n, p, noise=noise, sparsity=sparsity, random_state=seed)
                    solution = solve(X, y, fit_intercept=False)
                    bound = solution.certificate.seconds
                    results.append((solution.seconds - bound, bound, solution.certificate.gap))
            fit, bound, gap = np.median(results, axis=0)
            worst = max(gap for *_, gap in results)
            good = np.mean([gap <= 0.05 for *_, gap in results])
            gaps += [gap for *_, gap in results]
            table.add_row(
                f"p={p}, n={n}, rho={noise}",
                str(len(results)),
                f"{fit:.4f}",
                f"{bound:.4f}",
                f"{gap:.2%}",
                f"{worst:.2%}",
                f"{good:.0%}",
            )
    console.print(table)
    console.print(f"Median of all: {np.median(gaps):.2%} (target 5 %).\n")


def scip(quick: bool) -> None:
    """SCIP on the same problem, told our objective."""
    limit = 20.0 if quick else 120.0
    table = table_of(
        f"Against SCIP, gap 1e-4, at most {limit:g} s", "data", "rectifit s", "SCIP s", "SCIP gap", "ratio"
    )
    for p, n, noise in ((3, 60, 0.1), (5, 100, 0.1), (10, 200, 0.1)):
        X, y, *_ = make_relu(n, p, noise=noise, random_state=0)
        certificate, ours = prove(X, y, False, 1e-4, 60.0)
        found = prove_by_scip(X, y, limit, certificate.objective)
        table.add_row(
            f"p={p}, n={n}, rho={noise}",
            f"{ours:.3f}",
            f"{found.seconds:.1f}",
            f"{found.gap:.2%}",
            f"{'> ' if found.gap > 1e-4 else ''}{found.seconds / ours:.0f}",
        )
    console.print(table)


def run(quick: bool) -> None:
    with threadpool_limits(1):
        proofs(quick)
        carried(quick)
        scip(quick)
