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
from rectifit.coordinates import Coordinates
from rectifit.data.blocks import Block
from rectifit.data.workspace import Workspace
from rectifit.surrogate.piece_rows import PieceRows, chosen_rows

__all__ = ["Band", "Near", "join_near"]


class Near(NamedTuple):
    """Rows near their kinks: z, outcome v and pre-activation u; the kink is at 2 max(v, 0)."""

    Z: Matrix
    v: Vector
    u: Vector


def join_near(parts: tuple[Near, ...]) -> Near:
    """Near rows of several blocks as one."""
    return Near(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


class Band:
    """The near rows of one probe in a block.

    Attributes
    ----------
    moments : [Z, v]'[Z, v] over those on the right of their kinks
    smoothed, gap : moments with the smoothed curvature, and with half of the smoothed slope in the place of v;
        the sum of the Fenchel gaps
    n_near, near : number of rows, and the rows, or None where there are more than the cap
    """

    def __init__(self, coordinates: Coordinates, block: Block, width: float, cap: int) -> None:
        q = coordinates.n_directions + 1
        self.moments = block.to_float64(np.zeros((q, q)))
        self.smoothed = block.to_float64(np.zeros((q, q)))
        self.gap = block.to_float64(np.zeros(()))
        self.n_near = 0
        self.near: tuple[Near, ...] | None = ()
        self._coordinates, self._block, self._width, self._cap = coordinates, block, width, cap

    def add(self, index: Any, u: Any, space: Workspace) -> None:
        """Add rows of the block, with their pre-activations."""
        for place, rows, v in chosen_rows(self._coordinates, self._block, index, space):
            self._add(rows, v, u[place])

    def _add(self, rows: PieceRows, v: Any, u: Any) -> None:
        block, h = self._block, self._width
        moves = self._find_moving(rows)
        if moves is not None:
            rows = rows._replace(matrix=rows.matrix[moves], edge=rows.edge[moves])
            v, u = v[moves], u[moves]
        self.n_near += int(v.shape[0])
        if self.n_near > self._cap:
            self.near = None
        elif self.near is not None:
            self.near += (Near(*(np.array(block.to_numpy(a)) for a in (rows.dense(), v, u))),)
        kink = pieces.inactive_kink(v)
        self.moments += rows.moments(block.to_float64(u > kink))
        if h == np.inf:
            return
        self.gap += block.xp.sum(pieces.smoothed_gap(u, v, kink, h))
        # Half of the slope is half of the curvature times this.
        inside = (u - kink + h)[:, None]
        smoothed = rows._replace(edge=block.xp.concat([rows.edge[:, :-1], inside], axis=1))
        self.smoothed += smoothed.moments(0.5 * pieces.smoothed_curvature(v, h))

    def _find_moving(self, rows: PieceRows) -> Any:
        """Rows that are not zero, where some are: these never move, and stay on their constants."""
        xp = self._block.xp
        if self._coordinates.fit_intercept and self._block.w is None:
            return None
        moves = xp.any(rows.matrix != 0.0, axis=1) | xp.any(rows.edge[:, :-1] != 0.0, axis=1)
        return None if bool(xp.all(moves)) else moves
