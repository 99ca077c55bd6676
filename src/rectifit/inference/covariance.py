"""The covariance of all that was estimated: coefficients, intercept and floor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from rectifit._typing import Integers, Mask, Matrix, Vector
from rectifit.checks import check_count
from rectifit.fit import Fit, fit_of
from rectifit.inference.bootstrap import draw_estimates
from rectifit.inference.dependence import Breads, Cover, cover_clusters, cover_lags, default_lags
from rectifit.inference.groups import Groups, read_groups
from rectifit.inference.sandwich import KINDS, Bread, make_bread, null_space, sandwich
from rectifit.inference.sums import FitMoments, data_of, list_estimates, read_moments
from rectifit.inference.tables import Summary
from rectifit.parallel import count_threads
from rectifit.tolerances import INDEPENDENT_TOL

__all__ = ["COVARIANCES", "Covariance", "KeptCovariance", "estimate_covariance", "find_covariance"]

COVARIANCES = (*KINDS, "cluster", "HAC")
NONE_ACTIVE = "no row is predicted above the floor: no standard errors"
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
    label : kind of the covariance, with the number of groups, lags or draws, such as "HC1" or "HAC, 4 lags"
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
    def kind(self) -> str:
        """The first word of the label."""
        return self.label.partition(",")[0]

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


class KeptCovariance(NamedTuple):
    """A covariance that was found before, with its label and all notes."""

    matrix: Matrix
    label: str
    notes: tuple[str, ...]
    draws: Matrix | None = None

    @classmethod
    def of(cls, summary: Summary) -> KeptCovariance:
        """That of a summary."""
        return cls(summary.cov.values, summary.covariance, summary.notes, summary.draws)


def estimate_covariance(
    solution: Fit | Any,
    kind: str | None = None,
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
    kind : {"nonrobust", "HC0", "HC1", "HC2", "HC3", "cluster", "HAC"}, optional
        Least squares on the active rows with noise of one variance, or the sandwich for any; for noise that
        is correlated within `groups`; or for noise that is correlated over time, the rows being in its order.
        Default: "nonrobust"; for a fit that was read from a model file, the kind that is in the file.
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
    kept: KeptCovariance | None = solution.kept.get("covariance")
    if kept is not None and groups is None and maxlags is None and bootstrap is None:
        kept_kind = kept.label.partition(",")[0]
        if kind in (None, kept_kind):
            return _cover_kept(solution, kept)
    kind = "nonrobust" if kind is None else kind
    _check_kind(kind, groups, maxlags, bootstrap)
    if bootstrap is not None:
        data_of(solution).loaded(f"bootstrap is {bootstrap!r}")
    clusters = None if groups is None else read_groups(groups, data_of(solution).n_samples)
    rows = _split(solution)
    if bootstrap is not None:
        units = None if clusters is None else _one_way(clusters)
        n_draws = check_count(bootstrap, "bootstrap", 2)
        draws = draw_estimates(solution, n_draws, units, random_state, count_threads(n_jobs))
        return _cover_draws(solution, rows, draws, f"{'cluster ' * (units is not None)}bootstrap")
    cover = _cover(solution, rows, kind, clusters, maxlags)
    p = rows.fixed.size
    cover.matrix[:p][rows.fixed], cover.matrix[:, :p][:, rows.fixed] = 0.0, 0.0
    notes = [*rows.notes, *cover.notes]
    if len(rows.held):
        n_bounds = int(np.count_nonzero(solution.at_bound))
        notes += [AT_BOUND] * (n_bounds > 0) + [ON_LINE] * (len(rows.held) > n_bounds)
    return _assemble(solution, rows, cover.matrix, cover.label, [*notes, *rows.kinks])


def find_covariance(
    solution: Fit, covariance: str | Covariance | Summary | None, **options: Any
) -> Covariance:
    """A covariance that is given, or that of a summary, or the one to be estimated."""
    if not isinstance(covariance, Covariance | Summary):
        return estimate_covariance(solution, covariance, **options)
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise TypeError(
            f"{', '.join(given)} cannot be given with a {type(covariance).__name__} as covariance"
        )
    found = covariance
    if isinstance(found, Summary):
        found = _cover_kept(solution, KeptCovariance.of(found))
    if found.matrix.shape != (len(list_estimates(solution, solution.beta, 0.0, 0.0)),) * 2:
        raise ValueError(f"covariance is that of {len(found.matrix)} estimates of another fit")
    return found


class _Rows(NamedTuple):
    """The rows on both sides, the estimates that come from them, and what is known about these."""

    sides: FitMoments
    breads: Breads
    main: Bread
    held: Matrix
    fixed: Mask
    sigma_floor: float

    @property
    def notes(self) -> list[str]:
        return [note for bread in self.breads.values() for note in bread.notes]

    @property
    def kinks(self) -> list[str]:
        n = self.sides.n_kinks
        rows = "rows are" if n > 1 else "row is"
        note = (
            f"{n} {rows} predicted exactly at the floor and not counted as above it; it does not matter if "
            "there are many others"
        )
        return [note] * (n > 0)


def _split(solution: Fit) -> _Rows:
    sides, known = read_moments(solution), solution.constraints
    held = np.zeros((0, solution.beta.size)) if known is None else known.held(solution.beta)
    fixed = np.linalg.norm(null_space(held), axis=1) <= INDEPENDENT_TOL
    main = make_bread(sides.above, solution.alpha, "rows predicted above the floor", NONE_ACTIVE, held)
    breads, sigma_floor = {True: main}, np.nan
    if solution.floor_is_estimated:
        # The floor is the weighted mean of the outcomes of these rows.
        breads[False] = make_bread(sides.below, 0.0, "rows at the floor", NONE_AT_FLOOR)
        sigma_floor = breads[False].sigma
    elif sides.below.n_rows:
        sigma_floor = float(np.sqrt(sides.below.squares / sides.below.n_rows))
    return _Rows(sides, breads, main, held, fixed, sigma_floor)


def _assemble(
    solution: Fit,
    rows: _Rows,
    matrix: Matrix,
    label: str,
    notes: Iterable[str],
    draws: Matrix | None = None,
    fixed: Mask | None = None,
) -> Covariance:
    fixed = rows.fixed if fixed is None else fixed
    # Rounding made it a little asymmetric.
    matrix = 0.5 * (matrix + matrix.T)
    unknown = np.isnan(matrix.diagonal())
    matrix[unknown], matrix[:, unknown] = np.nan, np.nan
    return Covariance(
        matrix,
        label,
        rows.main.sigma,
        rows.sigma_floor,
        rows.main.df,
        rows.sides.above.n_rows,
        rows.sides.below.n_rows,
        rows.sides,
        np.array(list_estimates(solution, solution.at_bound.tolist(), False, False)),
        np.array(list_estimates(solution, fixed.tolist(), False, False)),
        tuple(notes),
        draws,
    )


def _cover_kept(solution: Fit, kept: KeptCovariance) -> Covariance:
    """A covariance that is known, with what the sums over the rows say besides."""
    rows = _split(solution)
    fixed = rows.fixed & (kept.matrix.diagonal()[: rows.fixed.size] == 0.0)
    return _assemble(solution, rows, kept.matrix, kept.label, kept.notes, kept.draws, fixed)


def _cover_draws(solution: Fit, rows: _Rows, draws: Matrix, what: str) -> Covariance:
    """The covariance of the estimates of a bootstrap."""
    if rows.main.standard is not None:
        # It refuses what the products below could not hold.
        rows.main.cover(rows.main.sigma**2 * rows.main.gram)
    missing = np.concatenate([bread.unseen for bread in rows.breads.values()])
    matrix = np.atleast_2d(np.cov(draws, rowvar=False))
    matrix[missing], matrix[:, missing] = np.nan, np.nan
    fixed = rows.fixed & (matrix.diagonal()[: rows.fixed.size] == 0.0)
    bound = [IN_DRAWS] + [NEVER_LEFT] * bool(fixed.any())
    notes = [*rows.notes, *(bound if len(rows.held) else []), *rows.kinks]
    return _assemble(solution, rows, matrix, f"{what}, {len(draws)} draws", notes, draws, fixed)


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


def _cover(solution: Fit, rows: _Rows, kind: str, groups: Groups | None, maxlags: int | None) -> Cover:
    """The covariance of all estimates by a formula."""
    sides, breads = rows.sides, rows.breads
    if groups is not None:
        return cover_clusters(sides, breads, groups)
    if kind == "HAC":
        n = data_of(solution).n_samples
        n_lags = default_lags(n) if maxlags is None else check_count(maxlags, "maxlags", 0, n - 1)
        return cover_lags(sides, breads, n_lags)
    found = [sandwich(bread, kind, partial(sides.meat, is_above)) for is_above, bread in breads.items()]
    matrix = block_diag(*(part for part, _ in found))
    return Cover(matrix, kind, tuple(note for _, notes in found for note in notes))
