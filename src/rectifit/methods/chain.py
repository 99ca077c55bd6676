"""From data and the name of a method to a Solution."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from rectifit._typing import Vector
from rectifit.checks import check_count, check_floor, check_number, check_start, is_tensor
from rectifit.methods.approximation import Approximation
from rectifit.methods.auto import Auto
from rectifit.methods.exact import Exact
from rectifit.methods.floor import lift, solve_with_estimate
from rectifit.methods.gd import GradientDescent
from rectifit.methods.iterative import Iterative
from rectifit.methods.multistart import Multistart
from rectifit.methods.search import TARGET_GAP, Search, Stage, make_stages, warn_of_dead_fit
from rectifit.methods.sgd import StochasticGradientDescent
from rectifit.methods.shortest import shorten
from rectifit.methods.sorting import Sorting
from rectifit.parallel import count_threads
from rectifit.problem import Point, Problem
from rectifit.progress import Progress
from rectifit.scale.solve import as_blocks, is_large, solve_blocks, solve_large
from rectifit.solution import Certificate, Solution
from rectifit.surrogate.solver import SMALL

__all__ = ["STAGES", "certify", "solve"]

STAGES: dict[str, Any] = {
    "auto": Auto,
    "approximation": Approximation,
    "sorting": Sorting,
    "iterative": Iterative,
    "gd": GradientDescent,
    "sgd": StochasticGradientDescent,
    "multistart": Multistart,
    "exact": Exact,
}
UNKNOWN = "with unknown stage {name!r}; stages are {known}, joined by '+'"
# The default means at most so many splits; any other number must not exceed the number of samples.
DEFAULT_SPLITS = 10


def solve(
    X: Any,
    y: Any,
    method: str = "auto",
    *,
    sample_weight: Any = None,
    fit_intercept: bool = True,
    alpha: float = 0.0,
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
    """Fit y ~ max(floor, X beta + intercept) by least squares; the floor is 0 unless asked for.

    Parameters
    ----------
    X : array-like or SciPy sparse matrix of shape (n_samples, n_features)
        A torch tensor on an accelerator is solved there if it is large; so are the thousands of surrogates of
        "approximation" and "multistart" if it is small.
        Or data that is read in blocks: a `numpy.memmap`, a dask array or data frame, or what
        `rectifit.scale.open_parquet` returns, which has its own y; see `rectifit.scale`.
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
    floor : float or "estimate", default=0.0
        A known floor, or one fitted together with the coefficients. Then the certificate is about the
        estimated floor: no coefficients with this floor have an objective below the bound. A floor other
        than 0 needs an intercept.
    start : solution, pair (beta, intercept), coefficients or torch module (Linear, ReLU), optional
        Where the first stage begins, if it begins anywhere; the result is never worse.
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
        Threads of "approximation", "multistart" and "exact", and of large data in any method that reads it in
        blocks; -1: all processors. Default: one, and in blocks as many as BLAS may use.
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
    blocks = as_blocks(X, y, sample_weight)
    data: Any = blocks or Problem.from_data(
        X, y, sample_weight=sample_weight, fit_intercept=fit_intercept, alpha=alpha
    )
    options = {
        "n_splits": _check_splits(n_splits, data.n_samples),
        "k": check_count(k, "k"),
        "n_starts": check_count(n_starts, "n_starts"),
        "max_iter": None if max_iter is None else check_count(max_iter, "max_iter"),
        "tol": check_number(tol, "tol"),
        "eps": check_number(eps, "eps"),
        "eta0": check_number(eta0, "eta0", above=0.0),
        "gamma": check_number(gamma, "gamma"),
        "shrink": check_number(shrink, "shrink", above=0.0, below=1.0),
        "batch": None if batch is None else check_count(batch, "batch", most=data.n_samples),
    }
    known_floor = check_floor(floor, fit_intercept, None if blocks is not None else data.y)
    if blocks is not None and known_floor is None:
        raise ValueError("floor is 'estimate'; for data read in blocks it must be a number")
    if blocks is not None or (known_floor is not None and is_large(data, method)):
        shared: dict[str, Any] = {
            "floor": known_floor,
            "start": start,
            "n_threads": None if n_jobs is None else count_threads(n_jobs),
            "verbose": _check_verbose(verbose),
            "random_state": random_state,
            **_check_limits(time_limit, target_gap),
        }
        if blocks is None:
            return solve_large(data, method, options, **shared)
        return solve_blocks(blocks, method, options, fit_intercept=fit_intercept, alpha=alpha, **shared)
    solution = _run(
        data,
        method,
        make_stages(method, options, STAGES, UNKNOWN),
        start,
        known_floor,
        time_limit,
        target_gap,
        random_state,
        n_jobs,
        verbose,
        X.device if is_tensor(X) and X.device.type != "cpu" else None,
    )
    _warn_if_dead(solution)
    return solution


