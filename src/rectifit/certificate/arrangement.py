"""Two coefficients (a slope and an intercept, say): the exact minimum over all active sets there are.

In the plane the lines z_i'b = 0 cut the directions into at most 2n sectors. In a sector every sample is on
or off, and the loss is one quadratic

    sum over on (u_i - y_i)^2 + sum over off y_i^2 + b'ridge b,

whose minimum over the sector lies inside, where the quadratic has it, or on one of its two rays: a singular
quadratic has a line of minima, and a line leaves a sector through a ray.
"""

from __future__ import annotations

import numpy as np

from rectifit._typing import Matrix, Vector

__all__ = ["least_in_plane"]

# Sectors that are examined together.
SECTORS_PER_CHUNK = 512


def least_in_plane(Z: Matrix, y: Vector, ridge: Matrix) -> tuple[float, Vector]:
    """Least loss and where, for rows with one or two columns."""
    if Z.shape[1] == 1:
        Z, ridge = np.column_stack([Z, np.zeros(len(Z))]), np.diag([ridge[0, 0], 1.0])
        value, b = least_in_plane(Z, y, ridge)
        return value, b[:1]
    total = float(y @ y)
    angle = np.arctan2(Z[:, 1], Z[:, 0])
    moving = Z.any(axis=1)
    # A sample is on for directions within a quarter turn of its row.
    edges = np.concatenate([angle[moving] - np.pi / 2, angle[moving] + np.pi / 2])
    edges = np.unique(np.mod(np.append(edges, 0.0), 2.0 * np.pi))
    rays = np.column_stack([np.cos(edges), np.sin(edges)])
    middle = edges + np.diff(np.append(edges, edges[0] + 2.0 * np.pi)) / 2.0
    best, where = total, np.zeros(2)
    for start in range(0, len(edges), SECTORS_PER_CHUNK):
        part = slice(start, min(start + SECTORS_PER_CHUNK, len(edges)))
        inner = np.column_stack([np.cos(middle[part]), np.sin(middle[part])])
        on = (inner @ Z.T > 0.0).astype(np.float64)
        products = np.column_stack([Z[:, 0] ** 2, Z[:, 0] * Z[:, 1], Z[:, 1] ** 2])
        a, h, c = (on @ products).T + np.array([ridge[0, 0], ridge[0, 1], ridge[1, 1]])[:, None]
        r = on @ (y[:, None] * Z)
        determinant = a * c - h * h
        with np.errstate(divide="ignore", invalid="ignore"):
            free = (
                np.column_stack([c * r[:, 0] - h * r[:, 1], a * r[:, 1] - h * r[:, 0]]) / determinant[:, None]
            )
        following = np.roll(rays, -1, axis=0)[part]
        candidates = [free]
        for ray in (rays[part], following):
            curvature = a * ray[:, 0] ** 2 + 2.0 * h * ray[:, 0] * ray[:, 1] + c * ray[:, 1] ** 2
            step = np.maximum(np.einsum("ij,ij->i", r, ray), 0.0) / np.where(curvature > 0.0, curvature, 1.0)
            candidates.append(step[:, None] * ray)
        for points in candidates:
            points = points[np.isfinite(points).all(axis=1)]
            # Every candidate is evaluated by the true loss, so one outside its sector does no harm.
            losses = np.square(np.maximum(points @ Z.T, 0.0) - y).sum(axis=1)
            losses += np.einsum("ki,ij,kj->k", points, ridge, points)
            if losses.size and losses.min() < best:
                best, where = float(losses.min()), points[losses.argmin()]
    return best, where
