"""R^2 of a fit on data in blocks, by one pass."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from rectifit._typing import Vector
from rectifit.scale.blocks import Block

__all__ = ["Deviations", "ScoreTask"]


@dataclass(frozen=True)
class Deviations:
    """Sums over some rows; those of two parts of the data make those of both.

    Attributes
    ----------
    n_rows, weight : number of rows and sum of weights
    mean : weighted mean of y
    spread : sum w (y - mean)^2
    residual : sum w (fit - y)^2

    Examples
    --------
    >>> parts = Deviations(1, 1.0, 3.0, 0.0, 0.5), Deviations(1, 1.0, 5.0, 0.0, 0.5)
    >>> both = parts[0].merge(parts[1])
    >>> both.mean, both.spread, both.r2()
    (4.0, 2.0, 0.5)
    """

    n_rows: int
    weight: float
    mean: float
    spread: float
    residual: float

    def merge(self, other: Deviations) -> Deviations:
        """The sums over the rows of both."""
        weight = self.weight + other.weight
        share = other.weight / weight if weight > 0.0 else 0.0
        step = other.mean - self.mean
        return Deviations(
            self.n_rows + other.n_rows,
            weight,
            self.mean + share * step,
            self.spread + other.spread + share * self.weight * step**2,
            self.residual + other.residual,
        )

    def r2(self) -> float:
        """1 - residual / spread; where y is constant, 1 if it is met and 0 if not, as in scikit-learn."""
        if not np.isfinite([self.weight, self.spread, self.residual]).all():
            raise ValueError("X, y or sample_weight contains NaN or an infinite value; all must be finite")
        if self.n_rows < 2:
            from sklearn.exceptions import UndefinedMetricWarning

            text = "R^2 score is not well-defined with less than two samples."
            warnings.warn(text, UndefinedMetricWarning, stacklevel=3)
            return float("nan")
        if self.spread == 0.0:
            return float(self.residual == 0.0)
        return 1.0 - self.residual / self.spread


@dataclass(frozen=True)
class ScoreTask:
    """The deviations of outcomes from their mean, and from max(floor, X beta + intercept)."""

    beta: Vector
    intercept: float
    floor: float

    def __call__(self, block: Block) -> Deviations:
        total = Deviations(0, 0.0, 0.0, 0.0, 0.0)
        for piece in block.pieces():
            y = piece.lift(piece.y)
            w = piece.xp.ones_like(y) if piece.w is None else piece.lift(piece.w)
            u = piece.lift(piece.X) @ piece.lift(self.beta) + self.intercept
            residual = float(w @ piece.xp.square(u.clip(min=self.floor) - y))
            weight = float(w.sum())
            mean = float(w @ y) / weight if weight > 0.0 else 0.0
            spread = float(w @ piece.xp.square(y - mean))
            total = total.merge(Deviations(piece.n_rows, weight, mean, spread, residual))
        return total
