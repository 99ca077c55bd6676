"""The covariance of all that was estimated: coefficients, intercept and floor."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import block_diag

from rectifit._typing import Integers, Mask, Matrix, Vector
from rectifit.checks import check_count
from rectifit.fit import Fit, fit_of
from rectifit.inference.bootstrap import draw_estimates
from rectifit.inference.dependence import Breads, Cover, cover_clusters, cover_lags, default_lags
from rectifit.inference.groups import Groups, read_groups
from rectifit.inference.sandwich import KINDS, make_bread, null_space, sandwich
from rectifit.inference.sums import FitMoments, data_of, list_estimates, read_moments
from rectifit.parallel import count_threads
from rectifit.tolerances import INDEPENDENT_TOL

__all__ = ["COVARIANCES", "Covariance", "estimate_covariance"]

COVARIANCES = (*KINDS, "cluster", "HAC")
NONE_ACTIVE = "no row is active: no standard errors"
NONE_AT_FLOOR = "no row is at the floor, which is not determined"

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
    kind : "nonrobust", "HC0", "HC1", "HC2", "HC3", "cluster", "HAC" or "bootstrap"
    label : the same with the number of groups, lags or draws
    sigma : standard deviation of the noise of a row of weight 1, from the active rows
    sigma_floor : the same from the rows at the floor
    df : active rows minus coefficients, the degrees of freedom of sigma
    n_active, n_floor : rows that have weight, above the floor and at it
    moments : the sums over rows that all of this comes from
    notes : what a reader must know, sentences
    at_bound, is_fixed : whether an estimate is at a bound, and whether constraints determine it alone, in the
        order of the matrix; bootstrap draws do not move what is fixed
    draws : of a bootstrap, the estimates of all draws, one line each
    """

    matrix: Matrix
    kind: str
    label: str
    sigma: float
    sigma_floor: float
    df: float
    n_active: int
    n_floor: int
    moments: FitMoments = field(repr=False)
    at_bound: Mask
    is_fixed: Mask
    notes: tuple[str, ...] = ()
    draws: Matrix | None = field(default=None, repr=False)

    @property
    def std_error(self) -> Vector:
        """Roots of the diagonal."""
        return np.sqrt(self.matrix.diagonal())

    @property
    def missing(self) -> Mask:
        """Coefficients that the data do not determine."""
        return np.isnan(self.matrix.diagonal()[: self.moments.above.mean.size])

    def hide_fixed(self, std_error: Vector) -> Vector:
        """Standard errors of the first estimates, NaN for those that have none of their own."""
        return np.where(self.is_fixed[: std_error.size], np.nan, std_error)


