"""The engine over rows in memory: any active set, as a mask."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from rectifit._typing import Index, Mask, Vector
from rectifit.active import ActiveSet, Members, split_ranks
from rectifit.data.problem import Point, Problem, RowPoint
from rectifit.surrogate.batched import BatchedSolver
from rectifit.surrogate.engine import Coefficients, Engine, Minimum
from rectifit.surrogate.rows import WorkingRows
from rectifit.surrogate.shortest import shorten
from rectifit.surrogate.solution import SurrogateSolutions
from rectifit.surrogate.solver import SurrogateSolver
from rectifit.tolerances import SUM_TOL

__all__ = ["AcceleratedEngine", "RowsEngine", "ascending"]


def ascending(problem: Problem) -> Index:
    """Samples that have weight, from the least to the largest outcome; with weights, by w y^2 with y's sign.

    The guarantee of the approximation algorithm needs this order of the positive samples.
    """
    order: Index = problem.loaded().weighted_y.argsort(kind="stable")
    return order[problem.root_weight[order] > 0.0] if problem.is_weighted else order


class RowsEngine(Engine):
    """Minimises surrogates with a `SurrogateSolver`.

    Parameters
    ----------
    problem : Problem
        With data in memory.
    device : torch device, optional
        An accelerator, for methods that minimise thousands of surrogates.
    """

    has_rows = True

    def __init__(self, problem: Problem, device: Any = None) -> None:
        self.problem = problem
        self.device = device
        self.watch = _ignore
        # The point at which the solver stands.
        self._last: Point | None = None

    @cached_property
    def solver(self) -> SurrogateSolver:
        """Made when it is needed: gradient methods need none."""
        return SurrogateSolver(self.problem)

    @property
    def batch(self) -> int:  # type: ignore[override]
        return self.solver.batch

    @property
    def summary(self) -> WorkingRows:
        """The rows in working coordinates."""
        return self.solver.rows

    def minimise(
        self,
        sets: Sequence[ActiveSet],
        starts: Sequence[Point] | None = None,
        follow: bool = False,  # noqa: ARG002
    ) -> list[Minimum]:
        """Minimise one surrogate per active set: a single one from its start, others from the one before."""
        start = None
        if starts is not None and len(sets) == 1 and starts[0] is not self._last:
            start = starts[0].beta, starts[0].intercept
        found = self._answer(list(map(self._mask, sets)), start)
        points = self._points(found)
        self._last = points[found.lines[-1]]
        return [
            Minimum(active, found.values[e], found.bounds[e], found.converged[e], points[e])
            for active, e in zip(sets, found.lines, strict=True)
        ]

    def evaluate(self, points: Sequence[Coefficients]) -> list[Point]:
        """The true objectives of some coefficients, or of allowed ones near them, with pre-activations."""
        if self.problem.constraints is not None:
            points = [(self.problem.allowed(beta), intercept) for beta, intercept in points]
        return list(self.problem.evaluate_all(points))

    def active_at(self, points: Sequence[Point]) -> list[ActiveSet]:
        """The positive samples with u > 0."""
        return [Members(mask) for mask in self._masks_at(points)]

    def following(self, minima: Sequence[Minimum]) -> list[ActiveSet | None]:
        """The positive samples with u > 0 at the minimisers, unless they are the active set."""
        found = self._masks_at([minimum.point for minimum in minima])
        before = np.array([self._mask(minimum.active) for minimum in minima])
        changed = (found != before).any(axis=1).tolist()
        return [Members(mask) if is_new else None for mask, is_new in zip(found, changed, strict=True)]

    def wider_at(self, point: Point) -> Members | None:
        """The positive samples with u >= 0, if any is at 0."""
        (narrow,), u = self._masks_at([point]), self._u(point)
        wider = self.problem.active_at(u, with_zeros=True)
        return None if np.count_nonzero(wider) == np.count_nonzero(narrow) else Members(wider)

    def split_sets(self, n_splits: int) -> list[ActiveSet]:
        """Positive samples from a rank on."""
        order = ascending(self.problem)
        n, n_fixed = order.size, order.size - self.problem.data.outcomes.n_positive
        # From 1 on; samples that no set has are left at 0.
        rank = np.zeros(self.problem.n_samples, dtype=np.intp)
        rank[order[n_fixed:]] = np.arange(n_fixed + 1, n + 1)
        left_out = np.array(split_ranks(n, n_splits))
        return list(map(Members, rank > left_out[:, None]))

    def length(self, point: Point) -> float:
        """The norm of sqrt(w) u."""
        return float(np.linalg.norm(self.problem.root_weight * self._u(point)))

    def rounding(self, point: Point) -> float:
        """From the sizes of all terms of u, unless it is no more than what sums are allowed anyway."""
        if "solver" in self.__dict__:
            rounding = self.rounding_at_most(point, self.summary.largest)
            if rounding <= SUM_TOL * point.objective:
                return rounding
        return self.problem.rounding_at(point.beta, point.intercept, point.objective)

    def shorten(self, point: Point) -> Point | None:
        """The shortest equivalent coefficients."""
        if not isinstance(point, RowPoint):
            point = self.problem.evaluate(point.beta, point.intercept)
        return shorten(self.solver.rows, point)

    def require_rows(self, stage: str) -> None:
        """Nothing is refused."""

    def row_solver(self) -> SurrogateSolver:
        """The solver."""
        return self.solver

    def reset(self) -> None:
        """Begin again at least squares."""
        self._last = None
        self.solver.reset()

    def copy(self) -> RowsEngine:
        """An engine with a solver of its own."""
        return RowsEngine(self.problem)

    def accelerator(self) -> BatchedSolver | None:
        """The solver on the accelerator, which knows no constraints."""
        return None if self.device is None or self.problem.constraints is not None else self._batched

    @cached_property
    def _batched(self) -> BatchedSolver:
        return BatchedSolver(self.solver, self.device)

    def _answer(self, masks: Sequence[Mask], start: Coefficients | None) -> SurrogateSolutions:
        return self.solver.answer(masks, start)

    def _points(self, found: SurrogateSolutions) -> list[RowPoint]:
        """The minimisers with their true objectives."""
        if found.objectives is None or found.u is None:
            return self.problem.evaluate_all(list(zip(found.betas, found.intercepts, strict=True)))
        return list(map(RowPoint, found.betas, found.intercepts, found.objectives, found.u))

    def _mask(self, active: ActiveSet) -> Mask:
        return active.mask if isinstance(active, Members) else self.problem.loaded().mask_of(active)

    def _masks_at(self, points: Sequence[Point]) -> Mask:
        """The active sets at some points, one per line."""
        return self.problem.active_at(np.array([self._u(point) for point in points]).T).T

    def _u(self, point: Point) -> Vector:
        if isinstance(point, RowPoint):
            return point.u
        return self.problem.preactivation(point.beta, point.intercept)

    def __reduce__(self) -> tuple[type[RowsEngine], tuple[Problem]]:
        # Only the data goes to other processes.
        return RowsEngine, (self.problem,)


class AcceleratedEngine(RowsEngine):
    """The same with an accelerator, whose minima are approximate."""

    def __init__(self, problem: Problem, accelerator: BatchedSolver) -> None:
        super().__init__(problem)
        self._accelerator = accelerator

    def _answer(self, masks: Sequence[Mask], start: Coefficients | None) -> SurrogateSolutions:  # noqa: ARG002
        return self._accelerator.answer(np.array(masks))


def _ignore(points: Sequence[Point]) -> None:
    """Nobody looks at points on their way."""
