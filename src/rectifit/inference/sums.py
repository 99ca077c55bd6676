"""What standard errors need of the data: sums over rows, the same for every kind of data.

A first pass finds sizes, a second one the moments of the rows above the floor and at it; HC0 to HC3, clusters
and HAC, and the slope of the share of active rows need one more each. Nothing grows with the number of rows,
but sums over groups grow with the number of groups.

The floor is 0 here: the floor of the solution is subtracted from outcomes and intercept. Columns of X are
divided by powers of two, which is exact, so that their squares are representable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from operator import add
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.data.base import Data
from rectifit.data.blocks import Block, Total, merge_all
from rectifit.data.problem import Problem
from rectifit.fit import Fit
from rectifit.inference.sandwich import Meat, Moments, ScaleError, Standard
from rectifit.tolerances import FREEDOM_TOL, ZERO_U_TOL

__all__ = ["FitMoments", "Line", "RowTask", "Setting", "data_of", "list_estimates", "read_moments"]

T = TypeVar("T")
# The number of a column, and the value to which it is set.
Setting = tuple[int, float]
WITHOUT_DATA = "problem is None: this solution was stored without its data, which this needs"


def data_of(solution: Fit) -> Problem:
    """The data of a solution, which must still be there."""
    if solution.problem is None:
        raise ValueError(WITHOUT_DATA)
    return solution.problem


def list_estimates(solution: Fit, coefficients: Iterable[T], intercept: T, floor: T) -> list[T]:
    """One entry per estimate: the coefficients, the intercept if there is one, the floor if estimated."""
    ends = [intercept] * solution.fit_intercept + [floor] * solution.floor_is_estimated
    return [*coefficients, *ends]


@dataclass(frozen=True, eq=False)
class FitMoments:
    """Sums over the rows that have weight, above the floor and at it.

    Attributes
    ----------
    above, below : moments of X and residuals on either side; of those at the floor, without X
    n_kinks : rows exactly at the kink, not counted as active; 0 where nothing is active
    n_positive : outcomes above the floor
    least : smallest outcome minus the floor; 0 if the difference is only rounding
    means : weighted means of the columns
    mean_u : weighted mean of u minus the floor
    std_u : weighted standard deviation of u
    spread_y : weighted sum of squares of y about its mean
    n_effective : (sum w)^2 / sum w^2
    line : the fit, less the floor
    floor : of the fit
    known : sums that were asked for, by their keys
    settings : sums over the rows with a column set to a value, as in `columns`
    """

    above: Moments
    below: Moments
    n_kinks: int
    n_positive: int
    least: float
    means: Vector
    mean_u: float
    std_u: float
    spread_y: float
    n_effective: float
    line: Line
    floor: float
    known: dict[Any, Any] = field(default_factory=dict)
    settings: dict[Setting, Vector] = field(default_factory=dict)
    _problem: Problem | None = None
    _data: Data | None = None

    @property
    def share_active(self) -> float:
        """Share of the weight on rows above the floor."""
        return self.above.weight / (self.above.weight + self.below.weight)

    @property
    def lost(self) -> float:
        """Weighted sum of squared residuals."""
        return self.above.squares + self.below.squares

    def meat(self, is_above: bool, standard: Standard, bread: Matrix, power: float) -> Meat:
        """sum of omega e^2 z z' with omega = 1 / (1 - h)^(2 power), on one side."""
        task = _MeatTask(self.line, is_above, standard, bread, power)
        meat: Meat = self.reduce((is_above, power), task)
        return meat

    def density(self, width: float) -> Vector:
        """Weighted mean of k(u) (x, 1) with a normal density k of that width."""
        total = self.above.weight + self.below.weight
        return np.asarray(self.reduce("density", _DensityTask(self.line, width)).value / total)

    def without_data(self) -> FitMoments:
        """The same with the sums that were asked for so far, and without the data."""
        return replace(self, _problem=None, _data=None)

    def is_about(self, solution: Fit) -> bool:
        """Whether these are sums of this fit to these data; a copy of a fit may have others."""
        return (
            self._problem is solution.problem
            and self.floor == solution.floor
            and self.line.intercept == solution.intercept - solution.floor
            and np.array_equal(self.line.beta, solution.beta)
        )

    def can_reduce(self, key: Hashable) -> bool:
        """Whether a sum is known, or the data are there."""
        return key in self.known or self._data is not None

    def reduce(self, key: Hashable | None, task: RowTask) -> Any:
        """A sum over the data, which is worked out once: for one fit, all of its arguments are the same.

        Without a key it is not kept.
        """
        if key in self.known:
            return self.known[key]
        if self._data is None:
            raise ValueError(WITHOUT_DATA)
        found = self._data.reduce(task)
        if key is not None:
            self.known[key] = found
        return found


