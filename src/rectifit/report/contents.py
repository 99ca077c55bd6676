"""Everything that a report shows, computed before any of it is drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rectifit._typing import Mask, Vector
from rectifit.comparison import Comparison, find_obstacle
from rectifit.data.problem import Problem
from rectifit.inference import Summary
from rectifit.solution import Solution
from rectifit.surrogate.rows_engine import RowsEngine

__all__ = ["Points", "ReportData", "SplitPath", "collect"]

# Scatter plots show a random sample of larger data, always the same.
MAX_POINTS = 4000
# Splits of the path.
N_SPLITS = 30
# Rows of data read in passes that are drawn.
N_SAMPLED_ROWS = 5000


@dataclass(frozen=True, eq=False)
class Points:
    """Rows of a scatter plot: u = X beta + intercept, and the outcomes."""

    u: Vector
    y: Vector
    floor: float

    @property
    def fitted(self) -> Vector:
        """Predictions."""
        return np.maximum(self.u, self.floor)

    @property
    def residuals(self) -> Vector:
        """Observed - predicted."""
        return self.y - self.fitted

    @property
    def is_above(self) -> Mask:
        """Whether the prediction is above the floor."""
        return self.u > self.floor


@dataclass(frozen=True, eq=False)
class SplitPath:
    """What the sorting method finds, split by split.

    Attributes
    ----------
    shares : percentage of the outcomes above the floor that are taken as active, the largest first
    surrogates : minimum of the convex surrogate, an upper bound of the objective
    objectives : the sum of squares at that minimum
    reached : the sum of squares of the fit itself on the same rows
    """

    shares: Vector
    surrogates: Vector
    objectives: Vector
    reached: float


@dataclass(frozen=True, eq=False)
class ReportData:
    """The contents of a report.

    Attributes
    ----------
    target, data_name : names of the outcome and of the data
    problem, solution, summary : what was fitted, the fit, and its estimates
    points, path : for the figures
    n_drawn : number of rows in the figures
    comparison : with other ways to fit, or None
    obstacle : why there is no comparison, if there is a reason
    """

    target: str
    data_name: str
    problem: Problem
    solution: Solution
    summary: Summary
    points: Points
    path: SplitPath
    n_drawn: int
    comparison: Comparison | None
    obstacle: str | None


def collect(
    solution: Solution,
    summary: Summary,
    *,
    target: str = "y",
    data_name: str = "",
    comparison: Comparison | None = None,
) -> ReportData:
    """Compute what a report shows; arguments as in `write_report`."""
    problem = solution.problem
    assert problem is not None
    drawn = problem.sampled(N_SAMPLED_ROWS)
    return ReportData(
        target=target,
        data_name=data_name,
        problem=problem,
        solution=solution,
        summary=summary,
        points=_choose_points(solution, drawn),
        path=_follow_splits(solution, drawn),
        n_drawn=drawn.n_samples,
        comparison=comparison,
        obstacle=find_obstacle(solution) if comparison is None else None,
    )


def _choose_points(solution: Solution, problem: Problem) -> Points:
    u, y = problem.preactivation(solution.beta, solution.intercept), problem.y
    if u.size > MAX_POINTS:
        chosen = np.random.default_rng(0).choice(u.size, MAX_POINTS, replace=False)
        u, y = u[chosen], y[chosen]
    return Points(u, y, solution.floor)


def _follow_splits(solution: Solution, problem: Problem) -> SplitPath:
    shifted = problem.shifted(solution.floor)
    engine, data = RowsEngine(shifted), shifted.loaded()
    sets = engine.split_sets(N_SPLITS)
    found = engine.minimise(sets)
    sizes = np.array([data.mask_of(active).sum() for active in sets])
    return SplitPath(
        shares=100.0 * sizes / max(int(data.positive.sum()), 1),
        surrogates=np.array([minimum.value for minimum in found]),
        objectives=np.array([minimum.point.objective for minimum in found]),
        reached=shifted.objective(solution.beta, solution.intercept - solution.floor),
    )
