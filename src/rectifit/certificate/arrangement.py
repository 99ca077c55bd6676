"""Two coefficients (a slope and an intercept, say): the exact minimum over all active sets there are.

In the plane the lines z_i'b = 0 cut the directions into at most 2n sectors. In a sector every sample is on
or off, and the loss is one quadratic

    sum over on (u_i - y_i)^2 + sum over off y_i^2 + b'ridge b,

whose minimum over the sector lies inside, where the quadratic has it, or on one of its two rays: a singular
quadratic has a line of minima, and a line leaves a sector through a ray.

Rounding. The two columns of the samples that are on are made orthogonal, which is backward stable: where
these samples hardly determine the coefficients, the point that is found is still the minimum for rows that
differ by some eps, so that its u_i are as good as u_i are that are computed at the minimum. (A point from
normal equations is not, and its loss is then no lower bound.) What an error of u_i may have added to its
loss is subtracted from each candidate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.bounds import allowance
from rectifit.tolerances import FLOAT64_EPS, PARALLEL_TOL, SUM_TOL, ZERO_U_TOL

__all__ = ["PlaneMinimum", "least_in_plane"]

# Sectors that are examined together.
SECTORS_PER_CHUNK = 512


class PlaneMinimum(NamedTuple):
    """The least loss, a point that has it, and a lower bound of all losses."""

    value: float
    b: Vector
    lowest: float


def least_in_plane(Z: Matrix, y: Vector, ridge: Matrix) -> PlaneMinimum:
    """Least loss and where, for rows with one or two columns."""
    if Z.shape[1] == 1:
        Z, ridge = np.column_stack([Z, np.zeros(len(Z))]), np.diag([ridge[0, 0], 1.0])
        found = least_in_plane(Z, y, ridge)
        return found._replace(b=found.b[:1])
    values, vectors = np.linalg.eigh(ridge)
    # Rows that are always on, with outcomes of 0.
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    angle = np.arctan2(Z[:, 1], Z[:, 0])
    moving = Z.any(axis=1)
    # A sample is on for directions within a quarter turn of its row.
    edges = np.concatenate([angle[moving] - np.pi / 2, angle[moving] + np.pi / 2])
    edges = np.unique(np.mod(np.append(edges, 0.0), 2.0 * np.pi))
    middle = edges + np.diff(np.append(edges, edges[0] + 2.0 * np.pi)) / 2.0
    total = float(y @ y)
    best = PlaneMinimum(total, np.zeros(2), total)
    for start in range(0, len(edges), SECTORS_PER_CHUNK):
        part = slice(start, min(start + SECTORS_PER_CHUNK, len(edges)))
        for points in (_along(edges[part], Z, y, root), _within(middle[part], Z, y, root)):
            losses, rounding = _evaluate(points, Z, y, root)
            lowest = min(best.lowest, float((losses - rounding).min(initial=np.inf)))
            best = best._replace(lowest=lowest)
            if losses.size and losses.min() < best.value:
                best = PlaneMinimum(float(losses.min()), points[losses.argmin()], lowest)
    # Sums over the samples are rounded as well.
    return best._replace(lowest=best.lowest - SUM_TOL * (best.value + total))


def _directions(angles: Vector) -> Matrix:
    return np.column_stack([np.cos(angles), np.sin(angles)])


def _along(angles: Vector, Z: Matrix, y: Vector, root: Matrix) -> Matrix:
    """The minima along rays."""
    rays = _directions(angles)
    u = rays @ Z.T
    # A sample whose edge this is has u = 0 but for rounding, along which there is no minimum.
    u[u <= ZERO_U_TOL * np.linalg.norm(Z, axis=1)] = 0.0
    curvature = np.square(u).sum(axis=1) + np.square(rays @ root.T).sum(axis=1)
    step = np.maximum(u @ y, 0.0) / np.where(curvature > 0.0, curvature, 1.0)
    return np.asarray(step[:, None] * rays)


def _within(angles: Vector, Z: Matrix, y: Vector, root: Matrix) -> Matrix:
    """The minima of the quadratics of the sectors around these directions, where there is one minimum."""
    ridge_on = np.ones((len(angles), len(root)), np.bool_)
    on = np.column_stack([_directions(angles) @ Z.T > 0.0, ridge_on]).astype(np.float64)
    outcomes, (first, second) = np.append(y, np.zeros(len(root))), np.vstack([Z, root]).T
    a, c = on @ np.square(first), on @ np.square(second)
    share = on @ (first * second) / np.where(a > 0.0, a, 1.0)
    # What is left of the second column beside the first, of the samples that are on.
    left = on * (second - share[:, None] * first)
    pivot = np.square(left).sum(axis=1)
    kept = (a > 0.0) & (pivot > PARALLEL_TOL * c)
    a, share, left, pivot = a[kept], share[kept], left[kept], pivot[kept]
    b_second = left @ outcomes / pivot
    b_first = on[kept] @ (first * outcomes) / a - share * b_second
    return np.column_stack([b_first, b_second])


def _evaluate(points: Matrix, Z: Matrix, y: Vector, root: Matrix) -> tuple[Vector, Vector]:
    """True losses, so that a point outside of its sector does no harm, and how far they may be too high."""
    u, beside = points @ Z.T, points @ root.T
    misses = np.maximum(u, 0.0) - y
    losses = np.square(misses).sum(axis=1) + np.square(beside).sum(axis=1)
    size, lengths = np.linalg.norm(points, axis=1), np.linalg.norm(Z, axis=1)
    # What an error of u adds: its slope times that, and its square.
    matters = u > -ZERO_U_TOL * size[:, None] * lengths
    slopes = 2.0 * np.where(matters, np.abs(misses), 0.0) @ lengths
    slopes += 2.0 * np.abs(beside) @ np.linalg.norm(root, axis=1)
    slopes += FLOAT64_EPS * size * (matters @ np.square(lengths) + np.square(root).sum())
    # Once for the point, and once for the loss at it.
    return losses, 2.0 * allowance(len(y), losses, Z.shape[1], size, slopes)
