"""Compare fits to the same data.

The in-sample error is the mean squared residual of a fit to all rows. The cross-validated error is the mean
squared residual of rows that the fit has not seen: five folds, the same for every fit. The in-sample error of
every fit of the form max(0, X beta + intercept) is measured against one certified lower bound.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import PredefinedSplit, cross_val_predict

from rectifit._typing import Matrix, Vector
from rectifit.api import certify, solve
from rectifit.comparison.baselines import BASELINES, Candidate, baselines_within
from rectifit.display import Cell, Column, Table
from rectifit.estimator import ReLURegressor
from rectifit.fit import Certificate, Fit, Stop, relative_gap
from rectifit.formatting import NOTHING, write_amount, write_duration, write_number, write_share
from rectifit.inference.groups import read_groups
from rectifit.progress import Progress
from rectifit.routing import takes_long_to_compare

__all__ = ["METHODS", "ComparedFit", "Comparison", "compare", "compare_fit", "find_obstacle"]

METHODS = ("sgd", "gd", "sorting", "sorting+gd", "sorting+iterative", "multistart", "approximation", "auto")
N_FOLDS = 5
# The short comparison that comes with a fit: its methods, and seconds for each of them.
SHORT_METHODS = ("gd", "sorting+iterative", "auto")
SHORT_TIME_LIMIT = 1.0
# Follows the names of fits that ignore bounds of coefficients.
MARK = " *"


@dataclass(frozen=True)
class ComparedFit:
    """One fit: mean squared errors, seconds of the fit to all rows, and its gap to the lower bound.

    The gap is None unless the fit has the form max(0, X beta + intercept) and keeps the bounds of the
    coefficients, if there are any; `ignores_bounds` says that it does not know them. `skipped` says why
    nothing was fitted, if so.
    """

    name: str
    ours: bool
    in_sample: float | None = None
    cross_validated: float | None = None
    seconds: float | None = None
    gap: float | None = None
    skipped: str | None = None
    ignores_bounds: bool = False


@dataclass(frozen=True, eq=False)
class Comparison:
    """All fits, and the certificate with the lower bound of their gaps.

    The fits of the package, and gaps, have the ridge penalty `alpha`. `is_grouped` says whether a group of
    rows is in one fold as a whole.
    """

    rows: tuple[ComparedFit, ...]
    certificate: Certificate
    alpha: float = 0.0
    is_grouped: bool = False

    def ranked(self) -> list[ComparedFit]:
        """What was fitted, by the error on unseen rows."""
        fitted = [row for row in self.rows if row.skipped is None]
        return sorted(fitted, key=lambda row: row.cross_validated or row.in_sample or 0.0)

    @property
    def scope(self) -> str:
        """Which coefficients the proof is about; follows "fit of the form max(0, X beta + intercept)"."""
        return " whose coefficients satisfy the constraints" * self.certificate.is_constrained

    def remarks(self) -> list[str]:
        """Sentences about the table: which fits ignore the bounds, what was not fitted, and why."""
        left_out = [f"{row.name} was left out: {row.skipped}." for row in self.rows if row.skipped]
        ignoring = any(row.ignores_bounds for row in self.ranked())
        return [f"{MARK.strip()} ignores the bounds of the coefficients."] * ignoring + left_out

    def table(self) -> Table:
        """The ranked fits for display; without gaps where the lower bound says nothing."""
        columns: tuple[Column, ...] = (
            Column("method"),
            Column("error, these rows", write_amount),
            Column("error, unseen rows", write_amount, NOTHING),
            Column("time", write_duration),
            Column("gap", write_share, NOTHING),
        )
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (
                "rectifit " * row.ours + row.name + MARK * row.ignores_bounds,
                row.in_sample,
                row.cross_validated,
                row.seconds,
                row.gap,
            )
            for row in self.ranked()
        )
        if not self.certificate.says_anything:
            columns, rows = columns[:-1], tuple(row[:-1] for row in rows)
        return Table("comparison", "", columns, rows, " ".join(self.remarks()))


# Why a fit is missing from a comparison that was not finished.
INTERRUPTED = "the comparison was interrupted"


def compare(
    X: Matrix,
    y: Vector,
    *,
    bounds: Matrix | None = None,
    alpha: float = 0.0,
    groups: Any = None,
    time_limit: float = 10.0,
    target_gap: float = 1e-4,
    seed: int = 0,
    verbose: int = 0,
    methods: Sequence[str] = METHODS,
    certificate: Certificate | None = None,
) -> Comparison:
    """Fit the baselines and the package's methods to the same data.

    Parameters
    ----------
    X, y : arrays
    bounds : array of shape (n_features, 2), optional
        Bounds of the coefficients, for the package's methods, scipy's least_squares and bounded linear fits.
        The others ignore them and then have no gap.
    alpha : float, default=0
        Ridge penalty of the package's methods and of the proof. Linear ridge regression is then an
        alternative, too; the others have no penalty. Gaps are those of the sum of squares plus the penalty.
    groups : array of shape (n_samples,), optional
        Groups of rows. Folds do not divide them: fits are measured on groups that they have not seen.
    time_limit : float, default=10
        Seconds for each of the package's methods, and for the proof.
    target_gap : float, default=1e-4
        Gap at which the proof stops.
    seed : int, default=0
        Seed of the folds.
    verbose : int, default=0
        1 shows progress on a terminal.
    methods : sequence of str
        Methods of the package.
    certificate : Certificate, optional
        A certificate for these data, instead of a new proof.

    Examples
    --------
    >>> from rectifit.datasets import make_relu
    >>> X, y, *_ = make_relu(60, 2, noise=0.3, random_state=0)
    >>> rows = {row.name: row for row in compare(X, y).rows}
    >>> rows["auto"].in_sample <= rows["OLS clipped at 0"].in_sample
    True
    >>> rows["Tobit"].skipped[:31]
    'it needs outcomes of at least 0'
    """
    folds = _draw_folds(y.size, seed, groups)
    candidates = list(BASELINES) if bounds is None else baselines_within(bounds)
    if alpha > 0.0:
        ridge = Candidate("ridge regression", Ridge(alpha), ignores_bounds=bounds is not None)
        candidates.insert(0, ridge)
    for name in methods:
        method = _Method(name, time_limit=time_limit, bounds=bounds, alpha=alpha)
        candidates.append(Candidate(name, method, is_relu=True, ours=True))
    with Progress(verbose) as progress, warnings.catch_warnings():
        # A comparison reports what a fit reached: its error shows a fit that did not converge.
        warnings.simplefilter("ignore")
        # Compile before any time is measured.
        solve(np.eye(3), np.arange(3.0))
        if certificate is None:
            certificate = certify(
                X,
                y,
                bounds=bounds,
                alpha=alpha,
                time_limit=time_limit,
                target_gap=target_gap,
                verbose=verbose,
            )
        rows = []
        try:
            for i, candidate in enumerate(candidates):
                progress.update(f"comparing, {candidate.name}", i, len(candidates))
                rows.append(_measure(candidate, X, y, folds, alpha, certificate.lower_bound))
        except KeyboardInterrupt:
            # What was finished is shown.
            if not rows:
                raise
            left = candidates[len(rows) :]
            rows += [ComparedFit(one.name, one.ours, skipped=INTERRUPTED) for one in left]
    return Comparison(tuple(rows), certificate, alpha, groups is not None)


def find_obstacle(solution: Fit) -> str | None:
    """Why a fit does not come with a comparison, if so: a sentence."""
    problem = solution.problem
    if problem is None:
        return "the data are not stored with the fit"
    if not problem.data.in_memory:
        return "the data are read in passes, and some of the alternatives need all rows at once"
    floor = write_number(solution.floor, 6)
    obstacles = {
        "the rows are weighted, and some of the alternatives do not accept weights": problem.is_weighted,
        f"the floor is {floor}, and the alternatives have the floor 0": solution.floor != 0.0,
        "the floor is estimated, and the alternatives have the floor 0": solution.floor_is_estimated,
        "the fit has no intercept, and the alternatives have one": not problem.fit_intercept,
        "the fit has a ridge penalty, and the alternatives have none": problem.alpha > 0.0,
        "the fit has linear constraints, and the alternatives have none": (
            problem.constraints is not None and problem.constraints.is_linear
        ),
        "the data are large, and a comparison would take long; run rectifit compare to make one": (
            takes_long_to_compare(problem.n_samples, problem.n_features)
        ),
    }
    return next((sentence for sentence, is_so in obstacles.items() if is_so), None)


def compare_fit(solution: Fit, *, verbose: int = 0) -> Comparison | None:
    """A short comparison of a fit with the baselines, in a few seconds; None where there is an obstacle."""
    problem = solution.problem
    if problem is None or find_obstacle(solution) is not None:
        return None
    known = problem.constraints
    return compare(
        problem.loaded().dense().astype(np.float64, copy=False),
        problem.y,
        bounds=None if known is None else np.column_stack([known.low, known.high]),
        time_limit=SHORT_TIME_LIMIT,
        verbose=verbose,
        methods=SHORT_METHODS,
        certificate=solution.certificate,
    )


class _Method(ReLURegressor):
    """A method of the package; Ctrl-C ends the comparison, not only one of its fits."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, start: Any = None) -> _Method:
        super().fit(X, y, sample_weight, start=start)
        if self.solution_.stopped is Stop.INTERRUPTED:
            raise KeyboardInterrupt
        return self