def read_moments(solution: Fit) -> FitMoments:
    """Which rows are active; less than rounding can make of an exact kink is one, and not active."""
    moments: FitMoments | None = solution.kept.get("moments")
    if moments is None or not moments.is_about(solution):
        moments = solution.kept["moments"] = _sum_up(solution)
    return moments


def _sum_up(solution: Fit) -> FitMoments:
    problem = data_of(solution)
    data = problem.data.shifted(solution.floor)
    line = Line(solution.beta, solution.intercept - solution.floor)
    with np.errstate(over="ignore"):
        seen: _Extents = data.reduce(_ExtentsTask(line))
    if not np.isfinite(seen.means).all():
        raise ScaleError(
            "the sum of a column of X exceeds the largest number; divide the column by a constant"
        )
    line = replace(line, zero=ZERO_U_TOL * max(seen.reach, abs(solution.floor)))
    unit, means = np.ldexp(1.0, np.frexp(seen.largest)[1]), seen.means / seen.weight
    sums: _Split = data.reduce(_SplitTask(line, unit, problem.fit_intercept, *means[:2]))
    return FitMoments(
        above=sums.above,
        below=sums.below,
        n_kinks=sums.n_kinks if sums.above.n_rows else 0,
        n_positive=sums.n_positive,
        least=0.0 if seen.least >= -ZERO_U_TOL * max(seen.top, abs(solution.floor)) else seen.least,
        means=means[2:],
        mean_u=float(means[1]),
        std_u=float(np.sqrt(sums.spread_u / seen.weight)),
        spread_y=sums.spread_y,
        n_effective=seen.weight / (sums.weights / seen.weight),
        line=line,
        floor=solution.floor,
        _problem=problem,
        _data=data,
    )


@dataclass(frozen=True)
class Line:
    """u = X beta + intercept; at most `zero` is not above the floor."""

    beta: Vector
    intercept: float
    zero: float = 0.0

    def at(self, piece: Block) -> tuple[Any, Any, Any, Any]:
        """X, u and y in float64, and the weights."""
        X, y = piece.to_float64(piece.X), piece.to_float64(piece.y)
        u = X @ piece.to_float64(self.beta) + self.intercept
        return X, u, y, piece.xp.ones_like(u) if piece.w is None else piece.to_float64(piece.w)

    def residual(self, u: Any, y: Any) -> Any:
        """Residual = outcome - fit."""
        return y - u * (u > 0.0)

    def rows(self, piece: Block, is_above: bool, standard: Standard) -> tuple[Any, Any, Any]:
        """A mask of the rows on one side, then these rows in standard coordinates and their residuals.

        Rows and residuals are scaled by the roots of the weights. The rows are in memory that is used again.
        """
        X, u, y, w = self.at(piece)
        chosen = (w > 0.0) & ((u > self.zero) == is_above)
        X = X[chosen][:, : standard.size.size] * piece.to_float64(1.0 / standard.unit)
        X = (X - piece.to_float64(standard.mean)) * piece.to_float64(1.0 / standard.size)
        rows = replace(piece, X=X, y=self.residual(u, y)[chosen], w=w[chosen])
        Z = rows.columns(np.ones(standard.n_columns), standard.has_intercept, rows.workspace())
        return chosen, Z, rows.outcomes()


@dataclass(frozen=True)
class RowTask(ABC):
    """A summary of a block, merged from those of its pieces."""

    line: Line

    def __call__(self, block: Block) -> Any:
        return merge_all(map(self.of_piece, block.pieces()))

    @abstractmethod
    def of_piece(self, piece: Block) -> Any:
        """The summary of a piece."""


@dataclass(frozen=True)
class _Extents:
    """Largest |u|, |x| and |y|, the least y; sums of the weights, and of y, u and x with them."""

    reach: float
    largest: Vector
    top: float
    least: float
    weight: float
    means: Vector

    def merge(self, other: _Extents) -> _Extents:
        return _Extents(
            max(self.reach, other.reach),
            np.maximum(self.largest, other.largest),
            max(self.top, other.top),
            min(self.least, other.least),
            self.weight + other.weight,
            self.means + other.means,
        )


