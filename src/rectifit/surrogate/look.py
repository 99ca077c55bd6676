"""One look at rows, for many surrogates: on which side of its kink each row is, and how near to it.

A look reads the pre-activations U of all rows, one line per surrogate, and leaves masks and sums. It is
written here with the array functions that all libraries have. `rectifit.surrogate.look_compiled` is the same
on NumPy arrays, and `rectifit.surrogate.look_triton` on an accelerator for which Triton compiles: both read
every pre-activation once, where array functions read it fifteen times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit._typing import Vector
from rectifit.data.blocks import Block
from rectifit.data.sampling import hash_rows
from rectifit.data.workspace import Workspace

__all__ = ["Limits", "Look", "Masks", "Seen", "look", "near_rows"]

Counts = npt.NDArray[np.int64]


class Limits(NamedTuple):
    """Numbers for every line.

    Attributes
    ----------
    width : distance from their kinks up to which rows are near
    zero : up to which u counts as 0 in the fingerprint of the active set at the point; infinite if none is
        asked for
    threshold : above which u at the point that decides makes a row active, where a point decides
    """

    width: Vector
    zero: Vector
    threshold: Vector


class Masks(NamedTuple):
    """Masks over the rows, one line per surrogate: active, and right of the kink."""

    active: Any
    right: Any


class Seen(NamedTuple):
    """What a look has seen, one entry per line.

    Attributes
    ----------
    values, objectives : F_I and L
    fingerprints : of the active set, and of the one at the point
    n_near, n_right : rows near their kinks, and right of them
    n_next, n_base : rows on another side than in the next line (0 in the last one), and than in the base
    """

    values: Vector
    objectives: Vector
    fingerprints: Counts
    n_near: Counts
    n_right: Counts
    n_next: Counts
    n_base: Counts

    def merge(self, other: Seen) -> Seen:
        """The sums over both parts of the rows."""
        both: list[Any] = [a + b for a, b in zip(self, other, strict=True)]
        return Seen(*both)


class Look(NamedTuple):
    """What has been seen, and the near rows, line after line.

    Attributes
    ----------
    where : numbers of the near rows; the rows of a line follow those of the line before
    u : their pre-activations
    """

    seen: Seen
    where: Any
    u: Any


def look(
    piece: Block,
    v: Any,
    U: Any,
    given: Sequence[Any],
    bases: Sequence[Any],
    limits: Limits,
    masks: Masks,
    space: Workspace,
) -> Look:
    """Look at a piece of the data, and fill in the masks.

    Parameters
    ----------
    v : outcomes
    U : pre-activations; after the lines of the surrogates, those at the points that decide
    given : active rows of every line, or None where the next of these points decides
    bases : rows on the right in a former look, or None
    """
    xp, k, positive = piece.xp, len(given), v > 0.0
    points, (active, right), near = iter(U[k:]), masks, space("near", (k, int(v.shape[0])), "bool")
    for line, mask in enumerate(given):
        active[line] = (next(points) > limits.threshold[line]) & positive if mask is None else mask
    U = U[:k]
    kink = xp.multiply(v, positive, out=space("kink", tuple(v.shape)))
    kink *= 2.0
    on, R = space("on", tuple(U.shape), "bool"), space("residual", tuple(U.shape))
    right[...] = xp.greater(U, kink, out=on)
    right |= active
    xp.abs(xp.subtract(U, kink, out=R), out=R)
    xp.less_equal(R, piece.to_float64(limits.width)[:, None], out=near)
    near &= xp.logical_not(active, out=on)
    values = _squares(piece, U, right, v, R)
    objectives = _squares(piece, U, xp.greater(U, 0.0, out=on), v, R)
    fingerprints = np.zeros((k, 2), dtype=np.int64)
    if np.isfinite(limits.zero).any():
        at_point = xp.greater(U, piece.to_float64(limits.zero)[:, None], out=on)
        at_point &= positive
        numbers = hash_rows(piece.row_numbers())
        # Sums of arrays wrap around without a warning; products are faster than choosing the rows.
        for column, rows in enumerate((active, at_point)):
            fingerprints[:, column] = piece.to_numpy(xp.sum(rows * numbers, axis=1))
    n_next, n_base = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
    n_next[:-1] = piece.count(right[:-1] ^ right[1:])
    for line, base in enumerate(bases):
        if base is not None:
            (n_base[line],) = piece.count((right[line] ^ base)[None])
    seen = Seen(values, objectives, fingerprints, piece.count(near), piece.count(right), n_next, n_base)
    return Look(seen, *near_rows(piece, near, U))


def near_rows(piece: Block, near: Any, U: Any) -> tuple[Any, Any]:
    """Numbers and pre-activations of near rows, from their masks."""
    where = piece.xp.nonzero(piece.xp.reshape(near, (-1,)))[0]
    return where, piece.xp.take(piece.xp.reshape(U, (-1,)), where)


def _squares(piece: Block, U: Any, on: Any, v: Any, out: Any) -> Vector:
    """Sums of (u on - v)^2, line by line."""
    R = piece.xp.multiply(U, on, out=out)
    R -= v
    found: Vector = piece.to_numpy(piece.squares(R))
    return found
