"""Rows near their kinks: kept while they are few, and summed up with their kinks smoothed.

The slope of a near row is smoothed over [c - h, c + h] around its kink c, h the width of the band (see
`rectifit.pieces`). Any slope between 0 and the jump is allowed in the inequality of `rectifit.bounds`, at the
price of its Fenchel gap.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rectifit import pieces
from rectifit._typing import Matrix, Vector
from rectifit.surrogate.piece_rows import PieceRows, RowBuffer

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
        self._buffer = RowBuffer(name)

    def add(self, rows: PieceRows, chosen: Any, u: Any) -> None:
        """Add the rows that a mask chooses."""
        xp = rows.piece.xp
        index = xp.nonzero(chosen)[0]
        edge = xp.concat([rows.edge[index], u[index][:, None]], axis=1)
        for ready in self._buffer.add(rows, index, edge):
            self._sum(ready)

    def finish(self) -> None:
        """Sum up what is left in the buffer."""
        for ready in self._buffer.release():
            self._sum(ready)

    def _sum(self, rows: PieceRows) -> None:
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
            self.near.append(Near(*(np.array(piece.to_numpy(a)) for a in (rows.dense(), v, u))))
        if h == np.inf:
            return
        kink = pieces.inactive_kink(v)
        self.gap += float(xp.sum(pieces.smoothed_gap(u, v, kink, h)))
        edge = xp.concat([rows.edge[:, : q - p], (u - kink + h)[:, None]], axis=1)
        moments = piece.to_numpy(rows._replace(edge=edge).moments(0.5 * pieces.smoothed_curvature(v, h)))
        self.slope += moments[:q, q]
        self.gram += moments[:q, :q]
