"""Exact order statistics of outcomes in blocks; X is not read.

The bits of positive floating-point numbers, read as whole numbers, have the order of the numbers: they are
keys. For every rank that is sought there is a bracket of keys, at first as a sample suggests. A pass counts
the samples below each bracket and those in the bins that it is divided into, and the bin with the rank is the
next bracket. When few samples are left, a pass brings them back. Samples with equal outcomes are ordered by
their row numbers, which are then the keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit._typing import Vector
from rectifit.active import Cut
from rectifit.data.blocks import Block, Total

__all__ = ["find_cuts"]

Keys = npt.NDArray[np.int64]

# A bracket has at most 2^BIN_BITS bins.
BIN_BITS = 13
# So few samples are brought back.
MAX_MEMBERS = 4096
# How far the sample's quantiles are trusted, in standard deviations.
TRUST = 4.0
# Keys of the least and of the largest positive number.
MIN_KEY = 1
MAX_KEY = int(np.array(np.finfo(np.float64).max).view(np.int64))


class _Bracket(NamedTuple):
    """Keys from low to high; with a tie, row numbers among the samples with that outcome."""

    low: int
    high: int
    tie: float | None = None

    @property
    def shift(self) -> int:
        """Bits of a key within its bin."""
        return max(0, (self.high - self.low).bit_length() - BIN_BITS)


@dataclass(frozen=True)
class _Members:
    """Keys and row numbers of all samples in each bracket."""

    members: tuple[tuple[Keys, Keys], ...]

    def merge(self, other: _Members) -> _Members:
        pairs = zip(self.members, other.members, strict=True)
        return _Members(tuple((np.append(a, c), np.append(b, d)) for (a, b), (c, d) in pairs))


class _KeyedBlock:
    """Keys of the positive samples of a block."""

    def __init__(self, block: Block) -> None:
        self.block, v = block, block.outcomes()
        positive = v > 0.0
        self._v, self.rows = v[positive], block.row_numbers()[positive]
        self._bits = block.bits(self._v)

    def keys(self, bracket: _Bracket) -> tuple[Any, Any]:
        """Keys that matter to a bracket, and their row numbers."""
        if bracket.tie is None:
            return self._bits, self.rows
        rows = self.rows[self._v == bracket.tie]
        return rows, rows


@dataclass(frozen=True)
class _CountTask:
    """Per bracket the samples below it and in its bins."""

    brackets: tuple[_Bracket, ...]

    def __call__(self, block: Block) -> Total:
        keyed, xp = _KeyedBlock(block), block.xp
        counts = np.zeros((len(self.brackets), 1 + (1 << BIN_BITS)), dtype=np.int64)
        for line, bracket in enumerate(self.brackets):
            keys, _ = keyed.keys(bracket)
            below = keys < bracket.low
            inside = keys[~below & (keys <= bracket.high)]
            counts[line, 0] = int(xp.sum(below))
            bins = (inside - bracket.low) >> bracket.shift
            counts[line, 1:] = block.to_numpy(xp.bincount(bins, minlength=1 << BIN_BITS))
        return Total(counts)


@dataclass(frozen=True)
class _MemberTask:
    brackets: tuple[_Bracket, ...]

    def __call__(self, block: Block) -> _Members:
        keyed, members = _KeyedBlock(block), []
        for bracket in self.brackets:
            keys, rows = keyed.keys(bracket)
            inside = (keys >= bracket.low) & (keys <= bracket.high)
            members.append(tuple(np.array(block.to_numpy(a[inside]), dtype=np.int64) for a in (keys, rows)))
        return _Members(tuple(members))  # type: ignore[arg-type]


def find_cuts(
    reduce: Callable[[Any], Any], ranks: Sequence[int], n_samples: int, n_positive: int, sample: Vector
) -> list[Cut]:
    """The cuts before the samples of these ranks (from 0) among the positive ones in ascending order.

    Parameters
    ----------
    reduce : makes a pass
    ranks : each below n_positive
    n_samples, n_positive : of the data
    sample : positive outcomes of some of the samples, in ascending order
    """
    guesses = [_guess(rank / n_positive, sample) for rank in ranks]
    found = _narrow(reduce, ranks, guesses)
    # Too many equal outcomes are cut by their row numbers.
    tied = {
        e: _Bracket(0, n_samples - 1, _value(bracket.low))
        for e, (bracket, _, n_inside) in enumerate(found)
        if n_inside > MAX_MEMBERS
    }
    rows = _narrow(reduce, [found[e][1] for e in tied], list(tied.values()))
    for e, line in zip(tied, rows, strict=True):
        found[e] = line
    members = reduce(_MemberTask(tuple(bracket for bracket, _, _ in found))).members
    return [_cut(bracket, rest, *line) for (bracket, rest, _), line in zip(found, members, strict=True)]


def _cut(bracket: _Bracket, rest: int, keys: Keys, rows: Keys) -> Cut:
    """The cut before the sample that has so many before it among the members of its bracket."""
    order = np.lexsort((rows, keys))
    key, row = int(keys[order[rest]]), int(rows[order[rest]])
    if bracket.tie is not None:
        return Cut(bracket.tie, row)
    # Before the first of all equal ones the row does not matter.
    is_first = rest == int((keys < key).sum())
    return Cut(_value(key), 0 if is_first else row)


def _value(key: int) -> float:
    return float(np.array(key, dtype=np.int64).view(np.float64))


def _guess(share: float, sample: Vector) -> _Bracket:
    """Where a sample says that a share of the outcomes is below."""
    m = sample.size
    spread = TRUST * math.sqrt(share * (1.0 - share) * m) + 1.0
    first, last = math.floor(share * m - spread), math.ceil(share * m + spread)
    keys = sample.view(np.int64)
    return _Bracket(int(keys[first]) if first >= 0 else MIN_KEY, int(keys[last]) if last < m else MAX_KEY)


def _narrow(
    reduce: Callable[[Any], Any], ranks: Sequence[int], brackets: Sequence[_Bracket]
) -> list[tuple[_Bracket, int, int]]:
    """Brackets with few samples or a single key, the rank within them, and how many samples they have."""
    found = [(bracket, rank, -1) for bracket, rank in zip(brackets, ranks, strict=True)]
    while wide := [e for e, (b, _, n) in enumerate(found) if n < 0 or (n > MAX_MEMBERS and b.low < b.high)]:
        lines = reduce(_CountTask(tuple(found[e][0] for e in wide))).value
        for e, line in zip(wide, lines, strict=True):
            found[e] = _choose_bin(found[e][0], ranks[e], int(line[0]), line[1:])
    return found


def _choose_bin(bracket: _Bracket, rank: int, n_below: int, counts: Keys) -> tuple[_Bracket, int, int]:
    if rank < n_below:
        return bracket._replace(low=MIN_KEY, high=bracket.low - 1), rank, -1
    ends = n_below + np.cumsum(counts)
    if rank >= ends[-1]:
        return bracket._replace(low=bracket.high + 1, high=MAX_KEY), rank, -1
    chosen = int(np.searchsorted(ends, rank, side="right"))
    low = bracket.low + (chosen << bracket.shift)
    high = min(low + (1 << bracket.shift) - 1, bracket.high)
    n_inside = int(counts[chosen])
    return bracket._replace(low=low, high=high), rank - int(ends[chosen]) + n_inside, n_inside
