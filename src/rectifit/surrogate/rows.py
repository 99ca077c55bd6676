"""The rows of data in memory in working coordinates; nothing of the size of X is kept."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rectifit._typing import Index, Matrix, Selection, Vector
from rectifit.bounds import allowance, is_regular, solve_gram
from rectifit.checks import check_sizes, row_blocks
from rectifit.coordinates import Coordinates, column_unit, find_coordinates
from rectifit.data.problem import Problem
from rectifit.surrogate.walls import Walls, walls_of

__all__ = ["SparseRows", "WorkingRows", "working_rows"]

# T'(A'A)T keeps its digits while T magnifies no column by more than this.
MAX_MAGNIFICATION = 1e3


def working_rows(problem: Problem) -> WorkingRows:
    """The rows of a problem, dense or sparse."""
    return SparseRows(problem) if problem.data.is_sparse else WorkingRows(problem)


class WorkingRows:
    """Rows z_i and outcomes v_i of a problem (see `rectifit.coordinates`).

    Attributes
    ----------
    y : outcomes v
    largest : largest |sqrt(w_i) x_ij| of every column
    penalty : alpha for every coefficient, 0 for the intercept
    gram, cross, ridge : Z'Z, Z'v and T' diag(penalty) T
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.data = problem.loaded()
        self.root_weight = self.data.root_weight if problem.is_weighted else None
        self.scale = self.data.outcomes.scale
        self.y: Vector = self.data.weighted_y / self.scale
        self.penalty = problem.penalty
        self._arrange()

    def _arrange(self) -> None:
        """Find the working coordinates, and sums in them."""
        fit_intercept = self.problem.fit_intercept
        self.largest = self._largest()
        check_sizes(self.largest)
        unit = column_unit(self.largest)
        first = Coordinates.from_diagonal(unit, unit, self.scale, fit_intercept)
        self.coordinates, self.gram = find_coordinates(
            self.largest,
            self._gram(first),
            self.penalty,
            self.scale,
            fit_intercept,
            self._gram,
            keep_all=self.problem.constraints is not None,
        )
        self.ridge = self.coordinates.ridge(self.penalty)

    @cached_property
    def walls(self) -> Walls | None:
        """The constraints in working coordinates."""
        return walls_of(self.problem.constraints, self.coordinates)

    @property
    def n_multipliers(self) -> int:
        """Bounds of coefficients, and linear constraints, if there are any."""
        known = self.problem.constraints
        return 0 if known is None else known.low.size + len(known.A)

    @property
    def n_rows(self) -> int:
        return self.problem.n_samples

    @property
    def n_directions(self) -> int:
        return self.coordinates.n_directions

    @property
    def n_columns(self) -> int:
        """Coefficients, the intercept included."""
        return self.coordinates.n_columns

    @property
    def T(self) -> Matrix:  # noqa: N802
        """From working coordinates to coefficients over the scale."""
        return self.coordinates.T

    @cached_property
    def total(self) -> float:
        """sum v^2."""
        return float(self.y @ self.y)

    @cached_property
    def norms(self) -> Vector:
        """Length of every z_i."""
        norms = np.empty(self.n_rows)
        for block in self._passes():
            Z = self.rows(block)
            norms[block] = np.sqrt(np.einsum("ij,ij->i", Z, Z))
        return norms

    @cached_property
    def cross(self) -> Vector:
        """Z'v."""
        weighted = self.y if self.root_weight is None else self.y * self.root_weight
        b = np.append(self.data.transposed_product(weighted), weighted.sum())
        return np.asarray(b[: self.n_columns] @ self.T)

    def least_squares(self) -> Vector:
        """The linear least-squares fit, ridge included."""
        return solve_gram(self.gram + self.ridge, self.cross)

    def columns(self, select: Selection) -> Matrix:
        """The selected rows as given, with a column of ones for the intercept, in a new float64 array."""
        X = self.data.dense(select)
        p = X.shape[1]
        A = np.empty((X.shape[0], p + int(self.problem.fit_intercept)))
        A[:, :p] = X
        A[:, p:] = 1.0
        return A

    def weighted_columns(self, select: Selection) -> Matrix:
        """The selected rows sqrt(w_i) [x_i, 1]."""
        A = self.columns(select)
        if self.root_weight is not None:
            A *= self.root_weight[select, None]
        return A

    def rows(self, select: Selection, coordinates: Coordinates | None = None) -> Matrix:
        """The selected rows z_i, one per line, in a new array."""
        coordinates = coordinates or self.coordinates
        if self.root_weight is None or coordinates.diagonal is not None:
            return np.asarray(coordinates.rows(self.weighted_columns(select)))
        # T would magnify the rounding of a product with a root: before it is a power of two, which is exact.
        share, exponent = np.frexp(self.root_weight[select, None])
        return np.asarray(coordinates.rows(np.ldexp(self.columns(select), exponent - 1)) * (2.0 * share))

    def are_determined_by(self, u: Vector) -> bool:
        """Whether the rows with weight and u > 0 determine the coefficients, far from singular."""
        on = u > 0.0 if self.root_weight is None else (u > 0.0) & (self.root_weight > 0.0)
        A = self.weighted_columns(np.flatnonzero(on)) * column_unit(self.largest)
        return len(A) >= self.n_columns and is_regular(A.T @ A)

    def preactivation(self, gamma: Vector) -> Vector:
        """Z gamma, evaluated through the coefficients: one product with X as it is."""
        return self.weighted_preactivation(self.T @ gamma)

    def weighted_preactivation(self, b: Vector) -> Vector:
        """sqrt(w) (X beta + intercept) for coefficients with the intercept last."""
        p = self.problem.n_features
        u = self.data.preactivation(b[:p], float(b[p:].sum()))
        return u if self.root_weight is None else u * self.root_weight

    def gram_of(
        self, index: Index, sign: Vector | None = None, coordinates: Coordinates | None = None
    ) -> tuple[Matrix, Vector]:
        """Z'SZ and Z'Sv over these rows, S the diagonal of their signs, block by block."""
        coordinates = coordinates or self.coordinates
        q = coordinates.n_directions
        gram, cross = np.zeros((q, q)), np.zeros(q)
        for block in row_blocks(index.size, coordinates.n_columns):
            Z = self.rows(index[block], coordinates)
            signed = Z if sign is None else Z * sign[block, None]
            gram += signed.T @ Z
            cross += self.y[index[block]] @ signed
        return gram, cross

    def allowance(
        self, value: float, gamma: Vector, columns: Vector, slopes: Vector, remainder: float
    ) -> float:
        """What the dual bound gives up for rounding at this point (see `rectifit.bounds`)."""
        extent, total = float(np.abs(columns) @ self.largest), float(np.abs(slopes).sum())
        size = float(np.linalg.norm(gamma))
        return float(allowance(self.n_rows, value, self.n_directions, extent, total, remainder, size))

    def _gram(self, coordinates: Coordinates) -> Matrix:
        """Z'Z over all rows."""
        return self.gram_of(np.arange(self.n_rows), None, coordinates)[0]

    def _largest(self) -> Vector:
        largest = np.zeros(self.problem.n_columns)
        for block in self._passes():
            np.maximum(largest, np.abs(self.weighted_columns(block)).max(axis=0), out=largest)
        return largest

    def _passes(self) -> list[slice]:
        """Blocks of rows for one pass over X."""
        return list(row_blocks(self.n_rows, self.problem.n_features))