def estimate_covariance(
    solution: Fit | Any,
    kind: str = "nonrobust",
    *,
    groups: Any = None,
    maxlags: int | None = None,
    bootstrap: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Covariance:
    """The covariance of the estimates; the assumptions are in the documentation of `rectifit.inference`.

    Parameters
    ----------
    solution : Solution or fitted estimator
    kind : {"nonrobust", "HC0", "HC1", "HC2", "HC3", "cluster", "HAC"}
        Least squares on the active rows with noise of one variance, or the sandwich for any; for noise that
        is correlated within `groups`; or for noise that is correlated over time, the rows being in its order.
    groups : array of shape (n_samples,) or (n_samples, 2), data frame of two columns, or pair of arrays
        With "cluster", the group of every row, or its groups of two kinds. With `bootstrap`, whole groups of
        one kind are drawn. The rows are those of X in the fit.
    maxlags : int, optional
        With "HAC", how many rows before a row its noise may be correlated with. Default:
        floor(4 (n_samples / 100)^(2/9)).
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
    _check_kind(kind, groups, maxlags, bootstrap)
    if bootstrap is not None:
        data_of(solution).loaded(f"bootstrap is {bootstrap!r}")
    clusters = None if groups is None else read_groups(groups, data_of(solution).n_samples)
    sides, known = read_moments(solution), solution.constraints
    n_active, n_floor = sides.above.n_rows, sides.below.n_rows
    held = np.zeros((0, solution.beta.size)) if known is None else known.held(solution.beta)
    fixed = np.linalg.norm(null_space(held), axis=1) <= INDEPENDENT_TOL
    main = make_bread(sides.above, solution.alpha, "active rows", NONE_ACTIVE, held)
    breads, sigma_floor = {True: main}, np.nan
    if solution.floor_is_estimated:
        # The floor is the weighted mean of the outcomes of these rows.
        breads[False] = make_bread(sides.below, 0.0, "rows at the floor", NONE_AT_FLOOR)
        sigma_floor = breads[False].sigma
    elif n_floor:
        sigma_floor = float(np.sqrt(sides.below.squares / n_floor))
    notes, draws = [note for bread in breads.values() for note in bread.notes], None
    if bootstrap is not None:
        missing = np.concatenate([bread.unseen for bread in breads.values()])
        n_draws = check_count(bootstrap, "bootstrap", 2)
        units = None if clusters is None else _one_way(clusters)
        draws = draw_estimates(solution, n_draws, units, random_state, count_threads(n_jobs))
        matrix = np.atleast_2d(np.cov(draws, rowvar=False))
        matrix[missing], matrix[:, missing] = np.nan, np.nan
        kind, label = "bootstrap", f"{'cluster ' * (units is not None)}bootstrap, {n_draws} draws"
        fixed &= matrix.diagonal()[: fixed.size] == 0.0
    else:
        matrix, label, more = _cover(solution, sides, breads, kind, clusters, maxlags)
        matrix[: fixed.size][fixed], matrix[:, : fixed.size][:, fixed] = 0.0, 0.0
        notes += more
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
        label,
        main.sigma,
        sigma_floor,
        main.df,
        n_active,
        n_floor,
        sides,
        np.array(list_estimates(solution, solution.at_bound.tolist(), False, False)),
        np.array(list_estimates(solution, fixed.tolist(), False, False)),
        tuple(notes),
        draws,
    )


def _check_kind(kind: str, groups: Any, maxlags: int | None, bootstrap: int | None) -> None:
    """ValueError for options that contradict each other."""
    if kind not in COVARIANCES:
        raise ValueError(f"covariance is {kind!r}; it must be one of {', '.join(map(repr, COVARIANCES))}")
    if bootstrap is not None and kind not in ("nonrobust", "cluster"):
        raise ValueError(f"covariance is {kind!r} with bootstrap={bootstrap}; use only one of them")
    if kind == "cluster" and groups is None:
        raise ValueError("covariance is 'cluster' without groups; groups must have one group per row of X")
    if groups is not None and kind != "cluster" and bootstrap is None:
        raise ValueError(
            f"groups is given with covariance={kind!r}; it needs covariance='cluster' or bootstrap"
        )
    if maxlags is not None and kind != "HAC":
        raise ValueError(f"maxlags is {maxlags!r} with covariance={kind!r}; it needs covariance='HAC'")


def _one_way(groups: Groups) -> Integers:
    """The groups that a bootstrap draws."""
    if len(groups.ways) > 1:
        raise ValueError("groups has two columns; a bootstrap draws groups of one kind")
    return groups.cells


def _cover(
    solution: Fit, sides: FitMoments, breads: Breads, kind: str, groups: Groups | None, maxlags: int | None
) -> Cover:
    """The covariance of all estimates by a formula."""
    if groups is not None:
        return cover_clusters(sides, breads, groups)
    if kind == "HAC":
        n = data_of(solution).n_samples
        n_lags = default_lags(n) if maxlags is None else check_count(maxlags, "maxlags", 0, n - 1)
        return cover_lags(sides, breads, n_lags)
    found = [sandwich(bread, kind, partial(sides.meat, is_above)) for is_above, bread in breads.items()]
    matrix = block_diag(*(part for part, _ in found))
    return Cover(matrix, kind, tuple(note for _, notes in found for note in notes))


def _explain(n_held: int, n_bounds: int, fixed: Mask, kind: str) -> list[str]:
    """What a reader must know where constraints hold coefficients, some of them bounds."""
    if kind == "bootstrap":
        return [IN_DRAWS] + [NEVER_LEFT] * bool(fixed.any())
    return [AT_BOUND] * (n_bounds > 0) + [ON_LINE] * (n_held > n_bounds)
