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
from rectifit._typing import Mask, Matrix, Vector
from rectifit.coordinates import Coordinates
from rectifit.data.blocks import Block, ChosenRows, Layout, line_slices
from rectifit.data.sampling import uniform_keys
from rectifit.data.workspace import Workspace
from rectifit.surrogate.piece_rows import PieceRows, by_lines

__all__ = ["Bands", "Near", "NearSums", "find_bands", "join_near", "sum_near"]


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


class NearSums(NamedTuple):
    """Sums over near rows, one line per probe.

    Attributes
    ----------
    moments : [Z, v]'[Z, v] over those on the right of their kinks
    slopes, grams, gaps : half of slope and curvature, and the sum of the Fenchel gaps, all smoothed; zeros
        where rows are brought back, and where the band is as wide as can be: then no row is far
    """

    moments: npt.NDArray[np.float64]
    slopes: Matrix
    grams: npt.NDArray[np.float64]
    gaps: Vector

    def add(self, other: NearSums) -> NearSums:
        """The sums over both."""
        both: list[Any] = [a + b for a, b in zip(self, other, strict=True)]
        return NearSums(*both)


class Bands(NamedTuple):
    """The near rows of a block, one line per probe.

    Attributes
    ----------
    sums : over the rows
    n_near, near : number of rows, and the rows, or None where there are more than the cap
    n_skipped : how many of the rows others stand for in the sums
    """

    sums: NearSums
    n_near: Vector
    near: tuple[tuple[Near, ...] | None, ...]
    n_skipped: Vector


def find_bands(
    coordinates: Coordinates,
    block: Block,
    limits: Sequence[tuple[float, int, bool]],
    chosen: ChosenRows,
    u: Any,
    n_samples: int,
    space: Workspace,
) -> Bands:
    """Bring back the near rows of the lines that have few, and smooth the kinks of all others.

    Parameters
    ----------
    limits : width and cap of every line, and whether a part of very many rows will do
    chosen, u : the near rows, and their pre-activations
    n_samples : rows of all blocks
    """
    widths, caps, is_rough = (np.array(column) for column in zip(*limits, strict=True))
    chosen, u = _drop_zero_rows(coordinates, block, chosen, u, space)
    n_near = chosen.counts
    is_brought = n_near <= caps
    few = _of_lines(block, chosen, u, is_brought)
    near, moments = _bring(coordinates, block, *few, is_brought, space)
    chosen, u = _of_lines(block, chosen, u, ~is_brought)
    n_summed = chosen.counts
    n_kept = SUMMED_FACTOR * coordinates.n_directions * block.n_rows / n_samples
    chosen, u = _thin_out(block, chosen, u, n_kept, is_rough)
    stands_for = n_summed / np.maximum(chosen.counts, 1)
    sums = _sum_lines(coordinates, block, widths, chosen, u, stands_for, space)
    return Bands(
        sums=sums._replace(moments=sums.moments + moments),
        n_near=n_near.astype(np.float64),
        near=near,
        n_skipped=(n_summed - chosen.counts).astype(np.float64),
    )


def sum_near(near: Near, width: float) -> NearSums:
    """The sums over rows that have been brought back, in one line."""
    block = Block(None, near.v, None, 0)
    rows = PieceRows(block, block.workspace(), near.Z, near.v[:, None], np.ones(near.Z.shape[1]))
    total = np.zeros((1, 2, near.Z.shape[1] + 4, near.Z.shape[1] + 4))
    _add_part(total, rows, Layout(np.array([near.v.size])), near.v, near.u, 1.0, np.array([width]))
    return _split(total)


