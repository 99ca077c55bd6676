"""Figures of a fit, drawn from finished numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from rectifit.plotting import AMBER, BLUE, GREEN, GREY, VERMILION, style
from rectifit.report.contents import Points, SplitPath

__all__ = ["draw_fitted", "draw_hinge", "draw_path", "draw_proof", "draw_residuals"]

# Width and height, in inches.
SIZE = (6.4, 4.0)
WIDE_SIZE = (9.0, 3.8)
N_BINS = 40
DOTS: Any = {"s": 9, "alpha": 0.35, "linewidths": 0}


def draw_hinge(points: Points, target: str) -> Any:
    """The outcome against the linear part, with the fitted hinge."""
    with style() as plt:
        figure, axis = plt.subplots(figsize=SIZE, layout="constrained")
        axis.scatter(points.u, points.y, color=BLUE, label="observations", **DOTS)
        low, high = float(points.u.min()), float(points.u.max())
        pad = 0.03 * max(high - low, 1e-12)
        at = np.unique(np.clip([low - pad, points.floor, high + pad], low - pad, high + pad))
        axis.plot(at, np.maximum(at, points.floor), color=VERMILION, linewidth=2.2, label="fit")
        axis.axvline(points.floor, color=GREY, linewidth=1.0, linestyle="--")
        axis.set(xlabel="linear part of the fit", ylabel=target)
        axis.legend(frameon=False, loc="upper left")
    return figure


def draw_fitted(points: Points, target: str) -> Any:
    """Observed against fitted values."""
    with style() as plt:
        figure, axis = plt.subplots(figsize=SIZE, layout="constrained")
        axis.scatter(points.fitted, points.y, color=BLUE, **DOTS)
        ends = [float(points.fitted.min()), float(points.fitted.max())]
        axis.plot(ends, ends, color=VERMILION, linewidth=1.4)
        axis.set(xlabel=f"fitted {target}", ylabel=f"observed {target}")
    return figure


def draw_residuals(points: Points, target: str) -> Any:
    """Residuals against fitted values, and their histogram, by the side of the floor."""
    fitted, residuals, is_above = points.fitted, points.residuals, points.is_above
    sides = ((is_above, "predicted above the floor", BLUE), (~is_above, "predicted at the floor", AMBER))
    with style() as plt:
        figure, (left, right) = plt.subplots(1, 2, figsize=WIDE_SIZE, layout="constrained")
        bins = np.histogram_bin_edges(residuals, bins=N_BINS)
        for side, label, colour in sides:
            left.scatter(fitted[side], residuals[side], color=colour, **DOTS)
            if side.any():
                right.hist(residuals[side], bins=bins, color=colour, alpha=0.55, label=label)
        left.axhline(0.0, color=VERMILION, linewidth=1.4)
        left.set(xlabel=f"fitted {target}", ylabel="residual")
        right.set(xlabel="residual", ylabel="observations")
        right.legend(frameon=False)
    return figure


def draw_path(path: SplitPath) -> Any:
    """The sums of squares of the sorting method's fits, split by split, and that of the fit."""
    lines = (
        (path.surrogates, AMBER, "upper bound that is minimised (convex surrogate)"),
        (path.objectives, BLUE, "sum of squared errors of the resulting fit"),
    )
    with style() as plt:
        figure, axis = plt.subplots(figsize=SIZE, layout="constrained")
        for values, colour, label in lines:
            axis.plot(path.shares, values, color=colour, marker="o", markersize=3, label=label)
        axis.axhline(path.reached, color=VERMILION, linewidth=1.4, label="this fit")
        axis.set(
            xlabel="guess: the largest outcomes, in % of those above the floor",
            ylabel="sum of squared errors",
        )
        axis.legend(frameon=False)
    return figure


def draw_proof(history: tuple[tuple[float, float, float], ...]) -> Any:
    """The best objective and the lower bound against time; rows of (seconds, objective, bound)."""
    times, objectives, bounds = np.array(history).T
    if times.size == 1:
        # One point would be invisible: the bound held from the beginning.
        times = np.array([0.0, max(float(times[0]), 1e-3)])
        objectives, bounds = np.repeat(objectives, 2), np.repeat(bounds, 2)
    with style() as plt:
        figure, axis = plt.subplots(figsize=SIZE, layout="constrained")
        axis.fill_between(
            times, bounds, objectives, step="post", color=GREY, alpha=0.25, linewidth=0, label="still open"
        )
        axis.step(times, objectives, where="post", color=VERMILION, linewidth=1.8, label="best fit so far")
        axis.step(times, bounds, where="post", color=GREEN, linewidth=1.8, label="proved lower bound")
        axis.set(xlabel="seconds", ylabel="sum of squared errors")
        axis.set_ylim(bottom=0.0)
        axis.legend(frameon=False)
    return figure
