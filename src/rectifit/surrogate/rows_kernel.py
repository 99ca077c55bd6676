"""Compiled set-up of rows that are all kept in working coordinates."""

from __future__ import annotations

import math

import numpy as np

from rectifit import coordinates
from rectifit._typing import Matrix, Vector
from rectifit.compiling import compiled, shared
from rectifit.surrogate.kernel import add_weighted, backward, dot, factor, forward, is_definite, multiply
from rectifit.surrogate.records import PlacedRows
from rectifit.tolerances import REGULAR_PIVOT_TOL, WHITENING_PIVOT

__all__ = ["are_determined", "place_rows", "scale_columns"]

shared(coordinates.column_unit, coordinates.column_shrinkage, coordinates.column_ridge)


@compiled
def scale_columns(At: Matrix, root_weight: Vector, largest: Vector, unit: Vector, Zt: Matrix) -> None:
    """Zt <- the columns times root_weight, in units of their largest entries."""
    q, n = At.shape
    for j in range(q):
        top = 0.0
        for i in range(n):
            Zt[j, i] = At[j, i] * root_weight[i]
            top = max(top, abs(Zt[j, i]))
        scale = coordinates.column_unit(top)
        for i in range(n):
            Zt[j, i] *= scale
        largest[j], unit[j] = top, scale


@compiled
def place_rows(y: Vector, unit: Vector, penalty: Vector, gram: Matrix, placed: PlacedRows) -> bool:
    """Scale columns to length 1, ridge included, write the rows one by one, and fit them to y.

    Given are columns, in placed.Zt, and their Gram matrix, both multiplied by their units. Returns whether
    Z'Z + ridge is so far from singular that no whitening is needed.
    """
    placed = PlacedRows(*placed)
    Z, Zt, T, diagonal, ridge = placed.Z, placed.Zt, placed.T, placed.diagonal, placed.ridge
    n, q = Z.shape
    L = np.empty((q, q))
    for j in range(q):
        shrink = coordinates.column_shrinkage(gram[j, j], unit[j], penalty[j])
        diagonal[j] = unit[j] * shrink
        for i in range(n):
            Zt[j, i] *= shrink
            Z[i, j] = Zt[j, i]
        for k in range(q):
            gram[j, k] *= shrink
            gram[k, j] *= shrink
            T[j, k] = ridge[j, k] = 0.0
        T[j, j] = diagonal[j]
        ridge[j, j] = coordinates.column_ridge(penalty[j], diagonal[j])
    for i in range(n):
        placed.norms[i] = math.sqrt(dot(Z[i], Z[i]))
    for j in range(q):
        for k in range(q):
            L[j, k] = gram[j, k] + ridge[j, k]
    factor(L, L, q)
    for j in range(q):
        placed.gamma[j] = dot(Zt[j], y)
    forward(L, placed.gamma, q)
    backward(L, placed.gamma, q)
    multiply(Zt, placed.gamma, placed.u)
    return bool(is_definite(L, WHITENING_PIVOT))


@compiled
def are_determined(Zt: Matrix, u: Vector) -> bool:
    """Whether the rows with u > 0 determine all coordinates: their Gram matrix is far from singular."""
    q, n = Zt.shape
    G, weights, largest = np.zeros((q, q)), np.empty(n), 0.0
    for i in range(n):
        weights[i] = 1.0 if u[i] > 0.0 else 0.0
    add_weighted(Zt, weights, G)
    for j in range(q):
        largest = max(largest, G[j, j])
    factor(G, G, q)
    return bool(is_definite(G, REGULAR_PIVOT_TOL * largest))
