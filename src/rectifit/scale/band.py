"""Rows near their kinks: kept while they are few, and summed up with their kinks smoothed.

The slope of a near row rises from 0 to 2 (c + h - y), not at the kink c at once but linearly over
[c - h, c + h], h the width of the probe. Any slope between is allowed in the inequality of
`rectifit.surrogate.bound`, at the price of its Fenchel gap.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.scale.rows import Held, Rows

__all__ = ["Band", "Near", "join_near"]


class Near(NamedTuple):
    """Rows near their kinks: z, outcome v and pre-activation u; the kink is at 2 max(v, 0)."""

    Z: Matrix
    v: Vector
    u: Vector


def join_near(parts: tuple[Near, ...]) -> Near:
    """Near rows of several pieces as one."""
    return Near(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


class Band:
    """The near rows of one probe in a block.

    Attributes
    ----------
    slope, gram, gap : half of slope and curvature, and the sum of the Fenchel gaps, all smoothed
    n_near, near : number of rows, and the rows, or None where there are more than the cap
    """

    def __init__(self, name: str, n_directions: int, width: float, cap: int) -> None:
        self.slope = np.zeros(n_directions)
        self.gram = np.zeros((n_directions, n_directions))
        self.gap = 0.0
        self.n_near = 0
        self.near: list[Near] | None = []
        self._width, self._cap = width, cap
        self._held = Held(name)

    def add(self, rows: Rows, chosen: Any, u: Any) -> None:
        """Add the rows that a mask chooses."""
        xp = rows.piece.xp
        index = xp.nonzero(chosen)[0]
        edge = xp.concat([rows.edge[index], u[index][:, None]], axis=1)
        for ready in self._held.add(rows, index, edge):
            self._sum(ready)

    def finish(self) -> None:
        """Sum up what is left."""
        for ready in self._held.release():
            self._sum(ready)

    def _sum(self, rows: Rows) -> None:
        piece, xp, h = rows.piece, rows.piece.xp, self._width
        p, q = rows.matrix.shape[1], rows.unit.size
        # Zero rows never move, and stay on their constants.
        moves = xp.any(rows.matrix != 0.0, axis=1) | xp.any(rows.edge[:, : q - p] != 0.0, axis=1)
        if not bool(xp.all(moves)):
            rows = rows._replace(matrix=rows.matrix[moves], edge=rows.edge[moves])
        v, u = rows.edge[:, q - p], rows.edge[:, q - p + 1]
        self.n_near += int(v.shape[0])
        if self.n_near > self._cap:
            self.near = None
        elif self.near is not None:
            self.near.append(Near(*(np.array(piece.lower(a)) for a in (rows.dense(), v, u))))
        if h == np.inf:
            return
        kink = 2.0 * v * (v > 0.0)
        jump = 2.0 * (kink - v)
        curvature = (0.25 / h) * (jump + 2.0 * h)
        beyond = u - kink + h
        slope = 2.0 * curvature * beyond
        conjugate = xp.where(slope > jump, (0.25 * slope + v) * slope, slope * kink - v * v)
        residual = u * (u > kink) - v
        self.gap += float(xp.sum(residual * residual + conjugate - slope * u))
        edge = xp.concat([rows.edge[:, : q - p], beyond[:, None]], axis=1)
        moments = piece.lower(rows._replace(edge=edge).moments(curvature))
        self.slope += moments[:q, q]
        self.gram += moments[:q, :q]
