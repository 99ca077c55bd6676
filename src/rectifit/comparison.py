"""The package's methods and their rivals on the same data, side by side.

In-sample error is the mean of squared residuals of a fit to all rows; cross-validated error that of rows the
fit has not seen, five folds, the same for everyone. Every fit of the form max(0, X beta + intercept) is
measured against one certified lower bound of the least possible in-sample error.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rectifit._typing import Mask, Matrix, Vector
from rectifit.methods import certify, solve
from rectifit.progress import Progress
from rectifit.rivals import RIVALS, Predict
from rectifit.scale.problem import BlockProblem
from rectifit.solution import Certificate, Solution, Stop

__all__ = ["METHODS", "Comparison", "Row", "compare", "compare_fit", "find_obstacle"]

METHODS = ("sgd", "gd", "sorting", "sorting+gd", "sorting+iterative", "multistart", "approximation", "auto")
N_FOLDS = 5
# A comparison beside a fit: few methods, seconds of each of ours, and n p min(n, p) at which it takes long.
FEW_METHODS, FEW_SECONDS, MOST_WORK = ("gd", "sorting+iterative", "auto"), 1.0, 1_000_000


@dataclass(frozen=True)
class Row:
    """One way to fit: mean squared errors, seconds of the fit to all rows, and how far from the least error.

    gap is None for fits of another form than max(0, X beta + intercept); skipped says why nothing was fitted.
    """

    name: str
    ours: bool
    in_sample: float | None = None
    cross_validated: float | None = None
    seconds: float | None = None
    gap: float | None = None
    skipped: str | None = None


@dataclass(frozen=True, eq=False)
class Comparison:
    """All rows, and the certificate that the gaps rest on."""

    rows: tuple[Row, ...]
    certificate: Certificate


def compare(
    X: Matrix,
    y: Vector,
    *,
    time_limit: float = 10.0,
    target_gap: float = 1e-4,
    seed: int = 0,
    verbose: int = 0,
    methods: Sequence[str] = METHODS,
    certificate: Certificate | None = None,
) -> Comparison:
    """Fit everything to the same data.

    Parameters
    ----------
    X, y : arrays
    time_limit : float, default=10
        Seconds of each fit of ours, and of the proof.
    target_gap : float, default=1e-4
        Of the proof.
    seed : int, default=0
        Of the folds.
    verbose : int, default=0
        1 shows progress on a terminal.
    methods : sequence of str
        Of ours.
    certificate : Certificate, optional
        What is proved about these data already, instead of a new proof.

    Examples
    --------
    >>> from rectifit.datasets import make_relu
    >>> X, y, *_ = make_relu(60, 2, noise=0.3, random_state=0)
    >>> rows = {row.name: row for row in compare(X, y).rows}
    >>> rows["auto"].in_sample <= rows["OLS clipped at 0"].in_sample
    True
    >>> rows["Tobit"].skipped[:31]
    'needs outcomes of at least 0; t'
    """
    folds = _draw_folds(y.size, seed)
    fits: dict[str, Callable[[Matrix, Vector], Predict]] = {rival.name: rival.fit for rival in RIVALS}
    fits |= {method: _make_fit(method, time_limit) for method in methods}
    outcomes = [y, *(y[~out] for out in folds)]
    reasons = {rival.name: next(filter(None, map(rival.refuses, outcomes)), None) for rival in RIVALS}
    of_relu = {rival.name for rival in RIVALS if rival.is_relu} | set(methods)
    with Progress(verbose) as progress, warnings.catch_warnings():
        # That a method returned the zero function is seen in its error.
        warnings.simplefilter("ignore")
        # Compiling is no part of a fit.
        solve(np.eye(3), np.arange(3.0))
        if certificate is None:
            certificate = certify(X, y, time_limit=time_limit, target_gap=target_gap, verbose=verbose)
        rows = []
        for i, (name, fit) in enumerate(fits.items()):
            progress.update(f"comparing, {name}", i, len(fits))
            ours, reason = name in methods, reasons.get(name)
            rows.append(
                Row(name, ours, skipped=reason)
                if reason
                else _measure(name, ours, fit, X, y, folds, certificate if name in of_relu else None)
            )
    return Comparison(tuple(rows), certificate)


def find_obstacle(solution: Solution) -> str | None:
    """Why a fit is not compared with others in passing, if so: a sentence."""
    problem = solution.problem
    if problem is None:
        return "the data are not stored with the fit"
    if isinstance(problem, BlockProblem):
        return "the data are read in blocks, and not all of the other ways to fit can do so"
    n, p = problem.X.shape
    obstacles = {
        "the rows are weighted, and not all of the other ways to fit take weights": problem.is_weighted,
        f"the floor is {solution.floor:.6g}, and the others know only 0": solution.floor != 0.0,
        "the floor is estimated, and the others know only 0": solution.floor_is_estimated,
        "the fit has no intercept, and the others have one": not problem.fit_intercept,
        "the fit has a ridge penalty, and the others have none": problem.alpha > 0.0,
        "the data are large, and it would take long; the command rectifit compare makes it": n * p * min(n, p)
        > MOST_WORK,
    }
    return next((sentence for sentence, is_so in obstacles.items() if is_so), None)


def compare_fit(solution: Solution, *, verbose: int = 0) -> Comparison | None:
    """A fit beside the ordinary alternatives, in some seconds; None where there is an obstacle."""
    problem = solution.problem
    if problem is None or find_obstacle(solution) is not None:
        return None
    X = problem.dense().astype(np.float64, copy=False)
    return compare(
        X,
        problem.y,
        time_limit=FEW_SECONDS,
        verbose=verbose,
        methods=FEW_METHODS,
        certificate=solution.certificate,
    )


def _draw_folds(n_samples: int, seed: int) -> list[Mask]:
    """Masks of the rows to leave out; none where there are fewer rows than folds."""
    if n_samples < N_FOLDS:
        return []
    fold = np.random.default_rng(seed).permutation(n_samples) % N_FOLDS
    return [fold == f for f in range(N_FOLDS)]


def _make_fit(method: str, time_limit: float) -> Callable[[Matrix, Vector], Predict]:
    def fit(X: Matrix, y: Vector) -> Predict:
        solution = solve(X, y, method, time_limit=time_limit)
        if solution.stopped is Stop.INTERRUPTED:
            raise KeyboardInterrupt
        return solution.predict

    return fit


def _measure(
    name: str,
    ours: bool,
    fit: Callable[[Matrix, Vector], Predict],
    X: Matrix,
    y: Vector,
    folds: list[Mask],
    certificate: Certificate | None,
) -> Row:
    began = time.perf_counter()
    predict = fit(X, y)
    seconds = time.perf_counter() - began
    in_sample = _mean_square(predict(X) - y)
    unseen = [fit(X[~out], y[~out])(X[out]) - y[out] for out in folds]
    cross_validated = _mean_square(np.concatenate(unseen)) if unseen else None
    gap = None
    if certificate is not None:
        least = certificate.lower_bound / y.size
        gap = max(0.0, 1.0 - least / in_sample) if in_sample > least else 0.0
    return Row(name, ours, in_sample, cross_validated, seconds, gap)


def _mean_square(errors: Vector) -> float:
    return float(np.mean(np.square(errors)))