def _measure(
    candidate: Candidate,
    X: Matrix,
    y: Vector,
    folds: PredefinedSplit | None,
    alpha: float,
    bound: float,
) -> ComparedFit:
    """Fit a candidate to all rows, and to all but one fold; `bound` is one of the penalised objective."""
    row = partial(ComparedFit, candidate.name, candidate.ours, ignores_bounds=candidate.ignores_bounds)
    outcomes = [y, *(y[train] for train, _ in folds.split())] if folds else [y]
    obstacle = next(filter(None, map(candidate.find_obstacle, outcomes)), None)
    if obstacle is not None:
        return row(skipped=obstacle)
    began = time.perf_counter()
    fitted = clone(candidate.estimator).fit(X, y)
    seconds = time.perf_counter() - began
    in_sample = float(mean_squared_error(y, fitted.predict(X)))
    cross_validated = None
    if folds is not None:
        unseen = cross_val_predict(candidate.estimator, X, y, cv=folds)
        cross_validated = float(mean_squared_error(y, unseen))
    gap = None
    if candidate.is_relu:
        penalty = alpha * float(np.sum(np.square(fitted.coef_))) if alpha > 0.0 else 0.0
        gap = relative_gap(in_sample + penalty / y.size, bound / y.size)
    return row(in_sample=in_sample, cross_validated=cross_validated, seconds=seconds, gap=gap)


def _draw_folds(n_samples: int, seed: int, groups: Any = None) -> PredefinedSplit | None:
    """Folds at random, of equally many rows or groups; None where there are fewer rows than folds."""
    if groups is not None:
        found = read_groups(groups, n_samples)
        n_groups = int(found.cells.max()) + 1
        if len(found.ways) > 1:
            raise ValueError("groups has two columns; folds can keep groups of one kind together")
        if n_groups < N_FOLDS:
            raise ValueError(f"groups has {n_groups} groups; a comparison needs at least {N_FOLDS}")
        return PredefinedSplit((np.random.default_rng(seed).permutation(n_groups) % N_FOLDS)[found.cells])
    if n_samples < N_FOLDS:
        return None
    return PredefinedSplit(np.random.default_rng(seed).permutation(n_samples) % N_FOLDS)