class SparseRows(WorkingRows):
    """Keeps the rows sqrt(w_i) [x_i, 1] as CSR, columns of size 1; only rows asked for become dense."""

    def __init__(self, problem: Problem) -> None:
        from scipy.sparse import diags_array, hstack

        A = problem.X
        if problem.fit_intercept:
            A = hstack([A, np.ones((problem.n_samples, 1))], format="csr")
        if problem.is_weighted:
            A = diags_array(problem.root_weight) @ A
        maxima = np.asarray(abs(A).max(axis=0).toarray(), dtype=np.float64).ravel()
        self._maxima = np.where(maxima > 0.0, maxima, 1.0)
        self._A = (A @ diags_array(1.0 / self._maxima)).tocsr()
        self._lengths = np.sqrt(self._A.power(2).sum(axis=0))
        super().__init__(problem)

    def gram_of(
        self, index: Index, sign: Vector | None = None, coordinates: Coordinates | None = None
    ) -> tuple[Matrix, Vector]:
        """Z'SZ and Z'Sv over these rows, from A'SA while that is exact enough."""
        coordinates = coordinates or self.coordinates
        T = coordinates.T * self._maxima[:, None]
        if float(np.abs(T * self._lengths[:, None]).max()) > MAX_MAGNIFICATION:
            return super().gram_of(index, sign, coordinates)
        A = self._A if index.size == self.n_rows else self._A[index]
        signed = A if sign is None else A.multiply(sign[:, None]).tocsr()
        return T.T @ (signed.T @ A).toarray() @ T, (self.y[index] @ signed) @ T

    @cached_property
    def norms(self) -> Vector:
        """Length of every z_i."""
        diagonal = self.coordinates.diagonal
        if diagonal is None:
            return np.concatenate([np.linalg.norm(self.rows(block), axis=1) for block in self._passes()])
        return np.asarray(np.sqrt(self._A.power(2) @ np.square(self._maxima * diagonal)))

    def _largest(self) -> Vector:
        return np.asarray(self._maxima * (self._lengths > 0.0))
