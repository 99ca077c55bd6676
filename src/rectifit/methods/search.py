"""One run of a chain of stages: the best point so far, what is proved, and the trace.

Every stage offers its points here, and here they are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, Protocol

import numpy as np

from rectifit.bounds import allowance
from rectifit.certificate.proof import ProofResult
from rectifit.certificate.trivial_bound import floor_bound
from rectifit.checks import check_random_state
from rectifit.clock import Clock
from rectifit.data.problem import Point, Problem
from rectifit.fit import Certificate, Fit, Stop, SurrogateMinimum, TraceRow
from rectifit.progress import Progress
from rectifit.surrogate.engine import Engine, Minimum
from rectifit.surrogate.results import SurrogateResults
from rectifit.tolerances import LEAST_ROOM, SUM_TOL, ZERO_OBJECTIVE_TOL

__all__ = ["Halt", "Search", "Stage"]

# Of a minimum; of equal ones, `min` takes the first.
VALUE = attrgetter("value")


class Halt(Exception):  # noqa: N818 - it ends a search, and nothing is wrong
    """Raised inside a stage when the search must end."""

    def __init__(self, reason: Stop) -> None:
        self.reason = reason


class Stage(Protocol):
    """An algorithm with its parameters.

    One that needs rows in memory has needs_rows = True, one that runs no compiled code is_compiled = False.
    """

    def run(self, search: Search) -> Stop:
        """Begin at search.best if there is one, offer points, and return why it ended."""
        ...


class Search:
    """What the stages of one run share.

    Parameters
    ----------
    engine : Engine
    clock : Clock, optional
    target_gap : float, optional
    random_state : int, numpy Generator or RandomState, optional
    n_threads : int, default=1
    progress : Progress, optional

    Attributes
    ----------
    problem, engine : what is fitted, and by what
    best : the best point so far
    least : the least minimum of a surrogate so far
    lower_bound, proof : what is proved
    guarantee : r, and a lower bound b, where the least minimum of surrogates is between r b and r min L
    """

    def __init__(
        self,
        engine: Engine,
        clock: Clock | None = None,
        *,
        target_gap: float | None = None,
        random_state: Any = None,
        n_threads: int = 1,
        progress: Progress | None = None,
    ) -> None:
        self.engine, self.clock = engine, clock or Clock()
        self.problem: Problem = engine.problem
        self.target_gap = target_gap
        self.n_threads = n_threads
        # A generator of random numbers takes a while to make, and without a seed it may never be used.
        self._rng = None if random_state is None else check_random_state(random_state)
        self.best: Point | None = None
        self.least: SurrogateMinimum | None = None
        self.lower_bound = floor_bound(self.problem)
        self.guarantee: tuple[float, float] | None = None
        self.proof: ProofResult | None = None
        self.n_iter = self.n_surrogates = 0
        self._progress = progress or Progress(0)
        self._trace: list[TraceRow] = []
        self._stage, self._step = "", 0

    @property
    def rng(self) -> np.random.Generator:
        """The source of all random numbers."""
        if self._rng is None:
            self._rng = check_random_state(None)
        return self._rng

    def run(self, stages: Iterable[tuple[str, Stage]]) -> Stop:
        """Run one stage after another, until one is stopped from outside."""
        reason, watch = Stop.COMPLETED, self.engine.watch
        self.engine.watch = self._watch
        try:
            for name, stage in stages:
                self._stage, self._step = name, 0
                reason = stage.run(self)
        except Halt as halt:
            reason = halt.reason
        except KeyboardInterrupt:
            if self.best is None:
                # There is nothing to return.
                raise
            reason = Stop.INTERRUPTED
        finally:
            self.clock.abandon()
            # The engine does not hold the search: both are freed with their last user.
            self.engine.watch = watch
        return reason

    def check(self) -> None:
        """End the search where the time is up or the target gap is reached."""
        if self.clock.is_late():
            raise Halt(Stop.TIME_LIMIT)
        if self.target_gap is not None and self.best is not None and self._certificate().is_closed:
            raise Halt(Stop.TARGET)

    def is_proved(self) -> bool:
        """Whether the best point is at its lower bound, up to rounding."""
        return self.is_within(0.0)

    def is_within(self, gap: float) -> bool:
        """Whether no fit can be better than the best point by more than this share."""
        return self.best is not None and self._certificate().is_within(gap)

    @property
    def is_dead(self) -> bool:
        """Whether nothing better than the zero function is known, but for rounding."""
        return self.best is None or self.problem.is_dead(self.best.objective, self.best.beta)

    def offer(self, *points: Point) -> None:
        """Keep the best point so far; each is a step of the stage in the trace, all with one time."""
        stage, seconds = self._stage, self.clock.seconds
        self._trace += [
            TraceRow(stage, step, point.objective, seconds)
            for step, point in enumerate(points, self._step + 1)
        ]
        self._step += len(points)
        self.n_iter += len(points)
        for point in points:
            if self.best is None or point.objective < self.best.objective:
                self.best = point

    def take(self, minima: Sequence[Minimum]) -> None:
        """Count surrogates that were minimised, remember the least, and offer their minimisers."""
        self.n_surrogates += len(minima)
        self.record(min(minima, key=VALUE))
        self.offer(*[minimum.point for minimum in minima])

    def merge(self, results: SurrogateResults) -> None:
        """Take over what a piece of work has found, its best minimiser as one step."""
        self.n_surrogates += results.n_surrogates
        if results.least is not None:
            self.record(results.least)
        if results.best is not None:
            self.offer(results.best)

    def record(self, minimum: Minimum) -> None:
        """Remember a surrogate's minimum if it is the least so far."""
        if self.least is None or minimum.value < self.least.value:
            point = minimum.point
            self.least = SurrogateMinimum(
                minimum.active, point.beta, point.intercept, minimum.value, minimum.dual_bound
            )

    def report(self, done: int, total: int | None = None) -> None:
        """Show progress on a terminal."""
        if not self._progress.is_on:
            return
        objective = np.inf if self.best is None else self.best.objective
        self._progress.update(f"{self._stage}, objective {objective:.6g}", done, total)

    def note(self, text: str, done: int) -> None:
        """Show a line of progress."""
        self._progress.update(f"{self._stage}, {text}", done, None)

    def finish(self, method: str, stopped: Stop) -> Fit:
        """What was found. A search that was stopped before its first point has found the zero function.

        Where constraints do not allow zero coefficients, it has found the nearest that they do allow.
        """
        rounding = 0.0
        if self.n_surrogates > 0 and self.best is not None and (shorter := self.engine.shorten(self.best)):
            # Bounds were proved beside the coefficients as they were found.
            rounding, self.best = self._rounding(), shorter
        if self.best is None:
            zero = self.problem.allowed(np.zeros(self.problem.n_features))
            self.best = Point(zero, 0.0, self.problem.null_objective)
        beta, intercept = np.array(self.problem.settled(self.best.beta)), self.best.intercept
        # Once more by itself, so that the number is the one that `Problem.objective` gives.
        self.best = Point(beta, intercept, self.problem.objective(beta, intercept))
        beta.setflags(write=False)
        rounding = max(rounding, self._rounding())
        return Fit(
            beta=beta,
            intercept=intercept,
            objective=self.best.objective,
            surrogate_objective=None if self.least is None else self.least.value,
            method=method,
            stopped=stopped,
            certificate=self._certificate(rounding),
            n_iter=self.n_iter,
            n_surrogates=self.n_surrogates,
            seconds=self.clock.seconds,
            trace=tuple(self._trace),
            guarantee=self._guarantee(),
            problem=self.problem,
            surrogate=self.least,
            constraints=self.problem.constraints,
            fit_intercept=self.problem.fit_intercept,
            alpha=self.problem.alpha,
            is_weighted=self.problem.is_weighted,
        )

    def _rounding(self) -> float:
        """By how much rounding may move the best objective and, if a search has closed the gap, its bound."""
        if self.best is None or not (self.best.beta.any() or self.best.intercept != 0.0):
            return 0.0
        rounding = self.engine.rounding(self.best)
        if self.proof is not None and self.proof.status == "optimal":
            left = float(allowance(self.problem.n_samples, self.problem.null_objective))
            rounding += (1.0 + LEAST_ROOM) * left
        return rounding

    def _guarantee(self) -> float | None:
        """The ratio that the objective keeps: rounding may put it above the surrogate's minimum."""
        if self.guarantee is None:
            return None
        assert self.best is not None
        ratio, least = self.guarantee
        rounding = SUM_TOL * self.best.objective + ZERO_OBJECTIVE_TOL * self.problem.null_objective
        if self.best.objective - ratio * least <= rounding:
            return ratio
        return self.best.objective / least if least > 0.0 else None

    def _certificate(self, rounding: float = 0.0) -> Certificate:
        assert self.best is not None
        proved = {} if self.proof is None else self.proof.fields()
        last = (self.clock.seconds, self.best.objective, self.lower_bound)
        history = (*proved.pop("history", ()), last)
        return Certificate.from_bound(
            self.problem,
            self.best.objective,
            self.lower_bound,
            self.target_gap,
            history=history,
            rounding=rounding,
            **proved,
        )

    def _watch(self, points: Sequence[Point]) -> None:
        """Look at the clock; when the time is up, points on their way count too."""
        if self.clock.is_over():
            for point in points:
                self.offer(point)
        self.check()

    def __getstate__(self) -> dict[str, Any]:
        # Progress is shown by the process that began.
        return {name: value for name, value in self.__dict__.items() if name != "_progress"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _progress=Progress(0))
