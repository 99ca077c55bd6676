"""Working coordinates: weights absorbed, columns scaled, near-dependence removed.

A weighted sample is an unweighted one whose row, outcome and kink are multiplied by sqrt(w). With

    z_i = sqrt(w_i) [x_i, 1] T,   v_i = sqrt(w_i) y_i / s,   coefficients = s T gamma,   max |v_i| near 1,

the surrogate is s^2 times an unweighted surrogate in gamma. T scales the columns to unit length. Where
columns are nearly dependent, T also whitens them and drops the directions that are rounding noise. Engines
see rows z and outcomes v, and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.tolerances import GRAM_RANK_TOL, GRAM_RESOLUTION, WHITENING_PIVOT

__all__ = [
    "Coordinates",
    "column_ridge",
    "column_shrinkage",
    "column_unit",
    "find_coordinates",
    "smallest_pivot",
    "whiten",
]

# Columns longer than this, or shorter than one over it, are scaled before anything is squared.
TAME = 1e100
MAX_WHITENINGS = 5


@dataclass(frozen=True)
class Coordinates:
    """The map between coefficients and working coordinates: small, and sent along with every task.

    Attributes
    ----------
    T : (n_columns, n_directions), from working coordinates to coefficients over `scale`, the intercept last
    diagonal : the diagonal of T where it is a diagonal matrix
    unit : one over the largest entry of every column
    scale : s, a power of two, so that scaling back is exact
    """

    T: Matrix
    diagonal: Vector | None
    unit: Vector
    scale: float
    fit_intercept: bool

    @classmethod
    def from_diagonal(cls, diagonal: Vector, unit: Vector, scale: float, fit_intercept: bool) -> Coordinates:
        """Coordinates that scale every column by itself."""
        return cls(np.diag(diagonal), diagonal, unit, scale, fit_intercept)

    def __getstate__(self) -> dict[str, Any]:
        # The diagonal is all that a diagonal matrix needs to travel.
        return self.__dict__ if self.diagonal is None else self.__dict__ | {"T": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        T = state["T"] if state["diagonal"] is None else np.diag(state["diagonal"])
        self.__dict__.update(state | {"T": T})

    @property
    def n_columns(self) -> int:
        """Coefficients, the intercept included."""
        return int(self.T.shape[0])

    @property
    def n_directions(self) -> int:
        return int(self.T.shape[1])

    @cached_property
    def is_tame(self) -> bool:
        """Whether columns are only scaled, and their squares are finite without that too."""
        return self.diagonal is not None and bool(
            (self.diagonal > 1.0 / TAME).all() and (self.diagonal < TAME).all()
        )

    @cached_property
    def _split(self) -> tuple[Vector, float, Matrix, Matrix, Matrix]:
        """Column scales, a number of steps, T in these scales, and the parts of that."""
        shrink = np.exp2(np.floor(np.log2(self.unit)))
        T = self.T / shrink[:, None]
        steps = 2.0 ** ((53 - math.ceil(math.log2(max(self.n_columns, 1)))) // 2)
        tops = np.abs(T).max(axis=0, initial=0.0)
        grid = np.exp2(np.ceil(np.log2(np.where(tops > 0.0, tops, 1.0)))) / steps
        coarse = np.rint(T / grid) * grid
        return shrink, steps, T, coarse, T - coarse

    def rows(self, columns: Any, xp: Any = np, asarray: Callable[[Any], Any] = np.asarray) -> Any:
        """Rows z from rows sqrt(w) [x, 1], of which no entry exceeds the largest of its column.

        Where T magnifies, the terms of z = a'T are much larger than z, and in a plain product their rounding
        would be an error of the rows, for which no bound accounts. So A and T are split into parts with so
        few digits that the product of the first parts, in which large terms cancel, is exact.
        """
        if self.diagonal is not None:
            return columns * asarray(self.diagonal)
        shrink, steps, T, coarse, fine = self._split
        A = columns * asarray(shrink)
        first = xp.round(A * steps) / steps
        rest = first @ asarray(fine)
        rest += (A - first) @ asarray(T)
        rest += first @ asarray(coarse)
        return rest

    def ridge(self, penalty: Vector) -> Matrix:
        """The matrix of alpha |beta|^2: T' diag(penalty) T."""
        if not penalty.any():
            return np.zeros((self.n_directions, self.n_directions))
        if self.diagonal is not None:
            return np.diag(column_ridge(penalty, self.diagonal))
        penalised = np.sqrt(penalty)[:, None] * self.T
        return np.asarray(penalised.T @ penalised)

    def coefficients(self, gamma: Vector) -> tuple[Vector, float]:
        """Coefficients and intercept of a point."""
        b = self.T @ (gamma * self.scale)
        p = b.size - int(self.fit_intercept)
        return b[:p], float(b[p:].sum())

    def from_coefficients(self, beta: Vector, intercept: float) -> Vector:
        """Working coordinates whose coefficients are nearest to the given ones."""
        b = (np.append(beta, intercept) if self.fit_intercept else np.asarray(beta)) / self.scale
        if self.diagonal is not None:
            return b / self.diagonal
        return np.asarray(np.linalg.lstsq(self.T / self.unit[:, None], b / self.unit, rcond=None)[0])


