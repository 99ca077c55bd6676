"""Marginal effects on the conditional mean E[y | x] = max(f, u), u = x'beta + b.

The derivative in x_j is beta_j where u > f, and 0 elsewhere.

At the average of the rows it is s beta_j with s the share of active rows, and s depends on the estimates as
well: ds/dtheta = sum_i w_i k(u_i - f) (x_i, 1, -1) / sum w, with k a density that is narrow against the
spread of u. The delta method takes both, d(s beta_j)/dtheta = s e_j + beta_j ds/dtheta. The standard errors
are for the rows at hand: that other rows would have another share is not in them.

At the means of the columns it is beta_j, or 0 with standard error 0 where the means are not active.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rectifit._typing import Vector
from rectifit.checks import check_number
from rectifit.fit import Fit, fit_of
from rectifit.inference.covariance import estimate_covariance
from rectifit.inference.summary import feature_names
from rectifit.inference.sums import FitMoments, list_estimates
from rectifit.inference.tables import MarginalEffects

__all__ = ["marginal_effects"]


def marginal_effects(
    solution: Fit | Any,
    at: str = "average",
    *,
    covariance: str = "nonrobust",
    level: float = 0.95,
    names: Sequence[str] | None = None,
    **draws: Any,
) -> MarginalEffects:
    """By how much E[y | x] changes per unit of a column.

    Parameters
    ----------
    solution : Solution or fitted estimator
    at : {"average", "means"}
        Averaged over the rows, with their weights, or at the weighted means of the columns.
    covariance, level, names : as in `summarise`
    **draws : bootstrap, random_state and n_jobs, as in `estimate_covariance`

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
    found = estimate_covariance(solution, covariance, **draws)
    p, sides, notes = solution.beta.size, found.moments, found.notes
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
    variance = np.einsum("jk,kl,jl->j", slopes, found.matrix, slopes)
    return MarginalEffects(
        names=feature_names(solution.feature_names if names is None else names, p),
        coefficient=factor * solution.beta + 0.0,
        std_error=found.hide_fixed(np.sqrt(variance)),
        at_bound=tuple(found.at_bound[:p].tolist()),
        level=check_number(level, "level", above=0.0, below=1.0),
        covariance=found.kind,
        notes=notes,
        at=at,
        share_active=sides.share_active,
    )


def _share_slopes(solution: Fit, sides: FitMoments) -> Vector:
    """Derivative of the share of active rows in all estimates, with a normal kernel of the usual width."""
    width = 1.06 * sides.std_u * sides.n_effective**-0.2
    *slopes, near = sides.density(width) if width > 0.0 else np.zeros(solution.beta.size + 1)
    return np.array(list_estimates(solution, slopes, near, -near))
