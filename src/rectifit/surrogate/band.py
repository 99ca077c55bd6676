"""Rows near their kinks: kept while they are few, and summed up with their kinks smoothed.

The slope of a near row is smoothed over [c - h, c + h] around its kink c, h the width of the band (see
`rectifit.pieces`). Any slope between 0 and the jump is allowed in the inequality of `rectifit.bounds`, at the
price of its Fenchel gap.

Where near rows are very many, the step that they lead to is a rough one in any case: a part of them, chosen
by their numbers alone, stands for all. No bound follows from such sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit import pieces
from rectifit._typing import Matrix, Vector
from rectifit.coordinates import Coordinates
from rectifit.data.blocks import Block, ChosenRows, line_slices
from rectifit.data.sampling import uniform_keys
from rectifit.data.workspace import Workspace
from rectifit.surrogate.piece_rows import Part, by_lines

__all__ = ["Bands", "Near", "find_bands", "join_near"]


# Near rows per direction that are summed up, about, where there are more.
SUMMED_FACTOR = 100


class Near(NamedTuple):
    """Rows near their kinks: z, outcome v and pre-activation u; the kink is at 2 max(v, 0)."""

    Z: Matrix
    v: Vector
    u: Vector


def join_near(parts: tuple[Near, ...]) -> Near:
    """Near rows of several blocks as one."""
    if len(parts) == 1:
        return parts[0]
    return Near(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


class Bands(NamedTuple):
    """The near rows of a block, one line per probe.

    Attributes
    ----------
    moments : [Z, v]'[Z, v] over those on the right of their kinks
    slopes, grams, gaps : half of slope and curvature, and the sum of the Fenchel gaps, all smoothed
    n_near, near : number of rows, and the rows, or None where there are more than the cap
    n_skipped : how many of the rows others stand for in the sums
    """

    moments: npt.NDArray[np.float64]
    slopes: Matrix
    grams: npt.NDArray[np.float64]
    gaps: Vector
    n_near: Vector
    near: tuple[tuple[Near, ...] | None, ...]
    n_skipped: Vector


def find_bands(
    coordinates: Coordinates,
    block: Block,
    limits: Sequence[tuple[float, int, bool]],
    chosen: ChosenRows,
    u: Any,
    is_whole: bool,
    space: Workspace,
) -> Bands:
    """Sum up near rows, and bring back those of the lines that have few.

    Parameters
    ----------
    limits : width and cap of every line, and whether a part of very many rows will do
    chosen, u : the near rows, and their pre-activations
    is_whole : whether the block is all there is: rows that are brought back are not smoothed then
    """
    widths = np.array([width for width, _, _ in limits])
    q, is_finite = coordinates.n_directions, np.isfinite(widths)
    chosen, u = _drop_zero_rows(coordinates, block, chosen, u, space)
    near: list[tuple[Near, ...] | None] = [
        () if n <= cap else None for n, (_, cap, _) in zip(chosen.counts, limits, strict=True)
    ]
    # Where the band is as wide as can be, no row is far, and nothing is smoothed.
    smoothed_lines = is_finite & ~np.array([is_whole and part is not None for part in near])
    width_of = block.to_float64(np.where(is_finite, widths, 1.0))
    half = block.to_float64(0.5 * smoothed_lines)
    n_near = chosen.counts
    chosen, u = _thin_out(
        block,
        chosen,
        u,
        SUMMED_FACTOR * q,
        [is_rough and part is None for part, (_, _, is_rough) in zip(near, limits, strict=True)],
    )
    stands_for = block.to_float64(n_near / np.maximum(chosen.counts, 1))
    sums = block.zeros((len(limits), 2, q + 4, q + 4))
    for part in by_lines(coordinates, block, chosen, space):
        v, u_part, line = part.v, part.layout.arrange(u[part.place]), part.layout.lines
        kink, number = pieces.inactive_kink(v), stands_for[line] * part.layout.is_row
        weights, more = (number * (u_part > kink))[:, None], list[Any]()
        if smoothed_lines.any():
            h = width_of[line]
            curvature = pieces.smoothed_curvature(v, h)
            weights = block.xp.concat([weights, (number * half[line] * curvature)[:, None]], axis=1)
            # The smoothed slope is its curvature times the distance from where it begins.
            inside, gap = u_part - kink + h, pieces.smoothed_gap(u_part, v, kink, h)
            more = [inside, block.xp.ones_like(v), 2.0 * gap / curvature]
        moments = part.rows.line_moments(part.layout, weights, *more)
        sums[:, : moments.shape[1], : moments.shape[2], : moments.shape[2]] += moments
        _bring(block, near, part, u_part)
    total = block.to_numpy(sums)
    smoothed = total[:, 1]
    return Bands(
        moments=total[:, 0, : q + 1, : q + 1],
        slopes=smoothed[:, :q, q + 1],
        grams=smoothed[:, :q, :q],
        gaps=smoothed[:, q + 2, q + 3],
        n_near=n_near.astype(np.float64),
        near=tuple(near),
        n_skipped=(n_near - chosen.counts).astype(np.float64),
    )


def _thin_out(
    block: Block, chosen: ChosenRows, u: Any, n_kept: int, may_skip: Sequence[bool]
) -> tuple[ChosenRows, Any]:
    """About so many rows of every line that has many more and is not brought back."""
    shares = np.where(may_skip, n_kept / np.maximum(chosen.counts, 1), 1.0)
    if (shares > 0.5).all():
        return chosen, u
    lines = [chosen.index[place] + block.start for place in line_slices(chosen.counts)]
    # To leave out less than half of the rows would save nothing.
    kept = block.xp.concat(
        [
            uniform_keys(line) < (2.0 if share > 0.5 else share)
            for line, share in zip(lines, shares, strict=True)
        ]
    )
    return chosen.only(block, kept), u[kept]


def _drop_zero_rows(
    coordinates: Coordinates, block: Block, chosen: ChosenRows, u: Any, space: Workspace
) -> tuple[ChosenRows, Any]:
    """Leave out zero rows, where some are: these never move, and stay on their constants."""
    if coordinates.fit_intercept and block.w is None:
        return chosen, u
    xp, moves = block.xp, [block.empty(0, "bool")]
    for part in by_lines(coordinates, block, chosen, space):
        rows = part.rows
        is_moving = xp.any(rows.matrix != 0.0, axis=1) | xp.any(rows.edge[:, :-1] != 0.0, axis=1)
        moves.append(is_moving[part.layout.is_row > 0.0])
    kept = xp.concat(moves)
    return chosen.only(block, kept), u[kept]


def _bring(block: Block, near: list[tuple[Near, ...] | None], part: Part, u: Any) -> None:
    """Add the rows of the lines that are brought back."""
    wanted = np.array([line is not None for line in near])
    counts = part.layout.counts * wanted
    if not counts.any():
        return
    # All at once: every transfer from a device takes its time.
    is_wanted = block.to_float64(1.0 * wanted)[part.layout.lines] * part.layout.is_row > 0.0
    chosen = block.xp.nonzero(is_wanted)[0]
    Z, v, u = (block.to_numpy(a[chosen]) for a in (part.rows.dense(), part.v, u))
    for line, rows in enumerate(line_slices(counts)):
        if counts[line] > 0:
            near[line] = (near[line] or ()) + (Near(Z[rows], v[rows], u[rows]),)
