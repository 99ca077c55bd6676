"""Everything that a report shows, computed before any of it is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rectifit._typing import Vector
from rectifit.comparison import Comparison, find_obstacle
from rectifit.data.problem import Problem
from rectifit.fit import Fit
from rectifit.inference import PredictedMargins, Summary, predicted_margins
from rectifit.inference.columns import read_columns
from rectifit.inference.covariance import find_covariance
from rectifit.plot import FittedRows
from rectifit.surrogate.rows_engine import RowsEngine

__all__ = ["ReportData", "SplitPath", "collect"]

# Splits of the path.
N_SPLITS = 30
# Rows of data read in passes of which the path is made.
N_SAMPLED_ROWS = 5000
# Variables whose effects are drawn.
MAX_EFFECTS = 6


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
    units : of the outcome and of variables, by their names
    problem, solution, summary : what was fitted, the fit, and its estimates
    rows, path : for the figures
    margins : how the prediction depends on variables, those with the largest effects over their range first
    n_sampled : number of rows of which the path is made
    comparison : with other ways to fit, or None
    obstacle : why there is no comparison, if there is a reason
    origin : what made the report, and when
    is_by_formula : whether a formula made the columns, so that several of them may come from one variable
    """

    target: str
    data_name: str
    units: Mapping[str, str]
    problem: Problem
    solution: Fit
    summary: Summary
    rows: FittedRows
    path: SplitPath
    margins: tuple[PredictedMargins, ...]
    n_sampled: int
    comparison: Comparison | None
    obstacle: str | None
    origin: tuple[tuple[str, str], ...]
    is_by_formula: bool = False

    def label(self, name: str) -> str:
        """The name of the outcome or of a variable, with its unit where it is known."""
        unit = self.units.get(name)
        return name if unit is None else f"{name} ({unit})"


def collect(
    solution: Fit,
    summary: Summary,
    *,
    target: str = "y",
    data_name: str = "",
    comparison: Comparison | None = None,
    units: Mapping[str, str] | None = None,
    origin: tuple[tuple[str, str], ...] = (),
    is_by_formula: bool = False,
) -> ReportData:
    """Compute what a report shows; arguments as in `write_report`."""
    problem = solution.problem
    assert problem is not None
    sampled = problem.sampled(N_SAMPLED_ROWS)
    return ReportData(
        target=target,
        data_name=data_name,
        units=dict(units or {}),
        problem=problem,
        solution=solution,
        summary=summary,
        rows=FittedRows.of(
            solution, target=target if units is None or target not in units else f"{target} ({units[target]})"
        ),
        path=_follow_splits(solution, sampled),
        margins=_find_margins(solution, summary),
        n_sampled=sampled.n_samples,
        comparison=comparison,
        obstacle=find_obstacle(solution) if comparison is None else None,
        origin=origin,
        is_by_formula=is_by_formula,
    )


def _find_margins(solution: Fit, summary: Summary) -> tuple[PredictedMargins, ...]:
    """Predicted margins of the variables that matter most, if any do."""
    if summary.n_active == 0:
        return ()
    found = find_covariance(solution, summary)
    columns = read_columns(found.moments)
    reach = np.abs(solution.beta) * (columns.high - columns.low)
    names = summary.names[: solution.beta.size]
    return tuple(
        predicted_margins(solution, j, covariance=found, names=names, level=summary.level)
        for j in np.argsort(-reach, kind="stable")[:MAX_EFFECTS].tolist()
        if reach[j] > 0.0
    )


def _follow_splits(solution: Fit, problem: Problem) -> SplitPath:
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
