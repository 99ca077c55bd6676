"""The covariance of all that was estimated: coefficients, intercept and floor."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from rectifit._typing import Mask, Matrix, Vector
from rectifit.checks import check_count, check_random_state
from rectifit.fit import Fit, fit_of
from rectifit.inference.sandwich import KINDS, null_space, sandwich
from rectifit.inference.sums import FitMoments, data_of, list_estimates, read_moments
from rectifit.methods.estimate_floor import FloorPoint, descend, fit_coefficients
from rectifit.parallel import count_threads, map_ordered
from rectifit.tolerances import INDEPENDENT_TOL

__all__ = ["Covariance", "estimate_covariance"]

AT_BOUND = (
    "coefficients at a bound have no standard error of their own; the standard errors of the others take "
    "them as fixed there"
)
ON_LINE = "standard errors take the linear constraints that hold with equality as equations"
IN_DRAWS = (
    "constraints bind: the distribution of the coefficients is not normal, and the bootstrap is not reliable "
    "for coefficients at or near their bounds"
)
NEVER_LEFT = "coefficients without a standard error are at their bounds in every draw"


@dataclass(frozen=True, eq=False)
class Covariance:
    """How precise the estimates are.

    Attributes
    ----------
    matrix : covariance of the coefficients, then the intercept if there is one, then the floor if it was
        estimated; NaN where the data do not determine them; 0 where constraints hold a coefficient
    kind : "nonrobust", "HC0", "HC1", "HC2", "HC3" or "bootstrap"
    sigma : standard deviation of the noise of a row of weight 1, from the active rows
    sigma_floor : the same from the rows at the floor
    df : active rows minus coefficients, the degrees of freedom of sigma
    n_active, n_floor : rows that have weight, above the floor and at it
    moments : the sums over rows that all of this comes from
    notes : what a reader must know, sentences
    at_bound, is_fixed : whether an estimate is at a bound, and whether constraints determine it alone, in the
        order of the matrix; bootstrap draws do not move what is fixed
    """

    matrix: Matrix
    kind: str
    sigma: float
    sigma_floor: float
    df: float
    n_active: int
    n_floor: int
    moments: FitMoments = field(repr=False)
    at_bound: Mask
    is_fixed: Mask
    notes: tuple[str, ...] = ()

    @property
    def std_error(self) -> Vector:
        """Roots of the diagonal."""
        return np.sqrt(self.matrix.diagonal())

    def hide_fixed(self, std_error: Vector) -> Vector:
        """Standard errors of the first estimates, NaN for those that have none of their own."""
        return np.where(self.is_fixed[: std_error.size], np.nan, std_error)


def estimate_covariance(
    solution: Fit | Any,
    kind: str = "nonrobust",
    *,
    bootstrap: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Covariance:
    """The covariance of the estimates; the assumptions are in the documentation of `rectifit.inference`.

    Parameters
    ----------
    solution : Solution or fitted estimator
    kind : {"nonrobust", "HC0", "HC1", "HC2", "HC3"}
        Least squares on the active rows with noise of one variance, or the sandwich for any.
    bootstrap : int, optional
        Instead, draw the rows with replacement this many times, and fit each draw by the iterative method,
        started from the solution: it follows this minimum and does not search for others. Not available for
        data that is read in passes.
    random_state : int, numpy Generator or RandomState, optional
    n_jobs : int, optional
        Threads of the bootstrap; -1: all processors. The result does not depend on it.

    Examples
    --------
    >>> from rectifit import solve
    >>> solution = solve([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 1.0, 3.0])
    >>> covariance = estimate_covariance(solution)
    >>> covariance.n_active, covariance.df, round(covariance.sigma, 4)
    (3, 1.0, 0.8165)
    """
    solution = fit_of(solution)
    if kind not in KINDS:
        raise ValueError(f"covariance is {kind!r}; it must be one of {', '.join(map(repr, KINDS))}")
    if bootstrap is not None and kind != "nonrobust":
        raise ValueError(f"covariance is {kind!r} with bootstrap={bootstrap}; use only one of them")
    if bootstrap is not None:
        data_of(solution).loaded(f"bootstrap is {bootstrap!r}")
    sides, known = read_moments(solution), solution.constraints
    n_active, n_floor = sides.above.n_rows, sides.below.n_rows
    none = "no row is active: no standard errors"
    held = np.zeros((0, solution.beta.size)) if known is None else known.held(solution.beta)
    fixed = np.linalg.norm(null_space(held), axis=1) <= INDEPENDENT_TOL
    main = sandwich(sides.above, solution.alpha, kind, partial(sides.meat, True), "active rows", none, held)
    notes, matrix = list(main.notes), main.matrix
    matrix[: fixed.size][fixed], matrix[:, : fixed.size][:, fixed] = 0.0, 0.0
    if solution.floor_is_estimated:
        # The floor is the weighted mean of the outcomes of these rows.
        none = "no row is at the floor, which is not determined"
        base = sandwich(sides.below, 0.0, kind, partial(sides.meat, False), "rows at the floor", none)
        notes += base.notes
        q = len(matrix)
        matrix = np.pad(matrix, (0, 1))
        matrix[q:, q:] = base.matrix
        sigma_floor = base.sigma
    else:
        sigma_floor = float(np.sqrt(sides.below.squares / n_floor)) if n_floor else np.nan
    if bootstrap is not None:
        missing = np.isnan(matrix)
        matrix = _draw(solution, check_count(bootstrap, "bootstrap", 2), random_state, count_threads(n_jobs))
        matrix[missing] = np.nan
        kind = "bootstrap"
        fixed &= matrix.diagonal()[: fixed.size] == 0.0
    if len(held):
        notes += _explain(len(held), int(np.count_nonzero(solution.at_bound)), fixed, kind)
    if sides.n_kinks:
        rows, verb = ("rows lie", "are") if sides.n_kinks > 1 else ("row lies", "is")
        notes.append(
            f"{sides.n_kinks} {rows} exactly at the kink and {verb} not counted as active; "
            "it does not matter if there are many others"
        )
    return Covariance(
        matrix,
        kind,
        main.sigma,
        sigma_floor,
        main.df,
        n_active,
        n_floor,
        sides,
        np.array(list_estimates(solution, solution.at_bound.tolist(), False, False)),
        np.array(list_estimates(solution, fixed.tolist(), False, False)),
        tuple(notes),
    )


def _explain(n_held: int, n_bounds: int, fixed: Mask, kind: str) -> list[str]:
    """What a reader must know where constraints hold coefficients, some of them bounds."""
    if kind == "bootstrap":
        return [IN_DRAWS] + [NEVER_LEFT] * bool(fixed.any())
    return [AT_BOUND] * (n_bounds > 0) + [ON_LINE] * (n_held > n_bounds)


def _draw(solution: Fit, n_replicates: int, random_state: Any, n_threads: int) -> Matrix:
    """The covariance of estimates from rows drawn with replacement."""
    problem = data_of(solution)
    members = np.flatnonzero(problem.root_weight)
    seeds = check_random_state(random_state).integers(2**63, size=n_replicates).tolist()

    def refit(seed: int) -> Vector:
        drawn = np.random.default_rng(seed).choice(members, members.size)
        times = np.bincount(drawn, minlength=problem.n_samples)
        weights: Vector = np.square(problem.root_weight) * times.astype(np.float64)
        sample = replace(problem, data=problem.loaded().reweighted(weights), _shifted={})
        start = FloorPoint.at(sample, solution.beta, solution.intercept, solution.floor)
        fitted = (descend if solution.floor_is_estimated else fit_coefficients)(sample, start)
        return np.array(list_estimates(solution, fitted.beta, fitted.intercept, fitted.floor))

    estimates = np.array(list(map_ordered(refit, seeds, n_threads)))
    return np.atleast_2d(np.cov(estimates, rowvar=False))
