"""Which starts are worth following on all rows, judged by a sample of them.

Where data are read in passes, following a start takes many, and most starts end where others do. So all
starts first fall on the sample, in memory. Paths that end close together there lead to one minimum of all
rows, and a minimum of the sample that is clearly higher than another one is not the best of all rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from rectifit.data.problem import Point, Problem, RowPoint
from rectifit.surrogate.engine import Coefficients
from rectifit.surrogate.majorise import Basins, follow_together
from rectifit.surrogate.rows_engine import RowsEngine

__all__ = ["screen"]

# Minima of the sample are the same if they are no further apart than this multiple of the standard error
# with which one of them predicts the pre-activations at a minimum of all rows.
SAME_ERRORS = 2.0
# A minimum of the sample is higher than another one if their objectives differ by so many standard errors.
HIGHER_ERRORS = 3.0


def screen(
    sample: Problem,
    starts: Sequence[Coefficients],
    *,
    max_iter: int,
    tol: float,
    is_over: Callable[[], bool],
) -> list[Coefficients]:
    """Where to begin on all rows: at minima of the sample, the best first, except that of the first start.

    Parameters
    ----------
    sample : some of the rows in memory, with their share of the ridge
    starts : the first is followed on all rows in any case
    max_iter, tol, is_over : as for `follow_together`
    """
    engine = RowsEngine(sample)
    points, basins = engine.evaluate(starts), Basins()
    paths = follow_together(
        engine,
        engine.active_at(points),
        points,
        max_iter=max_iter,
        tol=tol,
        basins=basins,
        is_over=is_over,
    )
    if not paths.ends:
        return []
    ends = sorted(paths.ends, key=lambda end: end.objective)
    first = basins.end_of(paths.numbers[0])
    different = [next((end for end in ends if end.objective >= first), ends[-1])]
    for end in ends:
        if not any(is_same(sample, end, other) for other in different):
            different.append(end)
    lowest = ends[0]
    return [(end.beta, end.intercept) for end in different[1:] if not is_higher(sample, end, lowest)]


def is_same(sample: Problem, a: Point, b: Point) -> bool:
    """Whether two minima of the sample are closer together than it can tell."""
    apart = float(np.linalg.norm(sample.root_weight * (preactivation(a) - preactivation(b))))
    residual = min(a.objective, b.objective)
    # The mean square of the error is the variance of the residuals times coefficients per row.
    return apart <= SAME_ERRORS * math.sqrt(residual * sample.n_columns / sample.n_samples)


def is_higher(sample: Problem, a: Point, b: Point) -> bool:
    """Whether the objective of all rows is, beyond doubt, higher at a than at b."""
    losses = [np.square(np.maximum(preactivation(at), 0.0) - sample.y) for at in (a, b)]
    excess = np.square(sample.root_weight) * (losses[0] - losses[1])
    return float(excess.sum()) > HIGHER_ERRORS * math.sqrt(excess.size) * float(excess.std())


def preactivation(point: Point) -> np.ndarray:
    """u at the rows of the sample."""
    assert isinstance(point, RowPoint)
    return point.u
