"""The rows of the data against the fit, and what is left over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rectifit._typing import Mask, Vector
from rectifit.checks import check_count
from rectifit.fit import fit_of
from rectifit.inference.sums import data_of
from rectifit.plotting import AMBER, BLUE, GREY, VERMILION, open_axes

__all__ = ["FittedRows", "fit", "residuals"]

# Scatter plots show a random sample of larger data, always the same.
MAX_ROWS = 4000
N_BINS = 40
DOTS: Any = {"s": 9, "alpha": 0.35, "linewidths": 0}


@dataclass(frozen=True, eq=False)
class FittedRows:
    """Rows to be drawn, those with weight.

    Attributes
    ----------
    linear : linear part of the fit, X beta + intercept
    y : outcomes
    floor : the predictions are max(floor, linear)
    target : name of the outcome
    n_rows : number of rows of the data, of which these may be a random sample
    """

    linear: Vector
    y: Vector
    floor: float
    target: str
    n_rows: int

    @classmethod
    def of(cls, fitted: Any, *, target: str | None = None, max_rows: int = MAX_ROWS) -> FittedRows:
        """Of a fit with its data.

        Parameters
        ----------
        fitted : Solution or fitted estimator
        target : str, optional
            Name of the outcome. Default: that of the data, else y.
        max_rows : int, default=4000
            Of more rows, so many are drawn at random, always the same.
        """
        solution, max_rows = fit_of(fitted), check_count(max_rows, "max_rows")
        data = data_of(solution)
        drawn = data.sampled(max_rows)
        rows = np.flatnonzero(drawn.root_weight)
        if rows.size > max_rows:
            rows = np.sort(np.random.default_rng(0).choice(rows, max_rows, replace=False))
        linear = drawn.preactivation(solution.beta, solution.intercept)
        name = target or solution.target or "y"
        return cls(linear[rows], drawn.y[rows], solution.floor, name, data.n_samples)

    @property
    def predicted(self) -> Vector:
        """Predictions."""
        return np.maximum(self.linear, self.floor)

    @property
    def residuals(self) -> Vector:
        """Observed - predicted."""
        return self.y - self.predicted

    @property
    def is_above(self) -> Mask:
        """Whether the prediction is above the floor."""
        return self.linear > self.floor


def fit(
    fitted: Any,
    *,
    against: str = "linear part",
    target: str | None = None,
    max_rows: int = MAX_ROWS,
    ax: Any = None,
) -> Any:
    """Observed outcomes against the fit, one dot per row, with a line where the predictions are.

    Parameters
    ----------
    fitted : Solution, fitted estimator or FittedRows
    against : {"linear part", "prediction"}
        Against the linear part X beta + intercept, where the predictions form the hinge max(floor, linear
        part), or against the predictions themselves.
    target, max_rows : as for `FittedRows.of`
    ax : matplotlib Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from rectifit import plot, solve
    >>> solution = solve([[-1.0], [0.0], [1.0], [2.0]], [0.0, 0.0, 3.0, 6.0])
    >>> plot.fit(solution, target="sales", ax=Figure().subplots()).get_ylabel()
    'sales'
    """
    if against not in ("linear part", "prediction"):
        raise ValueError(f"against is {against!r}; it must be 'linear part' or 'prediction'")
    rows = _read_rows(fitted, target, max_rows)
    with open_axes(ax) as axes:
        if against == "linear part":
            x, label = rows.linear, "linear part of the fit"
            low, high = _widen(rows.linear)
            line = np.unique(np.clip([low, rows.floor, high], low, high))
            axes.axvline(rows.floor, color=GREY, linewidth=1.0, linestyle="--", label="floor")
        else:
            x, label = rows.predicted, f"predicted {rows.target}"
            line = np.array([x.min(), x.max()])
        axes.scatter(x, rows.y, color=BLUE, label="observed", **DOTS)
        axes.plot(line, np.maximum(line, rows.floor), color=VERMILION, linewidth=2.0, label="predicted")
        axes.set(xlabel=label, ylabel=rows.target)
        axes.legend(loc="upper left")
    return axes


def residuals(
    fitted: Any,
    *,
    kind: str = "scatter",
    target: str | None = None,
    max_rows: int = MAX_ROWS,
    ax: Any = None,
) -> Any:
    """Residuals, observed - predicted, of rows predicted above the floor and of those predicted at it.

    Parameters
    ----------
    fitted : Solution, fitted estimator or FittedRows
    kind : {"scatter", "histogram"}
        Against the predictions, or how many rows have which residual.
    target, max_rows : as for `FittedRows.of`
    ax : matplotlib Axes, optional
        Where to draw. Default: a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from rectifit import plot, solve
    >>> solution = solve([[-1.0], [0.0], [1.0], [2.0]], [0.0, 0.5, 3.0, 6.0])
    >>> plot.residuals(solution, ax=Figure().subplots()).get_xlabel()
    'predicted y'
    """
    if kind not in ("scatter", "histogram"):
        raise ValueError(f"kind is {kind!r}; it must be 'scatter' or 'histogram'")
    rows = _read_rows(fitted, target, max_rows)
    sides = (
        (rows.is_above, "predicted above the floor", BLUE),
        (~rows.is_above, "predicted at the floor", AMBER),
    )
    bins = np.histogram_bin_edges(rows.residuals, bins=N_BINS)
    with open_axes(ax) as axes:
        for side, label, colour in sides:
            if not side.any():
                continue
            if kind == "scatter":
                axes.scatter(rows.predicted[side], rows.residuals[side], color=colour, label=label, **DOTS)
            else:
                axes.hist(rows.residuals[side], bins=bins, color=colour, alpha=0.55, label=label)
        if kind == "scatter":
            axes.axhline(0.0, color=VERMILION, linewidth=1.4)
            axes.set(xlabel=f"predicted {rows.target}", ylabel="residual")
        else:
            axes.set(xlabel=f"residual of {rows.target}", ylabel="rows")
        axes.legend()
    return axes


def _read_rows(fitted: Any, target: str | None, max_rows: int) -> FittedRows:
    if isinstance(fitted, FittedRows):
        return fitted
    return FittedRows.of(fitted, target=target, max_rows=max_rows)


def _widen(x: Vector) -> tuple[float, float]:
    """The range of numbers, a little wider."""
    low, high = float(x.min()), float(x.max())
    pad = 0.03 * max(high - low, 1e-12)
    return low - pad, high + pad
