"""On which side of their kinks rows are, and sums over those on the right, kept from look to look.

The moments of the rows on the right of their kinks are the dearest sums of a look. From one look at a
surrogate to the next, and from one surrogate to its neighbour, few rows change sides: moments that are known
are mended by these rows alone. Where a process keeps the rows of its blocks, `Sides` remembers, block by
block, what a look has found. Moments are made anew where that is less work, and where most of what was summed
up has been subtracted again, which costs digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.active import ActiveSet
from rectifit.coordinates import Coordinates
from rectifit.data.blocks import Block, ChosenRows
from rectifit.data.workspace import Workspace
from rectifit.surrogate.look import Masks, Seen
from rectifit.surrogate.piece_rows import by_lines
from rectifit.tolerances import DRIFT_TOL

__all__ = ["BlockSides", "Sides", "sum_right"]


@dataclass(frozen=True, eq=False, slots=True)
class BlockSides:
    """The rows of a block at one look at a surrogate.

    Attributes
    ----------
    active, right : masks, of the active rows and of those on their quadratic
    n_right : how many are right
    moments : [Z, v]'[Z, v] over the rows on the right
    peak : largest diagonal that the moments have had
    n_mended : rows that were added or subtracted since the moments were made anew
    """

    active: Any
    right: Any
    n_right: int
    moments: Matrix
    peak: Vector
    n_mended: int


@dataclass(eq=False)
class Sides:
    """What one look at a surrogate leaves for the next, by the first rows of the blocks."""

    active: ActiveSet
    blocks: dict[int, BlockSides] = field(default_factory=dict)

    def is_of(self, active: ActiveSet) -> bool:
        """Whether the surrogate is known to have this active set."""
        return self.active is active or (active.key is not None and self.active.key == active.key)


class _Plan(NamedTuple):
    """How many rows a line adds and subtracts, and to what: its base, the line after it, or nothing."""

    n_rows: int
    n_mended: int
    n_right: int
    n_before: int = 0
    base: BlockSides | None = None
    is_chained: bool = False


def sum_right(
    coordinates: Coordinates,
    block: Block,
    masks: Masks,
    bases: Sequence[BlockSides | None],
    seen: Seen,
    space: Workspace,
) -> list[BlockSides]:
    """Sum up the rows on the right, for every line of the masks."""
    plans = _make_plans(block.n_rows, bases, seen)
    return _sum(coordinates, block, masks, plans, space)


def _make_plans(n_rows: int, bases: Sequence[BlockSides | None], seen: Seen) -> list[_Plan]:
    """For every line what leaves the fewest rows to add or subtract."""
    plans: list[_Plan] = []
    for e in reversed(range(len(bases))):
        n_right, base = int(seen.n_right[e]), bases[e]
        choices = [_Plan(n_right, 0, n_right)]
        if base is not None:
            count = int(seen.n_base[e])
            choices.append(_Plan(count, base.n_mended + count, n_right, base.n_right, base))
        if plans:
            count, after = int(seen.n_next[e]), plans[-1]
            choices.append(_Plan(count, after.n_mended + count, n_right, after.n_right, is_chained=True))
        plans.append(min((c for c in choices if c.n_mended <= n_rows), key=lambda c: c.n_rows))
    return plans[::-1]


def _sum(
    coordinates: Coordinates, block: Block, masks: Masks, plans: Sequence[_Plan], space: Workspace
) -> list[BlockSides]:
    """Carry out the plans."""
    xp, q, right = block.xp, coordinates.n_directions, masks.right
    none = xp.zeros_like(right[0])
    before = [
        right[e + 1] if plan.is_chained else none if plan.base is None else plan.base.right
        for e, plan in enumerate(plans)
    ]
    changed = right ^ xp.stack(before)
    # First the rows that are added, line after line, then those that are subtracted.
    where = xp.nonzero(xp.reshape(xp.concat([changed & right, changed & ~right]), (-1,)))[0]
    n_added = np.array([(plan.n_rows + plan.n_right - plan.n_before) // 2 for plan in plans])
    n_all = np.array([plan.n_rows for plan in plans])
    chosen = ChosenRows(where % block.n_rows, np.concatenate([n_added, n_all - n_added]))
    total = block.zeros((2 * len(plans), 1, q + 1, q + 1))
    for part in by_lines(coordinates, block, chosen, space):
        total += part.rows.line_moments(part.layout)
    added, subtracted = np.split(block.to_numpy(total)[:, 0], 2)
    sums = added - subtracted
    found: list[BlockSides] = []
    for e in reversed(range(len(plans))):
        base = found[-1] if plans[e].is_chained else plans[e].base
        moments = sums[e] if base is None else base.moments + sums[e]
        diagonal = moments.diagonal()
        peak = diagonal if base is None else np.maximum(diagonal, base.peak)
        plan = plans[e]
        found.append(BlockSides(masks.active[e], right[e], plan.n_right, moments, peak, plan.n_mended))
    return _renew(coordinates, block, plans, found[::-1], space)


def _renew(
    coordinates: Coordinates,
    block: Block,
    plans: Sequence[_Plan],
    found: list[BlockSides],
    space: Workspace,
) -> list[BlockSides]:
    """Sum up again where mending has lost too many digits."""
    xp = block.xp
    lost = [
        e
        for e, sides in enumerate(found)
        if plans[e].n_mended > 0 and (sides.moments.diagonal() < DRIFT_TOL * sides.peak).any()
    ]
    if lost:
        lines = [xp.stack([getattr(found[e], name) for e in lost]) for name in ("active", "right")]
        masks = Masks(*lines)
        anew = [_Plan(found[e].n_right, 0, found[e].n_right) for e in lost]
        for e, sides in zip(lost, _sum(coordinates, block, masks, anew, space), strict=True):
            found[e] = sides
    return found
