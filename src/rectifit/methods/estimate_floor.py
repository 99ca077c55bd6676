"""A floor other than zero, known or estimated: y ~ max(f, X beta + b).

Known. max(f, u) - y = max(0, u - f) - (y - f), so with y' = y - f and b' = b - f it is the problem with
floor 0, and every bound of that one holds. Without an intercept b' would be fixed at -f, and the surrogates
have no such constant: a floor other than 0 needs an intercept.

Estimated. Minimise L(beta, b, f) = sum_i w_i (max(f, u_i) - y_i)^2 + alpha |beta|^2 over all three.

* f need not be below the least outcome: raising every fitted value to it brings none further from its
  outcome.
* For a given u, rows sorted by u, and f between the k-th and the next, the loss is quadratic in f and least
  at the weighted mean of the first k outcomes, brought into that interval. The best k gives the best f
  exactly.
* For a given u - f, f moves all fitted values alike, and is best where the weighted residuals add up to 0.
  This step leaves points where the first one is stuck, with samples exactly at the floor.
* For a given f, (beta, b) comes from the iterative method.
* For a given active set, f is the mean of the other outcomes, and (beta, b) minimises the surrogate there.
  It is tried for active sets that have more or fewer rows, in the order of u.

None of the steps raises L, and where the active set stays the same, one round of them is the joint minimum.
They start from many floors, quantiles of the outcomes, each with its own sorting splits. The method that
was asked for then goes on from the best, at its floor, until the floor stays.

A lower bound that is found is one for the estimated floor. For another floor f + d it says only that the
root of the objective is at least root(bound) - |d| root(sum w): fitted values move by no more than |d|.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rectifit._typing import Index, Vector
from rectifit.active import Members
from rectifit.clock import Clock
from rectifit.data.prediction import rectify
from rectifit.data.problem import Point, Problem
from rectifit.fit import Fit, Stop, TraceRow
from rectifit.methods.iterative import MAX_ITER, Iterative
from rectifit.methods.search import Search
from rectifit.methods.sorting import Sorting
from rectifit.surrogate.engine import Coefficients
from rectifit.surrogate.majorise import majorise
from rectifit.surrogate.rows_engine import RowsEngine

__all__ = ["FloorPoint", "best_floor", "descend", "fit_coefficients", "solve_with_estimate"]

# Entries of X in all fits that are made cheaply: as many floors, and other splits of the rows, are tried.
CHEAP_ENTRIES = 2_000_000
MIN_FLOORS = 8
MAX_FLOORS = 20
# Splits of the sorting method at each floor.
N_SPLITS = 10
# Rounds of the steps above, and runs of the method that was asked for.
MAX_ROUNDS = 100
MAX_RUNS = 5
# Other splits of the rows, and how many of their fits are followed.
MAX_SPLITS = 32
MAX_FOLLOWED = 8
# A round that lowers the objective by no more than this share is the last.
TOL = 1e-9
# Seconds left to a method when the time is up, so that it returns its start.
NO_TIME = 1e-9


class FloorPoint(NamedTuple):
    """Coefficients and a floor, with the pre-activation and the true objective there."""

    beta: Vector
    intercept: float
    floor: float
    u: Vector
    objective: float

    @classmethod
    def at(cls, problem: Problem, beta: Vector, intercept: float, floor: float) -> FloorPoint:
        """The true objective with this floor."""
        u = problem.preactivation(beta, intercept)
        objective = problem.shifted(floor).objective_at(u - floor, beta)
        return cls(beta, intercept, floor, u, float(objective))


Run = Callable[[float, Coefficients | None, float | None], Fit]


def best_floor(problem: Problem, u: Vector) -> float:
    """argmin over f of sum w (max(f, u) - y)^2, exactly; the least outcome if no row is best at a floor.

    Examples
    --------
    >>> problem = Problem.from_data([[1.0], [2.0], [3.0]], [5.0, 6.0, 9.0])
    >>> best_floor(problem, problem.preactivation([4.0], -3.0))
    5.5
    """
    weighted = np.flatnonzero(problem.root_weight)
    order = weighted[np.argsort(u[weighted], kind="stable")]
    w, y, u = np.square(problem.root_weight[order]), problem.y[order], u[order]
    # In units where the outcomes are around 0 and of size 1, sums of squares keep their digits.
    middle = float(np.median(y))
    size = float(np.abs(y - middle).max()) or 1.0
    z, v, total = (y - middle) / size, (u - middle) / size, np.cumsum(w)
    mean = np.cumsum(w * z) / total
    floors = np.clip(mean, v, np.append(v[1:], np.inf))
    spread = np.maximum(np.cumsum(w * z * z) - total * mean * mean, 0.0)
    above = (w * np.square(v - z))[::-1].cumsum()[::-1]
    losses = spread + total * np.square(floors - mean) + np.append(above[1:], 0.0)
    k = int(losses.argmin())
    least = float(y.min())
    if least <= u[0] and above[0] <= losses[k]:
        return least
    # The mean of equal outcomes is that outcome, without the rounding of the sum.
    floor = middle + size * float(floors[k])
    near = float(y[np.abs(y[: k + 1] - floor).argmin()])
    return near if abs(near - floor) <= 1e-14 * (abs(middle) + size) else floor


def descend(problem: Problem, point: FloorPoint) -> FloorPoint:
    """Take the steps from a point until the objective stays."""
    for _ in range(MAX_ROUNDS):
        before = point.objective
        point = _move_floor(problem, fit_coefficients(problem, point))
        if before - point.objective <= TOL * before:
            break
    return point


def solve_with_estimate(
    problem: Problem, run: Run, start: Coefficients | None, time_limit: float | None
) -> Fit:
    """Estimate the floor, then run a method at it until the floor stays.

    Parameters
    ----------
    problem : Problem
    run : function of a floor, a start and seconds
        Runs the method that was asked for at that floor and returns its fit.
    start : pair (beta, intercept), optional
    time_limit : float, optional
    """
    began = time.perf_counter()

    def left() -> float | None:
        return None if time_limit is None else max(began + time_limit - time.perf_counter(), NO_TIME)

    best, interrupted = _first_point(problem, start), False
    rows = list[TraceRow]()
    try:
        for floor in _candidates(problem):
            if left() == NO_TIME:
                break
            found = descend(problem, _search_at(problem, floor, left()))
            rows.append(TraceRow("floor", len(rows) + 1, found.objective, time.perf_counter() - began))
            best = min(best, found, key=_objective)
        best = _improve(problem, best, left)
    except KeyboardInterrupt:
        interrupted = True
    n_iter = n_surrogates = 0
    for _ in range(MAX_RUNS):
        begun = time.perf_counter() - began
        solution = run(best.floor, (best.beta, best.intercept), NO_TIME if interrupted else left())
        rows += [row._replace(seconds=row.seconds + begun) for row in solution.trace]
        n_iter, n_surrogates = n_iter + solution.n_iter, n_surrogates + solution.n_surrogates
        if interrupted or solution.stopped in (Stop.TIME_LIMIT, Stop.INTERRUPTED):
            break
        if best.objective - solution.objective <= TOL * best.objective:
            break
        at = FloorPoint.at(problem, solution.beta, solution.intercept, solution.floor)
        try:
            best = _improve(problem, descend(problem, at), left)
        except KeyboardInterrupt:
            interrupted = True
            break
        if solution.objective - best.objective <= TOL * solution.objective:
            break
    return replace(
        solution,
        stopped=Stop.INTERRUPTED if interrupted else solution.stopped,
        certificate=replace(solution.certificate, floor=solution.floor),
        n_iter=n_iter,
        n_surrogates=n_surrogates,
        seconds=time.perf_counter() - began,
        trace=tuple(rows),
    )


def _improve(problem: Problem, point: FloorPoint, left: Callable[[], float | None]) -> FloorPoint:
    """Try other splits of the rows in the order of u, or of -u, as long as one helps."""
    order = np.argsort(point.u, kind="stable")
    order = order[problem.root_weight[order] > 0.0]
    fits = list[FloorPoint]()
    for below in _splits(order, point, int(np.clip(_affordable(problem), 0, MAX_SPLITS))):
        if left() == NO_TIME:
            return point
        fits.append(_fit_split(problem, below))
    for fit in sorted(fits, key=_objective)[:MAX_FOLLOWED]:
        other = descend(problem, fit)
        if point.objective - other.objective > TOL * point.objective:
            return _improve(problem, other, left)
    return point


def _splits(order: Index, point: FloorPoint, most: int) -> list[Index]:
    """Index that may be at the floor: some more or fewer than now, then other numbers, either way round."""
    now = int(np.count_nonzero(point.u[order] <= point.floor))
    near = [now + d for k in range(1, most // 4 + 1) for d in (-k, k)]
    spread = np.unique(np.linspace(1, order.size - 1, most).round().astype(int)).tolist()
    ways = [order[:n] for n in dict.fromkeys(near + spread) if n > 0] + [order[::-1][:n] for n in spread]
    return [below for below in ways if 1 <= below.size < order.size]


def _fit_split(problem: Problem, below: Index) -> FloorPoint:
    """The floor of some rows, and the minimiser of the surrogate in which all others are active."""
    floor = float(np.average(problem.y[below], weights=np.square(problem.root_weight[below])))
    shifted = problem.shifted(floor)
    active = np.ones(problem.n_samples, dtype=np.bool_)
    active[below] = False
    (minimum,) = RowsEngine(shifted).minimise([Members(active)])
    return FloorPoint.at(problem, minimum.point.beta, minimum.point.intercept + floor, floor)


def _objective(point: FloorPoint | Point) -> float:
    return point.objective


def _affordable(problem: Problem) -> int:
    """How many fits are made cheaply."""
    return CHEAP_ENTRIES // (problem.n_samples * problem.n_features)


def _first_point(problem: Problem, start: Coefficients | None) -> FloorPoint:
    """The start with its best floor, or the best constant."""
    zero = problem.allowed(np.zeros(problem.n_features))
    beta, intercept = (zero, 0.0) if start is None else start
    u = problem.preactivation(beta, intercept)
    floor = best_floor(problem, u if start is not None else np.full_like(u, problem.y.min()))
    return FloorPoint.at(problem, beta, floor if start is None else intercept, floor)


def _candidates(problem: Problem) -> list[float]:
    """Floors to start from: outcomes at evenly spread shares of the weight, from the least one on."""
    n_floors = int(np.clip(_affordable(problem), MIN_FLOORS, MAX_FLOORS))
    order = np.argsort(problem.y, kind="stable")
    total = np.cumsum(np.square(problem.root_weight[order]))
    ranks = np.searchsorted(total, np.arange(n_floors) / n_floors * total[-1], side="right")
    floors: list[float] = np.unique(problem.y[order][ranks]).tolist()
    return floors


def _search_at(problem: Problem, floor: float, seconds: float | None) -> FloorPoint:
    """What sorting and the iterative method find at a floor."""
    search = Search(RowsEngine(problem.shifted(floor)), Clock(seconds))
    stopped = search.run([("sorting", Sorting(N_SPLITS)), ("iterative", Iterative())])
    if stopped is Stop.INTERRUPTED:
        raise KeyboardInterrupt
    if search.best is None:
        return FloorPoint.at(problem, problem.allowed(np.zeros(problem.n_features)), floor, floor)
    return FloorPoint.at(problem, search.best.beta, search.best.intercept + floor, floor)


def fit_coefficients(problem: Problem, point: FloorPoint) -> FloorPoint:
    """The iterative method at the floor of the point."""
    shifted = problem.shifted(point.floor)
    start = shifted.evaluate(point.beta, point.intercept - point.floor)
    at: Point = start
    for minimum in majorise(RowsEngine(shifted), start, MAX_ITER, TOL):
        at = min(at, minimum.point, key=_objective)
    return FloorPoint.at(problem, at.beta, at.intercept + point.floor, point.floor)


def _move_floor(problem: Problem, point: FloorPoint) -> FloorPoint:
    """The best floor for the same u, or for the same u - floor."""
    residual = problem.y - rectify(point.u, point.floor)
    step = float(np.average(residual, weights=np.square(problem.root_weight)))
    moved = [
        point,
        FloorPoint.at(problem, point.beta, point.intercept, best_floor(problem, point.u)),
        FloorPoint.at(problem, point.beta, point.intercept + step, point.floor + step),
    ]
    return min(moved, key=_objective)
