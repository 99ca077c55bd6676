"""The first pass over data that is not held in memory: sums over the columns, and a sample of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.coordinates import Coordinates
from rectifit.data.blocks import Block, Total, merge_all
from rectifit.data.sampling import RowSample, SampleTask
from rectifit.data.sums import check_block
from rectifit.data.workspace import Workspace
from rectifit.surrogate.piece_rows import read_piece

__all__ = ["GramTask", "Survey", "SurveyTask"]


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
    sample: RowSample

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"sample": self.sample.compact()}

    def merge(self, other: Survey) -> Survey:
        """Both, in the units of the larger."""
        largest = np.maximum(self.largest, other.largest)
        gram, cross = np.zeros_like(self.gram), np.zeros_like(self.cross)
        for part in (self, other):
            ratio = part.largest / np.where(largest > 0.0, largest, 1.0)
            gram += part.gram * np.outer(ratio, ratio)
            cross += part.cross * ratio
        return Survey(largest, gram, cross, self.sample.merge(other.sample))


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
        return Survey(largest, moments[:-1, :-1], moments[:-1, -1], SampleTask(self.share)(piece))


@dataclass(frozen=True)
class GramTask:
    """Z'Z in given coordinates."""

    coordinates: Coordinates

    def __call__(self, block: Block) -> Total:
        """The sum over a block."""
        space = block.workspace()
        rows = (read_piece(self.coordinates, piece, space)[0] for piece in block.pieces())
        return merge_all(Total(part.piece.to_numpy(part.moments())[:-1, :-1]) for part in rows)
