"""The search over signs: which samples are on, which are off.

A node is a region: kinds and intervals of samples that hold for all better solutions in it. The root is
tightened by tilts of the plain convex relaxation, by the ascent in c, whose ellipsoids settle most signs, and
by tilts of its relaxation, as long as that pays. What is left is split at a free sample, best bound first. A
node whose bound reaches the cutoff holds nothing better and is dropped, so at any time

    min L >= min(cutoff, bounds of all open nodes).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from rectifit.certificate.envelope import CONVEX, FREE, OFF, ON, Kinds
from rectifit.certificate.incumbent import Incumbent
from rectifit.certificate.reduction import Reduced
from rectifit.certificate.relaxation import Bound, Region, Relaxation, Start
from rectifit.certificate.tighten import (
    decide,
    has_intervals,
    shrink_by_ellipsoid,
    shrink_by_tilts,
)
from rectifit.certificate.transfer import Transfer, first_transfer
from rectifit.problem import Vector

__all__ = ["SignSearch"]

# Steps of the ascent in a round.
ROUND_STEPS = 30
# Rounds at the root, and at other nodes.
MAX_ROUNDS, NODE_ROUNDS = 25, 1
# Rounds begin at nodes whose gap is below this share of the incumbent.
CLOSE = 0.3
# A round pays if it leaves less than this share of the gap, or settles this share of the free samples.
PAYS, SETTLES = 0.95, 0.03


@dataclass(order=True)
class Node:
    """A region with a bound, and where its relaxation was last minimised."""

    bound: float
    order: int
    region: Region = field(compare=False)
    c: Vector = field(compare=False)
    start: Start = field(compare=False)


class SignSearch:
    """Best-first search; `target` says from an objective value down to which value a proof must reach."""

    def __init__(
        self,
        reduced: Reduced,
        incumbent: Incumbent,
        target: Callable[[float], float],
        is_over: Callable[[], bool],
        report: Callable[[], None],
    ) -> None:
        self.reduced, self.incumbent = reduced, incumbent
        self.target, self.is_over, self.report = target, is_over, report
        self.transfer = Transfer(reduced.Z, reduced.y, reduced.ridge, incumbent.offer, is_over)
        self.n_nodes = 0
        self.region = self._whole()
        # Samples with y <= 0 cost at least y^2.
        self._proved = float(np.square(reduced.y[reduced.y <= 0.0]).sum()) * (1.0 - 1e-12)
        self._open: list[Node] = []
        self._current: Node | None = None
        self._leaves = np.inf
        self._order = count()

    @property
    def cutoff(self) -> float:
        return self.target(self.incumbent.value)

    @property
    def lower_bound(self) -> float:
        """What is proved so far, in reduced units."""
        if self.n_nodes == 0:
            return min(self._proved, self.cutoff)
        least = self._open[0].bound if self._open else np.inf
        if self._current is not None:
            least = min(least, self._current.bound)
        return min(self.cutoff, max(self._proved, min(least, self._leaves)))

    @property
    def n_open(self) -> int:
        return len(self._open)

    def start(self) -> bool:
        """Tighten and bound the whole; True if that closes it."""
        root = self._root() if self.reduced.y.size else None
        self.n_nodes = 1
        self._open = [] if root is None else [root]
        return root is None

    def run(self) -> bool:
        """Search on until the gap is closed (True) or the time is up."""
        while self._open:
            if self.is_over():
                return False
            if self._open[0].bound >= self.cutoff:
                self._open = []
                break
            # Until its children are there, an interrupted node counts as open.
            self._current = self._open[0]
            heapq.heappop(self._open)
            self._expand(self._current)
            self._current = None
            self.report()
        return self._leaves >= self.cutoff

    @property
    def kind(self) -> Kinds:
        """What is settled for all better solutions."""
        return self.region.kind

    def _whole(self) -> Region:
        n = self.reduced.y.size
        kind = np.where(self.reduced.y > 0.0, FREE, CONVEX).astype(np.int8)
        return Region(kind, np.full(n, -np.inf), np.full(n, np.inf))

    def _relax(self, region: Region, c: Vector) -> Relaxation:
        return Relaxation(self.reduced.Z, self.reduced.y, self.reduced.ridge, region, c)

    def _root(self) -> Node | None:
        """Tighten and bound the whole; None if that closes it."""
        n, q = self.reduced.Z.shape
        start = Start(np.zeros(q))
        relaxation = self._relax(self.region, np.zeros(n))
        base = relaxation.minimise(start)._replace(value=self._proved)
        if shrink_by_tilts(self.region, self.reduced.Z, relaxation, base, self.cutoff) < 0:
            return None
        node = Node(self._proved, next(self._order), self.region, first_transfer(self.region), start)
        if not self._tighten(node, MAX_ROUNDS, first_mu=self.incumbent.value):
            return None
        self._proved = max(self._proved, min(node.bound, self.cutoff))
        return node

    def _tighten(self, node: Node, max_rounds: int, first_mu: float | None = None) -> bool:
        """Rounds of ascent and tilts, as long as they pay. False if the node holds nothing better."""
        region, q = node.region, self.reduced.Z.shape[1]
        before, left = np.inf, region.kind.size
        for turn in range(max_rounds):
            room = max(self.incumbent.value - node.bound, 1e-6 * self.incumbent.value)
            mu = 0.3 * (first_mu if turn == 0 and first_mu is not None else room) / q
            ascent = self.transfer.ascend(
                region, node.c, node.start, self.cutoff, mu, 0.01 * room / q, ROUND_STEPS
            )
            if ascent.closed:
                return False
            if ascent.best.value == -np.inf:
                return True
            node.c, node.start = ascent.c, ascent.best.start
            node.bound = max(node.bound, ascent.best.value)
            self.report()
            relaxation = self._relax(region, node.c)
            base = relaxation.minimise(node.start)
            if base.value >= self.cutoff:
                return False
            if self.is_over():
                return True
            if base.value > -np.inf:
                node.start = base.start
                if shrink_by_tilts(region, self.reduced.Z, relaxation, base, self.cutoff) < 0:
                    return False
            room, free = self.incumbent.value - node.bound, int(np.count_nonzero(region.kind == FREE))
            if turn > 0 and room > PAYS * before and left - free < SETTLES * left:
                return True
            before, left = room, free
        return True

    def _expand(self, node: Node) -> None:
        """Bound a node better, and split it if it may hold something better."""
        self.n_nodes += 1
        plain = self._plain(node)
        node.bound = max(node.bound, plain.value)
        if node.bound >= self.cutoff:
            return
        node.start = plain.start
        if plain.factor is not None:
            if shrink_by_ellipsoid(node.region, self.reduced.Z, plain, self.cutoff) < 0:
                return
            # Samples that could not lend before begin with next to nothing.
            node.c = np.where(node.c == 0.0, first_transfer(node.region), node.c)
            close = self.incumbent.value - node.bound < CLOSE * self.incumbent.value
            if self.n_nodes > 2 and close and not self._tighten(node, NODE_ROUNDS):
                return
        self.incumbent.offer(node.start.b)
        if node.bound >= self.cutoff:
            return
        free = np.flatnonzero(node.region.kind == FREE)
        if free.size == 0:
            self._leaves = min(self._leaves, max(node.bound, self._plain(node).value))
            return
        sample = self._branching_sample(node, free)
        for kind in (ON, OFF):
            region = node.region.copy()
            region.kind[sample] = kind
            if kind == ON:
                region.l[sample] = max(region.l[sample], 0.0)
            else:
                region.U[sample] = min(region.U[sample], 0.0)
            if decide(region) >= 0:
                child = Node(node.bound, next(self._order), region, node.c.copy(), node.start)
                heapq.heappush(self._open, child)

    def _plain(self, node: Node) -> Bound:
        """The relaxation without any transfer: exact where no sample is free."""
        return self._relax(node.region, np.zeros_like(node.c)).minimise(Start(node.start.b))

    def _branching_sample(self, node: Node, free: np.ndarray) -> int:
        """The free sample whose loss the relaxation misses most; without intervals, the largest outcome."""
        y, u = self.reduced.y, self.reduced.Z @ node.start.b
        if not has_intervals(node.region):
            return int(free[np.argmax(y[free])])
        env = self._relax(node.region, node.c).envelopes
        line = env.constant + env.slope * u - node.c * u * u
        on_chord = (u > env.a) & (u < env.t)
        missed = np.where(on_chord, np.square(np.maximum(u, 0.0) - y) - line, 0.0)
        if missed[free].max() <= 0.0:
            return int(free[np.argmin(np.abs(u[free]))])
        return int(free[np.argmax(missed[free])])
