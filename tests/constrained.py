"""Random constraints of coefficients, and what must hold of a fit under them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import LinearConstraint

from rectifit import Problem
from rectifit.constraints import read_constraints

KINDS = ("signs", "one_sided", "boxes", "shifted", "fixed", "linear", "ties", "shares", "redundant", "cone")


def random_constraints(kind: str, p: int, rng: np.random.Generator, size: float = 1.0) -> dict[str, Any]:
    """Arguments of `solve` that allow some coefficients; `size` is about that of the coefficients."""
    inside = size * rng.normal(size=p)
    width = size * rng.exponential(size=(2, p))
    if kind == "signs":
        return {"monotonic_cst": rng.integers(-1, 2, size=p)}
    if kind == "one_sided":
        low = np.where(rng.random(p) < 0.6, inside, -np.inf)
        return {"bounds": np.column_stack([low, np.full(p, np.inf)])}
    if kind == "boxes":
        return {"bounds": np.column_stack([-width[0], width[1]])}
    if kind == "shifted":
        return {"bounds": np.column_stack([inside - 0.1 * width[0], inside + 0.1 * width[1]])}
    if kind == "fixed":
        fixed = rng.random(p) < 0.5
        return {"bounds": np.where(fixed[:, None], inside[:, None], [[-np.inf, np.inf]])}
    A = rng.normal(size=(int(rng.integers(1, p + 2)), p))
    if kind == "linear":
        return {"constraints": LinearConstraint(A, A @ inside - rng.exponential(size=len(A)), np.inf)}
    if kind == "ties":
        A = A[: max(1, p - 1)]
        return {"constraints": LinearConstraint(A, A @ inside, A @ inside)}
    if kind == "shares":
        return {"positive": True, "constraints": LinearConstraint(np.ones((1, p)), size, size)}
    if kind == "redundant":
        # Each row twice, one of them scaled, and the sum of all.
        A = np.vstack([A, 3.0 * A, A.sum(axis=0)])
        return {"positive": True, "constraints": LinearConstraint(A, -np.inf, A @ np.abs(inside))}
    # Coefficients in ascending order.
    ordered = np.diff(np.eye(p), axis=0) if p > 1 else np.ones((1, 1))
    return {"constraints": LinearConstraint(ordered, 0.0, np.inf)}


def constrained_problem(problem: Problem, **given: Any) -> Problem:
    """The same problem under constraints."""
    return Problem(
        problem.data,
        problem.fit_intercept,
        problem.alpha,
        read_constraints(problem.n_features, **given),
    )


def assert_allowed(problem: Problem, beta: np.ndarray) -> None:
    """Bounds hold exactly, linear constraints up to rounding."""
    known = problem.constraints
    assert known is not None
    assert np.all((known.low <= beta) & (beta <= known.high))
    values = known.A @ beta
    largest = np.abs(problem.X).max(axis=0)
    unit = np.linalg.norm(problem.y) / np.where(largest > 0.0, largest, 1.0)
    slack = 1e-8 * np.abs(known.A) @ (np.abs(beta) + unit)
    assert np.all((known.least <= values + slack) & (values - slack <= known.most))