@dataclass(frozen=True)
class _ExtentsTask(RowTask):
    def of_piece(self, piece: Block) -> _Extents:
        xp = piece.xp
        X, u, y, w = self.line.at(piece)
        # Rows without weight have no outcome that counts.
        outcomes = y * (w > 0.0)
        least = xp.min(xp.where(w > 0.0, y, np.inf))
        return _Extents(
            float(xp.max(xp.abs(u))),
            np.asarray(piece.to_numpy(xp.max(xp.abs(X), axis=0))),
            float(xp.max(xp.abs(outcomes))),
            float(least),
            float(xp.sum(w)),
            np.array([float(w @ y), float(w @ u), *piece.to_numpy(w @ X)]),
        )


class _Split(NamedTuple):
    """Moments of the rows above the floor and at it, and sums over all rows."""

    above: Moments
    below: Moments
    n_kinks: int
    n_positive: int
    spread_y: float
    spread_u: float
    weights: float

    def merge(self, other: _Split) -> _Split:
        sums = map(add, self[2:], other[2:])
        return _Split(self.above.merge(other.above), self.below.merge(other.below), *sums)


@dataclass(frozen=True)
class _SplitTask(RowTask):
    unit: Vector
    fit_intercept: bool
    mean_y: float
    mean_u: float

    def of_piece(self, piece: Block) -> _Split:
        X, u, y, w = self.line.at(piece)
        above, weighted = u > self.line.zero, w > 0.0
        kinks = weighted & ~above & (u >= -self.line.zero)
        if not self.fit_intercept:
            # A row of zeros is at 0 whatever the coefficients are.
            kinks = kinks & piece.xp.any(X != 0.0, axis=1)
        active, rest = weighted & above, weighted & ~above
        e = self.line.residual(u, y)
        Z = X[active] * piece.to_float64(1.0 / self.unit)
        return _Split(
            self._moments(piece, Z, w[active], e[active], self.fit_intercept),
            self._moments(piece, X[rest][:, :0], w[rest], e[rest], True),
            int(piece.xp.sum(kinks)),
            int(piece.xp.sum(weighted & (y > 0.0))),
            float(w @ (y - self.mean_y) ** 2),
            float(w @ (u - self.mean_u) ** 2),
            float(w @ w),
        )

    def _moments(self, piece: Block, X: Any, w: Any, e: Any, has_mean: bool) -> Moments:
        """Of some rows of a piece, in units of the columns."""
        xp, (m, p) = piece.xp, X.shape
        unit, weight = self.unit[:p], float(xp.sum(w))
        mean, largest, gram = np.zeros(p), np.zeros(p), np.zeros((p, p))
        if m > 0 and p > 0:
            if has_mean:
                mean = piece.to_numpy((w / weight) @ X)
            largest = piece.to_numpy(xp.max(xp.abs(X), axis=0))
            Z = (X - piece.to_float64(mean)) * xp.sqrt(w)[:, None]
            gram = piece.to_numpy(piece.product(Z, Z))
        scaled = e * xp.sqrt(w)
        return Moments(m, weight, mean, largest, gram, float(scaled @ scaled), unit, has_mean)


@dataclass(frozen=True)
class _MeatTask(RowTask):
    is_above: bool
    standard: Standard
    bread: Matrix
    power: float

    def of_piece(self, piece: Block) -> Meat:
        xp = piece.xp
        _, Z, e = self.line.rows(piece, self.is_above, self.standard)
        free = 1.0 - xp.vecdot(Z @ piece.to_float64(self.bread), Z)
        n_alone = 0
        if self.power > 0.0:
            n_alone = int(xp.sum(free < FREEDOM_TOL))
            e = e / xp.where(free < FREEDOM_TOL, np.nan, free) ** self.power
        return Meat(piece.to_numpy(piece.product(Z * (e * e)[:, None], Z)), n_alone)


@dataclass(frozen=True)
class _DensityTask(RowTask):
    width: float

    def of_piece(self, piece: Block) -> Total:
        X, u, _, w = self.line.at(piece)
        near = w * piece.xp.exp(-0.5 * (u / self.width) ** 2) / (self.width * np.sqrt(2.0 * np.pi))
        return Total(np.append(piece.to_numpy(near @ X), float(piece.xp.sum(near))))
