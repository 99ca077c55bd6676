"""Best-first search in rounds.

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
from threading import Lock, local
from typing import Any, Generic, TypeVar

import numpy as np

from rectifit._typing import Vector
from rectifit.certificate.envelope import CONVEX, FREE, Kinds
from rectifit.tolerances import SUM_TOL

__all__ = ["ROUND_NODES", "BestFirst", "Control", "Node", "Tree", "first_kinds"]

# Nodes that are expanded in a round, on however many threads.
ROUND_NODES = 6


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
    """

    cutoff: Callable[[], float]
    offer: Callable[[Vector], None]
    is_over: Callable[[], bool] = lambda: False
    report: Callable[[], None] = lambda: None
    promising: Callable[[], float] = lambda: np.inf
    n_threads: int = 1


class Tree(ABC):
    """What every search says of itself: open nodes, work, and what is proved."""

    def __init__(self, control: Control, proved: float) -> None:
        self.control = control
        self.n_nodes, self.work = 0, 0
        self._proved, self._leaves = proved, np.inf

    @property
    @abstractmethod
    def kind(self) -> Kinds:
        """What is settled for all better solutions."""

    @property
    @abstractmethod
    def n_open(self) -> int:
        """Nodes that are left to expand."""

    @property
    @abstractmethod
    def reached(self) -> float:
        """What is proved by the open nodes alone."""

    @property
    def cutoff(self) -> float:
        return self.control.cutoff()

    @property
    def total_work(self) -> float:
        """Looks at all samples, for nodes and for whatever serves them."""
        return self.work

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to expand."""
        return self.n_open == 0

    @property
    def is_closed(self) -> bool:
        """Whether nothing below the cutoff is left."""
        return self.is_done and self._leaves >= self.cutoff

    @property
    def lower_bound(self) -> float:
        """What is proved so far."""
        return max(self.reached, min(self.cutoff, self._proved))

    def know(self, bound: float) -> None:
        """Take over a lower bound of the loss that was found elsewhere."""
        self._proved = max(self._proved, bound)


class BestFirst(Tree, Generic[AnyNode]):
    """Rounds of nodes with the least bounds, on several threads; how a node is expanded is left open.

    Within a round nothing depends on the order in which nodes are expanded: points are offered at its end. So
    the search is the same for any number of threads. Once open nodes take the memory that they may take,
    parts of a node are finished before others, which needs hardly more.
    """

    def __init__(self, y: Vector, control: Control, memory_limit: float = np.inf) -> None:
        # Samples with y <= 0 cost at least y^2.
        super().__init__(control, float(np.square(y[y <= 0.0]).sum()) * (1.0 - SUM_TOL))
        # Least bound first, of equal ones the older; and those that are finished first.
        self._open: list[tuple[float, int, AnyNode]] = []
        self._stack: list[AnyNode] = []
        self._taken: list[AnyNode] = []
        self._order = count()
        self._lock, self._thread = Lock(), local()
        # Work before the present round: what other nodes of a round take depends on the threads.
        self.work_before = 0
        self._memory_limit = memory_limit

    @abstractmethod
    def _expand(self, node: AnyNode) -> list[AnyNode]:
        """Raise the bound of a node; its parts, if it may hold something better. Runs on several threads."""

    @property
    @abstractmethod
    def node_bytes(self) -> int:
        """What an open node takes."""

    @property
    def n_open(self) -> int:
        return len(self._open) + len(self._stack)

    @property
    def reached(self) -> float:
        """What is proved by the open nodes alone."""
        bounds = (node.bound for node in (*self._stack, *self._taken))
        return min(self.cutoff, self._leaves, *(bound for bound, *_ in self._open[:1]), *bounds)

    def advance(self, mapped: Callable[..., Iterator[Any]] = map, most: int = ROUND_NODES) -> None:
        """Expand the nodes of one round."""
        self._take(most)
        self.work_before = self.work
        results = list(mapped(self._expand_apart, self._taken))
        for parts, _ in results:
            self._push(parts)
        self._done()
        # What is proved is reported before points are offered, which may lower the cutoff.
        self.control.report()
        for _, points in results:
            for point in points:
                self.control.offer(point)

    def offer(self, b: Vector) -> None:
        """Offer a point that was met: at once in a round of one node, otherwise when the round ends."""
        if len(self._taken) == 1:
            self.control.offer(b)
        else:
            self._thread.points.append(b)

    def spend(self, looks: int) -> None:
        """Count work: how often all samples were looked at."""
        self._thread.looks += looks

    @property
    def looks_at_node(self) -> int:
        """Looks at all samples for the node that this thread expands, if it does."""
        return int(getattr(self._thread, "looks", 0))

    def _expand_apart(self, node: AnyNode) -> tuple[list[AnyNode], list[Vector]]:
        """Expand a node; also returns the points that were met."""
        self._thread.points, self._thread.looks = [], 0
        parts = self._expand(node)
        self._count(self._thread.looks)
        return parts, self._thread.points

    def _count(self, looks: int) -> None:
        with self._lock:
            self.work += looks

    def _take(self, most: int) -> None:
        """Take the next nodes. Until `_done`, they count as open, for they may be interrupted."""
        if self._stack:
            self._taken, self._stack = self._stack[-most:], self._stack[:-most]
            return
        if self._open and self._open[0][0] >= self.cutoff:
            self._open = []
        self._taken = [heapq.heappop(self._open)[2] for _ in range(min(most, len(self._open)))]

    def _done(self) -> None:
        self.n_nodes += len(self._taken)
        self._taken = []

    def _push(self, nodes: list[AnyNode]) -> None:
        for node in nodes:
            if self.n_open * self.node_bytes >= self._memory_limit:
                self._stack.append(node)
            else:
                heapq.heappush(self._open, (node.bound, next(self._order), node))

    def _leave(self, bound: float) -> None:
        """Count a node that cannot be split any more, and its bound."""
        with self._lock:
            self._leaves = min(self._leaves, bound)


def first_kinds(y: Vector) -> Kinds:
    """Before anything is known."""
    return np.where(y > 0.0, FREE, CONVEX).astype(np.int8)
