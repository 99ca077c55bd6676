"""The rows of a problem in working coordinates: weights absorbed, columns scaled, near-dependence removed.

A weighted sample is an unweighted one whose row, outcome and kink are multiplied by sqrt(w). With

    z_i = sqrt(w_i) [x_i, 1] T,   y'_i = sqrt(w_i) y_i / s,   coefficients = s T gamma,   max |y'_i| near 1,

the surrogate is s^2 times an unweighted surrogate in gamma. T scales the columns to unit length; only where
columns are nearly dependent it also whitens them, and drops the directions that are rounding noise. The
engines see nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from rectifit._typing import Index, Matrix, Selection, Vector
from rectifit.checks import row_blocks
from rectifit.problem import Problem
from rectifit.surrogate import bound

__all__ = ["WorkingRows"]

# Columns are whitened when a pivot of their correlation matrix falls below this.
WELL_CONDITIONED = 1e-6
# A Gram matrix shows nothing below this share of its largest eigenvalue: magnify, and look again.
RESOLVED = 1e-14
# A direction whose eigenvalue is below this after magnification is rounding noise.
NOISE = 1e-12


class WorkingRows:
    """Rows z_i and outcomes y'_i of a problem; nothing of the size of X is kept.

    Attributes
    ----------
    y : outcomes y'
    scale : s, a power of two, so that scaling back is exact
    T : (n_columns, n_directions), from working coordinates to coefficients over s, the intercept last
    largest : largest |sqrt(w_i) x_ij| of every column
    penalty : alpha for every coefficient, 0 for the intercept
    gram, cross, ridge : Z'Z, Z'y' and T' diag(penalty) T
    norms : length of every z_i
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.root_weight = None if problem.sample_weight is None else problem.root_weight
        weighted = problem.root_weight * problem.y
        top = float(np.abs(weighted).max())
        self.scale = 2.0 ** math.ceil(math.log2(top)) if top > 0.0 else 1.0
        self.y: Vector = weighted / self.scale
        self.penalty = np.full(self.n_columns, problem.alpha)
        self.penalty[problem.n_features :] = 0.0
        self.largest = self._largest()
        self._set_diagonal(1.0 / np.where(self.largest > 0.0, self.largest, 1.0))
        gram = self._gram()
        lengths = np.sqrt(np.diag(gram + self.ridge))
        shrink = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
        self._set_diagonal(np.diag(self.T) * shrink)
        self.gram = gram * np.outer(shrink, shrink)
        if self._smallest_pivot() < WELL_CONDITIONED:
            self._whiten()
        self.norms: Vector = np.empty(self.n_rows)
        self.cross: Vector = np.zeros(self.n_directions)
        self._measure_rows()

    @property
    def n_rows(self) -> int:
        return self.problem.n_samples

    @property
    def n_directions(self) -> int:
        return int(self.T.shape[1])

    @property
    def n_columns(self) -> int:
        """Coefficients, the intercept included."""
        return self.problem.n_features + int(self.problem.fit_intercept)

    def columns(self, select: Selection) -> Matrix:
        """The selected rows as given, with a column of ones for the intercept, in a new float64 array."""
        X = self._dense(select)
        A = np.empty((X.shape[0], self.n_columns))
        A[:, : X.shape[1]] = X
        A[:, X.shape[1] :] = 1.0
        return A

    def weighted_columns(self, select: Selection) -> Matrix:
        """The selected rows sqrt(w_i) [x_i, 1]."""
        A = self.columns(select)
        if self.root_weight is not None:
            A *= self.root_weight[select, None]
        return A

    def rows(self, select: Selection) -> Matrix:
        """The selected rows z_i, one per line, in a new array."""
        Z = self.weighted_columns(select)
        if self._diagonal is None:
            return Z @ self.T
        Z *= self._diagonal
        return Z

    def preactivation(self, gamma: Vector) -> Vector:
        """Z gamma, evaluated through the coefficients: one pass over X as it is."""
        b = self.T @ gamma
        p = self.problem.n_features
        u = self.problem.preactivation(b[:p], float(b[p:].sum()))
        return u if self.root_weight is None else u * self.root_weight

    def sweep(self, gamma: Vector, slope_of: Callable[[slice, Vector], Vector]) -> tuple[Vector, Vector]:
        """u = Z gamma and Z'slopes in one pass; slope_of gives the slopes of a block from its u."""
        b, p = self.T @ gamma, self.problem.n_features
        u = np.empty(self.n_rows)
        total = np.zeros(self.n_columns)
        for block in self._passes():
            X = self.problem.X[block].astype(np.float64, copy=False)
            u[block] = X @ b[:p]
            u[block] += b[p:].sum()
            if self.root_weight is not None:
                u[block] *= self.root_weight[block]
            slopes = slope_of(block, u[block])
            if self.root_weight is not None:
                slopes = slopes * self.root_weight[block]
            total[:p] += slopes @ X
            total[p:] += slopes.sum()
        return u, total @ self.T

    def gram_of(self, index: Index, sign: Vector | None = None) -> tuple[Matrix, Vector]:
        """Z'SZ and Z'Sy' over these rows, S the diagonal of their signs, block by block."""
        gram, cross = np.zeros((self.n_directions, self.n_directions)), np.zeros(self.n_directions)
        for block in row_blocks(index.size, self.n_columns):
            Z = self.rows(index[block])
            signed = Z if sign is None else Z * sign[block, None]
            gram += signed.T @ Z
            cross += self.y[index[block]] @ signed
        return gram, cross

    def allowance(
        self, value: float, gamma: Vector, columns: Vector, slopes: Vector, remainder: float
    ) -> float:
        """What the dual bound gives away at this point (see bound.py)."""
        extent, total = float(np.abs(columns) @ self.largest), float(np.abs(slopes).sum())
        size = float(np.linalg.norm(gamma))
        return bound.allowance(self.n_rows, value, self.n_directions, extent, total, remainder, size)

    def from_coefficients(self, beta: Vector, intercept: float) -> Vector:
        """Working coordinates whose coefficients are nearest to the given ones."""
        b = (np.append(beta, intercept) if self.problem.fit_intercept else beta) / self.scale
        if self._diagonal is not None:
            return b / self._diagonal
        return np.asarray(np.linalg.lstsq(self.T, b, rcond=None)[0])

    def _set_diagonal(self, diagonal: Vector) -> None:
        self._set_map(np.diag(diagonal), diagonal)

    def _set_map(self, T: Matrix, diagonal: Vector | None = None) -> None:
        self.T = T
        self._diagonal = diagonal
        penalised = np.sqrt(self.penalty)[:, None] * T
        self.ridge: Matrix = penalised.T @ penalised

    def _largest(self) -> Vector:
        largest = np.zeros(self.n_columns)
        for block in row_blocks(*self.problem.X.shape):
            np.maximum(largest, np.abs(self.weighted_columns(block)).max(axis=0), out=largest)
        return largest

    def _gram(self) -> Matrix:
        """Z'Z over all rows."""
        return self.gram_of(np.arange(self.n_rows))[0]

    def _measure_rows(self) -> None:
        """Fill in norms and cross."""
        for block in row_blocks(*self.problem.X.shape):
            Z = self.rows(block)
            self.norms[block] = np.sqrt(np.einsum("ij,ij->i", Z, Z))
            self.cross += self.y[block] @ Z

    def _dense(self, select: Selection) -> npt.NDArray[np.floating[Any]]:
        rows: npt.NDArray[np.floating[Any]] = self.problem.X[select]
        return rows

    def _passes(self) -> Iterable[slice]:
        """Blocks of rows for one pass over X."""
        return row_blocks(*self.problem.X.shape)

    def _smallest_pivot(self) -> float:
        try:
            return float(np.diag(np.linalg.cholesky(self.gram + self.ridge)).min() ** 2)
        except np.linalg.LinAlgError:
            return 0.0

    def _whiten(self) -> None:
        """Turn T until Z'Z + ridge is near the identity; in rounds, as a Gram matrix squares conditions."""
        for attempt in range(5):
            values, vectors = np.linalg.eigh(self.gram + self.ridge)
            if values[-1] <= 0.0:
                return
            keep = values > (NOISE * values[-1] if attempt > 0 else -np.inf)
            if attempt > 0 and keep.all() and values[0] > 0.1 * values[-1]:
                return
            stretch = 1.0 / np.sqrt(np.maximum(values[keep], RESOLVED * values[-1]))
            self._set_map(self.T @ (vectors[:, keep] * stretch))
            self.gram = self._gram()
