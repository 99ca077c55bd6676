"""Pictures of a fit: the hinge, fitted against observed, residuals, the path over splits, the proof."""

from __future__ import annotations

from typing import Any

import numpy as np

from rectifit._typing import Vector
from rectifit.methods.sorting import split_sets
from rectifit.plotting import AMBER, BLUE, GREEN, GREY, VERMILION, style
from rectifit.solution import Certificate, Solution
from rectifit.surrogate import SurrogateSolver

__all__ = ["draw_fitted", "draw_hinge", "draw_path", "draw_proof", "draw_residuals"]

# Clouds of more points than this are thinned, always alike.
MOST_POINTS = 4000
# Splits of the path.
SPLITS = 30


def draw_hinge(solution: Solution, target: str) -> Any:
    """The outcome against the pre-activation, with the fitted hinge."""
    with style() as plt:
        figure, axis = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
        u, y = _thinned(solution)
        axis.scatter(u, y, s=9, color=BLUE, alpha=0.35, linewidths=0, label="observations")
        low, high = float(u.min()), float(u.max())
        pad = 0.03 * max(high - low, 1e-12)
        at = np.unique(np.clip([low - pad, solution.floor, high + pad], low - pad, high + pad))
        axis.plot(at, np.maximum(at, solution.floor), color=VERMILION, linewidth=2.2, label="fit")
        axis.axvline(solution.floor, color=GREY, linewidth=1.0, linestyle="--")
        axis.set_xlabel("pre-activation (linear part of the fit)")
        axis.set_ylabel(target)
        axis.legend(frameon=False, loc="upper left")
    return figure


def draw_fitted(solution: Solution, target: str) -> Any:
    """Observed against fitted values."""
    with style() as plt:
        figure, axis = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
        u, y = _thinned(solution)
        fitted = np.maximum(u, solution.floor)
        axis.scatter(fitted, y, s=9, color=BLUE, alpha=0.35, linewidths=0)
        ends = [float(fitted.min()), float(fitted.max())]
        axis.plot(ends, ends, color=VERMILION, linewidth=1.4)
        axis.set_xlabel(f"fitted {target}")
        axis.set_ylabel(f"observed {target}")
    return figure


def draw_residuals(solution: Solution, target: str) -> Any:
    """Residuals against fitted values, and how they are distributed, apart where the fit is on and off."""
    with style() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
        u, y = _thinned(solution)
        fitted = np.maximum(u, solution.floor)
        residuals, on = y - fitted, u > solution.floor
        left.scatter(fitted[on], residuals[on], s=9, color=BLUE, alpha=0.35, linewidths=0)
        left.scatter(fitted[~on], residuals[~on], s=9, color=AMBER, alpha=0.35, linewidths=0)
        left.axhline(0.0, color=VERMILION, linewidth=1.4)
        left.set_xlabel(f"fitted {target}")
        left.set_ylabel("residual")
        parts = [
            (part, label, colour)
            for part, label, colour in ((residuals[on], "active", BLUE), (residuals[~on], "inactive", AMBER))
            if part.size
        ]
        bins = np.histogram_bin_edges(residuals, bins=40)
        for part, label, colour in parts:
            right.hist(part, bins=bins, color=colour, alpha=0.55, label=label)
        right.set_xlabel("residual")
        right.set_ylabel("observations")
        right.legend(frameon=False)
    return figure


def draw_path(solution: Solution) -> Any:
    """The objective of the sorting method's solutions, split by split, and where the fit ended."""
    problem = solution.problem
    assert problem is not None
    problem = problem.shifted(solution.floor)
    sets = split_sets(problem, SPLITS)
    found = SurrogateSolver(problem).solve_each(np.array(sets))
    shares = [100.0 * float(active.sum()) / max(int(problem.positive.sum()), 1) for active in sets]
    with style() as plt:
        figure, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
        axis.plot(
            shares, [s.value for s in found], color=AMBER, marker="o", markersize=3, label="convex surrogate"
        )
        true = [problem.objective(s.beta, s.intercept) for s in found]
        axis.plot(shares, true, color=BLUE, marker="o", markersize=3, label="objective of its minimiser")
        axis.axhline(solution.objective, color=VERMILION, linewidth=1.4, label="this fit")
        axis.set_xlabel("largest outcomes taken as active, % of the positive ones")
        axis.set_ylabel("sum of squares")
        axis.legend(frameon=False)
    return figure


def draw_proof(certificate: Certificate) -> Any:
    """Incumbent and bound against time."""
    with style() as plt:
        figure, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
        times, incumbents, bounds = (np.array(column) for column in zip(*certificate.history, strict=True))
        if times.size == 1:
            times, incumbents, bounds = (np.repeat(a, 2) for a in (times, incumbents, bounds))
            times = np.array([0.0, max(float(times[1]), 1e-3)])
        axis.fill_between(
            times, bounds, incumbents, step="post", color=GREY, alpha=0.25, linewidth=0, label="still open"
        )
        axis.step(times, incumbents, where="post", color=VERMILION, linewidth=1.8, label="best fit so far")
        axis.step(times, bounds, where="post", color=GREEN, linewidth=1.8, label="no fit is below (proved)")
        axis.set_xlabel("seconds")
        axis.set_ylabel("sum of squares")
        axis.set_ylim(bottom=0.0)
        axis.legend(frameon=False)
    return figure


def _thinned(solution: Solution) -> tuple[Vector, Vector]:
    """Pre-activations and outcomes, not too many."""
    problem = solution.problem
    assert problem is not None
    u = problem.preactivation(solution.beta, solution.intercept)
    y = problem.y
    if u.size > MOST_POINTS:
        chosen = np.random.default_rng(0).choice(u.size, MOST_POINTS, replace=False)
        u, y = u[chosen], y[chosen]
    return u, y
