"""Marginal effects on the conditional mean E[y | x] = max(f, u), u = x'beta + b.

The derivative in x_j is beta_j where u > f, and 0 elsewhere.

At the average of the rows it is s beta_j with s the share of active rows, and s depends on the estimates as
well: ds/dtheta = sum_i w_i k(u_i - f) (x_i, 1, -1) / sum w, with k a density that is narrow against the
spread of u. The delta method takes both, d(s beta_j)/dtheta = s e_j + beta_j ds/dtheta. The standard errors
are for the rows at hand: that other rows would have another share is not in them.

At the means of the columns it is beta_j, or 0 with standard error 0 where the means are not active.

The discrete effect of a column of zeros and ones is M_j(1) - M_j(0), with M_j(v) from `columns`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rectifit._typing import Integers, Vector
from rectifit.checks import check_number
from rectifit.fit import Fit, fit_of
from rectifit.inference.columns import SETTERS, delta_errors, find_column, read_columns
from rectifit.inference.covariance import Covariance, find_covariance
from rectifit.inference.summary import feature_names
from rectifit.inference.sums import FitMoments, list_estimates
from rectifit.inference.tables import MarginalEffects, Summary

__all__ = ["marginal_effects"]


def marginal_effects(
    solution: Fit | Any,
    at: str = "average",
    *,
    discrete: bool | Sequence[str] = False,
    covariance: str | Covariance | Summary | None = None,
    level: float = 0.95,
    names: Sequence[str] | None = None,
    **options: Any,
) -> MarginalEffects:
    """By how much E[y | x] changes per unit of a column.

    Parameters
    ----------
    solution : Solution or fitted estimator
    at : {"average", "means"}
        Averaged over the rows, with their weights, or at the weighted means of the columns.
    discrete : bool or sequence of str, default=False
        Columns whose effect is the change of E[y | x] from 0 to 1 instead of a derivative. True: all columns
        that have only zeros and ones.
    covariance : str, Covariance or Summary, optional
        As in `summarise`, or a summary of this fit, or what `estimate_covariance` has found.
    level, names : as in `summarise`
    **options : groups, maxlags, bootstrap, random_state and n_jobs, as in `estimate_covariance`

    Examples
    --------
    >>> from rectifit import solve
    >>> solution = solve([[-1.0], [0.0], [1.0], [2.0]], [0.0, 0.0, 3.0, 6.0])
    >>> marginal_effects(solution).coefficient.round(6).tolist()
    [1.5]
    """
    solution = fit_of(solution)
    if at not in ("average", "means"):
        raise ValueError(f"at is {at!r}; it must be 'average' or 'means'")
    p = solution.beta.size
    names = feature_names(solution.feature_names if names is None else names, p)
    found = find_covariance(solution, covariance, **options)
    sides, notes = found.moments, found.notes
    slopes = np.eye(p, len(found.matrix))
    if at == "average":
        factor = sides.share_active
        slopes = factor * slopes + np.outer(solution.beta, _share_slopes(solution, sides))
    else:
        # The mean of u is u at the means.
        factor = float(sides.mean_u > 0.0)
        slopes = factor * slopes
        if factor == 0.0:
            notes = (*notes, "the means of the columns are at the floor, where nothing has an effect")
    coefficient = factor * solution.beta + 0.0
    stepped = _find_steps(discrete, names, sides)
    if stepped.size:
        settings = [(j, value) for value in (0.0, 1.0) for j in stepped.tolist()]
        means, derivatives = SETTERS[at](solution, sides, settings)
        coefficient[stepped] = np.diff(means.reshape(2, -1), axis=0)[0]
        slopes[stepped] = np.subtract(*np.split(derivatives, 2)[::-1])
        notes = (*notes, f"change from 0 to 1: {', '.join(names[j] for j in stepped)}")
    return MarginalEffects(
        names=names,
        coefficient=coefficient,
        std_error=found.hide_fixed(delta_errors(slopes, found.matrix)),
        at_bound=tuple(found.at_bound[:p].tolist()),
        level=check_number(level, "level", above=0.0, below=1.0),
        covariance=found.label,
        notes=notes,
        target=solution.target,
        at=at,
        share_active=sides.share_active,
    )


def _find_steps(discrete: bool | Sequence[str], names: Sequence[str], sides: FitMoments) -> Integers:
    """Numbers of the columns with discrete effects."""
    if isinstance(discrete, bool | np.bool_):
        return np.flatnonzero(read_columns(sides).is_dummy) if discrete else np.empty(0, np.int64)
    if isinstance(discrete, str):
        raise TypeError(f"discrete is {discrete!r}; it must be True, False or a list of names of columns")
    chosen = np.array([find_column(feature, names, "discrete") for feature in discrete], dtype=np.int64)
    is_dummy = read_columns(sides).is_dummy
    for j in chosen.tolist():
        if not is_dummy[j]:
            raise ValueError(f"discrete names {names[j]}, which has other values than 0 and 1, or only one")
    return chosen


def _share_slopes(solution: Fit, sides: FitMoments) -> Vector:
    """Derivative of the share of active rows in all estimates, with a normal kernel of the usual width."""
    width = 1.06 * sides.std_u * sides.n_effective**-0.2
    *slopes, near = sides.density(width) if width > 0.0 else np.zeros(solution.beta.size + 1)
    return np.array(list_estimates(solution, slopes, near, -near))
