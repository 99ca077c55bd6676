"""Least objectives by brute force: the minimum over all active sets of the minimum of F."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np

from rectifit import Problem, SurrogateSolver
from rectifit.certificate.records import Samples


def all_active_sets(problem: Problem) -> np.ndarray:
    members = np.flatnonzero(problem.positive)
    actives = np.zeros((2**members.size, problem.n_samples), dtype=bool)
    actives[:, members] = list(product([False, True], repeat=members.size))
    return actives


def least_objective(problem: Problem) -> float:
    """min L, which is the least minimum of F_I over all I."""
    return min(s.value for s in SurrogateSolver(problem).solve_each(all_active_sets(problem)))


def least_with_others_off(samples: Samples, inside: np.ndarray) -> float:
    """The least loss of the samples inside alone, and what the others cost if they are off; no ridge."""
    cost = float(np.square(samples.y[~inside]).sum())
    if not inside.any():
        return cost
    return cost + least_objective(
        Problem.from_data(samples.Z[inside], samples.y[inside], fit_intercept=False)
    )


def least_in_space(problem: Problem) -> float:
    """min L for three coefficients and rows in general position, from all cells of the arrangement.

    Planes u_i = 0 of positive samples cut the space into cones. Every cone has an edge, which lies in two of
    the planes; the edges and the four ways to leave them give all active sets.
    """
    members = np.flatnonzero(problem.positive)
    A = np.column_stack([problem.X, np.ones(problem.n_samples)]) if problem.fit_intercept else problem.X
    rows, actives = A[members], set()
    for i, j in combinations(range(members.size), 2):
        edge = np.cross(rows[i], rows[j])
        for direction in (edge, -edge):
            on = rows @ direction > 0.0
            for on[i], on[j] in product([False, True], repeat=2):
                actives.add(on.tobytes())
    masks = np.zeros((len(actives), problem.n_samples), dtype=bool)
    masks[:, members] = [np.frombuffer(active, dtype=bool) for active in sorted(actives)]
    return min(s.value for s in SurrogateSolver(problem).solve_each(masks))


def random_problem(seed: int, n_samples: int | None = None) -> Problem:
    """Small data of many kinds: weights, ridge, intercept, ties, structure or none."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 13)) if n_samples is None else n_samples
    p = int(rng.integers(1, 5))
    X = rng.normal(size=(n, p)) if rng.random() < 0.6 else rng.integers(-1, 2, size=(n, p)).astype(float)
    y = np.maximum(X @ rng.normal(size=p), 0.0) + rng.choice([0.1, 0.5, 1.0]) * rng.normal(size=n)
    if rng.random() < 0.3:
        y = np.round(y, 1)
    weight = None
    if rng.random() < 0.5:
        weight = rng.integers(0, 4, size=n).astype(float) if rng.random() < 0.5 else rng.exponential(size=n)
        weight[0] += 1.0
    return Problem.from_data(
        X,
        y,
        sample_weight=weight,
        fit_intercept=bool(rng.integers(2)),
        alpha=float(rng.choice([0.0, 0.0, 0.1, 2.0])),
    )
