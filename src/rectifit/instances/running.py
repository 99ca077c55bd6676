"""Run one solver on many instances; every finished row is kept, and a run can be resumed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rectifit import __version__
from rectifit.api import solve
from rectifit.checks import check_number
from rectifit.instances.library import Instance, describe_instance, load_instance
from rectifit.instances.results import CLOSED_GAP, Result
from rectifit.methods.stages import split_method
from rectifit.parallel import limit_threads
from rectifit.row_file import RowFile
from rectifit.solution import Stop
from rectifit.tolerances import AGREEMENT_TOL

__all__ = ["Answer", "Solver", "make_solver", "run_instances"]

# Seconds for one instance.
TIME_LIMIT = 60.0
# Small instances that need different parts of the compiled code.
WARM_UP = ("gaussian-p7-noise50", "low-signal-q5", "decoys-n8-k1", "paper-p10-density50-noise10")


class Answer(NamedTuple):
    """What a solver returns: coefficients, and what it claims about them."""

    beta: Any
    intercept: float = 0.0
    lower_bound: float = 0.0
    status: str = ""
    n_nodes: int = 0


# Called with X, y, fit_intercept and time_limit; a tuple (beta, intercept, ...) will do as an answer.
Solver = Callable[..., Any]


def make_solver(method: str) -> Solver:
    """A method of rectifit, or a function that is named as `module:function`.

    Examples
    --------
    >>> import numpy as np
    >>> answer = make_solver("sorting")(np.eye(3), np.ones(3), fit_intercept=False, time_limit=1.0)
    >>> answer.beta
    array([1., 1., 1.])
    """
    module, colon, name = method.partition(":")
    if colon:
        try:
            found = getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ValueError(f"method is {method!r}; {error}") from None
        if not callable(found):
            raise ValueError(f"method is {method!r}, which is not a function")
        return found  # type: ignore[no-any-return]
    split_method(method)

    def run(X: Any, y: Any, *, fit_intercept: bool, time_limit: float) -> Answer:
        fit = solve(
            X,
            y,
            method,
            fit_intercept=fit_intercept,
            target_gap=CLOSED_GAP,
            time_limit=time_limit,
            random_state=0,
        )
        if fit.stopped is Stop.INTERRUPTED:
            raise KeyboardInterrupt
        certificate = fit.certificate
        return Answer(
            fit.beta, fit.intercept, certificate.lower_bound, certificate.status, certificate.n_nodes
        )

    return run


def run_instances(
    solver: str | Solver,
    names: Iterable[str],
    path: str | Path,
    *,
    solver_name: str | None = None,
    time_limit: float = TIME_LIMIT,
) -> Iterator[Result]:
    """Run a solver on one thread, and yield its result on each instance as soon as it is in the file.

    What the file already has of this solver, for the same data, is not run again, unless it stayed open
    within a shorter time limit.

    Parameters
    ----------
    solver : str or callable
        A method of rectifit, "module:function", or a function. It is called as
        `solver(X, y, fit_intercept=..., time_limit=...)` and returns a tuple (beta, intercept), which may go
        on with a lower bound, a status and a number of nodes.
    names : names of instances
    path : CSV file to which rows are appended
    solver_name : str, optional
        What the file calls the solver; default: the method.
    time_limit : float, default=60
        Seconds for each instance. A solver is trusted to keep it.

    Yields
    ------
    Result

    Raises
    ------
    ValueError
        If a solver returns something else, or claims a bound above its own objective.
    """
    limit = check_number(time_limit, "time_limit", above=0.0)
    label = solver_name or (solver if isinstance(solver, str) else solver.__name__)
    function = make_solver(solver) if isinstance(solver, str) else solver
    names = list(names)
    digests = {name: describe_instance(name).digest for name in names}
    file: RowFile[Result] = RowFile(Path(path), Result)
    file.repair()
    done = {
        (row.instance, row.digest): row
        for row in file.read()
        if row.solver == label and (row.is_closed or row.time_limit >= limit)
    }
    todo = [name for name in names if (name, digests[name]) not in done]
    if todo:
        _warm_up(function, {describe_instance(name).entry.fit_intercept for name in todo})
    for name in names:
        row = done.get((name, digests[name]))
        if row is None:
            row = _run(function, label, load_instance(name), limit)
            file.append([row])
        yield row


def _run(function: Solver, label: str, instance: Instance, limit: float) -> Result:
    with limit_threads():
        started, cpu = time.perf_counter(), time.process_time()
        answer = _call(function, instance.X, instance.y, instance.fit_intercept, limit)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    beta = np.asarray(answer.beta, dtype=np.float64)
    if beta.shape != instance.X.shape[1:]:
        raise ValueError(
            f"{label} returned coefficients of shape {beta.shape} for {instance.name}; it must be "
            f"{instance.X.shape[1:]}"
        )
    coefficients = (*beta.tolist(), *([float(answer.intercept)] if instance.fit_intercept else []))
    is_fit = bool(np.isfinite(coefficients).all())
    objective = instance.objective(beta, float(answer.intercept)) if is_fit else inf
    if answer.lower_bound > objective * (1.0 + AGREEMENT_TOL):
        raise ValueError(
            f"{label} claims the bound {float(answer.lower_bound)!r} for {instance.name}, but its own "
            f"coefficients have the objective {objective!r}"
        )
    return Result(
        instance=instance.name,
        digest=instance.digest,
        solver=label,
        objective=objective,
        lower_bound=float(answer.lower_bound),
        status=answer.status,
        cpu_seconds=round(cpu, 4),
        seconds=round(seconds, 4),
        time_limit=limit,
        n_nodes=int(answer.n_nodes),
        version=__version__,
        coefficients=coefficients if is_fit else (),
    )


def _call(function: Solver, X: Any, y: Any, fit_intercept: bool, limit: float) -> Answer:
    with warnings.catch_warnings():
        # A dead neuron is a result here, and so is a search that has not converged.
        warnings.simplefilter("ignore")
        found = function(X, y, fit_intercept=fit_intercept, time_limit=limit)
    try:
        return Answer(*found)
    except TypeError:
        raise ValueError(f"the solver returned {found!r}; it must be a tuple (beta, intercept)") from None


def _warm_up(function: Solver, settings: set[bool]) -> None:
    """Load compiled code, with or without an intercept, so that no measured time includes it."""
    for name in WARM_UP:
        instance = load_instance(name)
        if instance.fit_intercept in settings:
            _call(function, instance.X, instance.y, instance.fit_intercept, 1.0)
