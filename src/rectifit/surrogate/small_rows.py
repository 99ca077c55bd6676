"""Rows of small data: all of them are kept in working coordinates, in float64."""

from __future__ import annotations

import numpy as np

from rectifit._typing import Vector
from rectifit.checks import check_sizes
from rectifit.coordinates import Coordinates, whiten
from rectifit.surrogate.records import PlacedRows
from rectifit.surrogate.rows import WorkingRows
from rectifit.surrogate.rows_kernel import are_determined, place_rows, scale_columns

__all__ = ["SmallRows"]


class SmallRows(WorkingRows):
    """The same rows and sums, made in a few calls; a sparse X becomes dense.

    Attributes
    ----------
    At : the columns of X and one for the intercept, one per line
    Z, Zt, norms : the rows z_i, their columns, and their lengths
    start : u at the least-squares fit
    """

    def _arrange(self) -> None:
        n, p, q = self.data.n_samples, self.data.n_features, self.penalty.size
        self.At = np.empty((q, n))
        self.At[:p] = self.data.dense().T
        self.At[p:] = 1.0
        self.largest, unit = np.empty(q), np.empty(q)
        placed = PlacedRows(
            np.empty((n, q)),
            np.empty((q, n)),
            np.empty(n),
            np.empty((q, q)),
            np.empty(q),
            np.empty((q, q)),
            np.empty(q),
            np.empty(n),
        )
        scale_columns(self.At, self.data.root_weight, self.largest, unit, placed.Zt)
        check_sizes(self.largest)
        self.gram = placed.Zt @ placed.Zt.T
        is_regular = place_rows(self.y, unit, self.penalty, self.gram, tuple(placed))
        self.coordinates = Coordinates(
            placed.T, placed.diagonal, unit, self.scale, self.problem.fit_intercept
        )
        if is_regular:
            # The norms are a cached property that is known already.
            self.Z, self.Zt, self.norms, _, _, self.ridge, self._fit, self.start = placed
        else:
            self._whiten()

    def least_squares(self) -> Vector:
        """The linear least-squares fit, ridge included."""
        return self._fit

    def are_determined_by(self, u: Vector) -> bool:
        """Whether the rows with u > 0 determine the coefficients, far from singular."""
        n_columns, n_directions = self.T.shape
        return n_directions == n_columns and bool(are_determined(self.Zt, np.ascontiguousarray(u)))

    def _whiten(self) -> None:
        """The general case, in which T is no diagonal matrix."""
        self.coordinates, self.gram = whiten(
            self.coordinates, self.gram, self.penalty, self._gram, self.problem.constraints is not None
        )
        self.ridge = self.coordinates.ridge(self.penalty)
        self.Z = self.rows(slice(None))
        self.Zt = np.ascontiguousarray(self.Z.T)
        self._fit = super().least_squares()
        self.start = self.Z @ self._fit
