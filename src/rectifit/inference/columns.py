"""E[y | x] with one column set to a value: sums over rows, the same for every kind of data.

With x_j = v in every row, u_i(v) = u_i + (v - x_ij) beta_j. The mean over the rows, with their weights, is

    M_j(v) = sum_i w_i max(f, u_i(v)) / sum_i w_i,

whose derivatives are those of the rows above the floor: in beta the mean of their x with x_j = v, in the
intercept their share, and in the floor that of all others. The floor is 0 in the sums, as in `sums`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rectifit._typing import Mask, Matrix, Vector
from rectifit.data.blocks import Block, Total
from rectifit.fit import Fit
from rectifit.inference.sums import FitMoments, RowTask, Setting, list_estimates

__all__ = ["SETTERS", "ColumnSums", "delta_errors", "find_column", "read_columns"]


@dataclass(frozen=True, eq=False)
class ColumnSums:
    """Columns of X over the rows that have weight.

    Attributes
    ----------
    low, high : least and largest value
    n_others : number of values that are neither 0 nor 1
    """

    low: Vector
    high: Vector
    n_others: Vector

    def merge(self, other: ColumnSums) -> ColumnSums:
        """The columns of both parts of the data."""
        return ColumnSums(
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.n_others + other.n_others,
        )

    @property
    def is_dummy(self) -> Mask:
        """Columns of zeros and ones, with some of either."""
        return np.asarray((self.n_others == 0) & (self.low == 0.0) & (self.high == 1.0))


def read_columns(moments: FitMoments) -> ColumnSums:
    """Extents of the columns."""
    columns: ColumnSums = moments.reduce("columns", _ColumnsTask(moments.line))
    return columns


def set_in_rows(solution: Fit, moments: FitMoments, settings: Sequence[Setting]) -> tuple[Vector, Matrix]:
    """M_j(v) for every setting, and its derivatives in all estimates, one line each."""
    new = [setting for setting in settings if setting not in moments.settings]
    found = dict(moments.settings)
    if new:
        task = _SettingsTask(moments.line, tuple(new))
        found |= zip(new, moments.reduce(None, task).value, strict=True)
        # Those of columns of zeros and ones are few, and effects need them without the data.
        moments.settings.update((setting, found[setting]) for setting in new if setting[1] in (0.0, 1.0))
    sums = np.array([found[setting] for setting in settings])
    sums = sums / (moments.above.weight + moments.below.weight)
    return _with_floor(solution, sums[:, 0], sums[:, 1:-1], sums[:, -1])


def set_at_means(solution: Fit, moments: FitMoments, settings: Sequence[Setting]) -> tuple[Vector, Matrix]:
    """The same at the means of the columns instead of averaged over the rows."""
    rows = np.tile(moments.means, (len(settings), 1))
    for row, (j, value) in zip(rows, settings, strict=True):
        row[j] = value
    u = rows @ solution.beta + moments.line.intercept
    above = (u > moments.line.zero).astype(np.float64)
    return _with_floor(solution, u * above, rows * above[:, None], above)


def _with_floor(solution: Fit, means: Vector, slopes: Matrix, above: Vector) -> tuple[Vector, Matrix]:
    return means + solution.floor, np.column_stack(list_estimates(solution, slopes.T, above, 1.0 - above))


# Means over the rows, or at the means of the other columns.
SETTERS = {"average": set_in_rows, "means": set_at_means}


def delta_errors(slopes: Matrix, covariance: Matrix) -> Vector:
    """Standard errors of functions of the estimates from their derivatives, one line each."""
    variance = np.einsum("jk,kl,jl->j", slopes, covariance, slopes)
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def find_column(feature: Any, names: Sequence[str], argument: str = "feature") -> int:
    """The number of a column that an argument gives by its name or number."""
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(f"{argument} is {feature!r}; it must be one of {', '.join(names)}")
        return list(names).index(feature)
    if isinstance(feature, bool) or not isinstance(feature, int | np.integer):
        raise TypeError(f"{argument} is {feature!r}; it must be the name or the number of a column")
    if not 0 <= feature < len(names):
        raise ValueError(f"{argument} is {feature}; it must be a column from 0 to {len(names) - 1}")
    return int(feature)


@dataclass(frozen=True)
class _ColumnsTask(RowTask):
    def of_piece(self, piece: Block) -> ColumnSums:
        xp = piece.xp
        X, _, _, w = self.line.at(piece)
        weighted = (w > 0.0)[:, None]
        return ColumnSums(
            piece.to_numpy(xp.min(xp.where(weighted, X, np.inf), axis=0)),
            piece.to_numpy(xp.max(xp.where(weighted, X, -np.inf), axis=0)),
            piece.to_numpy(xp.sum(weighted & (X != 0.0) & (X != 1.0), axis=0)),
        )


@dataclass(frozen=True)
class _SettingsTask(RowTask):
    settings: tuple[Setting, ...]

    def of_piece(self, piece: Block) -> Total:
        X, u, _, w = self.line.at(piece)
        return Total(np.array([self._sum(piece, X, u, w, *setting) for setting in self.settings]))

    def _sum(self, piece: Block, X: Any, u: Any, w: Any, j: int, value: float) -> Vector:
        """Sums over the rows above the floor: of u, of the rows themselves, and of the weights."""
        moved = u + (value - X[:, j]) * float(self.line.beta[j])
        share = w * (moved > self.line.zero)
        mass = float(share @ piece.xp.ones_like(u))
        row = piece.to_numpy(share @ X)
        row[j] = value * mass
        return np.array([float(share @ moved), *row, mass])
