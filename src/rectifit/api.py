"""`solve` and `certify`: check what is given, choose an engine, run the stages."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rectifit import routing
from rectifit.certificate.proof import MEMORY_LIMIT, TARGET_GAP
from rectifit.checks import check_count, check_floor, check_number, check_start
from rectifit.clock import Clock
from rectifit.constraints import read_constraints
from rectifit.data.kinds import names_of
from rectifit.data.problem import Problem
from rectifit.fit import Certificate, Fit, Stop
from rectifit.methods.estimate_floor import solve_with_estimate
from rectifit.methods.exact import Exact
from rectifit.methods.search import Search, Stage
from rectifit.methods.stages import make_stages, split_method
from rectifit.parallel import count_threads, limit_threads
from rectifit.progress import Progress
from rectifit.solution import Solution
from rectifit.surrogate.engine import Coefficients, Engine
from rectifit.surrogate.pass_engine import PassEngine
from rectifit.surrogate.rows_engine import RowsEngine
from rectifit.tolerances import AGREEMENT_TOL

__all__ = ["certify", "solve"]

# The default means at most so many splits; any other number must not exceed the number of samples.
DEFAULT_SPLITS = 10


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


def solve(
    X: Any,
    y: Any,
    method: str = "auto",
    *,
    sample_weight: Any = None,
    fit_intercept: bool = True,
    alpha: float = 0.0,
    bounds: Any = None,
    positive: bool = False,
    monotonic_cst: Any = None,
    constraints: Any = None,
    floor: float | str = 0.0,
    start: Any = None,
    n_splits: int = DEFAULT_SPLITS,
    k: int = 1,
    n_starts: int = 32,
    max_iter: int | None = None,
    tol: float = 1e-8,
    eps: float = 0.01,
    eta0: float = 1.0,
    gamma: float = 0.03,
    shrink: float = 0.6,
    batch: int | None = None,
    target_gap: float | None = None,
    time_limit: float | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Solution:
    """Fit y ~ max(floor, X beta + intercept) by least squares; the floor is 0 by default.

    Parameters
    ----------
    X : array-like or SciPy sparse matrix of shape (n_samples, n_features)
        A torch tensor on an accelerator is solved there if it is large; so are the thousands of surrogates of
        "approximation" and "multistart" if it is small.
        Or data that is read in passes: a large `numpy.memmap`, a dask array or data frame, or what
        `rectifit.data.open_parquet` returns, which has its own y; see `rectifit.data`.
    y : array-like of shape (n_samples,)
    method : str, default="auto"
        Stages joined by +: the first starts from nothing, each next one from the best solution before it.
        "approximation" (A1, uses k), "sorting" (A2, n_splits), "iterative" (A3), "gd" (A4), "sgd" (A5),
        "multistart" (the iterative method from n_starts starts), "exact" (branch and bound down to
        target_gap) and "auto", the package's own choice: at least as good as "sorting+iterative".
    sample_weight : array-like of shape (n_samples,), optional
    fit_intercept : bool, default=True
    alpha : float, default=0.0
        Ridge penalty alpha |beta|^2; the intercept is free.
    bounds : pair, array of shape (n_features, 2) or dict, optional
        What is known about coefficients: low <= coefficient <= high, for all of them, for each, or by the
        name of its column. None and infinities stand for no bound. The intercept is free.
    positive : bool, default=False
        Whether all coefficients are at least 0.
    monotonic_cst : array of shape (n_features,) or dict, optional
        1: at least 0; -1: at most 0; 0: of any sign.
    constraints : scipy.optimize.LinearConstraint or a sequence of these, optional
        lb <= A beta <= ub. All four hold together, at every step of every method, and for what is proved.
    floor : float or "estimate", default=0.0
        A known floor, or one fitted together with the coefficients. Then the certificate is about the
        estimated floor: no coefficients with this floor have an objective below the bound. A floor other
        than 0 needs an intercept.
    start : solution, pair (beta, intercept), coefficients or torch module (Linear, ReLU), optional
        Where the first stage begins, if it begins anywhere; the result is never worse. A start that the
        constraints do not allow is moved to a point near it that they do allow.
    n_splits : int, default=10
        N of the sorting method.
    k : int, default=1
        k of the approximation algorithm: the objective is at most n/k times the least one.
    n_starts : int, default=32
    max_iter : int, optional
        T. Default: 20 for iterative, 1000 for gd and sgd, 100 per start for multistart and auto.
    tol : float, default=1e-8
        The iterative method also stops when the objective falls by no more than this share.
    eps, eta0, gamma, shrink : float
        Of gd and sgd: the decrease of the objective at which they stop (0.01), the first step size (1), its
        decay (0.03), the factor of backtracking (0.6).
    batch : int, optional
        Batch of sgd; default: a tenth of the samples.
    target_gap : float, optional
        Stop as soon as the certified gap is at most this. Default of "exact": 1e-4.
    time_limit : float, optional
        Seconds after which the best solution so far is returned.
    random_state : int, numpy Generator or RandomState, optional
        Of the random starts and batches; without it, always the same.
    n_jobs : int, optional
        Threads of "approximation", "multistart" and "exact", and of passes over large data; -1: all
        processors. Default: one, and for passes as many as BLAS may use.
    verbose : int, default=0
        1 shows progress on a terminal.

    Returns
    -------
    Solution

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the fit is the zero function, a dead neuron.

    Examples
    --------
    >>> from rectifit.datasets import make_relu
    >>> X, y, beta, *_ = make_relu(100, 5, noise=0.0, random_state=0)
    >>> solution = solve(X, y, "sorting", fit_intercept=False)
    >>> bool(abs(solution.beta - beta).max() < 1e-9), solution.certificate.status
    (True, 'optimal')
    """
    data = routing.open_data(X, y, sample_weight)
    known = read_constraints(
        data.n_features,
        names_of(X),
        bounds=bounds,
        positive=positive,
        monotonic_cst=monotonic_cst,
        constraints=constraints,
    )
    problem = Problem(data, fit_intercept, alpha, known)
    names = split_method(method)
    options = {
        "n_splits": _check_splits(n_splits, problem.n_samples),
        "k": check_count(k, "k"),
        "n_starts": check_count(n_starts, "n_starts"),
        "max_iter": None if max_iter is None else check_count(max_iter, "max_iter"),
        "tol": check_number(tol, "tol"),
        "eps": check_number(eps, "eps"),
        "eta0": check_number(eta0, "eta0", above=0.0),
        "gamma": check_number(gamma, "gamma"),
        "shrink": check_number(shrink, "shrink", above=0.0, below=1.0),
        "batch": None if batch is None else check_count(batch, "batch", most=problem.n_samples),
    }
    fit = _run(
        problem,
        method,
        make_stages(names, options),
        start,
        _check_floor(floor, problem),
        RunOptions.checked(time_limit, target_gap, random_state, n_jobs, verbose),
        routing.accelerator_of(X),
    )
    _warn_if_dead(fit)
    return Solution.of(fit)


def certify(
    X: Any,
    y: Any,
    solution_or_beta: Any = None,
    *,
    sample_weight: Any = None,
    fit_intercept: bool = True,
    alpha: float = 0.0,
    bounds: Any = None,
    positive: bool = False,
    monotonic_cst: Any = None,
    constraints: Any = None,
    floor: float | None = None,
    time_limit: float | None = 10.0,
    target_gap: float = TARGET_GAP,
    box: float | None = None,
    memory_limit: float = MEMORY_LIMIT,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Certificate:
    """Prove how good a fit is.

    Parameters
    ----------
    X, y, sample_weight, fit_intercept, alpha : the data, as for `solve`
    bounds, positive, monotonic_cst, constraints : what is known about coefficients, as for `solve`
    solution_or_beta : solution, pair (beta, intercept) or coefficients, optional
        The fit in question; without it, the one of `solve`.
    floor : float, optional
        Of the model max(floor, X beta + intercept). Default: that of the fit in question, else 0.
    time_limit : float, default=10
        Seconds, or None for no limit.
    target_gap : float, default=1e-4
        The proof ends when no fit can be better by more than this share.
    box : float, optional
        Prove it only for coefficients up to this size on the standardised scale (columns with mean 0 and
        variance 1, y with mean square 1), which is sometimes faster. Default: for all coefficients.
    memory_limit : float, default=1e9
        Bytes that the open nodes of the search may take. Beyond it the search goes depth first, and its
        bound rises later.
    n_jobs : int, optional
        Threads; -1: all processors. Without a time limit the result is the same for any number of them.
    verbose : int, default=0
        1 shows progress on a terminal.

    Returns
    -------
    Certificate
        Its `solution` is the best solution known at the end, never worse than the one given.

    Examples
    --------
    >>> from rectifit.datasets import make_relu
    >>> X, y, *_ = make_relu(100, 5, noise=0.3, random_state=0)
    >>> certificate = certify(X, y, fit_intercept=False)
    >>> certificate.status, certificate.gap <= 1e-4, certificate.box
    ('optimal', True, None)
    """
    data = routing.open_data(X, y, sample_weight)
    known = read_constraints(
        data.n_features,
        names_of(X),
        bounds=bounds,
        positive=positive,
        monotonic_cst=monotonic_cst,
        constraints=constraints,
    )
    problem = Problem(data, fit_intercept, alpha, known)
    problem.loaded("a proof is asked for")
    fit = getattr(solution_or_beta, "solution_", solution_or_beta)
    given = fit if isinstance(fit, Fit) and floor is None else None
    wanted = (given.floor if given else 0.0) if floor is None else floor
    known_floor = _check_floor(wanted, problem)
    if known_floor is None:
        raise ValueError("floor is 'estimate'; a proof is about one floor and needs a number")
    if solution_or_beta is not None:
        violation = problem.violation(check_start(solution_or_beta, problem)[0])
        if violation is not None:
            raise ValueError(f"solution_or_beta does not satisfy the constraints: {violation}")
    stage = Exact(
        None if box is None else check_number(box, "box", above=0.0),
        int(check_number(memory_limit, "memory_limit", above=0.0)),
    )
    options = RunOptions.checked(time_limit, target_gap, None, n_jobs, verbose)
    found = _run(problem, "exact", [("exact", stage)], solution_or_beta, known_floor, options)
    if given is not None and given.floor_is_estimated:
        found = replace(found, certificate=replace(found.certificate, floor=known_floor))
    _warn_if_dead(found)
    ended_by = {Stop.TIME_LIMIT: "time_limit", Stop.INTERRUPTED: "interrupted"}.get(found.stopped)
    if found.certificate.status == "bound_only" and ended_by is not None:
        # It ended before the search for a proof began.
        found = replace(found, certificate=replace(found.certificate, status=ended_by))
    asked_about = None
    if solution_or_beta is not None:
        beta, intercept = check_start(solution_or_beta, problem)
        asked_about = problem.shifted(known_floor).objective(beta, intercept - known_floor)
        # Better by no more than rounding is the same fit.
        if not asked_about > found.objective * (1.0 + AGREEMENT_TOL):
            asked_about = None
    return replace(found.certificate, solution=Solution.of(found), given_objective=asked_about)


def _run(
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


def _check_splits(n_splits: Any, n_samples: int) -> int:
    count = check_count(n_splits, "n_splits")
    return count if count == DEFAULT_SPLITS else check_count(n_splits, "n_splits", most=n_samples)


def _check_floor(floor: Any, problem: Problem) -> float | None:
    """A number, or None for an estimate, which needs the rows."""
    in_memory = problem.data.in_memory
    known = check_floor(floor, problem.fit_intercept, problem.y if in_memory else None)
    if known is None:
        problem.loaded("floor is 'estimate'")
    return known


def _warn_if_dead(fit: Fit) -> None:
    """Warn where the fit is a constant."""
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
    warnings.warn(text, ConvergenceWarning, stacklevel=3)
