"""The search over signs: which samples are on, which are off.

A node is a region: kinds and intervals of samples that hold for all better solutions in it. The root is
tightened by tilts of the plain convex relaxation, by the ascent in c, whose ellipsoids settle most signs, and
by tilts of the relaxation with this c, as long as a round pays. The search then splits regions at a free
sample, least bound first.

Slabs. With an intercept, or with columns of one sign, there are directions d with Zd <= 0, in which no u
rises: intervals have no lower ends, and nothing can be transferred. Let m(b) = v'Zb with v >= 0 and |v| = 1,
a mean of u that falls in all of these directions. {m(b) >= -T} holds none of them, and there tilts find all
intervals. The space is split into slabs T_k <= m(b) <= T_{k+1}, at most |u_+| <= |y| + sqrt(cutoff) in the
better solutions, and the rest m(b) <= -T. There b = t b' with t >= 1 and m(b') = -T, and

    L(b) >= sum_i min_{t >= 1} f_i(t z_i'b') + b''ridge b',

because the ridge rises with t. This far region, all scales in one, is a slab of no width with losses of its
own (envelope.py). A slab is one more row of the relaxation, without a loss. It lends curvature along m at a
cost that falls with the square of its width. Slabs that do not close are split, and so are signs in them.

Where it is proved that no better solution that is the minimum along its ray has a mean below some value
(scale.py), slabs end there. The far region waits for that if it is not closed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from rectifit._typing import Index, Mask, Matrix, Vector
from rectifit.bounds import is_regular
from rectifit.certificate.ascent_kernel import decide
from rectifit.certificate.best_first import ROUND_NODES, BestFirst, Control, Node, first_kinds
from rectifit.certificate.envelope import FAR_FREE, FAR_ON, FREE, LIMIT, OFF, ON, SLAB, Kinds
from rectifit.certificate.flats import falling_direction
from rectifit.certificate.recording_signs import NodeRecord, SignRecorder
from rectifit.certificate.records import Samples
from rectifit.certificate.relaxation import Bound, Region, Relaxation, Start
from rectifit.certificate.tighten import (
    MAX_TILTS,
    Note,
    has_intervals,
    heaviest,
    is_open,
    shrink_by_box,
    shrink_by_cost,
    shrink_by_ellipsoid,
    shrink_by_tilts,
)
from rectifit.certificate.transfer import Transfer, first_transfer
from rectifit.tolerances import INTERVAL_RTOL

__all__ = ["SignSearch"]

# Samples with the largest outcomes that are tilted together, per coefficient.
FIRST_TILTS_PER_COEFFICIENT = 3
# Steps of the ascent in a round.
STEPS_PER_ROUND = 30
# Rounds at the root and of slabs, of the far region, and at other nodes.
MAX_ROOT_ROUNDS = 25
MAX_FAR_ROUNDS = 5
MAX_NODE_ROUNDS = 1
# Nodes are tightened in rounds if their gap is below this share of the incumbent.
MAX_GAP_FOR_ROUNDS = 0.3
# A round pays if it leaves less than this share of the gap, or settles more than this share of free samples.
MAX_GAP_LEFT = 0.95
MIN_SETTLED = 0.03
# Weights of the barrier at the beginning and at the end of an ascent, as shares of the room per coefficient.
FIRST_BARRIER = 0.3
LAST_BARRIER = 0.01
# Free samples up to which there are no slabs: a tree of that many signs is small.
MAX_FREE_WITHOUT_SLABS = 10
# Where the space is cut into slabs at first, the last being the far one, in multiples of |y|.
FIRST_CUTS = (-1.0, -4.0, -16.0)
N_SLABS = len(FIRST_CUTS) + 1
# A far region is cut at this multiple, until that is reached.
FAR_FACTOR = 4.0
MAX_FAR = 200.0
# The far region is a slab once it is known to end at this multiple of where it begins.
MAX_SLAB_RATIO = 8.0
# A slab is split if it is wider than this, in units in which it is split half way: the inverse hyperbolic
# sine of m / |y| over SLAB_UNIT, logarithmic far away.
MIN_SLAB_WIDTH = 0.1
SLAB_UNIT = 0.5
# What a split leaves of the gap, before any is known, with the weight of so many; where it closes a node; and
# at most. The gap, as a share of the cutoff, that a node closes by itself; that of a first slab, before it is
# known; and levels of splits at most.
FIRST_LEFT = 0.5
FIRST_LEFT_WEIGHT = 2
CLOSED_LEFT = 0.2
MAX_LEFT = 0.95
EASY_GAP = 0.13
FIRST_GAP = 0.3
MAX_LEVELS = 50.0
# A round has one open node in so many, for then order matters little, and threads have enough to do.
OPEN_PER_NODE = 8
# The room below the cutoff is taken to be no smaller than this share of the cutoff, and than this.
MIN_ROOM_SHARE = 1e-6
MIN_ROOM = 1e-15
# Looks at all samples: for a minimum, with up to so many coefficients, and for a row that is tilted.
MINIMUM_LOOKS = 8
COLUMNS_PER_LOOK = 12
TILT_LOOKS = 8
# Bytes of an open node beside its arrays, and for each sample: two ends of an interval, c and its kind.
NODE_BYTES = 1000
SAMPLE_BYTES = 25


@dataclass(slots=True)
class Signs(Node):
    """A region with a bound, and where its relaxation was last minimised; is_new before it is tightened.

    is_held: a far region that was not closed at once. left: what its expansion has left of its gap. record:
    what is to be written of it.
    """

    region: Region
    c: Vector
    start: Start
    is_new: bool = False
    is_held: bool = False
    left: float = np.nan
    record: NodeRecord = field(default_factory=NodeRecord)

    @property
    def is_far(self) -> bool:
        """Whether it stands for all larger scales: a slab of no width."""
        kind, low, high = self.region
        return bool(kind.size > 0 and kind[-1] == SLAB and low[-1] == high[-1])


class SignSearch(BestFirst[Signs]):
    """The search over signs, in a region if one is given: what is known of all solutions that matter."""

    def __init__(
        self,
        samples: Samples,
        control: Control,
        region: Region | None = None,
        memory_limit: float = np.inf,
        budget: float = np.inf,
        recorder: SignRecorder | None = None,
    ) -> None:
        super().__init__(samples.y, control, memory_limit)
        self._budget, self._recorder = budget, recorder
        self.given = samples
        self._may_grow = recorder is not None and recorder.may_grow
        self._use(samples)
        # Better ray minima have no smaller mean than this, where there are slabs.
        self.least_mean = -np.inf
        self.needs_slabs = False
        # Where tilts are minimised.
        self._mapped: Callable[..., Iterator[Any]] = map
        self._first_bound = -np.inf
        # What splits leave of the gap of a node, on average, and how many of them there were.
        self._left, self._n_left = FIRST_LEFT, FIRST_LEFT_WEIGHT
        # The far region is held back as long as it may be cut off.
        self._held: list[Signs] = []
        self.holds_far = False
        self._root_record = NodeRecord()
        none = np.full(samples.y.size, np.inf)
        self.region = Region(first_kinds(samples.y), -none, none) if region is None else region.copy()
        self._push([self._new(self.region)])

    def _use(self, samples: Samples) -> None:
        self.samples = samples
        self.transfer = Transfer(samples, self.offer, self._is_over, self.spend)

    def spend(self, looks: int) -> None:
        # With many coefficients products of all samples take longer than a look at them.
        super().spend(int(looks * max(1.0, self.samples.Z.shape[1] / COLUMNS_PER_LOOK)))

    def _is_over(self) -> bool:
        return self.work_before + self.looks_at_node >= self._budget or self.control.is_over()

    def _new(self, region: Region) -> Signs:
        start = Start(np.zeros(self.samples.Z.shape[1]))
        return Signs(self._proved, region, np.zeros(region.kind.size), start, is_new=True)

    def _split_root(self, root: Signs) -> list[Signs]:
        """The root after it was tightened, or slabs where nothing holds the coefficients."""
        if self.given.y.size > 0 and self._recorder is not None:
            self.needs_slabs = not self._has_coordinates(root)
            if self.needs_slabs:
                self._root_record = root.record
                return [root]
        if self.given.y.size == 0 or not self._find_first_signs(root):
            return []
        many = np.count_nonzero(self.region.kind == FREE) > MAX_FREE_WITHOUT_SLABS
        rows = self.given.Z[self.region.kind != LIMIT]
        if many and self._plain(root).factor is None and falling_direction(rows) is not None:
            self.needs_slabs = True
            return [root]
        parts = self._tightened(root)
        self._proved = max(self._proved, min([self.cutoff, *(part.bound for part in parts)]))
        return parts

    def _has_coordinates(self, root: Signs) -> bool:
        """Write down why coordinates of better solutions are bounded. False if they are not.

        Samples with large outcomes may be on in all of them, and make the relaxation definite.
        """
        assert self._recorder is not None
        self._recorder.begin(root.record, self.cutoff)
        if self._recorder.bound_coordinates(root.record, self.cutoff):
            return True
        if not self._recorder.sync(root.record, root.region):
            return True
        plain = self._plain(root)
        if plain.factor is None:
            return False
        is_closed = not self._note_point(root, plain)
        return is_closed or self._recorder.bound_coordinates(root.record, self.cutoff)

    @property
    def is_unheld(self) -> bool:
        """Whether nothing holds the coefficients, or nothing that could be written."""
        return self._may_grow or self.needs_slabs or self.has_slabs

    @property
    def has_slabs(self) -> bool:
        """Whether the root was cut into slabs."""
        return self.samples is not self.given

    def advance(self, mapped: Callable[..., Iterator[Any]] = map, most: int = ROUND_NODES) -> None:
        """Expand the nodes of one round; first slabs one by one, with their tilts on all threads."""
        is_first = self.n_first_left > 0
        self._mapped = mapped if is_first else map
        # Where the memory is full, a round adds its size for each level of the tree.
        size = most if self._stack else max(most, self.n_open // OPEN_PER_NODE)
        super().advance(map if is_first else mapped, 1 if is_first else size)

    @property
    def n_first_left(self) -> int:
        """First slabs that were not looked at yet."""
        return max(N_SLABS + 1 - self.n_nodes, 0) if self.has_slabs else 0

    @property
    def n_open(self) -> int:
        return super().n_open + len(self._held)

    @property
    def has_far(self) -> bool:
        """Whether the far region is open and was not searched yet."""
        return bool(self._held)

    @property
    def is_waiting(self) -> bool:
        """Whether there is nothing to do but in the far region, which is held back."""
        return bool(self._held) and super().n_open == 0

    @property
    def reached(self) -> float:
        return min(super().reached, *(node.bound for node in self._held), np.inf)

    def expected_nodes(self) -> float:
        """How many nodes there are still to expand, if splits leave as much of gaps as they did."""
        nodes = [*(node for *_, node in self._open), *self._stack]
        bounds = np.array([node.bound for node in nodes])
        gaps = (self.cutoff - bounds) / abs(self.cutoff)
        # Nothing is known yet of first slabs.
        gaps = np.where(bounds <= self._first_bound, np.minimum(gaps, FIRST_GAP), gaps)
        levels = np.log(np.maximum(gaps, EASY_GAP) / EASY_GAP) / -np.log(min(self._left, MAX_LEFT))
        return float(np.exp2(np.minimum(levels, MAX_LEVELS)).sum())

    def release_far(self) -> None:
        """Search the far region from now on."""
        self.holds_far, held, self._held = False, self._held, []
        for node in held:
            node.is_held = False
        self._push(held)

    def cut_at(self, least_mean: float) -> None:
        """Cut off what has a smaller mean than all better ray minima."""
        if not least_mean > self.least_mean:
            return
        self.least_mean, held, self._held = least_mean, self._held, []
        for node in held:
            high = float(node.region.U[-1])
            if least_mean < MAX_SLAB_RATIO * high:
                self._held.append(node)
            elif high > least_mean:
                self._push([self._slab(least_mean / self._size, high / self._size)])

    def _done(self) -> None:
        if self._recorder is not None:
            for node in self._taken:
                self._recorder.write(node.record)
        # In the order of the nodes, whichever thread was first.
        for node in self._taken:
            if not np.isnan(node.left):
                self._n_left += 1
                self._left += (node.left - self._left) / self._n_left
        super()._done()

    def _push(self, nodes: list[Signs]) -> None:
        self._held += [node for node in nodes if node.is_held]
        super()._push([node for node in nodes if not node.is_held])

    @property
    def node_bytes(self) -> int:
        n, q = self.samples.Z.shape
        return int(NODE_BYTES + n * SAMPLE_BYTES + 8 * q)

    @property
    def kind(self) -> Kinds:
        return self.region.kind

    def _relax(self, region: Region, c: Vector) -> Relaxation:
        return Relaxation(self.samples, region, c)

    def _find_first_signs(self, root: Signs) -> bool:
        """Find samples that are on by the cheapest means that work. False if that closes the search.

        Samples with large outcomes are the first that are known to be on, from their cost or by tilts. A few
        of them make the relaxation definite.
        """
        region = root.region
        if self._synced(region, shrink_by_cost(region, self.samples.y, self.cutoff)) < 0:
            return False
        base, few = self._plain(root), FIRST_TILTS_PER_COEFFICIENT * self.samples.Z.shape[1]
        free = np.flatnonzero(region.kind == FREE)
        free = free[np.argsort(-self.samples.y[free], kind="stable")]
        while base.factor is None and free.size > 0 and not self._is_over():
            part, free = free[:few], free[few:]
            if self._tilt(region, base, part) < 0:
                return False
            if not (region.kind[part] == ON).any():
                break
            base = self._plain(root)
        return True

    def finish_record(self) -> None:
        """Write down what is known of open nodes."""
        if self._recorder is not None:
            for _, _, node in self._open:
                self._recorder.write_open(node.record)
            for node in self._stack:
                self._recorder.write_open(node.record)

    @property
    def mean(self) -> Vector:
        """The row of the slabs."""
        return np.asarray(self.samples.Z[-1])

    def cut(self, mean: Vector, room: float = 0.0) -> None:
        """Cut the root into slabs of mean'b instead of all that was open.

        The mean is v'Z with v >= 0 and |v| = 1, where Z may have more rows, of constraints, that have
        together at most the length `room` above 0. The slabs hold all better solutions, the highest first
        and the far one last.
        """
        Z, _, y, ridge = self.given
        self._size = float(np.linalg.norm(y))
        self._use(Samples.from_rows(np.vstack([Z, mean]), np.append(y, 0.0), ridge))
        top = 1.0 + np.sqrt(max(self.cutoff, 0.0)) / self._size
        top = np.hypot(top, room / self._size) * (1.0 + INTERVAL_RTOL)
        cuts = (top, *FIRST_CUTS)
        self._open, self.needs_slabs, self._first_bound = [], False, self._proved
        slabs = [*(self._slab(low, high) for high, low in pairwise(cuts)), self._far(cuts[-1])]
        if self._recorder is not None:
            ends = self._size * np.array(FIRST_CUTS)
            records = self._recorder.cut(self._root_record, mean, ends, self.cutoff)
            for slab, record in zip(slabs, records, strict=True):
                slab.record = record
                self._recorder.sync(record, slab.region)
        self._push(slabs)

    def _slab(self, low: float, high: float) -> Signs:
        """The slab of all b with low <= m(b) / |y| <= high."""
        kind, l, U = self.region  # noqa: E741
        ends = low * self._size, high * self._size
        region = Region(np.append(kind, np.int8(SLAB)), np.append(l, ends[0]), np.append(U, ends[1]))
        return self._new(region)

    def _far(self, at: float) -> Signs:
        """All b with m(b) / |y| <= at < 0, scaled down to m(b) / |y| = at."""
        node = self._slab(at, at)
        kind, l, U = node.region  # noqa: E741
        kind[kind == FREE] = FAR_FREE
        kind[kind == ON] = FAR_ON
        n = self.given.y.size
        # Scaled down, an interval reaches from where it was to 0.
        np.minimum(l[:n], 0.0, out=l[:n])
        np.maximum(U[:n], 0.0, out=U[:n])
        l[kind == FAR_ON] = 0.0
        return node

    def _tightened(self, node: Signs, max_rounds: int = MAX_ROOT_ROUNDS) -> list[Signs]:
        """A new node after intervals, ascent and tilts; none if it holds nothing better."""
        is_open = self._is_bounded(node) and self._find_intervals(node)
        if is_open:
            node.c = np.where(node.c == 0.0, first_transfer(node.region), node.c)
            most = MAX_FAR_ROUNDS if node.is_far else MAX_ROOT_ROUNDS
            is_open = self._tighten(node, min(max_rounds, most), first=True)
        node.is_new = False
        return [node] if is_open else []

    def _is_bounded(self, node: Signs) -> bool:
        """Write down why a slab is bounded, if it is to be. False if that closes the node."""
        if self._recorder is None or not self.has_slabs:
            return True
        self._recorder.bound_coordinates(node.record, self.cutoff)
        return self._recorder.sync(node.record, node.region)

    def _find_intervals(self, node: Signs) -> bool:
        """Find intervals of u. False if that closes the node.

        Where the relaxation is definite, its ellipsoids give them. Otherwise all samples are tilted or, if
        these are too many, coordinates and the samples with the largest outcomes.
        """
        region, base = node.region, self._plain(node)
        lacks = not has_intervals(region) or (self._recorder is not None and node.is_new)
        if base.factor is None and (region.l > -np.inf).any() and lacks:
            rows = is_open(region.kind)
            if np.count_nonzero(rows) > MAX_TILTS:
                if self._box(region, base) < 0:
                    return False
                # Without a box, all of them.
                rows = heaviest(rows, self.samples.y) if has_intervals(region) else rows
                base = self._plain(node)
            if self._tilt(region, base, np.flatnonzero(rows)) < 0:
                return False
            base = self._plain(node)
        settled = 1
        while base.factor is not None and settled > 0:
            if self._recorder is None:
                node.bound = max(node.bound, base.value)
            free = np.count_nonzero(is_open(region.kind))
            settled = shrink_by_ellipsoid(region, self.samples, base, self.cutoff)
            if not self._note_point(node, base) or (settled < 0 and self._recorder is None):
                return False
            if self._recorder is not None:
                settled = int(free - np.count_nonzero(is_open(region.kind)))
            base = self._plain(node)
        return True

    def _tilt(
        self, region: Region, base: Bound, only: Index | None = None, spreads: Matrix | None = None
    ) -> int:
        """Tilt the relaxation of a bound."""
        relaxation = base.start.owner
        assert isinstance(relaxation, Relaxation)
        over = self._is_over
        n_open = int(np.count_nonzero(is_open(region.kind)))
        n_tilted = min(n_open, MAX_TILTS) if only is None else only.size
        self.spend(TILT_LOOKS * int(n_tilted))
        base, note = self._with_value(base), self._tilt_note(relaxation)
        settled = shrink_by_tilts(
            region, self.samples.Z, relaxation, base, self.cutoff, over, only, spreads, self._mapped, note
        )
        return self._synced(region, settled)

    def _synced(self, region: Region, settled: int) -> int:
        """How many signs were settled, as far as that was written down, if it is to be."""
        if self._recorder is None:
            return settled
        return max(settled, 0) if self._recorder.sync(self._thread.record, region) else -1

    def _tilt_note(self, relaxation: Relaxation) -> Note | None:
        """What writes down tilts, if they are to be written."""
        if self._recorder is None:
            return None
        return partial(self._recorder.note_tilts, self._thread.record, relaxation.c, self.cutoff)

    def _note_point(self, node: Signs, bound: Bound) -> bool:
        """Write down a bound, if it is to be written. False if the node is known to be closed.

        What the checker will know of a node is then all that the search knows.
        """
        if self._recorder is None:
            return bound.value < self.cutoff
        relaxation = bound.start.owner
        assert isinstance(relaxation, Relaxation)
        return self._note_step(node, relaxation.c, bound.b) < np.inf

    def _note_step(self, node: Signs, c: Vector, b: Vector) -> float:
        """Write down a bound by its c and its minimum. Returns it; infinite if that closes the node."""
        assert self._recorder is not None
        self._recorder.note_point(node.record, self._as_written(c), b, self.cutoff)
        node.bound = max(node.bound, self._recorder.value(node.record))
        return node.bound if self._recorder.sync(node.record, node.region) else np.inf

    def _as_written(self, c: Vector) -> Vector:
        """Curvatures with as many digits as are written, if they are to be."""
        return c if self._recorder is None else self._recorder.rounded(c)

    def _with_value(self, base: Bound) -> Bound:
        """A bound that is no less than what is proved: a relaxation may have none of its own."""
        return base._replace(value=max(base.value, self._proved))

    def _box(self, region: Region, base: Bound) -> int:
        """Intervals from a box of coefficients."""
        relaxation = base.start.owner
        assert isinstance(relaxation, Relaxation)
        self.spend(TILT_LOOKS * 2 * self.samples.Z.shape[1])
        base, note = self._with_value(base), self._tilt_note(relaxation)
        settled = shrink_by_box(region, self.samples.Z, relaxation, base, self.cutoff, self._is_over, note)
        return self._synced(region, settled)

    def _tighten(self, node: Signs, max_rounds: int, first: bool = False) -> bool:
        """Rounds of ascent and tilts, as long as they pay. False if the node holds nothing better."""
        region, q = node.region, self.samples.Z.shape[1]
        before, left, spreads = np.inf, region.kind.size, np.full((2, region.kind.size), np.nan)
        for turn in range(max_rounds):
            room = max(self.cutoff - node.bound, MIN_ROOM_SHARE * abs(self.cutoff), MIN_ROOM)
            mu = FIRST_BARRIER * (self.cutoff if turn == 0 and first else room) / q
            ascent = self.transfer.ascend(
                region,
                node.c,
                node.start.b,
                self.cutoff,
                mu,
                LAST_BARRIER * room / q,
                STEPS_PER_ROUND,
                None if self._recorder is None else partial(self._note_step, node),
            )
            if ascent.closed:
                return False
            if ascent.value == -np.inf:
                return True
            node.c, node.start = self._as_written(ascent.c), Start(ascent.b)
            relaxation = self._relax(region, node.c)
            base = relaxation.minimise(node.start)
            if self._recorder is None:
                node.bound = max(node.bound, ascent.value)
            if first:
                self.control.report()
            if not self._note_point(node, base):
                return False
            if self._is_over():
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
        self._thread.record = node.record
        parts = self._parts_of(node)
        node.record.is_over = all(part.record is not node.record for part in parts)
        # There are many nodes in a round, and what belongs to the last minimisation is large.
        node.start = Start(node.start.b)
        return parts

    def _parts_of(self, node: Signs) -> list[Signs]:
        """Tighten a node, and split it where that does not close it."""
        if node.is_new and node.region is self.region:
            return self._split_root(node)
        if self.has_slabs and self._is_cut_off(node):
            return []
        if node.is_far and node.is_new and self.holds_far:
            node.is_held = bool(self._tightened(node, 1)) and node.bound < self.cutoff
            node.is_new = True
            return [node] if node.is_held else []
        before = self.cutoff - node.bound
        is_kept = bool(self._tightened(node)) if node.is_new else self._bound_again(node)
        if self.n_first_left == 0:
            left = (self.cutoff - node.bound) / before if is_kept and before > 0.0 else 0.0
            node.left = max(left, CLOSED_LEFT)
        if not is_kept or (node.bound >= self.cutoff and self._recorder is None):
            return []
        self.offer(node.start.b)
        parts = self._split_slab(node)
        return parts if parts else self._split_sign(node)

    def _is_cut_off(self, node: Signs) -> bool:
        """Cut a slab at the least mean of better ray minima. True if nothing is left of it."""
        if node.region.U[-1] <= self.least_mean:
            return True
        if not node.is_far:
            node.region.l[-1] = max(node.region.l[-1], self.least_mean)
        return False

    def _bound_again(self, node: Signs) -> bool:
        """Bound a node whose parent was tightened. False if it holds nothing better."""
        plain = self._plain(node)
        if self._recorder is None:
            node.bound = max(node.bound, plain.value)
        if not self._note_point(node, plain):
            return False
        node.start = plain.start
        if plain.factor is not None:
            if (
                self._recorder is None
                and shrink_by_ellipsoid(node.region, self.samples, plain, self.cutoff) < 0
            ):
                return False
            # Samples that could not lend curvature before begin with very little.
            node.c = np.where(node.c == 0.0, first_transfer(node.region), node.c)
        elif not has_intervals(node.region):
            return True
        close = self.cutoff - node.bound < MAX_GAP_FOR_ROUNDS * self.cutoff
        return not close or self._tighten(node, MAX_NODE_ROUNDS)

    def _split_slab(self, node: Signs) -> list[Signs]:
        """Two slabs, or a slab and what is farther away; nothing where slabs would be too narrow."""
        kind, l, U = node.region  # noqa: E741
        if not self.has_slabs or kind[-1] != SLAB:
            return []
        low, high = float(l[-1]) / self._size, float(U[-1]) / self._size
        if node.is_far:
            at = FAR_FACTOR * low
            parts = [self._slab(at, low), self._far(at)] if at >= -MAX_FAR else []
            if parts and self._recorder is not None:
                self._recorder.go_near(node.record)
                self._recorder.split_mean(node.record, at * self._size, *(part.record for part in parts))
                self._recorder.go_far(parts[1].record)
        else:
            ends = np.arcsinh(np.array([low, high]) / SLAB_UNIT)
            if not MIN_SLAB_WIDTH < ends[1] - ends[0] < np.inf:
                return []
            middle = SLAB_UNIT * np.sinh(ends.mean()) * self._size
            parts = [self._copy(node), self._copy(node)]
            parts[0].region.U[-1] = parts[1].region.l[-1] = middle
            if self._recorder is not None:
                self._recorder.split_mean(node.record, middle, parts[1].record, parts[0].record)
        for part in parts:
            part.bound, part.is_new = node.bound, True
        if self._recorder is not None:
            parts = [part for part in parts if self._recorder.sync(part.record, part.region)]
        return parts

    @staticmethod
    def _copy(node: Signs) -> Signs:
        """A part of a node. Of the start it keeps the point alone: the rest is large."""
        return Signs(node.bound, node.region.copy(), node.c.copy(), Start(node.start.b))

    def _split_sign(self, node: Signs) -> list[Signs]:
        """A free sample on and off."""
        kind = node.region.kind
        free = np.flatnonzero((kind == FREE) | (kind == FAR_FREE))
        if free.size == 0 and node.is_far:
            return [self._unscaled(node)]
        if free.size == 0:
            plain = self._plain(node)
            if self._recorder is None:
                node.bound = max(node.bound, plain.value)
            is_open = self._note_point(node, plain)
            if is_open and node.bound < self.cutoff:
                within = self._bound_within_signs(node)
                if self._recorder is None:
                    node.bound = max(node.bound, within.value)
                else:
                    is_open = self._note_step(node, np.zeros_like(node.c), within.b) < np.inf
            if is_open or self._recorder is None:
                self._leave(node.bound)
            return []
        sample = self._branching_sample(node, free)
        on, off = self._copy(node), self._copy(node)
        on.region.l[sample] = max(on.region.l[sample], 0.0)
        off.region.U[sample] = min(off.region.U[sample], 0.0)
        if self._recorder is not None:
            self._recorder.split(node.record, sample, on.record, off.record)
            return [
                self._unscaled(part) for part in (on, off) if self._recorder.sync(part.record, part.region)
            ]
        return [self._unscaled(part) for part in (on, off) if decide(tuple(part.region)) >= 0]

    def _unscaled(self, node: Signs) -> Signs:
        """A far node with all its scales, once samples that are on give ellipsoids or all signs are known.

        Signs do not depend on the scale. With its own losses a node without open signs is exact.
        """
        kind = node.region.kind
        on = (kind == FAR_ON) | (kind == ON)
        if not node.is_far or ((kind == FAR_FREE).any() and not self._is_definite(on)):
            return node
        whole = self._slab(-np.inf, float(node.region.U[-1]) / self._size)
        whole.region.l[on] = np.maximum(whole.region.l[on], 0.0)
        whole.region.U[kind == OFF] = 0.0
        whole.bound, whole.record = node.bound, node.record
        if self._recorder is not None:
            self._recorder.go_near(whole.record)
            self._recorder.sync(whole.record, whole.region)
        decide(tuple(whole.region))
        return whole

    def _is_definite(self, on: Mask) -> bool:
        """Whether these samples with the ridge determine all coefficients."""
        rows = self.samples.Z[on]
        return len(rows) >= rows.shape[1] and is_regular(self.samples.ridge + rows.T @ rows)

    def _plain(self, node: Signs) -> Bound:
        """The relaxation without any transfer: exact where no sample is free."""
        self.spend(MINIMUM_LOOKS)
        return self._relax(node.region, np.zeros_like(node.c)).minimise(Start(node.start.b))

    def _bound_within_signs(self, node: Signs) -> Bound:
        """The bound of a node without open signs, with its signs as constraints.

        Where a sample that is on would rather be off, or the other way, its piece alone may be too low.
        """
        Z, _, y, ridge = self.samples
        kind, l, U = node.region  # noqa: E741
        norms = np.linalg.norm(Z, axis=1)
        signed = np.flatnonzero(((kind == ON) | (kind == OFF)) & (norms > 0.0))
        low = np.where(kind == ON, np.maximum(l, 0.0), -np.inf)[signed] / norms[signed]
        high = np.where(kind == OFF, np.minimum(U, 0.0), np.inf)[signed] / norms[signed]
        samples = Samples.from_rows(
            np.vstack([Z, Z[signed] / norms[signed, None]]), np.append(y, np.zeros(signed.size)), ridge
        )
        region = node.region.followed_by(Region(np.full(signed.size, LIMIT, dtype=np.int8), low, high))
        self.spend(MINIMUM_LOOKS)
        return Relaxation(samples, region, np.zeros(samples.y.size)).minimise(Start(node.start.b))

    def _branching_sample(self, node: Signs, free: np.ndarray) -> int:
        """The free sample whose loss is farthest above the relaxation; without intervals, the largest y."""
        y, u = self.samples.y, self.samples.Z @ node.start.b
        if not has_intervals(node.region):
            return int(free[np.argmax(y[free])])
        env = self._relax(node.region, node.c).envelopes
        line = env.constant + env.slope * u - node.c * u * u
        on_chord = (u > env.a) & (u < env.t)
        loss = np.square(np.maximum(u, 0.0) - y)
        if node.is_far:
            loss = np.where(u > 0.0, np.square(np.maximum(u - y, 0.0)), loss)
        missed = np.where(on_chord, loss - line, 0.0)
        if missed[free].max() <= 0.0:
            return int(free[np.argmin(np.abs(u[free]))])
        return int(free[np.argmax(missed[free])])
