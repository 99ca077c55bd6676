"""On which side of their kinks rows are, and sums over those on the right, kept from look to look.

The moments of the rows on the right of their kinks are the dearest sums of a look. From one look at a surrogate
to the next, and from one surrogate to its neighbour, few rows change sides: moments that are known are mended
by these rows alone. Where a process keeps the rows of its blocks, `Sides` remembers, block by block, what a
look has found. They are made anew where that is less work, and where most of what was summed up has been
subtracted again, which costs digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rectifit.active import ActiveSet
from rectifit.coordinates import Coordinates
from rectifit.data.blocks import Block
from rectifit.data.workspace import Workspace
from rectifit.surrogate.piece_rows import chosen_rows
from rectifit.tolerances import DRIFT_TOL

__all__ = ["BlockSides", "Sides", "sum_right"]


@dataclass(frozen=True, eq=False, slots=True)
class BlockSides:
    """The rows of a block at one look at a surrogate.

    Attributes
    ----------
    active, right : masks, of the active rows and of those on their quadratic
    moments : [Z, v]'[Z, v] over the rows on the right
    peak : largest diagonal that the moments have had
    n_mended : rows that were added or subtracted since the moments were made anew
    """

    active: Any
    right: Any
    moments: Any
    peak: Any
    n_mended: int


@dataclass(eq=False)
class Sides:
    """What one look at a surrogate leaves for the next, by the first rows of the blocks."""

    active: ActiveSet
    blocks: dict[int, BlockSides] = field(default_factory=dict)

    def is_of(self, active: ActiveSet) -> bool:
        """Whether the surrogate is known to have this active set."""
        return self.active is active or (active.key is not None and self.active.key == active.key)


def sum_right(
    coordinates: Coordinates,
    block: Block,
    active: Any,
    right: Any,
    bases: Sequence[BlockSides | None],
    space: Workspace,
) -> list[BlockSides]:
    """Sum up the rows on the right, one line of the masks after another.

    Every line begins with what leaves the fewest rows to add or subtract: what its base has, what the line
    after it has, or nothing.
    """
    xp, k = block.xp, len(bases)
    counts = [xp.sum(right, axis=1), xp.sum(right[:-1] ^ right[1:], axis=1)]
    counts += [xp.sum(right[e] ^ base.right)[None] for e, base in enumerate(bases) if base is not None]
    numbers = block.to_numpy(xp.concat(counts)).tolist()
    n_right, n_next, of_bases = numbers[:k], numbers[k : 2 * k - 1], iter(numbers[2 * k - 1 :])
    n_base = [block.n_rows + 1 if base is None else next(of_bases) for base in bases]
    found: list[BlockSides] = []
    for e in reversed(range(k)):
        line = _Line(coordinates, block, active[e], right[e])
        choices = [(n_base[e], bases[e])] + ([(n_next[e], found[-1])] if found else [])
        count, base = min(choices, key=lambda choice: choice[0])
        mended = None
        if base is not None and count <= n_right[e] and base.n_mended + count <= block.n_rows:
            mended = line.mend(base, count, space)
        found.append(mended or line.make(n_right[e], space))
    return found[::-1]


@dataclass(frozen=True, eq=False)
class _Line:
    """One line of the masks of a block."""

    coordinates: Coordinates
    block: Block
    active: Any
    right: Any

    def make(self, count: int, space: Workspace) -> BlockSides:
        """Sum up all rows on the right."""
        q = self.coordinates.n_directions
        moments = self.block.to_float64(np.zeros((q + 1, q + 1)))
        if count > 0:
            moments += self._sum(self.right, False, space)
        return BlockSides(self.active, self.right, moments, self._diagonal(moments), 0)

    def mend(self, base: BlockSides, count: int, space: Workspace) -> BlockSides | None:
        """Add and subtract the rows that differ; None where too few digits are left."""
        if count == 0:
            return replace(base, active=self.active, right=self.right)
        moments = base.moments + self._sum(self.right ^ base.right, True, space)
        xp, diagonal = self.block.xp, self._diagonal(moments)
        if bool(xp.any(diagonal < DRIFT_TOL * base.peak)):
            return None
        peak = xp.where(diagonal > base.peak, diagonal, base.peak)
        return BlockSides(self.active, self.right, moments, peak, base.n_mended + count)

    def _sum(self, chosen: Any, is_signed: bool, space: Workspace) -> Any:
        """Moments of the rows that a mask chooses, those on the left subtracted if signed."""
        index = self.block.xp.nonzero(chosen)[0]
        total = None
        for place, rows, _ in chosen_rows(self.coordinates, self.block, index, space):
            sign = self.block.to_float64(self.right[index[place]]) * 2.0 - 1.0 if is_signed else None
            moments = rows.moments(sign)
            total = moments if total is None else total + moments
        return total

    def _diagonal(self, moments: Any) -> Any:
        return self.block.xp.linalg.diagonal(moments)[:-1]
