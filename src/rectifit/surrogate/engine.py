"""What a method asks of an engine: minimise these active sets, from these starts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.active import ActiveSet
from rectifit.coordinates import Coordinates
from rectifit.data.problem import Point, Problem
from rectifit.surrogate.batched import BatchedSolver
from rectifit.surrogate.solver import SurrogateSolver

__all__ = ["Coefficients", "Engine", "Minimum", "WorkingSums"]

Coefficients = tuple[Vector, float]


class Minimum(NamedTuple):
    """The minimum of one surrogate.

    Attributes
    ----------
    active : the active set
    value, dual_bound : F_I at the minimiser, and a lower bound of its minimum
    converged : whether the optimality conditions were reached
    point : the minimiser, with the true objective there
    """

    active: ActiveSet
    value: float
    dual_bound: float
    converged: bool
    point: Point


class WorkingSums(Protocol):
    """Sums over all rows in working coordinates: Z'Z, and sum v^2."""

    @property
    def coordinates(self) -> Coordinates: ...

    @property
    def gram(self) -> Matrix: ...

    @property
    def total(self) -> float: ...

    def least_squares(self) -> Vector:
        """The linear least-squares fit, ridge included."""
        ...


class Engine(ABC):
    """Minimises surrogates of one problem.

    Attributes
    ----------
    problem : Problem
    batch : how many active sets in one call are minimised fastest
    has_rows : whether it works with the rows in memory, so that any active set can be asked for
    watch : called with points on the way of a long minimisation
    """

    problem: Problem
    batch: int
    has_rows: bool
    watch: Callable[[Sequence[Point]], None]

    @abstractmethod
    def minimise(
        self, sets: Sequence[ActiveSet], starts: Sequence[Point] | None = None, follow: bool = False
    ) -> list[Minimum]:
        """Minimise one surrogate per active set.

        Parameters
        ----------
        sets : active sets
        starts : one point per set, optional
            Where to begin. The value of a minimum does not depend on it.
        follow : bool, default=False
            Whether the caller goes on from the minima with the active sets there: an engine that reads in
            passes then looks ahead.
        """

    @abstractmethod
    def evaluate(self, points: Sequence[Coefficients]) -> list[Point]:
        """The true objectives of some coefficients, or of allowed ones near them."""

    @abstractmethod
    def active_at(self, points: Sequence[Point]) -> list[ActiveSet]:
        """The active sets at some points, whose surrogates touch the objective there."""

    @abstractmethod
    def following(self, minima: Sequence[Minimum]) -> list[ActiveSet | None]:
        """The active sets at the minimisers of some surrogates; None where it is the surrogate's own."""

    @abstractmethod
    def wider_at(self, point: Point) -> ActiveSet | None:
        """The same with all samples that are exactly at 0, if there are any."""

    @abstractmethod
    def split_sets(self, n_splits: int) -> list[ActiveSet]:
        """The active sets I^0, ..., I^N of the sorting method; not more splits than samples with weight."""

    @property
    @abstractmethod
    def summary(self) -> WorkingSums:
        """Working coordinates, and sums over all rows in them."""

    def least_squares(self) -> Coefficients:
        """The linear least-squares fit, ridge included."""
        return self.summary.coordinates.coefficients(self.summary.least_squares())

    def random_direction(self, rng: np.random.Generator) -> Coefficients:
        """A random direction, uniform where all columns have the same length, scaled to the norm of y."""
        sums = self.summary
        gamma = rng.standard_normal(sums.coordinates.n_directions)
        size = math.sqrt(float(gamma @ sums.gram @ gamma))
        return sums.coordinates.coefficients(gamma * (math.sqrt(sums.total) / size if size > 0.0 else 1.0))

    @abstractmethod
    def length(self, point: Point) -> float:
        """The norm of sqrt(w) u at a point."""

    @abstractmethod
    def rounding(self, point: Point) -> float:
        """How far apart two evaluations of the objective at a point may be."""

    def rounding_at_most(self, point: Point, largest: Vector) -> float:
        """The same or more, from the largest entry of every column, without a look at the rows."""
        p = self.problem.n_features
        extent = float(np.abs(point.beta) @ largest[:p]) + abs(point.intercept) * float(largest[p:].sum())
        return self.problem.rounding(math.sqrt(self.problem.n_samples) * extent, point.objective)

    @abstractmethod
    def shorten(self, point: Point) -> Point | None:
        """The shortest coefficients equivalent to a point; None if there are no shorter ones."""

    @abstractmethod
    def require_rows(self, stage: str) -> None:
        """Refuse, in one sentence, a stage that needs rows in memory where there are none."""

    @abstractmethod
    def row_solver(self) -> SurrogateSolver:
        """The solver of single surrogates, for stages that need rows in memory."""

    @property
    def sample(self) -> Problem | None:
        """Some of the rows in memory, where not all are, if that many surrogates can be minimised soon."""
        return None

    def reset(self) -> None:  # noqa: B027 - most keep nothing
        """Forget the minima found so far, from which the next ones begin.

        Where a surrogate has several minimisers, the one that is found depends on where the search for it
        begins.
        """

    @abstractmethod
    def copy(self) -> Engine:
        """An engine that can work at the same time on another thread; itself if it has threads of its own."""

    def accelerator(self) -> BatchedSolver | None:
        """The solver of thousands of surrogates at once, where there is an accelerator."""
        return None
