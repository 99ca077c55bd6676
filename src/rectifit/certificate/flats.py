"""Flats: the subspaces that some of the rows span, which other rows lie in them, and where those are off."""

from __future__ import annotations

import numpy as np

from rectifit._typing import Mask, Matrix, Vector
from rectifit.tolerances import COVER_TOL, FACE_DISTANCE_TOL, GRAM_RANK_TOL

__all__ = ["falling_direction", "lies_in", "span_of"]


def span_of(rows: Matrix) -> Matrix:
    """An orthonormal basis of the span of rows, in columns, up to rounding."""
    values, vectors = np.linalg.eigh(rows.T @ rows)
    return np.asarray(vectors[:, values > GRAM_RANK_TOL * max(values[-1], GRAM_RANK_TOL)])


def lies_in(Z: Matrix, basis: Matrix) -> Mask:
    """Which rows of Z lie in the span of an orthonormal basis."""
    away = np.linalg.norm(Z - (Z @ basis) @ basis.T, axis=1)
    return np.asarray(away <= FACE_DISTANCE_TOL * np.linalg.norm(Z, axis=1))


def falling_direction(Z: Matrix) -> Vector | None:
    """A direction d with z_i'd <= -1 for all rows, None if there is none up to rounding.

    By Gordan's theorem there is none if and only if 0 is a combination of the rows with non-negative weights,
    not all 0. Non-negative least squares looks for one, v, with weights of sum 1. What it leaves, (d, s) =
    (0, 1) - (Z'v, sum v), has z_i'd + s <= 0 for all i, because no weight would reduce it, and s is its
    squared length.
    """
    from scipy.optimize import nnls

    if len(Z) == 0:
        return np.zeros(Z.shape[1])
    target = np.append(np.zeros(Z.shape[1]), 1.0)
    system = np.vstack([Z.T, np.ones(len(Z))])
    try:
        weights, left = nnls(system, target)
    except RuntimeError:
        return None
    if left <= COVER_TOL:
        return None
    rest = target - system @ weights
    # Rounding may leave nothing of the sum where there is hardly a direction.
    return np.asarray(rest[:-1] / rest[-1]) if rest[-1] > 0.0 else None
