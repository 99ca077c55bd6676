"""The point of one column at which the line meets the floor, with all other columns fixed.

In an energy model, max(base load, slope * temperature + intercept), it is the balance point: the outdoor
temperature at which heating or cooling begins. With the other columns at a,

    x* = (f - b - sum_(j != k) a_j beta_j) / beta_k.

Delta method. With the row z = (.., x*, .., a_j, .., 1, -1) of derivatives of u - f at x*, in the
coefficients, the intercept and an estimated floor, the derivative of x* is -z / beta_k, and its variance
z'Vz / beta_k^2.

Fieller (Journal of the Royal Statistical Society B 16, 1954). All x at which u - f does not differ from 0,
(u - f)^2 <= q^2 var(u - f). With x = x* + t and v_0, v_1, c for the variances of u - f at x* and of beta_k
and their covariance, it is the set of t between the roots of

    (beta_k^2 - q^2 v_1) t^2 - 2 q^2 c t - q^2 v_0 = 0

if the slope differs from 0, beta_k^2 > q^2 v_1, and no interval if not. Unlike that of the delta method, the
interval need not be symmetric, and it also covers where the slope is not precise.

Bootstrap. Quantiles of x* over the draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.checks import check_number
from rectifit.formatting import match_error, write_level, write_number
from rectifit.inference.columns import find_column

if TYPE_CHECKING:
    from rectifit.inference.tables import Summary

__all__ = ["BalancePoint", "find_balance_point"]

UNBOUNDED = (
    "the slope does not differ from 0 at this level: Fieller's set is not an interval, and the data hardly "
    "say where the point is"
)
TURNED = "in {} of {} draws the slope has the other sign or is 0, and the point is where no floor begins"


@dataclass(frozen=True)
class BalancePoint:
    """Where the line meets the floor; `print` shows one line.

    Attributes
    ----------
    feature : the column
    at : the values of the other columns
    estimate, std_error : the point, and its standard error
    low, high, level : an interval that covers the true point with probability `level`
    method : "delta", or "bootstrap" if the summary came from one: `std_error`, `low` and `high` are then
        those of the draws
    fieller : Fieller's interval; None where the slope does not differ from 0
    notes : what a reader must know, sentences
    """

    feature: str
    at: Mapping[str, float]
    estimate: float
    std_error: float
    low: float
    high: float
    level: float
    method: str
    fieller: tuple[float, float] | None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One line."""
        where = ", ".join(f"{name} = {write_number(value)}" for name, value in self.at.items())
        method = "delta method" if self.method == "delta" else "bootstrap"
        text = (
            f"Balance point of {self.feature}{' at ' * bool(where)}{where}: {self._write(self.estimate)}, "
            f"std. error {self._write(self.std_error)}, {write_level(self.level)} from "
            f"{self._write(self.low)} to {self._write(self.high)} ({method})"
        )
        if self.fieller is not None:
            text += f", {self._write(self.fieller[0])} to {self._write(self.fieller[1])} (Fieller)"
        return "; ".join([text, *self.notes])

    def _write(self, value: float) -> str:
        return match_error(self.std_error)(value)


def find_balance_point(
    summary: Summary, feature: str | int, at: Mapping[str, float] | None, level: float, q: float
) -> BalancePoint:
    """The balance point of a column; see `Summary.balance_point`. q is the normal quantile of the level."""
    names = summary.names[: summary.means.size]
    k = find_column(feature, names)
    slope, V = float(summary.coefficient[k]), summary.cov.values
    if slope == 0.0 or np.isnan(summary.std_error[k]):
        found = "is 0" if slope == 0.0 else "has no standard error"
        raise ValueError(f"feature is {names[k]!r}, whose coefficient {found}: there is no balance point")
    values = _read_values(at, names, k, summary.means)
    x = float(_solve(summary, k, values, summary.coefficient[None])[0])
    row = _derivative(summary, k, values, x)
    used = row != 0.0
    unknown = used & np.isnan(V.diagonal())
    if unknown.any():
        name = summary.names[int(np.flatnonzero(unknown)[0])]
        raise ValueError(
            f"the balance point depends on {name!r}, which has no standard error; leave collinear columns "
            "out of the fit, or set this one to 0 by 'at'"
        )
    spread = V[:, used] @ row[used]
    variance = float(row[used] @ spread[used])
    error, notes, method = float(np.sqrt(max(variance, 0.0))) / abs(slope), list[str](), "delta"
    low, high = x - q * error, x + q * error
    if summary.draws is not None:
        drawn = _solve(summary, k, values, summary.draws)
        n_turned = int(np.count_nonzero(summary.draws[:, k] * slope <= 0.0))
        notes += [TURNED.format(n_turned, drawn.size)] * bool(n_turned)
        drawn, method = drawn[np.isfinite(drawn)], "bootstrap"
        error = float(np.std(drawn, ddof=1))
        low, high = np.quantile(drawn, [0.5 - 0.5 * level, 0.5 + 0.5 * level]).tolist()
    fieller = _solve_fieller(x, slope, variance, float(spread[k]), float(V[k, k]), q)
    notes += [UNBOUNDED] * (fieller is None)
    at = {name: float(values[j]) for j, name in enumerate(names) if j != k}
    return BalancePoint(names[k], at, x, error, low, high, level, method, fieller, tuple(notes))


def _read_values(at: Mapping[str, float] | None, names: tuple[str, ...], k: int, means: Vector) -> Vector:
    """The values of all columns, means where there is no other."""
    values = means.copy()
    if not isinstance(at, Mapping | None):
        raise TypeError(f"at is {at!r}; it must be a dict of numbers by the names of columns")
    for name, value in ({} if at is None else at).items():
        j = find_column(name, names, "at")
        if j == k:
            raise ValueError(f"at has {name!r}, whose balance point is asked for; name only other columns")
        values[j] = check_number(value, f"at[{name!r}]", above=-np.inf)
    return values


def _solve(summary: Summary, k: int, values: Vector, estimates: Matrix) -> Vector:
    """x* for lines of estimates; not finite where the slope is 0."""
    rest = np.where(np.arange(values.size) == k, 0.0, values)
    level = _derivative(summary, k, rest, 0.0)
    floor = 0.0 if summary.floor_is_estimated else summary.floor
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((floor - estimates @ level) / estimates[:, k])


def _derivative(summary: Summary, k: int, values: Vector, x: float) -> Vector:
    """The derivative of u - f in the estimates, in a row with these values and x in column k."""
    row = np.where(np.arange(values.size) == k, x, values)
    n_more = len(summary.names) - values.size
    has_intercept = n_more > summary.floor_is_estimated
    return np.concatenate([row, [1.0] * has_intercept, [-1.0] * summary.floor_is_estimated])


def _solve_fieller(
    x: float, slope: float, variance: float, joint: float, slope_variance: float, q: float
) -> tuple[float, float] | None:
    """Fieller's interval, None if the set is none."""
    a = slope**2 - q**2 * slope_variance
    if not a > 0.0:
        return None
    middle = x + q**2 * joint / a
    reach = q * float(np.sqrt(max(q**2 * joint**2 + a * variance, 0.0))) / a
    return middle - reach, middle + reach