def _sum_lines(
    coordinates: Coordinates,
    block: Block,
    widths: Vector,
    chosen: ChosenRows,
    u: Any,
    stands_for: Vector,
    space: Workspace,
) -> NearSums:
    """The sums over near rows, each of which stands for so many."""
    q, number_of = coordinates.n_directions, block.to_float64(stands_for)
    total = block.zeros((widths.size, 2, q + 4, q + 4))
    for part in by_lines(coordinates, block, chosen, space):
        number = number_of[part.layout.lines] * part.layout.is_row
        _add_part(total, part.rows, part.layout, part.v, part.layout.arrange(u[part.place]), number, widths)
    return _split(block.to_numpy(total))


def _add_part(
    total: Any, rows: PieceRows, layout: Layout, v: Any, u: Any, number: Any, widths: Vector
) -> None:
    """Add the moments of some rows, and those with their kinks smoothed."""
    block, is_finite = rows.piece, np.isfinite(widths)
    kink = pieces.inactive_kink(v)
    weights, more = (number * (u > kink))[:, None], list[Any]()
    if is_finite.any():
        h = block.to_float64(np.where(is_finite, widths, 1.0))[layout.lines]
        half = block.to_float64(0.5 * is_finite)[layout.lines]
        curvature = pieces.smoothed_curvature(v, h)
        weights = block.xp.concat([weights, (number * half * curvature)[:, None]], axis=1)
        # The smoothed slope is its curvature times the distance from where it begins.
        inside, gap = u - kink + h, pieces.smoothed_gap(u, v, kink, h)
        more = [inside, block.xp.ones_like(v), 2.0 * gap / curvature]
    moments = rows.line_moments(layout, weights, *more)
    total[:, : moments.shape[1], : moments.shape[2], : moments.shape[2]] += moments


def _split(total: npt.NDArray[np.float64]) -> NearSums:
    """What the moments of the columns [Z, v, inside, 1, gap] say."""
    q, smoothed = total.shape[-1] - 4, total[:, 1]
    return NearSums(
        moments=total[:, 0, : q + 1, : q + 1],
        slopes=smoothed[:, :q, q + 1],
        grams=smoothed[:, :q, :q],
        gaps=smoothed[:, q + 2, q + 3],
    )


def _of_lines(block: Block, chosen: ChosenRows, u: Any, wanted: Mask) -> tuple[ChosenRows, Any]:
    """The rows of some lines."""
    if wanted.all():
        return chosen, u
    places = [place for place, keep in zip(line_slices(chosen.counts), wanted, strict=True) if keep]
    index, u = (block.xp.concat([a[:0], *(a[place] for place in places)]) for a in (chosen.index, u))
    return ChosenRows(index, chosen.counts * wanted), u


def _thin_out(
    block: Block, chosen: ChosenRows, u: Any, n_kept: float, may_skip: Mask
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


def _bring(
    coordinates: Coordinates, block: Block, chosen: ChosenRows, u: Any, is_brought: Mask, space: Workspace
) -> tuple[tuple[tuple[Near, ...] | None, ...], npt.NDArray[np.float64]]:
    """The rows of the lines that are brought back, None for the others; and the moments of those right."""
    found: list[list[Near]] = [[] for _ in is_brought]
    q = coordinates.n_directions
    total = block.zeros((is_brought.size, 1, q + 1, q + 1))
    for part in by_lines(coordinates, block, chosen, space):
        u_part = u[part.place]
        is_right = part.layout.arrange(u_part) > pieces.inactive_kink(part.v)
        total += part.rows.line_moments(part.layout, (part.layout.is_row * is_right)[:, None])
        # All at once: every transfer from a device takes its time.
        Z, v = (block.to_numpy(part.layout.pick(a)) for a in (part.rows.dense(), part.v))
        # The memory of the outcomes is used again.
        v, u_part = v.copy(), block.to_numpy(u_part)
        for line, rows in zip(found, line_slices(part.layout.counts), strict=True):
            if rows.stop > rows.start:
                line.append(Near(Z[rows], v[rows], u_part[rows]))
    near = tuple(tuple(line) if keep else None for line, keep in zip(found, is_brought, strict=True))
    return near, block.to_numpy(total)[:, 0]
