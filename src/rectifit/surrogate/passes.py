"""Looks at data that is read in passes: only sums and a sample of the rows are in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rectifit._typing import Vector
from rectifit.active import ALL
from rectifit.bounds import solve_gram
from rectifit.checks import check_sizes
from rectifit.coordinates import find_coordinates
from rectifit.data.blocks import Block, S
from rectifit.data.memory import MemoryData
from rectifit.data.problem import Problem
from rectifit.surrogate.look import Seen
from rectifit.surrogate.model import BandSums, Iterate, ModelStep, View
from rectifit.surrogate.near_far import Question
from rectifit.surrogate.sample_model import BandTarget, SampleModel
from rectifit.surrogate.sides import Sides
from rectifit.surrogate.survey import GramTask, SurveyTask
from rectifit.surrogate.sweep import GlanceTask, PassResult, Probe, SweepTask
from rectifit.surrogate.walls import walls_of

__all__ = ["PassReader"]

# Rows in the sample are at least those of so many columns, while they hold at most so many numbers.
MIN_SAMPLE_COLUMNS = 25
# Rows in a sample of which no surrogate is minimised.
UNSOLVED_SAMPLE_ROWS = 2000
MAX_SAMPLE_NUMBERS = 1 << 23
# A step that led too far is shortened to between these shares.
MIN_SHARE = 0.1
MAX_SHARE = 0.7
# Looks at surrogates that are remembered, and at most one for so many columns of X: each takes two bytes per
# row.
MAX_REMEMBERED = 32
COLUMNS_PER_REMEMBERED = 2


@dataclass(frozen=True, eq=False)
class PassView(View):
    """A view with what it leaves for the next look, where rows stay in this process."""

    sides: Sides | None


class PassReader:
    """Surveyed data; every look is one pass.

    Parameters
    ----------
    problem : Problem
    n_threads : int, optional
        Threads that read. Default: those of the data.
    on_pass : called with the number of every pass over X that begins, optional

    Attributes
    ----------
    coordinates, gram, cross, ridge : the working coordinates, Z'Z, Z'v and the ridge in them
    largest : largest |sqrt(w) x| of every column
    walls : the constraints in working coordinates
    reach : no row is longer than this
    sample : some rows
    model : what the sample says of passes to come
    n_passes : passes over X so far
    """

    def __init__(
        self,
        problem: Problem,
        n_threads: int | None = None,
        on_pass: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.problem = problem
        data = problem.data if n_threads is None else problem.data.with_threads(n_threads)
        self.data = data.for_passes()
        self.n_samples = problem.n_samples
        self.n_passes = 0
        self._on_pass = on_pass
        self._remembered: deque[Sides] = deque()
        self._max_remembered = min(MAX_REMEMBERED, max(problem.n_features // COLUMNS_PER_REMEMBERED, 1))
        outcomes, p = problem.data.outcomes, problem.n_features
        wanted = problem.data.sample_factor * max(p + 1, MIN_SAMPLE_COLUMNS)
        wanted = min(wanted, max(MAX_SAMPLE_NUMBERS // p, 2 * (p + 1)))
        self._solves_sample = wanted * p <= problem.data.max_solved_sample
        if not self._solves_sample:
            wanted = min(wanted, UNSOLVED_SAMPLE_ROWS)
        survey = self.reduce(SurveyTask(problem.fit_intercept, outcomes.scale, wanted / problem.n_samples))
        check_sizes(survey.largest)
        self.largest, self.penalty = survey.largest, problem.penalty
        self.total = outcomes.total * (outcomes.top / outcomes.scale) ** 2
        self.coordinates, self.gram = find_coordinates(
            survey.largest,
            survey.gram,
            self.penalty,
            outcomes.scale,
            problem.fit_intercept,
            lambda coordinates: self.reduce(GramTask(coordinates)).value,
            keep_all=problem.constraints is not None,
        )
        self.walls = walls_of(problem.constraints, self.coordinates)
        magnified = self.coordinates.T * survey.largest[:, None]
        self.cross: Vector = survey.cross @ magnified
        self.ridge = self.coordinates.ridge(self.penalty)
        self.reach = float(np.linalg.norm(magnified))
        self.sample = survey.sample.joined()
        near_factor = problem.data.near_factor
        self.model = SampleModel(
            self.coordinates, self.sample, self._sampled(), self.n_samples, near_factor, n_threads or 1
        )

    def _sampled(self) -> Problem | None:
        """The sample as a problem in memory, with its share of the ridge.

        None if no row has weight, or to solve it would take longer than passes that it saves.
        """
        X, y, w, _ = self.sample
        if not self._solves_sample:
            return None
        if w is not None and not (w > 0.0).any():
            return None
        return self.problem.part(MemoryData(X, y, w))

    def least_squares(self) -> Vector:
        """The linear least-squares fit, ridge included."""
        return solve_gram(self.gram + self.ridge, self.cross)

    def reduce(self, task: Callable[[Block], S]) -> S:
        """One pass over X, counted."""
        self.n_passes += 1
        self._on_pass(self.n_passes)
        return self.data.reduce(task)

    def target(self, active: Any, gamma: Vector, reach: float, turn: int) -> BandTarget:
        """As many near rows as are wanted, or all that may cross their kink."""
        return self.model.target(active, gamma, reach, turn)

    def zero_target(self, width: float, is_rough: bool) -> BandTarget | None:
        """None if there are so few rows that all of them are near."""
        return self.model.zero_target(width, is_rough)

    def look(self, questions: Sequence[Question]) -> list[View]:
        """One pass at all points."""
        nothing = BandTarget(-1.0, 0)
        targets: list[BandTarget] = [question.target or nothing for question in questions]
        probes = [
            Probe(
                question.gamma,
                question.active,
                target.width,
                target.cap,
                question.zero,
                target.is_rough,
                self._base(question),
                Sides(question.active) if self.data.remembers else None,
            )
            for question, target in zip(questions, targets, strict=True)
        ]
        found = self.sweep(probes)
        self._remember(probes)
        return [
            self._view(probe, found, far, e)
            for e, (probe, far) in enumerate(zip(probes, found.far(), strict=True))
        ]

    def evaluate(self, gammas: Sequence[Vector], zeros: Sequence[float]) -> list[Iterate]:
        """Points as if they had been found, by one pass that sums up no moments."""
        probes = [Probe(gamma, ALL, -1.0, zero=zero) for gamma, zero in zip(gammas, zeros, strict=True)]
        seen = self.reduce(GlanceTask(self.coordinates, tuple(probes)))
        return [self._iterate(probe, seen, e) for e, probe in enumerate(probes)]

    def _base(self, question: Question) -> Sides | None:
        """What the last look at the surrogate has left, or one at a surrogate close to it."""
        view = question.last[0] if question.last is not None else question.beside
        return view.sides if isinstance(view, PassView) else None

    def _remember(self, probes: Sequence[Probe]) -> None:
        """Let go of the sides that are remembered longest."""
        self._remembered.extend(probe.sides for probe in probes if probe.sides is not None)
        while len(self._remembered) > self._max_remembered:
            self._remembered.popleft().blocks.clear()

    def share_of_step(self, start: tuple[View, ModelStep], end: tuple[View, ModelStep]) -> float:
        """Where a straight line through the slopes at both ends puts the minimum."""
        way = start[1]
        down, up = float(way.slope @ way.delta), float(end[1].slope @ way.delta)
        ratio = down / (down - up) if up > 0.0 > down else 0.5
        return min(max(ratio, MIN_SHARE), MAX_SHARE)

    def sweep(self, probes: Sequence[Probe]) -> PassResult:
        """One pass."""
        return self.reduce(SweepTask(self.coordinates, self.n_samples, tuple(probes)))

    def _iterate(self, probe: Probe, found: PassResult | Seen, line: int) -> Iterate:
        penalty = float(self.penalty @ np.square(self.coordinates.T @ probe.gamma))
        both = (int(found.fingerprints[line, 0]), int(found.fingerprints[line, 1]))
        return Iterate(
            probe.active,
            probe.gamma,
            value=float(found.values[line]) + penalty,
            objective=float(found.objectives[line]) + penalty,
            fingerprints=None if probe.zero is None else both,
        )

    def _view(self, probe: Probe, found: PassResult, far: Any, line: int) -> View:
        gamma, gram = probe.gamma, far[:-1, :-1] + self.ridge
        band = BandSums(
            2.0 * found.band.slopes[line],
            found.band.grams[line],
            float(found.band.gaps[line]),
            not found.n_skipped[line],
        )
        near = found.near_rows(line, gamma.size)
        slope = 2.0 * (gram @ gamma - far[:-1, -1])
        margin = probe.width / self.reach if self.reach > 0.0 else np.inf
        right_gram = found.moments[line][:-1, :-1] + self.ridge
        at = self._iterate(probe, found, line)
        return PassView(at, slope, gram, margin, probe.width, near, right_gram, None, band, probe.sides)
