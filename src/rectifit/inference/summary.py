"""The table of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rectifit.checks import check_number
from rectifit.constraints import Constraints
from rectifit.fit import Fit, fit_of
from rectifit.formatting import write_count, write_number
from rectifit.inference.collinear import explain_collinear
from rectifit.inference.covariance import estimate_covariance
from rectifit.inference.named_matrix import NamedMatrix
from rectifit.inference.sums import list_estimates
from rectifit.inference.tables import Summary

__all__ = ["feature_names", "summarise"]

# With fewer degrees of freedom, Student's distribution differs visibly from the normal one.
MIN_NORMAL_DF = 30
# Coefficients whose bounds are named one by one.
MAX_BOUNDS = 12


def summarise(
    solution: Fit | Any,
    *,
    covariance: str | None = None,
    level: float = 0.95,
    names: Sequence[str] | None = None,
    **options: Any,
) -> Summary:
    """Coefficients with standard errors and intervals, and what is known about the fit.

    Parameters
    ----------
    solution : Solution or fitted estimator
    covariance : {"nonrobust", "HC0", "HC1", "HC2", "HC3", "cluster", "HAC"}, optional
        HC0 to HC3 hold for noise of any variance; HC3 is the most conservative with few rows. "cluster" is
        for noise that is correlated within `groups`, and "HAC" for noise that is correlated over time.
        Default: "nonrobust"; for a fit that was read from a model file, the kind that is in the file.
    level : float, default=0.95
        Probability that an interval covers the true coefficient.
    names : sequence of str, optional
        Names of the columns of X. Default: those of the data frame of the fit, else x0, x1, ...
    **options : groups, maxlags, bootstrap, random_state and n_jobs, as in `estimate_covariance`

    Examples
    --------
    >>> import numpy as np
    >>> from rectifit import solve
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = np.maximum(X @ [1.0, -2.0] + 0.5, 0.0) + 0.5 * rng.normal(size=500)
    >>> summary = summarise(solve(X, y), names=["age", "price"])
    >>> bool(summary.low[0] < 1.0 < summary.high[0]), round(summary.share_active, 2)
    (True, 0.59)
    """
    solution, level = fit_of(solution), check_number(level, "level", above=0.0, below=1.0)
    names = feature_names(solution.feature_names if names is None else names, solution.beta.size)
    found = estimate_covariance(solution, covariance, **options)
    sides = found.moments
    labels = tuple(list_estimates(solution, names, "intercept", "floor"))
    # A covariance that was kept brings all of its notes along.
    notes = (*found.notes, *explain_collinear(sides, found.missing, names), *_few_rows(found.df))
    return Summary(
        names=labels,
        coefficient=np.array(list_estimates(solution, solution.beta, solution.intercept, solution.floor)),
        std_error=found.hide_fixed(found.std_error),
        at_bound=tuple(found.at_bound.tolist()),
        constraints=describe_constraints(solution.constraints, names),
        level=level,
        covariance=found.label,
        notes=tuple(dict.fromkeys(notes)),
        target=solution.target,
        objective=solution.objective,
        r_squared=1.0 - sides.lost / sides.spread_y if sides.spread_y > 0.0 else np.nan,
        share_active=sides.share_active,
        sigma=found.sigma,
        sigma_floor=found.sigma_floor,
        df=found.df,
        floor=solution.floor,
        floor_is_estimated=solution.floor_is_estimated,
        n_samples=found.n_active + found.n_floor,
        n_active=found.n_active,
        n_positive=sides.n_positive,
        certificate=str(solution.certificate),
        gap=solution.certificate.gap if solution.certificate.says_anything else None,
        method=solution.method,
        seconds=solution.seconds,
        cov=NamedMatrix(labels, found.matrix),
        means=sides.means,
        draws=found.draws,
    )


def feature_names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...]:
    """The names given, one per column, or x0, x1, ..."""
    if names is None:
        return tuple(f"x{j}" for j in range(n_features))
    if len(names) != n_features:
        raise ValueError(f"names has {len(names)} entries; it must have {n_features}, one per column of X")
    return tuple(map(str, names))


def describe_constraints(known: Constraints | None, names: Sequence[str]) -> tuple[str, ...]:
    """The constraints of coefficients of these names, in words.

    Examples
    --------
    >>> from rectifit.constraints import read_constraints
    >>> describe_constraints(read_constraints(2, bounds={"x0": (0, 2), "x1": (None, 1)}), ["age", "price"])
    ('0 <= age <= 2', 'price <= 1')
    >>> describe_constraints(read_constraints(2, positive=True), ["age", "price"])
    ('every coefficient >= 0',)
    """
    if known is None:
        return ()
    ends = list(zip(known.low.tolist(), known.high.tolist(), strict=True))
    if len(ends) > 1 and len(set(ends)) == 1:
        names, ends = ("every coefficient",), ends[:1]
    words = [
        _write_ends(name, *pair) for name, pair in zip(names, ends, strict=True) if np.isfinite(pair).any()
    ]
    if len(words) > MAX_BOUNDS:
        words[MAX_BOUNDS:] = [f"bounds of {len(words) - MAX_BOUNDS} more coefficients"]
    return (*words, *[write_count(len(known.A), "linear constraint")] * known.is_linear)


def _write_ends(name: str, low: float, high: float) -> str:
    if low == high:
        return f"{name} = {write_number(low)}"
    below = f"{write_number(low)} <= {name}" if np.isfinite(high) else f"{name} >= {write_number(low)}"
    above = f" <= {write_number(high)}" if np.isfinite(high) else ""
    return (below if np.isfinite(low) else name) + above


def _few_rows(df: float) -> tuple[str, ...]:
    """A note where the normal distribution is a rough approximation."""
    if not 0.0 < df < MIN_NORMAL_DF:
        return ()
    freedom = write_number(df)
    return (f"{freedom} degrees of freedom: normal intervals are too narrow, and p-values too small",)
