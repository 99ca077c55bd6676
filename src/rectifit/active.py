"""Active sets: which of the positive samples the surrogate takes for switched on.

An active set is given in one of three ways, and never stored where it can be described:

    Members    a mask over samples, for data in memory
    Cut        the samples above a cut through the sorted outcomes sqrt(w) y
    Sign       the samples with u > 0 at a point

Samples with y <= 0 have a convex loss and are never in an active set.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rectifit._typing import Mask, Vector

if TYPE_CHECKING:
    from rectifit.data.blocks import Block

__all__ = ["ALL", "NONE", "ActiveSet", "Cut", "Members", "Sign", "split_ranks"]


class ActiveSet(ABC):
    """A set of positive samples."""

    @abstractmethod
    def mark(self, block: Block, v: Any, scale: float, u: Any = None) -> Any:
        """The rows of a block that are in the set.

        Parameters
        ----------
        block : Block
        v : its outcomes sqrt(w) y over the scale
        scale : float
        u : sqrt(w) u over the scale at the point that decides, if there is one and it is known
        """

    @property
    @abstractmethod
    def key(self) -> Hashable:
        """Equal for equal sets of one kind."""


@dataclass(frozen=True, eq=False)
class Members(ActiveSet):
    """A mask over all samples, for data in memory."""

    mask: Mask

    def mark(self, block: Block, v: Any, scale: float, u: Any = None) -> Any:  # noqa: ARG002
        """The members with a positive outcome."""
        return self.mask[block.start : block.start + block.n_rows] & (v > 0.0)

    @property
    def key(self) -> Hashable:
        return np.packbits(self.mask).tobytes()


@dataclass(frozen=True)
class Cut(ActiveSet):
    """Outcomes sqrt(w) y above `value`, and equal ones from row `first` on."""

    value: float
    first: int

    def mark(self, block: Block, v: Any, scale: float, u: Any = None) -> Any:  # noqa: ARG002
        """The positive outcomes that are not below the cut."""
        cut = self.value / scale
        active = v >= cut
        if self.first > block.start:
            head = self.first - block.start
            active[:head] = v[:head] > cut
        return active & (v > 0.0)

    @property
    def key(self) -> Hashable:
        return self.value, self.first


@dataclass(frozen=True, eq=False)
class Sign(ActiveSet):
    """Samples with sqrt(w) u > zero at a point.

    Attributes
    ----------
    beta, intercept : the point
    zero : sqrt(w) u up to this size is an exact 0 but for rounding
    gamma : the point in the working coordinates in which it was found, which have all of its digits
    fingerprint : a number that is equal for points with the same active set (`rectifit.surrogate.sweep`),
        where it is known
    """

    beta: Vector
    intercept: float
    zero: float
    gamma: Vector
    fingerprint: int | None = None

    def mark(self, block: Block, v: Any, scale: float, u: Any = None) -> Any:
        """The positive outcomes that the point switches on."""
        if u is None:
            u = block.preactivation(self.beta, self.intercept, block.workspace()) * (1.0 / scale)
        return (u > self.zero / scale) & (v > 0.0)

    @property
    def key(self) -> Hashable:
        return self.fingerprint


# All positive samples, and none.
ALL = Cut(0.0, 0)
NONE = Cut(math.inf, 0)


def split_ranks(n_samples: int, n_splits: int) -> list[int]:
    """floor(t n / N) for t = 0, ..., N: how many samples each split of the sorting method leaves out.

    There are at most as many splits as samples.

    Examples
    --------
    >>> split_ranks(7, 3)
    [0, 2, 4, 7]
    """
    n_splits = min(n_splits, n_samples)
    return [t * n_samples // n_splits for t in range(n_splits + 1)]
