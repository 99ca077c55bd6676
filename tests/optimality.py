"""The optimality conditions of a surrogate solution, checked from the data alone."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

from rectifit import Problem, SurrogateSolution, SurrogateSolver


def assert_optimal(
    problem: Problem, active: np.ndarray, solution: SurrogateSolution, gap: float = 1e-9
) -> None:
    """Value, subgradients, stationarity and dual bound of a solution; `gap` is relative to sum w y^2."""
    y, w = problem.y, np.square(problem.root_weight)
    X = problem.X.toarray() if issparse(problem.X) else problem.X.astype(np.float64)
    scale = problem.null_objective
    u = X @ solution.beta + solution.intercept
    on = active & (y > 0)
    kink = np.where(on, -np.inf, 2.0 * np.maximum(y, 0.0))
    r = np.where(u > kink, u, 0.0) - y
    value = float(w @ r**2 + problem.alpha * solution.beta @ solution.beta)

    assert solution.converged
    assert abs(solution.value - value) <= 1e-10 * max(scale, 1e-300)
    assert solution.dual_bound <= solution.value
    assert solution.value - solution.dual_bound <= gap * scale
    if not problem.fit_intercept:
        assert solution.intercept == 0.0

    # Subgradients: 2 w (u - y) on the quadratic, 0 on the constant, between them at a kink, where rounding
    # may have moved u a little.
    blur = 1e-8 * (np.abs(X) @ np.abs(solution.beta) + abs(solution.intercept) + np.abs(y))
    blur += 1e-12 * np.sqrt(scale) / np.where(w > 0, problem.root_weight, np.inf)
    slope = solution.dual
    weighted = w * (np.abs(u) + np.abs(y) + blur)
    right, left = u > kink + blur, u < kink - blur
    assert np.all(np.abs(slope - 2.0 * w * (u - y))[right] <= 1e-6 * weighted[right] + 1e-300)
    assert np.all(np.abs(slope)[left] <= 1e-9 * weighted[left])
    between = ~(right | left)
    assert np.all(slope[between] >= 0.0)
    jump = 2.0 * w * (np.abs(y) + blur)
    assert np.all(slope[between] <= jump[between] + 1e-6 * weighted[between])

    # Stationarity, column by column, against the size of the terms that must cancel.
    columns = np.column_stack([X, np.ones(len(y))]) if problem.fit_intercept else X
    residual = slope @ columns
    residual[: X.shape[1]] += 2.0 * problem.alpha * solution.beta
    # |column| |root of the objective| is the largest gradient the data could give.
    size = np.sqrt(w @ columns**2) * np.sqrt(scale)
    assert np.all(np.abs(residual) <= 1e-6 * size + 1e-300)


def solve_checked(
    problem: Problem, active: np.ndarray, *, engine: str = "auto", start: object = None, gap: float = 1e-9
) -> SurrogateSolution:
    """Solve and assert the optimality conditions."""
    solution = SurrogateSolver(problem, engine).solve(active, start=start)
    assert_optimal(problem, active, solution, gap)
    return solution
