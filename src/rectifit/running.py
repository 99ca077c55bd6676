"""Running stages: an engine for the data, a search, and a floor that may have to be estimated."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from rectifit import routing
from rectifit.checks import check_count, check_floor, check_number, check_start
from rectifit.clock import Clock
from rectifit.data.problem import Problem
from rectifit.fit import Fit
from rectifit.interrupts import holding_interrupts
from rectifit.methods.approximation import Approximation, describe_endless
from rectifit.methods.estimate_floor import solve_with_estimate
from rectifit.methods.search import Search, Stage
from rectifit.parallel import count_threads, limit_threads
from rectifit.progress import Progress
from rectifit.surrogate.engine import Coefficients, Engine
from rectifit.surrogate.pass_engine import PassEngine
from rectifit.surrogate.rows_engine import RowsEngine

__all__ = ["LongRunWarning", "RunOptions", "checked_floor", "run_stages", "warn_if_dead", "warn_if_endless"]


class LongRunWarning(UserWarning):
    """A method cannot end by itself."""


@dataclass(frozen=True)
class RunOptions:
    """What all methods share, checked."""

    time_limit: float | None = None
    target_gap: float | None = None
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0

    @classmethod
    def checked(
        cls, time_limit: Any, target_gap: Any, random_state: Any, n_jobs: Any, verbose: Any
    ) -> RunOptions:
        """Check everything but the seed, which the search checks."""
        return cls(
            None if time_limit is None else check_number(time_limit, "time_limit", above=0.0),
            None if target_gap is None else check_number(target_gap, "target_gap"),
            random_state,
            None if n_jobs is None else count_threads(n_jobs),
            check_count(int(verbose) if isinstance(verbose, bool) else verbose, "verbose", 0),
        )


def run_stages(
    problem: Problem,
    method: str,
    stages: list[tuple[str, Stage]],
    start: Any,
    floor: float | None,
    options: RunOptions,
    device: Any = None,
) -> Fit:
    """Run the stages; without a floor, estimate it."""
    at = None if start is None else check_start(start, problem)
    if at is not None:
        at = problem.allowed(at[0]), at[1]
    names = [name for name, _ in stages]

    if any(getattr(stage, "is_compiled", True) for _, stage in stages):
        _load_compiler()

    with Progress(options.verbose) as progress:

        def run(floor: float, start: Coefficients | None, seconds: float | None) -> Fit:
            clock, shifted = Clock(seconds), problem.shifted(floor)
            engine = _make_engine(shifted, names, options, progress, device)
            for name, stage in stages:
                if getattr(stage, "needs_rows", False):
                    engine.require_rows(name)
            search = Search(
                engine,
                clock,
                target_gap=options.target_gap,
                random_state=options.random_state,
                n_threads=options.n_jobs or 1,
                progress=progress,
            )
            if start is not None:
                search.best = _evaluate_start(engine, start[0], start[1] - floor)
            with _blas_for(problem):
                stopped = search.run(stages)
                fit = search.finish(method, stopped)
            return fit.at_floor(problem, floor)

        if floor is not None:
            return run(floor, at, options.time_limit)
        return solve_with_estimate(problem, run, at, options.time_limit)


def _load_compiler() -> None:
    """Import what compiled code needs, whole or not at all, and before any clock runs."""
    with holding_interrupts():
        import rectifit.compiling  # noqa: F401


def _make_engine(
    problem: Problem, stages: list[str], options: RunOptions, progress: Progress, device: Any
) -> Engine:
    if not routing.reads_in_passes(problem, stages):
        return RowsEngine(problem, device)
    show: Callable[[int], None] = lambda n: progress.update("passes over the data", n, None)  # noqa: E731
    return PassEngine(problem, options.n_jobs, show)


def _blas_for(problem: Problem) -> AbstractContextManager[Any]:
    """One BLAS thread for large data, where several would only wait in many short products."""
    if routing.is_small(problem.n_samples, problem.n_features):
        return nullcontext()
    return limit_threads("blas")


def _evaluate_start(engine: Engine, beta: Any, intercept: float) -> Any:
    with np.errstate(over="ignore", invalid="ignore"):
        (point,) = engine.evaluate([(beta, intercept)])
    if not np.isfinite(point.objective):
        raise ValueError("start has an objective that is not finite; smaller coefficients are needed")
    return point


def checked_floor(floor: Any, problem: Problem) -> float | None:
    """A number, or None for an estimate, which needs the rows."""
    in_memory = problem.data.in_memory
    known = check_floor(floor, problem.fit_intercept, problem.y if in_memory else None)
    if known is None:
        problem.loaded("floor is 'estimate'")
    return known


def warn_if_endless(
    problem: Problem, stages: list[tuple[str, Stage]], floor: float | None, n_calls: int = 3
) -> None:
    """Warn before an enumeration that cannot end, in the name of the caller so many calls above."""
    for _, stage in stages:
        if isinstance(stage, Approximation):
            n_positive = problem.shifted(floor or 0.0).data.outcomes.n_positive
            sentence = describe_endless(n_positive, stage.k)
            if sentence is not None:
                warnings.warn(sentence, LongRunWarning, stacklevel=n_calls)


def warn_if_dead(fit: Fit, n_calls: int = 3) -> None:
    """Warn where the fit is a constant, in the name of the caller so many calls above."""
    assert fit.problem is not None
    floor, problem = fit.floor, fit.problem.shifted(fit.floor)
    if not problem.is_dead(fit.objective, fit.beta):
        return
    from sklearn.exceptions import ConvergenceWarning

    n_above = problem.data.outcomes.n_positive
    function, kind = ("zero", "positive") if floor == 0.0 else ("constant", "above the floor")
    text = (
        f"no outcome is {kind}, so the {function} function is the best fit (a dead neuron)"
        if n_above == 0
        else f"the fit is the {function} function (a dead neuron), although {n_above} outcomes are {kind}"
    )
    warnings.warn(text, ConvergenceWarning, stacklevel=n_calls)
