"""The first pass over data that is not held in memory: sums over the columns, and a sample of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.coordinates import Coordinates
from rectifit.data.blocks import Block, Total, merge_all
from rectifit.data.sums import check_block
from rectifit.data.workspace import Workspace
from rectifit.surrogate.piece_rows import read_piece

__all__ = ["GramTask", "Sample", "Survey", "SurveyTask", "hash_rows", "join_samples"]


class Sample(NamedTuple):
    """Some rows in memory: X, y, weights or None, and their numbers."""

    X: Any
    y: Vector
    w: Vector | None
    index: Any


def join_samples(parts: list[Sample]) -> Sample:
    """Samples of several pieces as one."""
    X, y, w, index = zip(*parts, strict=True)
    weights = None if w[0] is None else np.concatenate(w)
    return Sample(np.concatenate(X), np.concatenate(y), weights, np.concatenate(index))


@dataclass(frozen=True)
class Survey:
    """Sums over rows a = sqrt(w) [x, 1] and v = sqrt(w) y over a scale; every column over its largest entry.

    Attributes
    ----------
    largest : largest |a_j| of every column
    gram, cross : A'A and A'v in these units
    sample : some of the rows
    """

    largest: Vector
    gram: Matrix
    cross: Vector
    sample: list[Sample]

    def __getstate__(self) -> dict[str, Any]:
        # Few large arrays travel faster than many small ones.
        return self.__dict__ | {"sample": [join_samples(self.sample)] if self.sample else []}

    def merge(self, other: Survey) -> Survey:
        """Both, in the units of the larger."""
        largest = np.maximum(self.largest, other.largest)
        gram, cross = np.zeros_like(self.gram), np.zeros_like(self.cross)
        for part in (self, other):
            ratio = part.largest / np.where(largest > 0.0, largest, 1.0)
            gram += part.gram * np.outer(ratio, ratio)
            cross += part.cross * ratio
        return Survey(largest, gram, cross, self.sample + other.sample)


@dataclass(frozen=True)
class SurveyTask:
    """The first pass. Each row is in the sample with probability `share`, by its number alone."""

    fit_intercept: bool
    scale: float
    share: float

    def __call__(self, block: Block) -> Survey:
        """Check X and sum up the rows of a block."""
        space = block.workspace()
        return merge_all(self._survey(piece, space) for piece in block.pieces())

    def _survey(self, piece: Block, space: Workspace) -> Survey:
        xp, A = piece.xp, piece.matrix(space)
        # NaN where an entry is.
        largest = piece.to_numpy(xp.maximum(xp.max(A, axis=0), -xp.min(A, axis=0)))
        if not np.isfinite(largest).all():
            check_block(piece.X, "X", xp)
        if self.fit_intercept:
            largest = np.append(largest, float(xp.max(piece.root_weight)))
        unit = 1.0 / np.where(largest > 0.0, largest, 1.0)
        coordinates = Coordinates.from_diagonal(unit, unit, self.scale, self.fit_intercept)
        moments = piece.to_numpy(read_piece(coordinates, piece, space)[0].moments())
        return Survey(largest, moments[:-1, :-1], moments[:-1, -1], self._sample(piece))

    def _sample(self, piece: Block) -> list[Sample]:
        index = piece.row_numbers()
        # Never empty: the first row is always in it.
        chosen = ((hash_rows(index) >> 11) & ((1 << 53) - 1) < self.share * 2.0**53) | (index == 0)
        if not bool(piece.xp.any(chosen)):
            return []
        # Rows are copied: a view would keep the block.
        return [
            Sample(
                np.array(piece.to_numpy(piece.X[chosen])),
                np.array(piece.to_numpy(piece.y[chosen]), dtype=np.float64),
                None if piece.w is None else np.array(piece.to_numpy(piece.w[chosen]), dtype=np.float64),
                np.array(piece.to_numpy(index[chosen])),
            )
        ]


@dataclass(frozen=True)
class GramTask:
    """Z'Z in given coordinates."""

    coordinates: Coordinates

    def __call__(self, block: Block) -> Total:
        """The sum over a block."""
        space = block.workspace()
        rows = (read_piece(self.coordinates, piece, space)[0] for piece in block.pieces())
        return merge_all(Total(part.piece.to_numpy(part.moments())[:-1, :-1]) for part in rows)


def hash_rows(index: Any) -> Any:
    """A 64-bit whole number for every row number, as good as random (splitmix64).

    Written for signed numbers, the only ones that every array library has: shifts are masked, and the
    multipliers are those of splitmix64 less 2^64.
    """
    h = index * -0x61C8864680B583EB
    h = (h ^ ((h >> 30) & ((1 << 34) - 1))) * -0x40A7B892E31B1A47
    h = (h ^ ((h >> 27) & ((1 << 37) - 1))) * -0x6B2FB644ECCEEE15
    return h ^ ((h >> 31) & ((1 << 33) - 1))
