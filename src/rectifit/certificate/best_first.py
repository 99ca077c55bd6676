"""Best-first search, for signs and for directions.

A node is a set of coefficients with a lower bound of their loss. The node with the least bound is expanded
next: bounded better, and split if it may hold something below the cutoff. A node whose bound reaches the
cutoff holds nothing better and is dropped, so at any time

    min L >= min(cutoff, bounds of all open nodes).
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np

from rectifit._typing import Vector
from rectifit.certificate.envelope import CONVEX, FREE, Kinds
from rectifit.tolerances import SUM_TOL

__all__ = ["BestFirst", "Control", "Node", "first_kinds"]

# Nodes that are expanded in a round, on however many threads.
ROUND_NODES = 8


@dataclass(slots=True)
class Node:
    """A part of the search space with a bound."""

    bound: float


AnyNode = TypeVar("AnyNode", bound=Node)


@dataclass
class Control:
    """How a search is controlled, by functions that it calls.

    cutoff : returns the loss below which nothing must be left; it may fall while the search runs
    offer : called with every point that may be a better solution
    is_over, report : called before and after nodes are expanded; the first ends the search
    promising : returns the loss up to which points are worth an offer
    spend : called with work that was done, in samples times coefficients that were looked at
    """

    cutoff: Callable[[], float]
    offer: Callable[[Vector], None]
    is_over: Callable[[], bool] = lambda: False
    report: Callable[[], None] = lambda: None
    promising: Callable[[], float] = lambda: np.inf
    spend: Callable[[int], None] = lambda _: None
    n_threads: int = 1


class BestFirst(ABC, Generic[AnyNode]):
    """What both searches share; they differ in how they expand a node."""

    def __init__(self, y: Vector, control: Control) -> None:
        self.control = control
        self.n_nodes = 0
        # Samples with y <= 0 cost at least y^2.
        self._proved = float(np.square(y[y <= 0.0]).sum()) * (1.0 - SUM_TOL)
        self._leaves = np.inf
        # Least bound first, of equal ones the older.
        self._open: list[tuple[float, int, AnyNode]] = []
        self._taken: list[AnyNode] = []
        self._order = count()
        self._lock = Lock()

    @abstractmethod
    def _expand(self, node: AnyNode) -> list[AnyNode]:
        """Raise the bound of a node; its parts, if it may hold something better. Runs on several threads."""

    @property
    @abstractmethod
    def kind(self) -> Kinds:
        """What is settled for all better solutions."""

    @property
    def cutoff(self) -> float:
        return self.control.cutoff()

    @property
    def nodes(self) -> list[AnyNode]:
        """All nodes that are not closed."""
        return [*(node for *_, node in self._open), *self._taken]

    @property
    def n_open(self) -> int:
        return len(self._open)

    @property
    def lower_bound(self) -> float:
        """What is proved so far."""
        least = min([self._leaves, *(bound for bound, *_ in self._open[:1]), *(t.bound for t in self._taken)])
        return min(self.cutoff, max(self._proved, least))

    def run(self, mapped: Callable[..., Iterator[Any]] = map) -> bool:
        """Search until nothing below the cutoff is left (True) or the time is up."""
        while self._open:
            if self.control.is_over():
                return False
            if self._open[0][0] >= self.cutoff:
                self._open = []
                break
            for parts in mapped(self._expand, self._take(ROUND_NODES)):
                self._push(parts)
            self._done()
            self.control.report()
        return self._leaves >= self.cutoff

    def _take(self, most: int) -> list[AnyNode]:
        """The nodes that are next. Until `_done`, they count as open, for they may be interrupted."""
        for _ in range(min(most, len(self._open))):
            self._taken.append(self._open[0][2])
            heapq.heappop(self._open)
        return self._taken

    def _done(self) -> None:
        with self._lock:
            self.n_nodes += len(self._taken)
        self._taken = []

    def _push(self, nodes: list[AnyNode]) -> None:
        for node in nodes:
            heapq.heappush(self._open, (node.bound, next(self._order), node))

    def _leave(self, bound: float) -> None:
        """Count a node that cannot be split any more, and its bound."""
        with self._lock:
            self._leaves = min(self._leaves, bound)


def first_kinds(y: Vector) -> Kinds:
    """Before anything is known."""
    return np.where(y > 0.0, FREE, CONVEX).astype(np.int8)
