"""The engine over data read in passes: active sets are cuts through the outcomes, or signs of a point.

An active set is never stored, and all surrogates that do not depend on each other are minimised in the same
passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rectifit._typing import Vector
from rectifit.active import ALL, NONE, ActiveSet, Sign, split_ranks
from rectifit.bounds import allowance
from rectifit.data.blocks import blas_threads
from rectifit.data.problem import Point, Problem
from rectifit.data.ranks import find_cuts
from rectifit.parallel import limit_threads
from rectifit.surrogate.engine import Coefficients, Engine, Minimum
from rectifit.surrogate.model import Iterate
from rectifit.surrogate.near_far import Found, NearFar, SurrogateStart, count_near
from rectifit.surrogate.passes import PassReader
from rectifit.surrogate.sample_model import MAX_NEAR_NUMBERS
from rectifit.surrogate.solver import SurrogateSolver

__all__ = ["PassEngine", "PassPoint"]

# Numbers in the near rows of a surrogate from which on models are minimised side by side.
MIN_THREADED_NUMBERS = 1 << 17
# Share of the objective. Where rounding may move it by more, the terms of u are looked at in a pass.
MAX_LOOSE_ROUNDING = 1e-9


@dataclass(eq=False, slots=True)
class PassPoint(Point):
    """A point that a pass has looked at: in working units, and what it is the minimum of, if so."""

    at: Iterate
    found: Found | None = None


class PassEngine(Engine):
    """Minimises surrogates with a `NearFar` over a `PassReader`.

    Parameters
    ----------
    problem : Problem
    n_threads : int, optional
        Threads that read, and that minimise models between passes. Default: as many as BLAS may use.
    on_pass : called with the number of every pass over X that begins, optional

    Attributes
    ----------
    reader : PassReader
    """

    has_rows = False

    def __init__(
        self,
        problem: Problem,
        n_threads: int | None = None,
        on_pass: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.problem = problem
        self.watch: Callable[[Sequence[Point]], None] = lambda _: None
        # Counted now: while stages run, BLAS itself has one thread.
        self._n_threads = n_threads or problem.data.n_threads or blas_threads()
        self._on_pass = on_pass

    @cached_property
    def reader(self) -> PassReader:
        """Made, with a first pass over the data, when it is needed."""
        with limit_threads("blas"):
            return PassReader(self.problem, self._n_threads, self._on_pass)

    @cached_property
    def _engine(self) -> NearFar:
        # Threads work on blocks and models; matrix products use one each. With small models they would only
        # wait for each other.
        q = self.reader.coordinates.n_directions
        n_numbers = q * count_near(q, self.problem.data.near_factor, 0, MAX_NEAR_NUMBERS)
        return NearFar(self.reader, self._n_threads if n_numbers >= MIN_THREADED_NUMBERS else 1)

    @property
    def batch(self) -> int:  # type: ignore[override]
        return self._engine.batch

    @property
    def summary(self) -> PassReader:
        """Working coordinates, and sums over all rows in them."""
        return self.reader

    @property
    def sample(self) -> Problem | None:
        """The sample from which passes are planned."""
        return self.reader.model.problem

    def minimise(
        self, sets: Sequence[ActiveSet], starts: Sequence[Point] | None = None, follow: bool = False
    ) -> list[Minimum]:
        """Minimise the surrogates in shared passes, equal ones once."""
        names = [id(active) if active.key is None else active.key for active in sets]
        has_known = self.problem.allows_zero
        places = sorted(
            {name: e for e, name in enumerate(names) if not (has_known and sets[e] == NONE)}.values()
        )
        chosen = [sets[e] for e in places]
        with limit_threads("blas"):
            begin = self._starts(chosen, None if starts is None else [starts[e] for e in places])
            found = self._engine.solve(chosen, begin, self._sign if follow else None, self._watch)
        answers = {names[e]: self._minimum(one) for e, one in zip(places, found, strict=True)}
        return [answers.get(name) or self._zero() for name in names]

    def evaluate(self, points: Sequence[Coefficients]) -> list[Point]:
        """The true objectives of some coefficients, or of allowed ones near them, by one pass."""
        gammas = [
            self.reader.coordinates.from_coefficients(self.problem.allowed(beta), intercept)
            for beta, intercept in points
        ]
        with limit_threads("blas"):
            zeros = [self._engine.zero_of(gamma) for gamma in gammas]
            return [self._point(at) for at in self.reader.evaluate(gammas, zeros)]

    def active_at(self, points: Sequence[Point]) -> list[ActiveSet]:
        """The signs of the points."""
        return [self._sign(self._iterate(point)) for point in points]

    def following(self, minima: Sequence[Minimum]) -> list[ActiveSet | None]:
        """The signs of the minimisers, unless both active sets have the same fingerprint."""
        iterates = [self._iterate(minimum.point) for minimum in minima]
        return [None if at.repeats else self._sign(at) for at in iterates]

    def wider_at(self, point: Point) -> ActiveSet | None:  # noqa: ARG002
        """None: of samples exactly at 0, a pass keeps no record."""
        return None

    def split_sets(self, n_splits: int) -> list[ActiveSet]:
        """Cuts through the sorted outcomes, found by passes that do not read X."""
        outcomes = self.problem.data.outcomes
        n, m = outcomes.n_weighted, outcomes.n_positive
        # Ranks among the positive samples, which are the last m.
        ranks = [rank - (n - m) for rank in split_ranks(n, n_splits)]
        inner = [rank for rank in ranks if 0 < rank < m]
        sample = self.reader.sample
        v = sample.y if sample.w is None else np.sqrt(sample.w) * sample.y

        def count(task: Any) -> Any:
            return self.reader.data.reduce(task, design=False)

        found = find_cuts(count, inner, self.problem.n_samples, m, np.sort(v[v > 0.0])) if inner else []
        cuts = iter(found)
        return [NONE if rank >= m else ALL if rank <= 0 else next(cuts) for rank in ranks]

    def length(self, point: Point) -> float:
        """The norm of sqrt(w) u, from the Gram matrix of all rows."""
        coordinates = self.reader.coordinates
        if isinstance(point, PassPoint):
            gamma = point.at.gamma
        else:
            gamma = coordinates.from_coefficients(point.beta, point.intercept)
        return coordinates.scale * math.sqrt(max(float(gamma @ self.reader.gram @ gamma), 0.0))

    def rounding(self, point: Point) -> float:
        """From the largest entries of the columns, which are known without a pass, if that allows little."""
        rounding = self.rounding_at_most(point, self.reader.largest)
        if rounding <= MAX_LOOSE_ROUNDING * point.objective:
            return rounding
        return self.problem.rounding_at(point.beta, point.intercept, point.objective)

    def shorten(self, point: Point) -> Point | None:  # noqa: ARG002
        """None: where columns are dependent, working coordinates lead to the shortest coefficients."""
        return None

    def require_rows(self, stage: str) -> None:
        """Refuse the stage: thousands of single surrogates would take as many passes."""
        self.problem.loaded(f"method has the stage {stage!r}")

    def row_solver(self) -> SurrogateSolver:
        """The solver over all rows, which data in memory has."""
        return SurrogateSolver(self.problem)

    def copy(self) -> PassEngine:
        """The engine itself, which has threads of its own."""
        return self

    def _starts(self, sets: list[ActiveSet], starts: Sequence[Point] | None) -> list[SurrogateStart]:
        """From minima found before, or from the sample."""
        bases = [point.found if isinstance(point, PassPoint) else None for point in starts or ()]
        return self.reader.model.starts(sets, bases or [None] * len(sets), self.reader.least_squares())

    def _iterate(self, point: Point) -> Iterate:
        """What a pass has seen of a point."""
        known = point if isinstance(point, PassPoint) else self.evaluate([(point.beta, point.intercept)])[0]
        assert isinstance(known, PassPoint)
        return known.at

    def _sign(self, at: Iterate) -> ActiveSet:
        """The active set at a point."""
        if not at.gamma.any():
            return NONE
        coordinates = self.reader.coordinates
        beta, intercept = self._coefficients(at.gamma)
        fingerprint = None if at.fingerprints is None else at.fingerprints[1]
        zero = self._engine.zero_of(at.gamma) * coordinates.scale
        return Sign(beta, intercept, zero, at.gamma, fingerprint)

    def _coefficients(self, gamma: Vector) -> Coefficients:
        """Coefficients of a point, exactly at their bounds where they are held there."""
        coordinates, walls = self.reader.coordinates, self.reader.walls
        beta, intercept = coordinates.coefficients(gamma)
        if walls is not None:
            columns = walls.at_bounds(np.append(beta, intercept)[: coordinates.n_columns] / coordinates.scale)
            beta = columns[: beta.size] * coordinates.scale
        return beta, intercept

    def _point(self, at: Iterate, found: Found | None = None) -> PassPoint:
        beta, intercept = self._coefficients(at.gamma)
        objective = at.objective * self.reader.coordinates.scale**2
        return PassPoint(beta, intercept, objective, at, found)

    def _minimum(self, found: Found) -> Minimum:
        at, square = found.at, self.reader.coordinates.scale**2
        bound = (at.value - found.loss) * square
        point = self._point(at, found)
        return Minimum(at.active, at.value * square, bound, found.converged, point)

    def _zero(self) -> Minimum:
        """Without active samples every piece is smallest at u <= 0."""
        total, square = self.reader.total, self.reader.coordinates.scale**2
        zero = np.zeros(self.reader.coordinates.n_directions)
        loss = float(allowance(self.problem.n_samples, total))
        at = Iterate(NONE, zero, total, total)
        return Minimum(NONE, total * square, (total - loss) * square, True, self._point(at))

    def _watch(self, points: list[Iterate]) -> None:
        self.watch([self._point(at) for at in points])
