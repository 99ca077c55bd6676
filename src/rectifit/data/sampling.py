"""A random sample of the rows, by their numbers alone: the same however the data is split into blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rectifit._typing import Vector
from rectifit.data.blocks import Block

__all__ = ["RowSample", "Sample", "SampleTask", "hash_rows", "uniform_keys"]

# Leading bits of the hash of a row that make a number between 0 and 1.
HASH_BITS = 53


class Sample(NamedTuple):
    """Some rows in memory: X, y, weights or None, and their numbers."""

    X: Any
    y: Vector
    w: Vector | None
    index: Any


class RowSample(NamedTuple):
    """Samples of several pieces, which are joined at the end."""

    parts: tuple[Sample, ...]

    def merge(self, other: RowSample) -> RowSample:
        """The rows of both."""
        return RowSample(self.parts + other.parts)

    def joined(self) -> Sample:
        """All rows in one piece."""
        X, y, w, index = zip(*self.parts, strict=True)
        weights = None if w[0] is None else np.concatenate(w)
        return Sample(np.concatenate(X), np.concatenate(y), weights, np.concatenate(index))

    def compact(self) -> RowSample:
        """The same in one piece: few large arrays travel faster than many small ones."""
        return RowSample((self.joined(),)) if self.parts else self


@dataclass(frozen=True)
class SampleTask:
    """Each row is in the sample with probability `share`; the first row always is."""

    share: float

    def __call__(self, block: Block) -> RowSample:
        """The rows of a block."""
        index = block.row_numbers()
        chosen = (uniform_keys(index) < self.share) | (index == 0)
        if not bool(block.xp.any(chosen)):
            return RowSample(())
        # Rows are copied: a view would keep the block.
        w = None if block.w is None else np.array(block.to_numpy(block.w[chosen]), dtype=np.float64)
        X, numbers = (np.array(block.to_numpy(a[chosen])) for a in (block.X, index))
        y = np.array(block.to_numpy(block.y[chosen]), dtype=np.float64)
        return RowSample((Sample(X, y, w, numbers),))


def uniform_keys(index: Any) -> Any:
    """A number between 0 and 1 for every row number, as good as random."""
    return ((hash_rows(index) >> (64 - HASH_BITS)) & ((1 << HASH_BITS) - 1)) * 2.0**-HASH_BITS


def hash_rows(index: Any) -> Any:
    """A 64-bit whole number for every row number, as good as random (splitmix64).

    Written for signed numbers, the only ones that every array library has: shifts are masked, and the
    multipliers are those of splitmix64 less 2^64.
    """
    h = index * -0x61C8864680B583EB
    h = (h ^ ((h >> 30) & ((1 << 34) - 1))) * -0x40A7B892E31B1A47
    h = (h ^ ((h >> 27) & ((1 << 37) - 1))) * -0x6B2FB644ECCEEE15
    return h ^ ((h >> 31) & ((1 << 33) - 1))