# What scales one column, or all columns at once: these also serve compiled code.


def column_unit(largest: Any) -> Any:
    """One over the largest entry of a column; 1 for a column of zeros."""
    return 1.0 / (largest + (largest == 0.0))


def column_shrinkage(square: Any, unit: Any, penalty: Any) -> Any:
    """One over the length, ridge included, of a column that was multiplied by its unit.

    `square` is the square of its length without the ridge.
    """
    length = np.sqrt(square + penalty * unit * unit)
    return 1.0 / (length + (length == 0.0))


def column_ridge(penalty: Any, diagonal: Any) -> Any:
    """Diagonal entry of T' diag(penalty) T where T is diagonal."""
    root = np.sqrt(penalty) * diagonal
    return root * root


def find_coordinates(
    largest: Vector,
    gram: Matrix,
    penalty: Vector,
    scale: float,
    fit_intercept: bool,
    gram_of: Callable[[Coordinates], Matrix],
    keep_all: bool = False,
) -> tuple[Coordinates, Matrix]:
    """Coordinates, and the Gram matrix Z'Z in them.

    Parameters
    ----------
    largest : largest |sqrt(w) x_j| of every column
    gram : Gram matrix of the columns over their largest entries
    penalty : alpha for every coefficient, 0 for the intercept
    scale : of the outcomes
    fit_intercept : bool
    gram_of : computes Z'Z in given coordinates from the data; called only if columns are nearly dependent
    keep_all : whether directions that the rows do not determine are kept, because constraints may
    """
    unit = column_unit(largest)
    shrink = column_shrinkage(gram.diagonal(), unit, penalty)
    found = Coordinates.from_diagonal(unit * shrink, unit, scale, fit_intercept)
    gram = gram * shrink * shrink[:, None]
    if smallest_pivot(gram + found.ridge(penalty)) >= WHITENING_PIVOT:
        return found, gram
    return whiten(found, gram, penalty, gram_of, keep_all)


def whiten(
    scaled: Coordinates,
    gram: Matrix,
    penalty: Vector,
    gram_of: Callable[[Coordinates], Matrix],
    keep_all: bool = False,
) -> tuple[Coordinates, Matrix]:
    """Turn T until Z'Z + ridge is near the identity; in rounds, as a Gram matrix squares conditions.

    Directions that the rows do not determine are dropped or, with keep_all, come last.
    """
    assert scaled.diagonal is not None
    # Eigenvectors in ascending order: the last ones, as many as there are directions, span rows and ridge.
    spans = np.linalg.eigh(gram + scaled.ridge(penalty))[1]
    found = scaled
    for attempt in range(MAX_WHITENINGS):
        values, vectors = np.linalg.eigh(gram + found.ridge(penalty))
        if values[-1] <= 0.0:
            break
        keep = values > (GRAM_RANK_TOL * values[-1] if attempt > 0 else -np.inf)
        if attempt > 0 and keep.all() and values[0] > 0.1 * values[-1]:
            break
        stretch = 1.0 / np.sqrt(np.maximum(values[keep], GRAM_RESOLUTION * values[-1]))
        found = replace(found, T=found.T @ (vectors[:, keep] * stretch), diagonal=None)
        gram = gram_of(found)
    if 0 < found.n_directions < scaled.n_columns:
        # Dependent columns: of all equal solutions the shortest, which lies in that span.
        rows, diagonal = spans[:, -found.n_directions :], scaled.diagonal[:, None]
        found = replace(found, T=diagonal * (rows @ (rows.T @ (found.T / diagonal))))
        gram = gram_of(found)
    if keep_all and found.n_directions < scaled.n_columns:
        rest = scaled.diagonal[:, None] * spans[:, : scaled.n_columns - found.n_directions]
        found = replace(found, T=np.column_stack([found.T, rest]), diagonal=None)
        gram = gram_of(found)
    return found, gram


def smallest_pivot(gram: Matrix) -> float:
    """The smallest pivot of a Cholesky factorisation; 0 where there is none."""
    try:
        return float(np.linalg.cholesky(gram).diagonal().min() ** 2)
    except np.linalg.LinAlgError:
        return 0.0
