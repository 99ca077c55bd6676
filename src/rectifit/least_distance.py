"""The shortest vector that satisfies linear inequalities (Lawson and Hanson, chapter 23)."""

from __future__ import annotations

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.tolerances import SHORTEST_ZERO_TOL

__all__ = ["least_distance"]


def least_distance(G: Matrix, h: Vector) -> Vector | None:
    """argmin |x| subject to G x >= h up to rounding, None if no x is found.

    Rows of G have a length of about 1, or are zero.
    """
    from scipy.optimize import nnls

    # Rows that no x moves, and limits exactly at 0, are noise: they must not be magnified.
    moves = np.linalg.norm(G, axis=1) > SHORTEST_ZERO_TOL
    G, h = G[moves], h[moves] - SHORTEST_ZERO_TOL
    x = np.zeros(G.shape[1])
    if not (h > 0.0).any():
        return x
    E = np.vstack([G.T, h]) / np.linalg.norm(np.column_stack([G, h]), axis=1)
    f = np.append(x, 1.0)
    try:
        r = E @ nnls(E, f)[0] - f
    except RuntimeError:
        return None
    return -r[:-1] / r[-1] if r[-1] != 0.0 else None
