"""The search over signs: which samples are on, which are off.

A node is a region: kinds and intervals of samples that hold for all better solutions in it. The root is
tightened by tilts of the plain convex relaxation, by the ascent in c, whose ellipsoids settle most signs, and
by tilts of the relaxation with this c, as long as a round pays. The search then splits regions at a free
sample, least bound first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rectifit._typing import Index, Matrix, Vector
from rectifit.certificate.best_first import BestFirst, Control, Node, first_kinds
from rectifit.certificate.envelope import FREE, OFF, ON, Kinds
from rectifit.certificate.records import Samples
from rectifit.certificate.relaxation import Bound, Region, Relaxation, Start
from rectifit.certificate.tighten import (
    decide,
    has_intervals,
    shrink_by_cost,
    shrink_by_ellipsoid,
    shrink_by_tilts,
)
from rectifit.certificate.transfer import Transfer, first_transfer

__all__ = ["SignSearch"]

# Samples with the largest outcomes that are tilted together, per coefficient.
FIRST_TILTS_PER_COEFFICIENT = 3
# Steps of the ascent in a round.
STEPS_PER_ROUND = 30
# Rounds at the root, and at other nodes.
MAX_ROOT_ROUNDS = 25
MAX_NODE_ROUNDS = 1
# Nodes are tightened in rounds if their gap is below this share of the incumbent.
MAX_GAP_FOR_ROUNDS = 0.3
# A round pays if it leaves less than this share of the gap, or settles more than this share of free samples.
MAX_GAP_LEFT = 0.95
MIN_SETTLED = 0.03
# Weights of the barrier at the beginning and at the end of an ascent, as shares of the room per coefficient.
FIRST_BARRIER = 0.3
LAST_BARRIER = 0.01
# The room below the cutoff is taken to be no smaller than this share of the cutoff, and than this.
MIN_ROOM_SHARE = 1e-6
MIN_ROOM = 1e-15


@dataclass(slots=True)
class Signs(Node):
    """A region with a bound, and where its relaxation was last minimised."""

    region: Region
    c: Vector
    start: Start


class SignSearch(BestFirst[Signs]):
    """The search over signs, below `reach` in absolute value of every u where that is given."""

    def __init__(self, samples: Samples, control: Control, reach: Vector | None = None) -> None:
        super().__init__(samples.y, control)
        self.samples = samples
        self.transfer = Transfer(samples, control.offer, control.is_over)
        none = np.full(samples.y.size, np.inf) if reach is None else reach
        self.region = Region(first_kinds(samples.y), -none, none.copy())
        self._push(
            [Signs(self._proved, self.region, np.zeros(samples.y.size), Start(np.zeros(samples.Z.shape[1])))]
        )

    def start(self) -> bool:
        """Tighten and bound the root; True if that closes the search."""
        (root,) = self._take(1)
        if self.samples.y.size and self._bound_root(root):
            self._push([root])
        self._done()
        return self.n_open == 0

    @property
    def kind(self) -> Kinds:
        return self.region.kind

    def _relax(self, region: Region, c: Vector) -> Relaxation:
        return Relaxation(self.samples, region, c)

    def _bound_root(self, root: Signs) -> bool:
        """Tighten and bound the root. False if that closes the search."""
        if not self._find_intervals(root):
            return False
        root.c = first_transfer(self.region)
        if not self._tighten(root, MAX_ROOT_ROUNDS, first=True):
            return False
        self._proved = max(self._proved, min(root.bound, self.cutoff))
        return True

    def _find_intervals(self, root: Signs) -> bool:
        """Find first intervals of u by the cheapest means that work. False if that closes the search.

        Samples with large outcomes are the first that are known to be on, from their cost or by tilts. A few
        of them make the relaxation definite, and its ellipsoids give all other intervals. If that fails, all
        samples are tilted.
        """
        region, Z = self.region, self.samples.Z
        if shrink_by_cost(region, self.samples.y, self.cutoff) < 0:
            return False
        base, few = self._plain(root), FIRST_TILTS_PER_COEFFICIENT * Z.shape[1]
        free = np.flatnonzero(region.kind == FREE)
        free = free[np.argsort(-self.samples.y[free], kind="stable")]
        while base.factor is None and free.size > 0 and not self.control.is_over():
            part, free = free[:few], free[few:]
            if self._tilt(region, base, part) < 0:
                return False
            if not (region.kind[part] == ON).any():
                break
            base = self._plain(root)
        if base.factor is None and (region.l > -np.inf).any():
            if self._tilt(region, base, np.flatnonzero((region.kind != ON) & (region.kind != OFF))) < 0:
                return False
            base = self._plain(root)
        settled = 1
        while base.factor is not None and settled > 0:
            root.bound = max(root.bound, base.value)
            settled = shrink_by_ellipsoid(region, Z, base, self.cutoff)
            if settled < 0 or root.bound >= self.cutoff:
                return False
            base = self._plain(root)
        return True

    def _tilt(
        self, region: Region, base: Bound, only: Index | None = None, spreads: Matrix | None = None
    ) -> int:
        """Tilt the relaxation of a bound."""
        relaxation = base.start.owner
        assert isinstance(relaxation, Relaxation)
        base = base._replace(value=max(base.value, self._proved))
        over = self.control.is_over
        return shrink_by_tilts(region, self.samples.Z, relaxation, base, self.cutoff, over, only, spreads)

    def _tighten(self, node: Signs, max_rounds: int, first: bool = False) -> bool:
        """Rounds of ascent and tilts, as long as they pay. False if the node holds nothing better."""
        region, q = node.region, self.samples.Z.shape[1]
        before, left, spreads = np.inf, region.kind.size, np.full((2, region.kind.size), np.nan)
        for turn in range(max_rounds):
            room = max(self.cutoff - node.bound, MIN_ROOM_SHARE * abs(self.cutoff), MIN_ROOM)
            mu = FIRST_BARRIER * (self.cutoff if turn == 0 and first else room) / q
            ascent = self.transfer.ascend(
                region, node.c, node.start, self.cutoff, mu, LAST_BARRIER * room / q, STEPS_PER_ROUND
            )
            if ascent.closed:
                return False
            if ascent.best.value == -np.inf:
                return True
            node.c, node.start = ascent.c, ascent.best.start
            node.bound = max(node.bound, ascent.best.value)
            if first:
                self.control.report()
            relaxation = self._relax(region, node.c)
            base = relaxation.minimise(node.start)
            if base.value >= self.cutoff:
                return False
            if self.control.is_over():
                return True
            if base.value > -np.inf:
                node.start = base.start
                if self._tilt(region, base, spreads=spreads) < 0:
                    return False
            room, free = self.cutoff - node.bound, int(np.count_nonzero(region.kind == FREE))
            if turn > 0 and room > MAX_GAP_LEFT * before and left - free < MIN_SETTLED * left:
                return True
            before, left = room, free
        return True

    def _expand(self, node: Signs) -> list[Signs]:
        plain = self._plain(node)
        node.bound = max(node.bound, plain.value)
        if node.bound >= self.cutoff:
            return []
        node.start = plain.start
        if plain.factor is not None:
            if shrink_by_ellipsoid(node.region, self.samples.Z, plain, self.cutoff) < 0:
                return []
            # Samples that could not lend curvature before begin with very little.
            node.c = np.where(node.c == 0.0, first_transfer(node.region), node.c)
            close = self.cutoff - node.bound < MAX_GAP_FOR_ROUNDS * self.cutoff
            if self.n_nodes > 1 and close and not self._tighten(node, MAX_NODE_ROUNDS):
                return []
        self.control.offer(node.start.b)
        if node.bound >= self.cutoff:
            return []
        free = np.flatnonzero(node.region.kind == FREE)
        if free.size == 0:
            self._leave(max(node.bound, self._plain(node).value))
            return []
        sample, parts = self._branching_sample(node, free), []
        for kind in (ON, OFF):
            region = node.region.copy()
            region.kind[sample] = kind
            if kind == ON:
                region.l[sample] = max(region.l[sample], 0.0)
            else:
                region.U[sample] = min(region.U[sample], 0.0)
            if decide(region) >= 0:
                parts.append(Signs(node.bound, region, node.c.copy(), node.start))
        return parts

    def _plain(self, node: Signs) -> Bound:
        """The relaxation without any transfer: exact where no sample is free."""
        return self._relax(node.region, np.zeros_like(node.c)).minimise(Start(node.start.b))

    def _branching_sample(self, node: Signs, free: np.ndarray) -> int:
        """The free sample whose loss is farthest above the relaxation; without intervals, the largest y."""
        y, u = self.samples.y, self.samples.Z @ node.start.b
        if not has_intervals(node.region):
            return int(free[np.argmax(y[free])])
        env = self._relax(node.region, node.c).envelopes
        line = env.constant + env.slope * u - node.c * u * u
        on_chord = (u > env.a) & (u < env.t)
        missed = np.where(on_chord, np.square(np.maximum(u, 0.0) - y) - line, 0.0)
        if missed[free].max() <= 0.0:
            return int(free[np.argmin(np.abs(u[free]))])
        return int(free[np.argmax(missed[free])])
