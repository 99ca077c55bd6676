"""Surrogates minimised from looks at the data: near rows exactly, far rows as one quadratic.

A reader looks at some points in one pass over the data. After every look a step is made to the minimum of
what was seen (`rectifit.surrogate.model`), and the next look is at where that led:

* exact, with few near rows: if no far row changes sides on the way, that is the minimum;
* smooth, with too many. Kinks are smoothed over the distance that the rows are expected to move still; so
  many kinks together are as good as smooth.

No look is spent on proof: every look gives the value at its point and a lower bound of the minimum, and when
they agree it is done. A step that leads too far is shortened.

Where the outcomes have little to do with the columns, the minimum of many surrogates is at zero, where the
kinks of all samples with y <= 0 meet, and steps only come closer. So a search that comes to a point which is
no better than zero looks for slopes that prove zero the minimum: kinks are smoothed over a fixed distance so
small that only slopes at the kinks matter, and Newton steps lead to slopes that sum up to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.active import ActiveSet
from rectifit.bounds import allowance
from rectifit.coordinates import Coordinates
from rectifit.parallel import workers
from rectifit.surrogate.model import Iterate, ModelStep, View, step_from
from rectifit.surrogate.walls import Walls
from rectifit.tolerances import ZERO_U_TOL

__all__ = ["Found", "NearFar", "Question", "Reader", "SurrogateStart", "count_near"]

MAX_TURNS = 60
# Share of sum v^2. A loss below it is polished once more.
POLISH_TOL = 1e-11
# Share of sum v^2. A loss below it is rounding.
FINE_TOL = 1e-17
# Share of sum v^2. A loss below it, without the allowance for rounding, counts as converged.
CONVERGED_TOL = 1e-9
# Share of sum v^2 by which a value may rise through rounding.
RISE_TOL = 1e-13
# Share of a step by which rows are expected to move after it: of a smooth step, and of an exact one.
AFTER_SMOOTH = 0.3
AFTER_EXACT = 0.2
# Near rows sought at least, in all, and per direction where they would hold too many numbers.
MIN_NEAR_ROWS = 1000
LEAST_NEAR_FACTOR = 10
# From this turn on the near rows double.
DOUBLING_TURN = 6
# Steps in search of a proof that the minimum is at zero; the first of them may be rough. There is none if
# they lead away from zero by more than this multiple of the distance over which kinks are smoothed.
MAX_ZERO_TURNS = 12
ROUGH_ZERO_TURNS = 2
MAX_ZERO_LENGTH = 10.0
# That distance, as a share of the root mean square of v.
ZERO_WIDTH = 1e-7
# Surrogates in one look, and numbers in their Gram matrices.
MAX_TOGETHER = 16
MAX_GRAM_NUMBERS = 1 << 25


def count_near(n_directions: int, per_direction: int, turn: int, max_numbers: int) -> int:
    """How many rows are to be near: more of them in later turns, while they hold at most so many numbers."""
    wanted = max(per_direction * n_directions, MIN_NEAR_ROWS) << max(0, turn - DOUBLING_TURN)
    return min(wanted, max(max_numbers // n_directions, LEAST_NEAR_FACTOR * n_directions))


class SurrogateStart(NamedTuple):
    """Where to begin, how far rows are expected to move from there, and what is known of the place.

    `beside` is the last view of another surrogate from whose minimum it begins.
    """

    gamma: Vector
    reach: float = 0.0
    view: View | None = None
    beside: View | None = None


@dataclass(frozen=True, eq=False)
class Found:
    """The minimum of a surrogate, in working units.

    Attributes
    ----------
    at : where it is
    loss : how far the true minimum can lie below the value there
    view : the look that showed it, at the same point, unless that is zero
    step : the step from there, whose slopes are the dual solution
    n_steps : steps of the kernel
    converged : whether value and bound agree
    ahead : what the last look has shown of the surrogate that the iterative method goes on with from here
    """

    at: Iterate
    loss: float
    view: View
    step: ModelStep
    n_steps: int
    converged: bool
    ahead: View | None = None


class Reader(Protocol):
    """Looks at surrogates at points; also says what the working coordinates are.

    Attributes
    ----------
    coordinates, gram, ridge : the working coordinates, Z'Z and the ridge in them
    largest : largest |sqrt(w) x| of every column
    total : sum v^2
    n_samples : rows
    walls : the constraints, if there are any
    """

    coordinates: Coordinates
    gram: Matrix
    ridge: Matrix
    largest: Vector
    total: float
    n_samples: int
    walls: Walls | None

    def target(self, active: ActiveSet, gamma: Vector, reach: float, turn: int) -> Any:
        """Which rows are to be near at a point, where rows are expected to move by `reach` after it."""
        ...

    def zero_target(self, width: float, is_rough: bool) -> Any:
        """All rows up to this distance from their kinks, to be smoothed; None where none ever are."""
        ...

    def look(self, questions: Sequence[Question]) -> list[View]:
        """One look at all points."""
        ...

    def share_of_step(self, start: tuple[View, ModelStep], end: tuple[View, ModelStep]) -> float:
        """How far to go from one point towards another, which the step from the first led to or beyond."""
        ...


class Question(NamedTuple):
    """One surrogate at one point, what the reader says of near rows, and what it saw of the surrogate last.

    With `zero`, up to which u counts as 0, active sets get fingerprints. `beside` is a view of another
    surrogate not far from there.
    """

    active: ActiveSet
    gamma: Vector
    target: Any
    last: tuple[View, ModelStep] | None = None
    zero: float | None = None
    beside: View | None = None


@dataclass
class SolveState:
    """One surrogate on its way."""

    active: ActiveSet
    gamma: Vector
    target: Any
    turn: int = 0
    n_steps: int = 0
    is_polished: bool = False
    last_move: float = math.inf
    lowest: float = -math.inf
    best: tuple[View, ModelStep] | None = None
    last: tuple[View, ModelStep] | None = None
    is_done: bool = False
    # Whether the minimum is at zero, whatever the last point is.
    is_zero: bool = False
    # Steps in search of a proof of that, and where the search goes on if there is none.
    zero_turn: int = 0
    beyond_zero: tuple[Vector, Any, bool] | None = None
    # Whether the point is expected to be the last, and what the last look has shown of the next surrogate.
    is_last: bool = False
    ahead: View | None = None
    # A view of the surrogate from whose minimum this one begins.
    beside: View | None = None
    # The last point that was accepted, with the step from there, and its value with all that smoothing hides.
    base: tuple[View, ModelStep] | None = field(default=None, repr=False)
    ceiling: float = math.inf
    share: float = 1.0


class NearFar:
    """Minimises surrogates from looks.

    Parameters
    ----------
    reader : Reader
    n_threads : int, default=1
        Threads that minimise models between looks.
    """

    def __init__(self, reader: Reader, n_threads: int = 1) -> None:
        self.reader = reader
        self.n_threads = n_threads

    @property
    def batch(self) -> int:
        """Surrogates that are minimised in the same looks."""
        return max(1, min(MAX_TOGETHER, MAX_GRAM_NUMBERS // self.reader.coordinates.n_directions**2))

    def solve(
        self,
        sets: Sequence[ActiveSet],
        starts: Sequence[SurrogateStart],
        following: Callable[[Iterate], ActiveSet] | None = None,
        on_look: Callable[[list[Iterate]], None] = lambda _: None,
    ) -> list[Found]:
        """Minimise one surrogate per active set, in shared looks.

        With `following`, the active set that the iterative method goes on with from a point, minima have
        fingerprints, and a look that is expected to be a surrogate's last includes the next surrogate.
        `on_look` is called after every look with the points.
        """
        found: list[Found] = []
        for e in range(0, len(sets), self.batch):
            part = slice(e, e + self.batch)
            found += self._solve(sets[part], starts[part], following, on_look)
        return found

    def zero_of(self, gamma: Vector) -> float:
        """Up to this size u at a point counts as 0."""
        return ZERO_U_TOL * self._extent(gamma)

    def _extent(self, gamma: Vector) -> float:
        """No |u| is larger."""
        return float(np.abs(self.reader.coordinates.T @ gamma) @ self.reader.largest)

    def _solve(
        self,
        sets: Sequence[ActiveSet],
        starts: Sequence[SurrogateStart],
        following: Callable[[Iterate], ActiveSet] | None,
        on_look: Callable[[list[Iterate]], None],
    ) -> list[Found]:
        walls = self.reader.walls
        if walls is not None:
            # Where a view is known, it is at a point that is allowed.
            starts = [
                start if start.view is not None else start._replace(gamma=walls.allowed(start.gamma))
                for start in starts
            ]
        states = [
            SolveState(
                active,
                start.gamma,
                self.reader.target(active, start.gamma, start.reach, 0),
                beside=start.beside,
            )
            for active, start in zip(sets, starts, strict=True)
        ]
        for state, start in zip(states, starts, strict=True):
            if start.view is not None:
                self._advance(state, start.view)
        with workers(min(self.n_threads, len(states))) as mapped:
            while going := [state for state in states if not state.is_done]:
                views = self._look(going, following)
                on_look([view.at for view in views])
                list(mapped(self._advance, going, views))
        return [self._finish(state) for state in states]

    def _look(self, states: list[SolveState], following: Callable[[Iterate], ActiveSet] | None) -> list[View]:
        """One look."""
        questions: list[Question] = []
        places = []
        for state in states:
            places.append(len(questions))
            zero = None if following is None else self.zero_of(state.gamma)
            questions.append(
                Question(state.active, state.gamma, state.target, state.last, zero, state.beside)
            )
            if following is not None and state.is_last and state.last is not None:
                point = replace(state.last[0].at, gamma=state.gamma, fingerprints=None)
                questions.append(
                    questions[-1]._replace(active=following(point), last=None, beside=state.last[0])
                )
        views = self.reader.look(questions)
        for state, place, after in zip(states, places, [*places[1:], len(questions)], strict=True):
            state.ahead = views[place + 1] if after - place == 2 else None
        return [views[place] for place in places]

    def _advance(self, state: SolveState, view: View) -> None:
        """Evaluate the point of the look and choose the next one."""
        total, at = self.reader.total, view.at
        step = step_from(view, self.reader.walls, state.last[1] if state.last else None, FINE_TOL * total)
        state.turn += state.beyond_zero is None
        state.n_steps += step.n_steps
        hidden = 0.0 if step.is_exact or view.band is None else view.band.gap
        state.last = settled = view.settled(), step
        state.lowest = max(state.lowest, at.value - step.loss - self._rounding(at, step))
        if state.beyond_zero is not None:
            # Every surrogate is sum v^2 at zero.
            if total - (at.value - step.loss) <= POLISH_TOL * total:
                state.best, state.is_zero, state.is_done = settled, True, True
            else:
                self._step_at_zero(state, at.gamma + step.delta)
            return
        if state.best is None or at.value <= state.best[0].at.value:
            state.best = settled
        reached = step.loss <= POLISH_TOL * total
        if step.loss <= FINE_TOL * total or (reached and state.is_polished) or state.turn >= MAX_TURNS:
            # The last point is the most accurate, though values may differ by rounding.
            state.best = settled if reached else state.best
            state.is_done = True
            return
        state.is_polished = reached
        if at.value > state.ceiling + hidden + RISE_TOL * total and not reached:
            self._shorten(state)
        else:
            self._go_on(state, view, step, hidden)
        if at.value >= total and state.zero_turn == 0 and self._allows_zero:
            state.beyond_zero = state.gamma, state.target, state.is_last
            self._step_at_zero(state, np.zeros_like(at.gamma))

    def _go_on(self, state: SolveState, view: View, step: ModelStep, hidden: float) -> None:
        """Accept the point, and follow the step from there."""
        settled, at = (view.settled(), step), view.at
        state.base, state.ceiling, state.share = settled, at.value + hidden, 1.0
        state.gamma = at.gamma + step.delta
        move = self.length(step.delta)
        if step.is_exact:
            reach = AFTER_EXACT * move if 4.0 * move > view.width else 0.0
        else:
            ratio = move / state.last_move if state.last_move > 0.0 else 1.0
            reach = move * min(max(ratio, AFTER_SMOOTH), 0.8)
            reach = min(reach, view.width / 8.0)
        state.last_move, state.is_last = move, step.is_exact and reach == 0.0
        state.target = self.reader.target(state.active, state.gamma, reach, state.turn)

    def _step_at_zero(self, state: SolveState, gamma: Vector) -> None:
        """Look for a proof that the minimum is at zero, or go on where that search came between."""
        assert state.beyond_zero is not None
        width = ZERO_WIDTH * math.sqrt(self.reader.total / self.reader.n_samples)
        target = self.reader.zero_target(width, state.zero_turn < ROUGH_ZERO_TURNS)
        state.zero_turn += 1
        leads_away = self.length(gamma) > MAX_ZERO_LENGTH * width
        if target is None or leads_away or state.zero_turn > MAX_ZERO_TURNS:
            state.gamma, state.target, state.is_last = state.beyond_zero
            state.beyond_zero = None
        else:
            state.gamma, state.target, state.is_last = gamma, target, False

    def _shorten(self, state: SolveState) -> None:
        """Go back on a step that led too far."""
        assert state.base is not None
        assert state.last is not None
        origin, way = state.base
        state.share *= self.reader.share_of_step(state.base, state.last)
        state.gamma, state.is_last = origin.at.gamma + state.share * way.delta, False
        reach = AFTER_SMOOTH * state.share * self.length(way.delta)
        state.target = self.reader.target(state.active, state.gamma, reach, state.turn)

    @property
    def _allows_zero(self) -> bool:
        """Whether the constraints hold at zero."""
        return self.reader.walls is None or self.reader.walls.constraints.holds_zero

    def length(self, delta: Vector) -> float:
        """Root mean square of what rows move."""
        return math.sqrt(max(float(delta @ self.reader.gram @ delta), 0.0) / self.reader.n_samples)

    def _rounding(self, at: Iterate, step: ModelStep) -> float:
        """What the bound gives up for rounding; the sum of n slopes is at most 2 sqrt(n F)."""
        n, size = self.reader.n_samples, float(np.linalg.norm(at.gamma))
        slopes = 2.0 * math.sqrt(n * at.value)
        return float(
            allowance(n, at.value, at.gamma.size, self._extent(at.gamma), slopes, step.remainder, size)
        )

    def _finish(self, state: SolveState) -> Found:
        assert state.best is not None
        view, step = state.best
        at, total = view.at, self.reader.total
        if state.is_zero:
            fingerprints = None if at.fingerprints is None else (at.fingerprints[0], 0)
            at = Iterate(state.active, np.zeros_like(at.gamma), total, total, fingerprints)
        loss = max(at.value - state.lowest, 0.0)
        ahead = state.ahead if state.ahead is not None and state.ahead.at.gamma is at.gamma else None
        converged = state.is_zero or step.loss <= CONVERGED_TOL * total
        return Found(at, loss, view, step, state.n_steps, converged, ahead)
