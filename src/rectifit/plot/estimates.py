"""Coefficients and effects, with their intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rectifit.fit import fit_of
from rectifit.formatting import write_level, write_number
from rectifit.inference import (
    Estimates,
    MarginalEffects,
    PredictedMargins,
    Summary,
    marginal_effects,
    predicted_margins,
    summarise,
)
from rectifit.plotting import BLUE, GREY, VERMILION, open_axes

__all__ = ["coefficients", "effects"]

BARS: Any = {"color": BLUE, "linewidth": 1.6, "capsize": 3.0}


def coefficients(fitted: Any, *, intercept: bool = False, ax: Any = None, **options: Any) -> Any:
    """Coefficients with their intervals, one line each, in the order of the columns.

    A coefficient at its bound has no interval; it is drawn as an empty diamond.

    Parameters
    ----------
    fitted : Solution, fitted estimator or Summary
    intercept : bool, default=False
        Whether the intercept and an estimated floor are shown, too.
    ax : matplotlib Axes, optional
        Where to draw. Default: a new figure.
    **options : covariance, level, names and others, as in `inference.summarise`; not with a Summary

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from rectifit import plot, solve
    >>> from rectifit.datasets import load_drug_spending
    >>> X, y, names, *_ = load_drug_spending()
    >>> axes = plot.coefficients(solve(X, y), names=names, covariance="HC1", ax=Figure().subplots())
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['age', 'female', 'chronic', 'health', 'coinsurance']
    """
    summary = _finished(fitted, Summary, options) or summarise(fit_of(fitted), **options)
    shown = len(summary.names) if intercept else _count_columns(summary)
    with open_axes(ax) as axes:
        _draw_bars(axes, summary, shown)
        axes.set_xlabel(f"coefficient, {write_level(summary.level)} interval")
    return axes


def effects(
    fitted: Any,
    feature: str | int | None = None,
    *,
    values: npt.ArrayLike | None = None,
    at: str = "average",
    target: str | None = None,
    ax: Any = None,
    **options: Any,
) -> Any:
    """How the prediction depends on one column, or the effects of all columns.

    For one column, this draws the predicted margins: the mean prediction if the column had one value in all
    rows, against this value. For a column of zeros and ones, the title states the discrete effect. For all
    columns, it draws their marginal effects; those of columns of zeros and ones are discrete.

    Parameters
    ----------
    fitted : Solution, fitted estimator, PredictedMargins or MarginalEffects
    feature : str or int, optional
        Name or number of one column. Default: the effects of all columns.
    values : array-like, optional
        Values of this column, as in `inference.predicted_margins`.
    at : {"average", "means"}
        Averaged over the rows with their other columns as observed, or with the others at their means.
    target : str, optional
        Name of the outcome. Default: that of the data, else y.
    ax : matplotlib Axes, optional
        Where to draw. Default: a new figure.
    **options : covariance, level, names and others, as in `inference.predicted_margins`

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from rectifit import plot, solve
    >>> from rectifit.datasets import load_drug_spending
    >>> X, y, names, *_ = load_drug_spending()
    >>> axes = plot.effects(solve(X, y), "age", names=names, target="spending", ax=Figure().subplots())
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('age', 'mean prediction of spending')
    """
    found = _finished(fitted, PredictedMargins | MarginalEffects, options)
    if found is None:
        solution = fit_of(fitted)
        target = target or solution.target
        if feature is not None:
            found = predicted_margins(solution, feature, values, at=at, **options)
        elif values is not None:
            raise ValueError("values is given without feature; they are values of one column")
        else:
            found = marginal_effects(solution, at, **{"discrete": True} | options)
    with open_axes(ax) as axes:
        if isinstance(found, PredictedMargins):
            _draw_margins(axes, found, target or "y")
        else:
            _draw_bars(axes, found, len(found.names))
            where = "average effect" if found.at == "average" else "effect at the means"
            axes.set_xlabel(f"{where} on {target or 'y'}, {write_level(found.level)} interval")
    return axes


def _finished(fitted: Any, kinds: Any, options: dict[str, Any]) -> Any:
    """What was given, if these are finished numbers, which have no options any more."""
    if not isinstance(fitted, kinds):
        return None
    if options:
        raise TypeError(
            f"{', '.join(options)} cannot be given with a {type(fitted).__name__}, which has them"
        )
    return fitted


def _count_columns(summary: Summary) -> int:
    """The number of estimates before the intercept and an estimated floor."""
    n = len(summary.names) - summary.floor_is_estimated
    return n - (summary.names[n - 1] == "intercept")


def _draw_bars(axes: Any, found: Estimates, n_shown: int) -> None:
    """One line per estimate, from the top down."""
    height, values = np.arange(n_shown), found.coefficient[:n_shown]
    reach = (0.5 * (found.high - found.low))[:n_shown]
    known, held = np.isfinite(reach), np.array(found.at_bound, dtype=np.bool_)[:n_shown]
    axes.axvline(0.0, color=GREY, linewidth=1.0, linestyle="--")
    if known.any():
        axes.errorbar(values[known], height[known], xerr=reach[known], fmt="o", markersize=5, **BARS)
    for kind, marker, label in ((held, "D", "at its bound, no interval"), (~held, "X", "no interval")):
        kind = kind & ~known
        if kind.any():
            look = {"color": VERMILION, "markerfacecolor": "none", "linestyle": ""}
            axes.plot(values[kind], height[kind], marker=marker, label=label, **look)
            axes.legend()
    axes.set_yticks(height, found.names[:n_shown])
    axes.set_ylim(n_shown - 0.5, -0.5)
    axes.grid(visible=False, axis="y")


def _draw_margins(axes: Any, margins: PredictedMargins, target: str) -> None:
    """A line with a band, or two dots with bars for zeros and ones."""
    x, mean = margins.values, margins.coefficient
    level = write_level(margins.level)
    if margins.is_dummy:
        ends = np.abs(np.array([margins.low, margins.high]) - mean)
        axes.errorbar(x, mean, yerr=ends, fmt="o", label=f"{level} interval", **BARS)
        axes.set_xticks(x, [write_number(value) for value in x])
        axes.set_xlim(x.min() - 0.5, x.max() + 0.5)
    else:
        axes.fill_between(
            x, margins.low, margins.high, color=BLUE, alpha=0.2, linewidth=0, label=f"{level} interval"
        )
        axes.plot(x, mean, color=BLUE, linewidth=2.0, label="mean prediction")
    if margins.is_dummy and x.tolist() == [0.0, 1.0]:
        low, high = map(write_number, margins.change_interval)
        axes.set_title(f"from 0 to 1: {margins.change:+.4g} ({low} to {high})")
    axes.set(xlabel=margins.feature, ylabel=f"mean prediction of {target}")
    axes.legend()
