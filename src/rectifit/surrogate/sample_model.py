"""What a sample of the rows, kept in memory, says of passes to come.

It says where the minimum of a surrogate is, about; how far it moves from one active set to the next; and how
wide the band around the kinks must be that holds a given number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rectifit import pieces
from rectifit._typing import Mask, Vector
from rectifit.active import ActiveSet, Cut, Sign
from rectifit.coordinates import Coordinates
from rectifit.data.blocks import Block
from rectifit.data.problem import Problem
from rectifit.data.sampling import Sample
from rectifit.parallel import workers
from rectifit.routing import is_small
from rectifit.surrogate.near_far import Found, SurrogateStart, count_near
from rectifit.surrogate.piece_rows import read_piece
from rectifit.surrogate.solution import SurrogateSolution
from rectifit.surrogate.solver import SurrogateSolver

__all__ = ["BandTarget", "SampleModel"]

# Numbers in the near rows that are sought; up to twice as many rows are kept.
MAX_NEAR_NUMBERS = 1 << 23
# Share of the step from one active set to the next, as the sample predicts it, by which rows still move.
AFTER_SAMPLE = 0.3
# Share of u by which rows are expected to move from one active set to the next where no sample says it.
STAY_REACH = 0.1
# Looks at a surrogate, from the first one, that may be rough.
MAX_ROUGH_TURNS = 6
# Solvers of surrogates of a large sample, which work side by side.
MAX_SOLVERS = 8
# The rows of the sample from which the density of kinks is read.
MIN_TELLING_ROWS = 20
MIN_WIDTH = 1e-13


class BandTarget(NamedTuple):
    """Up to which distance from their kinks rows are near, and how many of them are brought back.

    If the step that is made from them is a rough one in any case, a part of very many rows will do.
    """

    width: float
    cap: int
    is_rough: bool = False


class SampleModel:
    """Predictions from the sample.

    Parameters
    ----------
    coordinates : Coordinates
    sample : Sample
    problem : the sample as a problem in memory; None if none of its rows has weight
    n_samples, near_factor : rows of all data, and near rows per direction that a pass should bring back
    n_threads : threads that minimise surrogates of the sample
    """

    def __init__(
        self,
        coordinates: Coordinates,
        sample: Sample,
        problem: Problem | None,
        n_samples: int,
        near_factor: int,
        n_threads: int = 1,
    ) -> None:
        self.n_threads = n_threads
        self.coordinates, self.sample, self._problem = coordinates, sample, problem
        self.n_samples, self.near_factor = n_samples, near_factor
        block = Block(sample.X, sample.y, sample.w, 0)
        rows, self._v = read_piece(coordinates, block, block.workspace())
        self._Z = rows.dense()
        self._moves = (self._Z != 0.0).any(axis=1)
        self._solved: dict[int, tuple[ActiveSet, Vector]] = {}
        # How many there are does not depend on the threads, and so no result does.
        self._solvers: dict[int, SurrogateSolver] = {}
        self._n_solvers = 1 if is_small(*self._Z.shape) else MAX_SOLVERS

    def starts(
        self, sets: Sequence[ActiveSet], bases: Sequence[Found | None], otherwise: Vector
    ) -> list[SurrogateStart]:
        """Where to begin with surrogates.

        From minima found before, where they are given, each moved as the minimum of the sample moves; else
        where the surrogates of the sample have their minima, or, without these, at `otherwise`.
        """
        if self._problem is None:
            first = SurrogateStart(otherwise, self._length(otherwise))
            return [first if base is None else self._stay(base) for base in bases]
        before = self._minimise([base.at.active for base in bases if base is not None])
        after, shifted = self._minimise(sets), iter(before)
        return [
            self._begin(active, new) if base is None else self._move(base, new - next(shifted))
            for active, base, new in zip(sets, bases, after, strict=True)
        ]

    def _begin(self, active: ActiveSet, gamma: Vector) -> SurrogateStart:
        """At the minimum of the sample."""
        q, m = self.coordinates.n_directions, self._v.size
        if m >= self.n_samples:
            return SurrogateStart(gamma)
        kink = pieces.kinks(self._v, self._mark(active))
        residual = float(pieces.value(self._Z @ gamma, self._v, kink).mean())
        return SurrogateStart(gamma, math.sqrt(residual * q / m))

    def _stay(self, base: Found) -> SurrogateStart:
        """At the minimum itself, with what is known there."""
        reach = 0.0 if base.ahead is not None else STAY_REACH * self._length(base.at.gamma)
        return SurrogateStart(base.at.gamma, reach, base.ahead, base.view)

    def _move(self, base: Found, shift: Vector) -> SurrogateStart:
        """To where the sample says, or, if that is near, by what is known at the minimum."""
        length = self._length(shift)
        if base.ahead is not None and 2.0 * length <= base.ahead.width:
            return SurrogateStart(base.at.gamma, 0.0, base.ahead)
        return SurrogateStart(base.at.gamma + shift, AFTER_SAMPLE * length, beside=base.view)

    def target(self, active: ActiveSet, gamma: Vector, reach: float, turn: int) -> BandTarget:
        """A band with as many rows as are sought, or with all that may cross; too many are not kept."""
        n, m = self.n_samples, self._v.size
        n_near = count_near(self.coordinates.n_directions, self.near_factor, turn, MAX_NEAR_NUMBERS)
        if n <= n_near:
            return BandTarget(math.inf, 2 * n_near)
        distances = np.abs(self._Z @ gamma - pieces.inactive_kink(self._v))
        kinked = np.sort(distances[~self._mark(active) & self._moves])
        if kinked.size == 0:
            return BandTarget(max(float(distances.max()), MIN_WIDTH), 2 * n_near)
        expected = n_near * m / n
        if expected >= MIN_TELLING_ROWS:
            width = float(kinked[min(int(expected), kinked.size - 1)])
        else:
            first = min(MIN_TELLING_ROWS, kinked.size)
            width = float(kinked[first - 1]) * expected / first
        is_rough = 2.0 * reach > width and turn < MAX_ROUGH_TURNS
        width = max(width, 2.0 * reach, MIN_WIDTH)
        found = int(np.searchsorted(kinked, width, side="right"))
        too_many = found >= MIN_TELLING_ROWS and found > 3.0 * expected
        return BandTarget(width, 0 if too_many else 2 * n_near, is_rough)

    def _length(self, delta: Vector) -> float:
        """Root mean square of what rows move."""
        return math.sqrt(float(np.square(self._Z @ delta).mean()))

    def _mark(self, active: ActiveSet) -> Mask:
        """Active rows of the sample."""
        v, scale = self._v, self.coordinates.scale
        if isinstance(active, Cut):
            # Rows of the sample are not consecutive.
            cut = active.value / scale
            return np.asarray(((v > cut) | ((v == cut) & (self.sample.index >= active.first))) & (v > 0.0))
        assert isinstance(active, Sign)
        return np.asarray((self._Z @ active.gamma > active.zero / scale) & (v > 0.0))

    def _solve_each(self, place: int, marks: Mask) -> list[SurrogateSolution]:
        """Minimise surrogates of the sample one after another, with one of several solvers."""
        if place not in self._solvers:
            assert self._problem is not None
            self._solvers[place] = SurrogateSolver(self._problem)
        return self._solvers[place].solve_each(marks)

    def _minimise(self, sets: Sequence[ActiveSet]) -> list[Vector]:
        """Minimisers of the surrogates of the sample; the last ones are remembered."""
        kept = [self._solved.get(id(active)) for active in sets]
        new = [active for active, known in zip(sets, kept, strict=True) if known is None]
        if new:
            marks = np.array([self._mark(active) for active in new])
            # Neighbours stay together: one begins where the one before it ends.
            parts = np.array_split(marks, min(self._n_solvers, len(new)))
            with workers(min(self.n_threads, len(parts))) as mapped:
                solutions = [s for part in mapped(self._solve_each, range(len(parts)), parts) for s in part]
            for active, s in zip(new, solutions, strict=True):
                gamma = self.coordinates.from_coefficients(s.beta, s.intercept)
                self._solved[id(active)] = active, gamma
        found = [self._solved[id(active)][1] for active in sets]
        self._solved = {id(active): self._solved[id(active)] for active in sets}
        return found
