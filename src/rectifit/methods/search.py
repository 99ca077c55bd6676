"""One run of a chain of stages: the data, the best point so far, what is proved, and when to stop.

Every stage offers its points here, and here the true objective is evaluated.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cached_property
from threading import Event
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rectifit._typing import Mask, Vector
from rectifit.certificate import floor_bound
from rectifit.checks import check_random_state
from rectifit.methods.finds import Finds
from rectifit.problem import Point, Problem
from rectifit.progress import Progress
from rectifit.solution import Certificate, Solution, Stop, SurrogateMinimum, TraceRow
from rectifit.surrogate import SurrogateSolution, SurrogateSolver

if TYPE_CHECKING:
    from rectifit.scale.batched import BatchedSolver

__all__ = ["TARGET_GAP", "Halt", "Search", "Stage", "warn_of_dead_fit"]

# Of proofs, where no other gap is asked for.
TARGET_GAP = 1e-4


class Halt(Exception):  # noqa: N818 - it ends a search, and nothing is wrong
    """Raised inside a stage when the search must end."""

    def __init__(self, reason: Stop) -> None:
        self.reason = reason


class Stage(Protocol):
    """An algorithm with its parameters."""

    def run(self, search: Search) -> Stop:
        """Begin at search.best if there is one, offer points, and say why it ended."""
        ...


def make_stages(
    method: Any, options: dict[str, Any], known: Mapping[str, Any], unknown: str
) -> list[tuple[str, Stage]]:
    """The stages of a chain, each with those of the options that it has; None leaves its own default.

    unknown : what is said of a stage that is not known, with places for its name and for the known ones
    """
    if not isinstance(method, str):
        raise TypeError(f"method is {method!r}; it must be a string of stages joined by '+'")
    stages = []
    for name in (part.strip() for part in method.split("+")):
        if name not in known:
            complaint = unknown.format(name=name, known=", ".join(map(repr, known)))
            raise ValueError(f"method is {method!r} {complaint}")
        own = {f.name for f in fields(known[name])}
        chosen = {key: value for key, value in options.items() if key in own and value is not None}
        stages.append((name, known[name](**chosen)))
    return stages


class Search:
    """What the stages of one run share."""

    def __init__(
        self,
        problem: Problem,
        *,
        time_limit: float | None = None,
        target_gap: float | None = None,
        random_state: Any = None,
        n_threads: int = 1,
        progress: Progress | None = None,
        device: Any = None,
    ) -> None:
        self.problem = problem
        # An accelerator, for stages that have thousands of surrogates to minimise.
        self.device = device
        self.target_gap = target_gap
        self.n_threads = n_threads
        self.rng = check_random_state(random_state)
        self.best: Point | None = None
        self.least: SurrogateMinimum | None = None
        self.lower_bound = floor_bound(problem)
        self.guarantee: float | None = None
        # What a search for a proof adds to the certificate.
        self.proof: dict[str, Any] = {}
        self.history: list[tuple[float, float, float]] = []
        self.n_iter = self.n_surrogates = 0
        self.abandoned = Event()
        self._progress = progress or Progress(0)
        self._trace: list[TraceRow] = []
        self._stage, self._step = "", 0
        self._began = time.perf_counter()
        self._deadline = None if time_limit is None else self._began + time_limit

    @cached_property
    def solver(self) -> SurrogateSolver:
        """Made when a stage asks for it: gradient methods need none."""
        return SurrogateSolver(self.problem)

    @cached_property
    def batched(self) -> BatchedSolver:
        """The solver on the accelerator."""
        from rectifit.scale.batched import BatchedSolver

        return BatchedSolver(self.solver, self.device)

    def __getstate__(self) -> dict[str, Any]:
        # On its way to another process: clocks, signals and solvers stay here.
        left = None if self._deadline is None else self._deadline - time.perf_counter()
        gone = ("abandoned", "_progress", "solver", "batched")
        return {name: value for name, value in self.__dict__.items() if name not in gone} | {
            "_deadline": left
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, abandoned=Event(), _progress=Progress(0))
        if self._deadline is not None:
            self._deadline += time.perf_counter()

    def run(self, stages: Iterable[tuple[str, Stage]]) -> Stop:
        """Run one stage after another, until one is stopped from outside."""
        reason = Stop.COMPLETED
        try:
            for name, stage in stages:
                self._stage, self._step = name, 0
                reason = stage.run(self)
        except Halt as halt:
            reason = halt.reason
        except KeyboardInterrupt:
            reason = Stop.INTERRUPTED
        finally:
            self.abandoned.set()
        return reason

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def is_over(self) -> bool:
        """Whether the time is up, or the search was abandoned; for work on other threads."""
        late = self._deadline is not None and time.perf_counter() >= self._deadline
        return late or self.abandoned.is_set()

    def check(self) -> None:
        """End the search where the time is up or the target gap is reached."""
        if self._deadline is not None and time.perf_counter() >= self._deadline:
            raise Halt(Stop.TIME_LIMIT)
        if self.target_gap is not None and self.best is not None and self._certificate().is_closed:
            raise Halt(Stop.TARGET)

    def note(self, text: str, done: int) -> None:
        """Show a line of progress."""
        self._progress.update(text, done, None)

    def is_proved(self) -> bool:
        """Whether the best point is at its lower bound, up to rounding."""
        return self.best is not None and self._certificate().gap == 0.0

    def evaluate(self, beta: Vector, intercept: float) -> Point:
        """The true objective of a candidate."""
        return self.problem.evaluate(beta, intercept)

    def offer(self, point: Point) -> bool:
        """Keep the point if it is the best so far, as the next step of the stage in the trace."""
        self._step += 1
        self.n_iter += 1
        self._trace.append(TraceRow(self._stage, self._step, point.objective, self.seconds))
        better = self.best is None or point.objective < self.best.objective
        if better:
            self.best = point
        return better

    def minimise(self, active: Mask, start: Any = None) -> Point:
        """Minimise one surrogate and offer its minimiser."""
        solution = self.solver.solve(active, start=start)
        point = self.evaluate(solution.beta, solution.intercept)
        self.take(active, solution, point)
        return point

    def take(self, active: Mask, solution: SurrogateSolution, point: Point) -> None:
        """Count a surrogate that was minimised, remember its minimum, and offer its minimiser."""
        self.n_surrogates += 1
        self.record(active, solution)
        self.offer(point)

    def merge(self, finds: Finds) -> None:
        """Take over what a piece of work has found, its best minimiser as one step."""
        self.n_surrogates += finds.n_surrogates
        if finds.least is not None:
            self.record(*finds.least)
        if finds.best is not None:
            self.offer(self.evaluate(finds.best[0].beta, finds.best[0].intercept))

    def record(self, active: Mask, solution: SurrogateSolution) -> None:
        """Remember a surrogate's minimum if it is the least so far."""
        if self.least is None or solution.value < self.least.value:
            self.least = SurrogateMinimum(
                active & self.problem.positive,
                solution.beta,
                solution.intercept,
                solution.value,
                solution.dual_bound,
            )

    def report(self, done: int, total: int | None = None) -> None:
        """Show progress, where it is wanted."""
        objective = np.inf if self.best is None else self.best.objective
        self._progress.update(f"{self._stage}, objective {objective:.6g}", done, total)

    def solution(self, method: str, stopped: Stop) -> Solution:
        """What was found. A search that was stopped before its first point has found the zero function."""
        at = (np.zeros(self.problem.n_features), 0.0) if self.best is None else self.best[:2]
        # Once more by itself, so that the number is the one that `Problem.objective` gives.
        self.best = self.evaluate(np.array(at[0]), at[1])
        self.best.beta.setflags(write=False)
        return Solution(
            beta=self.best.beta,
            intercept=self.best.intercept,
            objective=self.best.objective,
            surrogate_objective=None if self.least is None else self.least.value,
            method=method,
            stopped=stopped,
            certificate=self._certificate(),
            n_iter=self.n_iter,
            n_surrogates=self.n_surrogates,
            seconds=self.seconds,
            trace=tuple(self._trace),
            guarantee=self.guarantee,
            problem=self.problem,
            surrogate=self.least,
        )

    def _certificate(self) -> Certificate:
        assert self.best is not None
        history = (*self.history, (self.seconds, self.best.objective, self.lower_bound))
        return Certificate.from_bound(
            self.problem,
            self.best.objective,
            self.lower_bound,
            self.target_gap,
            history=history,
            **self.proof,
        )


def warn_of_dead_fit(n_above: int, floor: float, stacklevel: int) -> None:
    """Warn that the fit is a constant; n_above outcomes are above the floor."""
    from sklearn.exceptions import ConvergenceWarning

    function, kind = ("zero", "positive") if floor == 0.0 else ("constant", "above the floor")
    text = (
        f"no outcome is {kind}, so the {function} function is the best fit (a dead neuron)"
        if n_above == 0
        else f"the fit is the {function} function (a dead neuron), although {n_above} outcomes are {kind}"
    )
    warnings.warn(text, ConvergenceWarning, stacklevel=stacklevel)
