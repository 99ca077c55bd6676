"""Tasks of passes that need no working coordinates: sums over outcomes, losses, R^2."""

from __future__ import annotations

import math
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from rectifit import pieces
from rectifit._typing import Vector
from rectifit.active import ActiveSet
from rectifit.data.blocks import Block, Total, merge_all
from rectifit.data.prediction import relu
from rectifit.tolerances import FLOAT64_EPS

__all__ = [
    "Deviations",
    "LossTask",
    "OutcomeSums",
    "OutcomeTask",
    "ScoreTask",
    "SizeTask",
    "check_block",
    "rounding_of_terms",
]

# Least and largest sum w y^2: a smaller one has lost digits, and surrogates may be some times larger.
MIN_SQUARES = sys.float_info.min
MAX_SQUARES = 1e304


@dataclass(frozen=True)
class OutcomeSums:
    """Counts, and sums over v = sqrt(w) y.

    Attributes
    ----------
    n_rows, n_weighted, n_positive : rows, those with weight, and those with weight and y > 0
    top : largest |v|
    total, fixed : sums of v^2 over all rows, and over y <= 0, in units of top^2
    """

    n_rows: int
    n_weighted: int
    n_positive: int
    top: float
    total: float
    fixed: float

    def merge(self, other: OutcomeSums) -> OutcomeSums:
        """Both, in the units of the larger."""
        top = max(self.top, other.top)
        shares = [(part.top / top) ** 2 if top > 0.0 else 0.0 for part in (self, other)]
        return OutcomeSums(
            self.n_rows + other.n_rows,
            self.n_weighted + other.n_weighted,
            self.n_positive + other.n_positive,
            top,
            self.total * shares[0] + other.total * shares[1],
            self.fixed * shares[0] + other.fixed * shares[1],
        )

    def checked(self) -> OutcomeSums:
        """The same, if squares of outcomes are numbers that a computer can tell apart."""
        with np.errstate(over="ignore", under="ignore"):
            total = float(np.float64(self.total) * self.top * self.top)
        if self.top > 0.0 and not MIN_SQUARES <= total <= MAX_SQUARES:
            size, advice = ("large", "divide") if total > 1.0 else ("small", "multiply")
            raise ValueError(
                f"y and sample_weight are too {size}: sum w y^2 is {total:.3g}; it must be between "
                f"{MIN_SQUARES:.3g} and {MAX_SQUARES:.3g}: {advice} y by a constant"
            )
        return self

    @property
    def scale(self) -> float:
        """A power of two near the largest |v|."""
        return 2.0 ** math.ceil(math.log2(self.top)) if self.top > 0.0 else 1.0

    @property
    def n_inactive(self) -> int:
        """Rows that no active set has: those with y <= 0 or without weight."""
        return self.n_rows - self.n_positive

    @property
    def null_objective(self) -> float:
        """sum w y^2, the objective of the zero function."""
        return self.total * self.top * self.top

    @property
    def fixed_objective(self) -> float:
        """sum w y^2 over y <= 0, which every fit costs at least."""
        return self.fixed * self.top * self.top


@dataclass(frozen=True)
class OutcomeTask:
    """Check outcomes and weights, and sum them up."""

    def __call__(self, block: Block) -> OutcomeSums:
        """The sums over a block."""
        xp = block.xp
        if block.w is not None:
            check_block(block.w, "sample_weight", xp)
            if not bool(xp.all(block.w >= 0.0)):
                raise ValueError("sample_weight has a negative entry; weights must be non-negative")
        v = block.outcomes()
        top = float(xp.max(xp.abs(v)))
        if not np.isfinite(top):
            check_block(block.y, "y", xp)
        v = v * (1.0 / top) if top > 0.0 else v
        weighted = v == v if block.w is None else block.w > 0.0
        squares = v * v
        return OutcomeSums(
            block.n_rows,
            int(xp.sum(weighted)),
            int(xp.sum((v > 0.0) & weighted)),
            top,
            float(xp.sum(squares)),
            float(xp.sum(squares[v <= 0.0])),
        )


def check_block(values: Any, name: str, xp: Any) -> None:
    """Refuse NaN and infinities."""
    if not bool(xp.all(xp.isfinite(values))):
        found = "NaN" if bool(xp.any(xp.isnan(values))) else "an infinite value"
        raise ValueError(f"{name} contains {found}; all entries must be finite")


def rounding_of_terms(n_features: int, size: Any) -> Any:
    """By how much u may be off, a sum of so many products and an intercept: from the size of its terms."""
    return (n_features + 4) * FLOAT64_EPS * size


@dataclass(frozen=True)
class LossTask:
    """The sum of (u - v)^2 where a sample is on its quadratic and v^2 elsewhere, over scale^2.

    Without an active set it is the true loss, with one the surrogate's. u and v are multiplied by sqrt(w).
    """

    beta: Vector
    intercept: float
    scale: float
    active: ActiveSet | None = None

    def __call__(self, block: Block) -> Total:
        """The sum over a block."""
        space = block.workspace()
        return merge_all(Total(self._sum(piece, space)) for piece in block.pieces())

    def _sum(self, piece: Block, space: Any) -> float:
        u = piece.preactivation(self.beta, self.intercept, space)
        u *= 1.0 / self.scale
        v = piece.outcomes() * (1.0 / self.scale)
        if self.active is None:
            right = u > 0.0
        else:
            right = (u > pieces.inactive_kink(v)) | self.active.mark(piece, v, self.scale)
        r = u * right - v
        return float(r @ r)


@dataclass(frozen=True)
class SizeTask:
    """The sum of w (sum_j |x_j beta_j| + |intercept|)^2, over scale^2: the size of the terms of u.

    Rows whose sqrt(w) u is below -reach times scale, whatever its rounding, are left out.
    """

    beta: Vector
    intercept: float
    scale: float
    reach: float

    def __call__(self, block: Block) -> Total:
        """The sum over a block."""
        space = block.workspace()
        return merge_all(Total(self._sum(piece, space)) for piece in block.pieces())

    def _sum(self, piece: Block, space: Any) -> float:
        sizes = piece.xp.abs(piece.matrix(space)) @ piece.to_float64(np.abs(self.beta) / self.scale)
        sizes += abs(self.intercept) / self.scale * piece.root_weight
        if math.isfinite(self.reach):
            u = piece.preactivation(self.beta / self.scale, self.intercept / self.scale, space)
            sizes *= u + rounding_of_terms(self.beta.size, sizes) >= -self.reach
        return float(sizes @ sizes)


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
        """1 - residual / spread; for constant y, 1 if it is met and 0 if not, as in scikit-learn."""
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
        """The sums over a block."""
        return merge_all(map(self._sum, block.pieces()))

    def _sum(self, piece: Block) -> Deviations:
        xp, y = piece.xp, piece.to_float64(piece.y)
        w = xp.ones_like(y) if piece.w is None else piece.to_float64(piece.w)
        fit = relu(piece.to_float64(piece.X), piece.to_float64(self.beta), self.intercept, self.floor, xp)
        weight = float(xp.sum(w))
        mean = float(w @ y) / weight if weight > 0.0 else 0.0
        spread, residual = float(w @ xp.square(y - mean)), float(w @ xp.square(fit - y))
        return Deviations(piece.n_rows, weight, mean, spread, residual)
