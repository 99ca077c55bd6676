"""Exact order statistics of outcomes in blocks, by counting digits; X is not read.

The bits of positive floating-point numbers, read as whole numbers, have the order of the numbers. A pass
counts, for every rank that is sought, the next digit among the samples that agree with the digits known so
far. Samples with equal outcomes are ordered by their row numbers, counted in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rectifit.scale.blocks import Block

__all__ = ["Cut", "find_cuts"]

Counts = npt.NDArray[np.int64]

DIGIT, BITS = 13, 65


@dataclass(frozen=True)
class Cut:
    """Where the sorted samples are cut: active are outcomes above `value`, and equal ones from row `first`.

    The value is one of sqrt(w) y.
    """

    value: float
    first: int


@dataclass(frozen=True)
class _Digits:
    counts: Counts

    def merge(self, other: _Digits) -> _Digits:
        return _Digits(self.counts + other.counts)


@dataclass(frozen=True)
class _CountDigits:
    """Counts of a digit, one line per prefix; of rows numbers among samples whose outcome is ties[line]."""

    prefixes: tuple[int, ...]
    shift: int
    ties: tuple[float, ...] | None = None

    def __call__(self, block: Block) -> _Digits:
        v = block.outcomes()
        positive = v > 0.0
        keys = (block.row_numbers() if self.ties is not None else block.bits(v))[positive]
        v = v[positive]
        counts = np.zeros((len(self.prefixes), 1 << DIGIT), dtype=np.int64)
        # A shift by all bits and more is not defined.
        heads = keys >> (self.shift + DIGIT) if self.shift + DIGIT < 63 else keys * 0
        digits = (keys >> self.shift) & ((1 << DIGIT) - 1)
        for line, prefix in enumerate(self.prefixes):
            chosen = heads == prefix
            if self.ties is not None:
                chosen &= v == self.ties[line]
            counts[line] = block.lower(block.xp.bincount(digits[chosen], minlength=1 << DIGIT))
        return _Digits(counts)


def find_cuts(reduce: Callable[[Any], Any], ranks: list[int], n_samples: int) -> list[Cut]:
    """The cuts before the samples of these ranks (from 0) among the positive ones in ascending order."""
    bits, rest, n_equal = _select(reduce, ranks, BITS, None)
    values = np.array(bits, dtype=np.int64).view(np.float64).tolist()
    first = [0] * len(ranks)
    # Only where the cut goes through equal outcomes their row numbers matter.
    tied = [e for e in range(len(ranks)) if rest[e] > 0]
    if tied:
        assert all(rest[e] < n_equal[e] for e in tied)
        rows, _, _ = _select(
            reduce, [rest[e] for e in tied], n_samples.bit_length(), tuple(values[e] for e in tied)
        )
        for e, row in zip(tied, rows, strict=True):
            first[e] = row
    return [Cut(value, row) for value, row in zip(values, first, strict=True)]


def _select(
    reduce: Callable[[Any], Any], ranks: list[int], n_bits: int, ties: tuple[float, ...] | None
) -> tuple[list[int], list[int], list[int]]:
    """Keys at the ranks, the ranks among equal keys, and how many those are."""
    prefixes, rest, n_equal = [0] * len(ranks), list(ranks), [0] * len(ranks)
    for level in reversed(range(-(-n_bits // DIGIT))):
        counts = reduce(_CountDigits(tuple(prefixes), level * DIGIT, ties)).counts
        for e, line in enumerate(counts):
            ends = np.cumsum(line)
            digit = int(np.searchsorted(ends, rest[e], side="right"))
            rest[e] -= int(ends[digit] - line[digit])
            prefixes[e] = (prefixes[e] << DIGIT) | digit
            n_equal[e] = int(line[digit])
    return prefixes, rest, n_equal
