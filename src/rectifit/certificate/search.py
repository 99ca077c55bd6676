"""The search for a proof: one tree, whose root is the whole space.

The root is bounded by curvature transfer, after what single samples cost and a few tilts have shown which
signs are settled (branching.py). Without an intercept, as a rule, every sample has an interval then, and the
root is closed there or split by signs.

Where there are directions in which all samples are off, nothing holds the coefficients at first. Such a root
is split in two ways, each of which covers all better solutions: into slabs, which have intervals, and then by
signs; and into cells of directions, which are bounded by common corner weights within a proved scale
(cells.py). Slabs close first where the signal is high or there are many coefficients, cells where there are
few. What is proved is the better of the two, and each uses what the other has proved: bounds, better points,
and the scale, beyond which there are neither cells nor slabs. Which one goes on is decided by what they have
done: the next piece of work goes to the one that is expected to be done sooner, and neither falls behind by
more than a factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rectifit._typing import Vector
from rectifit.certificate.best_first import Control
from rectifit.certificate.branching import SignSearch
from rectifit.certificate.cells import CellSearch
from rectifit.certificate.proof import MEMORY_LIMIT
from rectifit.certificate.recording import CLAIM_SHARE, Recorder
from rectifit.certificate.records import LIMIT, MAX_LISTED, Kinds, Limits, Region, Samples
from rectifit.parallel import workers
from rectifit.tolerances import CONSTRAINT_LENGTH

__all__ = ["Search"]

# Coefficients up to which there are cells: so many bits have the signs of a corner.
MAX_CELL_COLUMNS = 31
# Coefficients up to which cells can be written to proof files: all of their corners are enumerated.
MAX_RECORDED_COLUMNS = MAX_LISTED + 1
# Coefficients from which on cells are a last resort, for their number grows with each by a factor of 2 to 3.
MANY_COLUMNS = 14
# The first piece of work on cells, in looks at all samples: at least so many, and so many per sample. That is
# about what the first slab takes. Each next piece is a share of all before.
MIN_FIRST_PIECE = 20_000
FIRST_PIECE_PER_SAMPLE = 50
PIECE_SHARE = 0.5
# The part that is expected to be done later gets the square of the ratio of what both need, and no less than
# this, as a share of the work of the other.
LEAST_SHARE = 0.1
# Coefficients from which on a proof file is begun with signs and slabs although there may be cells, if no
# larger share of y^2 is left; cells take their place after so many nodes. It is begun so, too, with
# constraints and not many samples, and with few samples: a tree of their signs is small, and exact where
# cells come near to a small gap with ever more of them.
MIN_COLUMNS_FOR_SLABS = 10
MAX_LEFT_FOR_SLABS = 0.4
MANY_SAMPLES_WITH_LIMITS = 100
FEW_SAMPLES = 20
FIRST_NODES_OF_FEW = 200
FIRST_NODES = 20
# Cells that should be done are expected to take at least this share of what they have taken since.
OVERRUN_SHARE = 0.2
# A part that is expected to be done before a node of the other is left alone until its work has grown by
# this factor.
BELIEVED_GROWTH = 4.0
# Work on cells that is left, as a multiple of what is done, where a share r of the gap is left:
# RATE r / (END - r). Fitted to searches on many kinds of data: 3 at first, 0.2 half way.
CELL_END = 1.08
CELL_RATE = 0.25
# Cells that are expected before anything is known, and their growth with each coefficient.
CELLS_EXPECTED = 0.2
CELLS_GROWTH = 2.7
# The same for a far region, of which nothing is known before it is searched.
FAR_WORK = 2.0
# Work on the scale between two looks at what it says of the far region, in samples.
SCALE_STEP = 1 << 21
# A look at all samples for signs, in the time that one for cells takes: this much, and so much more with so
# many samples, for cells look only at the samples that are open. The interpreter takes as long for a node as
# looks at so many samples.
SIGN_COST = 0.2
SIGN_COST_SAMPLES = 900
SIGN_NODE_SAMPLES = 30_000
# Of the memory, the share of each part while there are two.
HALF = 0.5


def split_limits(samples: Samples, region: Region) -> tuple[Samples, Kinds, Limits]:
    """Samples, what is known of them, and constraints l <= u <= U apart from them."""
    is_limit = region.kind == LIMIT
    if not is_limit.any():
        return samples, region.kind, Limits.none(samples.Z.shape[1])
    rows, low, high = samples.Z[is_limit] * CONSTRAINT_LENGTH, region.l[is_limit], region.U[is_limit]
    rows, ends = np.vstack([rows, -rows]), np.append(high, -low) * CONSTRAINT_LENGTH
    kept, has_end = ~is_limit, np.isfinite(ends)
    limits = Limits(np.ascontiguousarray(rows[has_end].T), ends[has_end])
    return Samples.from_rows(samples.Z[kept], samples.y[kept], samples.ridge), region.kind[kept], limits


@dataclass
class Part:
    """One of the ways to split the root."""

    search: SignSearch | CellSearch
    # The least work at which it was ever expected to be done.
    _soonest: float = np.inf

    @property
    def work(self) -> float:
        """Looks at all samples, in the time that those of cells take."""
        if isinstance(self.search, SignSearch):
            n = self.search.samples.y.size
            looks = (SIGN_COST + n / SIGN_COST_SAMPLES) * self.search.total_work
            return looks + self.search.n_nodes * SIGN_NODE_SAMPLES / n
        return self.search.total_work

    @property
    def node_work(self) -> float:
        """What a node takes on average, or the first slab."""
        n_nodes = self.search.n_nodes
        return self.work / n_nodes if n_nodes > 1 else max(self.work, MIN_FIRST_PIECE)

    def expected(self) -> float:
        """Work until it is done: a guess, from what is left of the gap."""
        if isinstance(self.search, SignSearch):
            far = FAR_WORK * self.work if self.search.has_far else 0.0
            return self.node_work * self.search.expected_nodes() + far
        if self.search.n_nodes == 0:
            return np.inf
        n_nodes, left = self.search.n_nodes, self.search.gap_left
        at_first = CELLS_EXPECTED * CELLS_GROWTH ** self.search.samples.Z.shape[1]
        # Each cell that is open has to be expanded.
        nodes = max(at_first - n_nodes, self.search.n_open)
        return float(self.search.work * max(CELL_RATE * left / (CELL_END - left), nodes / n_nodes))

    def judge(self) -> float:
        """What is expected; for cells that should be done, at least a share of what they have taken since."""
        expected = self.expected()
        if isinstance(self.search, SignSearch):
            return expected
        self._soonest = min(self._soonest, self.work + expected)
        return max(expected, OVERRUN_SHARE * (self.work - self._soonest))


class Search:
    """Search for losses below a cutoff.

    Parameters
    ----------
    samples : Samples
    control : Control
    region : Region, optional
        What is known of all solutions that matter.
    is_cone : bool, default=True
        Whether all multiples of such solutions matter, too. If not, arguments along rays do not hold.
    may_grow : bool, default=True
        Whether nothing is known of the size of coefficients. Otherwise the search goes by signs.
    memory_limit : int, optional
        Bytes that open nodes may take.
    budget : int, optional
        Looks at all samples after which the search ends. Slabs and cells, which need many, are not begun.
    recorder : Recorder, optional
        Writes a proof file, which holds signs and slabs, or cells.
    """

    def __init__(
        self,
        samples: Samples,
        control: Control,
        region: Region | None = None,
        is_cone: bool = True,
        may_grow: bool = True,
        memory_limit: int = MEMORY_LIMIT,
        budget: float = np.inf,
        recorder: Recorder | None = None,
    ) -> None:
        self._samples, self._control, self._recorder = samples, control, recorder
        self._is_cone, self._may_grow = is_cone, may_grow
        self._memory_limit, self._budget = memory_limit, budget
        sign_recorder = None if recorder is None else recorder.signs(samples)
        signs = SignSearch(samples, control, region, HALF * memory_limit, budget, sign_recorder)
        self._signs = Part(signs)
        self._parts = [self._signs]
        # Work up to which a part is believed to be about to end, 0 before one was.
        self._believed_until = 0.0

    @property
    def lower_bound(self) -> float:
        """What is proved so far."""
        return max(part.search.lower_bound for part in self._parts)

    @property
    def n_nodes(self) -> int:
        return sum(part.search.n_nodes for part in self._parts)

    @property
    def n_open(self) -> int:
        """Open nodes of the part that has come farther."""
        return max(self._parts, key=lambda part: part.search.lower_bound).search.n_open

    @property
    def work(self) -> float:
        """Looks at all samples so far."""
        return sum(part.work for part in self._parts)

    @property
    def kind(self) -> Kinds:
        """What is settled for all better solutions."""
        return self._parts[-1].search.kind

    def run(self) -> bool:
        """Search until nothing below the cutoff is left (True) or the search must end."""
        if self._recorder is not None:
            return self._run_recorded(self._recorder)
        root = self._signs.search
        assert isinstance(root, SignSearch)
        root.advance()
        if root.needs_slabs and self._budget < np.inf:
            return False
        if root.needs_slabs and self._may_grow and self._samples.Z.shape[1] <= MAX_CELL_COLUMNS:
            samples, kind, limits = split_limits(self._samples, root.region)
            cells = CellSearch(
                samples,
                self._control,
                kind=kind,
                proved=root.lower_bound,
                memory_limit=int(HALF * self._memory_limit),
                limits=limits,
                is_cone=self._is_cone,
            )
            self._parts.append(Part(cells))
        if root.needs_slabs:
            root.holds_far = len(self._parts) > 1
            root.cut(*self._mean())
        with workers(self._control.n_threads) as mapped:
            while not self._is_done():
                part, end = self._next()
                while part.work < end and not self._is_done() and not self._has_to_wait(part):
                    if self._control.is_over() or self.work >= self._budget:
                        return False
                    part.search.know(self.lower_bound)
                    if len(self._parts) > 1:
                        root.cut_at(self._cells.least_mean(root.mean))
                        self._cells.also_for = root.work
                    part.search.advance(mapped)
                    if len(self._parts) > 1 and part is self._signs and root.n_first_left == 0:
                        self._cells.advance_scale(mapped)
                    self._control.report()
        return any(part.search.is_closed for part in self._parts)

    def _run_recorded(self, recorder: Recorder) -> bool:
        """The search by signs, written to a proof file, with slabs where nothing holds the coefficients.

        Cells take the place of all that where they can be written and there are few coefficients, or where
        slabs do not close soon.
        """
        if self._samples.y.size == 0:
            return True
        signs = self._signs.search
        assert isinstance(signs, SignSearch)
        # What samples with y <= 0 cost is all that the proof begins with.
        proved, (samples, _, limits) = signs.lower_bound, split_limits(self._samples, signs.region)
        q, has_limits = self._samples.Z.shape[1], limits.ends.size > 0
        has_cells = q <= MAX_RECORDED_COLUMNS and self._may_grow
        # Cells stay open where zero is not allowed and all samples off cost too little, and where there are
        # coordinates that only constraints know.
        has_cells &= signs.cutoff < float(samples.y @ samples.y)
        has_cells &= bool((samples.Z.any(axis=0) | samples.ridge.any(axis=0)).all())
        explains_much = signs.cutoff <= MAX_LEFT_FOR_SLABS * float(samples.y @ samples.y)
        is_limited = has_limits and samples.y.size <= MANY_SAMPLES_WITH_LIMITS
        most = FIRST_NODES if is_limited or (q >= MIN_COLUMNS_FOR_SLABS and explains_much) else 0
        most = FIRST_NODES_OF_FEW if samples.y.size <= FEW_SAMPLES else most
        with workers(self._control.n_threads) as mapped:
            while not signs.is_done and not self._control.is_over():
                if has_cells and signs.is_unheld and signs.n_nodes >= most:
                    break
                if signs.needs_slabs:
                    signs.cut(*self._mean())
                signs.advance(mapped)
        if signs.is_closed or not (has_cells and signs.is_unheld):
            signs.finish_record()
            return signs.is_closed
        recorder.restart()
        recorder.file.margin = CLAIM_SHARE
        cells = CellSearch(
            samples,
            self._control,
            proved=proved,
            memory_limit=self._memory_limit,
            limits=limits,
            is_cone=self._is_cone,
            recorder=recorder.tree(),
        )
        self._parts = [Part(cells)]
        with workers(self._control.n_threads) as mapped:
            return cells.run(mapped)

    def _mean(self) -> tuple[Vector, float]:
        """The row v'Z of the slabs, from the scale or with equal weights; and the room of constraints."""
        if len(self._parts) > 1:
            return self._cells.mean, self._cells.room
        equal = (self._signs.search.kind != LIMIT).astype(np.float64)
        return np.asarray(equal @ self._samples.Z / np.linalg.norm(equal)), 0.0

    @property
    def is_exhausted(self) -> bool:
        """Whether nothing is left to split: what is open then, rounding keeps open."""
        return all(part.search.is_done for part in self._parts)

    def _is_done(self) -> bool:
        """Whether one part is closed, or no part can go on: what one has to leave open another may close."""
        return self.is_exhausted or any(part.search.is_closed for part in self._parts)

    def _has_to_wait(self, part: Part) -> bool:
        search = part.search
        return search.is_done or (isinstance(search, SignSearch) and search.is_waiting)

    @property
    def _cells(self) -> CellSearch:
        cells = self._parts[1].search
        assert isinstance(cells, CellSearch)
        return cells

    def _cut_far(self, signs: SignSearch, work: float) -> bool:
        """Try to bound the scale so that nothing is left of the far region, or a slab."""
        scale, end = self._cells.scale, self._cells.scale.work + work * self._samples.y.size
        while signs.is_waiting and scale.work < end and not self._control.is_over():
            if scale.advance(SCALE_STEP):
                break
            signs.cut_at(self._cells.least_mean(signs.mean))
        return not signs.is_waiting

    def _is_about_to_end(self, part: Part, other: Part) -> bool:
        """Whether a part is expected to be done before a node of the other; that is believed for a while."""
        if part.expected() > other.node_work:
            return False
        if self._believed_until == 0.0:
            self._believed_until = BELIEVED_GROWTH * part.work
        return part.work < self._believed_until

    def _next(self) -> tuple[Part, float]:
        """The part that gets the next piece of work, and its work at the end of that."""
        if len(self._parts) == 1:
            return self._signs, np.inf
        signs, cells = self._parts
        assert isinstance(signs.search, SignSearch)
        if cells.search.is_done:
            signs.search.release_far()
            return signs, np.inf
        if signs.search.is_done:
            return cells, np.inf
        many = self._samples.Z.shape[1] >= MANY_COLUMNS
        first_piece = max(MIN_FIRST_PIECE, FIRST_PIECE_PER_SAMPLE * self._samples.y.size)
        if cells.work < first_piece and not many:
            return cells, first_piece
        (left, preferred), (later, other) = sorted(
            [(part.judge(), part) for part in (signs, cells)], key=lambda pair: pair[0]
        )
        share = max((left / max(later, 1.0)) ** 2, LEAST_SHARE)
        is_due = other.work + other.node_work < share * preferred.work
        part = other if is_due and not self._is_about_to_end(preferred, other) else preferred
        is_first = signs.search.n_first_left > 0 and signs.search.n_open == signs.search.n_first_left
        if is_first and preferred is signs:
            # Slabs are worth their while as long as each is closed as it is; the first holds the incumbent.
            return signs, signs.work + 1
        if part is signs and signs.search.is_waiting and not self._cut_far(signs.search, first_piece):
            signs.search.release_far()
        return part, max(first_piece, (1.0 + PIECE_SHARE) * part.work)
