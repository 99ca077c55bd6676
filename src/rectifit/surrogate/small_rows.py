"""Rows of small data: all of them are kept in working coordinates, in float64."""

from __future__ import annotations

import numpy as np

from rectifit._typing import Vector
from rectifit.coordinates import Coordinates, column_unit, whiten
from rectifit.surrogate.records import PlacedRows
from rectifit.surrogate.rows import WorkingRows
from rectifit.surrogate.rows_kernel import are_determined, place_rows

__all__ = ["SmallRows"]


class SmallRows(WorkingRows):
    """The same rows and sums, made in a few calls; a sparse X becomes dense.

    Attributes
    ----------
    At : the columns of X and one for the intercept, one per line
    Z, Zt, norms : the rows z_i, their columns, and their lengths
    """

    def _arrange(self) -> None:
        problem, p = self.problem, self.problem.n_features
        n, q = problem.n_samples, problem.n_columns
        self.At = np.empty((q, n))
        self.At[:p] = self.data.dense().T
        self.At[p:] = 1.0
        columns = self.At if self.root_weight is None else self.At * self.root_weight
        self.largest = np.abs(columns).max(axis=1)
        unit = column_unit(self.largest)
        self.Zt = columns * unit[:, None]
        self.gram = self.Zt @ self.Zt.T
        self.Z, self.ridge, diagonal = np.empty((n, q)), np.empty((q, q)), np.empty(q)
        # A cached property that is known already.
        self.norms = np.empty(n)
        is_regular = place_rows(
            unit,
            self.penalty,
            self.gram,
            tuple(PlacedRows(self.Z, self.Zt, self.norms, diagonal, self.ridge)),
        )
        self.coordinates = Coordinates.from_diagonal(diagonal, unit, self.scale, problem.fit_intercept)
        if not is_regular:
            self._whiten()

    def are_determined_by(self, u: Vector) -> bool:
        """Whether the rows with u > 0 determine the coefficients, far from singular."""
        return self.n_directions == self.n_columns and bool(are_determined(self.Zt, np.ascontiguousarray(u)))

    def _whiten(self) -> None:
        """The general case, in which T is no diagonal matrix."""
        self.coordinates, self.gram = whiten(self.coordinates, self.gram, self.penalty, self._gram)
        self.ridge = self.coordinates.ridge(self.penalty)
        self.Z = self.rows(slice(None))
        self.Zt = np.ascontiguousarray(self.Z.T)
        self.norms = np.sqrt(np.einsum("ij,ij->i", self.Z, self.Z))
