"""`solve` and `certify`: check what is given, choose an engine, run the stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rectifit import routing
from rectifit.certificate.proof import MEMORY_LIMIT, TARGET_GAP
from rectifit.certifying import inherited_problem, inherited_weights, prove
from rectifit.checks import check_count, check_number, check_start
from rectifit.constraints import read_constraints
from rectifit.data.kinds import check_columns, encoded, name_of, names_of
from rectifit.data.problem import Problem
from rectifit.fit import Certificate, Fit
from rectifit.methods.stages import make_stages, split_method
from rectifit.running import RunOptions, checked_floor, run_stages, warn_if_dead, warn_if_endless
from rectifit.solution import Solution

__all__ = ["certify", "solve"]

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
    UserWarning
        Before an "approximation" with a k whose active sets are too many for any computer, with their number.

    Examples
    --------
    >>> from rectifit.datasets import make_relu
    >>> X, y, beta, *_ = make_relu(100, 5, noise=0.0, random_state=0)
    >>> solution = solve(X, y, "sorting", fit_intercept=False)
    >>> bool(abs(solution.beta - beta).max() < 1e-9), solution.certificate.status
    (True, 'optimal')
    """
    data = routing.open_data(X, y, sample_weight)
    columns = names_of(X)
    known = read_constraints(
        data.n_features,
        columns,
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
    stages, known_floor = make_stages(names, options), checked_floor(floor, problem)
    warn_if_endless(problem, stages, known_floor)
    fit = run_stages(
        problem,
        method,
        stages,
        start,
        known_floor,
        RunOptions.checked(time_limit, target_gap, random_state, n_jobs, verbose),
        routing.accelerator_of(X),
    )
    warn_if_dead(fit)
    return Solution.of(fit, columns, name_of(y))


def certify(
    X: Any,
    y: Any,
    solution_or_beta: Any = None,
    *,
    sample_weight: Any = None,
    fit_intercept: bool | None = None,
    alpha: float | None = None,
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
    proof: str | Path | None = None,
) -> Certificate:
    """Prove how good a fit is.

    A fit in question that is a solution or a fitted estimator knows its model: intercept, ridge, weights,
    constraints and floor are taken from it, and an argument that contradicts it is an error. See also
    `Solution.certify`, which needs no data either.

    Parameters
    ----------
    X, y : the data, as for `solve`
    solution_or_beta : solution, estimator, pair (beta, intercept) or coefficients, optional
        The fit in question; without it, the best one is searched for.
    sample_weight, fit_intercept, alpha, bounds, positive, monotonic_cst, constraints
        As for `solve`. Default: those of the fit in question, else those of `solve`.
    floor : float, optional
        Of the model max(floor, X beta + intercept). Default: that of the fit in question, else 0. Where that
        fit has estimated its floor, another floor may be given.
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
    proof : path, optional
        Write the proof to this file, so that anyone can check it (see `check_proof`). The file appears only
        after it was checked. The search takes longer than the usual one.

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
    given = getattr(solution_or_beta, "solution_", solution_or_beta)
    given = given if isinstance(given, Fit) else None
    X = encoded(solution_or_beta, X)
    columns: Sequence[str] | None = names_of(X)
    if given is not None:
        check_columns(X, given.feature_names)
    weights = inherited_weights(given, y, sample_weight)
    data = routing.open_data(X, y, weights)
    known = read_constraints(
        data.n_features,
        columns,
        bounds=bounds,
        positive=positive,
        monotonic_cst=monotonic_cst,
        constraints=constraints,
    )
    problem = inherited_problem(data, given, fit_intercept, alpha, known)
    at = solution_or_beta if given is None else given
    at = None if at is None else check_start(at, problem, "solution_or_beta")
    found = prove(
        problem,
        given,
        at,
        floor=floor,
        time_limit=time_limit,
        target_gap=target_gap,
        box=box,
        memory_limit=memory_limit,
        n_jobs=n_jobs,
        verbose=verbose,
        proof=proof,
    )
    if columns is None and given is not None:
        columns = given.feature_names
    solution = Solution.of(found.fit, columns, name_of(y))
    return replace(found.certificate, solution=solution)


def _check_splits(n_splits: Any, n_samples: int) -> int:
    count = check_count(n_splits, "n_splits")
    return count if count == DEFAULT_SPLITS else check_count(n_splits, "n_splits", most=n_samples)
