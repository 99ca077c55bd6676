"""Flats: the subspaces that some of the rows span, and which other rows lie in them."""

from __future__ import annotations

import numpy as np

from rectifit._typing import Mask, Matrix
from rectifit.tolerances import FACE_DISTANCE_TOL, GRAM_RANK_TOL

__all__ = ["lies_in", "span_of"]


def span_of(rows: Matrix) -> Matrix:
    """An orthonormal basis of the span of rows, in columns, up to rounding."""
    values, vectors = np.linalg.eigh(rows.T @ rows)
    return np.asarray(vectors[:, values > GRAM_RANK_TOL * max(values[-1], GRAM_RANK_TOL)])


def lies_in(Z: Matrix, basis: Matrix) -> Mask:
    """Which rows of Z lie in the span of an orthonormal basis."""
    away = np.linalg.norm(Z - (Z @ basis) @ basis.T, axis=1)
    return np.asarray(away <= FACE_DISTANCE_TOL * np.linalg.norm(Z, axis=1))