def certify(
    X: Any,
    y: Any,
    solution_or_beta: Any = None,
    *,
    sample_weight: Any = None,
    fit_intercept: bool = True,
    alpha: float = 0.0,
    floor: float | None = None,
    time_limit: float | None = 10.0,
    target_gap: float = TARGET_GAP,
    box: float | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Certificate:
    """Prove how good a fit is.

    Parameters
    ----------
    X, y, sample_weight, fit_intercept, alpha : the data, as for `solve`
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
    n_jobs : int, optional
        Threads; -1: all processors. The result is the same up to the target gap.
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
    problem = Problem.from_data(X, y, sample_weight=sample_weight, fit_intercept=fit_intercept, alpha=alpha)
    fit = getattr(solution_or_beta, "solution_", solution_or_beta)
    given = fit if isinstance(fit, Solution) and floor is None else None
    wanted = (given.floor if given else 0.0) if floor is None else floor
    known_floor = check_floor(wanted, problem.fit_intercept, problem.y)
    if known_floor is None:
        raise ValueError("floor is 'estimate'; a proof is about one floor and needs a number")
    stage = Exact(None if box is None else check_number(box, "box", above=0.0))
    solution = _run(
        problem,
        "exact",
        [("exact", stage)],
        solution_or_beta,
        known_floor,
        time_limit,
        target_gap,
        None,
        n_jobs,
        verbose,
    )
    if given is not None and given.floor_is_estimated:
        solution = replace(solution, certificate=replace(solution.certificate, floor=known_floor))
    _warn_if_dead(solution)
    asked_about = None
    if solution_or_beta is not None:
        beta, intercept = check_start(solution_or_beta, problem)
        asked_about = problem.shifted(known_floor).objective(beta, intercept - known_floor)
        # Better by no more than rounding is the same fit.
        if not asked_about > solution.objective * (1.0 + 1e-9):
            asked_about = None
    return replace(solution.certificate, solution=solution, given_objective=asked_about)


def _run(
    problem: Problem,
    method: str,
    stages: list[tuple[str, Stage]],
    start: Any,
    floor: float | None,
    time_limit: Any,
    target_gap: Any,
    random_state: Any,
    n_jobs: Any,
    verbose: Any,
    device: Any = None,
) -> Solution:
    """Check what all methods share, and run the stages; without a floor, estimate it."""
    limits = _check_limits(time_limit, target_gap)
    n_threads = count_threads(n_jobs)
    at = None if start is None else check_start(start, problem)

    with Progress(_check_verbose(verbose)) as progress:

        def run(floor: float, start: tuple[Vector, float] | None, seconds: float | None) -> Solution:
            search = Search(
                problem.shifted(floor),
                time_limit=seconds,
                target_gap=limits["target_gap"],
                random_state=random_state,
                n_threads=n_threads,
                progress=progress,
                device=device,
            )
            if start is not None:
                search.best = _evaluate_start(search, start[0], start[1] - floor)
            with _blas_for(problem):
                stopped = search.run(stages)
            if search.n_surrogates > 0 and search.best is not None:
                search.best = shorten(search, search.best) or search.best
            return lift(search.solution(method, stopped), problem, floor)

        if floor is not None:
            return run(floor, at, limits["time_limit"])
        return solve_with_estimate(problem, run, at, limits["time_limit"])


def _blas_for(problem: Problem) -> AbstractContextManager[Any]:
    """One BLAS thread: of the many short products over blocks of rows, several threads only wait."""
    if problem.n_samples * problem.n_features <= SMALL:
        return nullcontext()
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1, "blas")
    return limits


def _evaluate_start(search: Search, beta: Vector, intercept: float) -> Point:
    with np.errstate(over="ignore", invalid="ignore"):
        point = search.evaluate(beta, intercept)
    if not (np.isfinite(point.u).all() and np.isfinite(point.objective)):
        raise ValueError("start has an objective that is not finite; smaller coefficients are needed")
    return point


def _check_verbose(verbose: Any) -> int:
    return check_count(int(verbose) if isinstance(verbose, bool) else verbose, "verbose", 0)


def _check_limits(time_limit: Any, target_gap: Any) -> dict[str, float | None]:
    return {
        "time_limit": None if time_limit is None else check_number(time_limit, "time_limit", above=0.0),
        "target_gap": None if target_gap is None else check_number(target_gap, "target_gap"),
    }


def _check_splits(n_splits: Any, n_samples: int) -> int:
    count = check_count(n_splits, "n_splits")
    return count if count == DEFAULT_SPLITS else check_count(n_splits, "n_splits", most=n_samples)


def _warn_if_dead(solution: Solution) -> None:
    problem, floor = solution.problem, solution.floor
    assert problem is not None
    if problem.preactivation(solution.beta, solution.intercept).max() <= floor:
        warn_of_dead_fit(int(np.count_nonzero(problem.y > floor)), floor, stacklevel=4)
