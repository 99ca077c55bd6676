"""The search over cells of directions, for data that do not determine signs and sizes.

For coefficients b = s d with s >= 0 it depends on the direction d alone which samples are on, so the search
space is a sphere. It is covered by the 2q pyramids

    { b : sigma b_j = s >= 0,   low_k s <= b_k <= high_k s },      low = -1, high = 1 at first,

in coordinates where all rows and the ridge together have the Gram matrix 1, with axes for which rows are
sparse. In such a cell u_i lies between r_i s and R_i s (interval arithmetic). A sample with r_i >= 0 is ON,
one with R_i <= 0 is OFF and costs y_i^2. Let K = ridge + sum z z' and l = sum y z over ON.

Common corner weights. Every b of the cell is a combination sum theta_j v_j of its corners at s = 1 with
weights theta >= 0, the same for all samples, so max(0, u_i) <= sum_j theta_j max(0, z_i'v_j). As a bound that
trusts no solver: for all mu, nu >= 0 and y > 0

    (max(0, u) - y)^2 >= mu y - mu^2 / 4 - mu max(0, u)  +  nu u - nu y - nu^2 / 4,

and for y <= 0 the loss is convex. Adding up over all samples that are not settled, with the expansion of
those that are ON around any point p, gives for all b in the cell

    L(b) >= S + D(b) + (b - p)'K(b - p),       D(b) = g'b - sum over FREE of mu_i max(0, z_i'b).

D is concave and homogeneous: it is least at a corner. If all these prices D(v_j) are >= 0, the loss is at
least S wherever p, mu and nu came from; if the least is -delta, it is at least S - delta s. The kernel finds
p, mu and nu from the weights of a few corners, added where prices are negative.

The scale. If there is a better b there is one that is the minimum along its ray, in the same cell. There

    |u_+|^2 + b'ridge b = y'u_+    and    L(b) = |y|^2 - |u_+|^2 - b'ridge b,

so |u_+|^2 <= |y|^2 - (any lower bound of the loss) = R^2, and s |(Zd)_+| <= R. Where no direction with
|(Zd)_+| <= eps is better (scale.py), s <= R / eps in all cells; s |(Zd)_+| <= R also bounds the scale of one
cell by itself. If the minimum is better than a cutoff c, |u_+|^2 + b'ridge b >= |y|^2 - c bounds it from
below. Kinds, edges and scales of cells hold for minima along their ray.

All larger scales. For y, h > 0, mu <= y^2 / h and u at the scale s0, the loss at all scales from s0 on is

    (max(0, t u) - y)^2 >= (u - y)_+^2 - mu max(u, -h)       for t >= 1,

and what samples that are ON with y > 0 cost is at least (u - y)_+^2; nothing else falls with the scale. That
is a relaxation of the same form, with max(z'v, -h / s0) for max(0, z'v). Where it reaches the cutoff, s < s0.

Faces. Where the samples that are not OFF span less than the whole space, splitting does not help: the rest is
a problem of less dimension (see `Faces`).

Cells are split at the coordinate whose interval, weighted with the samples it leaves open, is widest. Cells
are expanded in rounds whose size does not depend on the number of threads, those with the least bounds first,
so the search is the same for any number of threads.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from rectifit._typing import Index, Mask, Matrix, Vector
from rectifit.certificate.best_first import Control, Tree, first_kinds
from rectifit.certificate.cell_kernel import CLOSED, THIN, expand
from rectifit.certificate.flats import falling_direction, lies_in, span_of
from rectifit.certificate.proof import MEMORY_LIMIT
from rectifit.certificate.recording import CLOSED as CLOSED_END
from rectifit.certificate.recording import TOO_NARROW, CellRecorder, Recorder
from rectifit.certificate.records import (
    MAX_LISTED,
    OFF,
    ON,
    CellLog,
    CellRoom,
    Cells,
    FaceBounds,
    Found,
    Kinds,
    Limits,
    Samples,
    make_room,
    pack_kinds,
    unpack_kinds,
)
from rectifit.certificate.scale import ScaleSearch
from rectifit.tolerances import INTERVAL_RTOL, SUM_TOL

__all__ = ["CellSearch"]

# Cells that are expanded in a round: at most so many, and no more than so many samples times coefficients
# need, but some; and into how many parts they are divided for each thread.
ROUND_CELLS = 256
ROUND_WORK = 1 << 20
MIN_ROUND_CELLS = 16
PARTS_PER_THREAD = 8
# Lines of the pool at first. It grows by this factor, and both pools exist while it does.
FIRST_LINES = 1024
GROWTH = 2
# Bytes of a line in the queue of open cells.
QUEUE_BYTES = 100
# Keeps a quotient finite.
MIN_GAP = 1e-300
# Steps towards good axes, a change of these that ends them, and a length below which rows count as zero.
AXES_STEPS = 100
AXES_TOL = 1e-3
MIN_ROW = 1e-12
# Points of a round that are offered as solutions.
MAX_OFFERS = 2
# Prices of corners that take as long as a look at all samples.
CORNERS_PER_LOOK = 200
# Work on the scale, in samples: this much at first, then so large a share of that on cells.
FIRST_SCALE_WORK = 1 << 20
SCALE_SHARE = 0.1
# Cells that the search in a face may take at first, and later as a share of those of the search around it.
MIN_FACE_CELLS = 2000
FACE_SHARE = 0.5
# What is proved of a face beyond the cutoff, as a share of the way to the least loss known in it, and the
# steps to find that.
FACE_MARGIN = 0.5
MAX_FOLLOWED = 20
# The open cells of a face take at most one part in so many of the memory.
FACE_MEMORY = 10


class CellPool:
    """Cells in arrays of so many lines, which grow up to what the memory allows."""

    def __init__(self, n_samples: int, n_columns: int, memory_limit: int) -> None:
        self.cells = Cells.empty(FIRST_LINES, n_samples, n_columns)
        line = sum(array.nbytes for array in self.cells) // FIRST_LINES + QUEUE_BYTES
        self.capacity = max(memory_limit * GROWTH // (line * (GROWTH + 1)), FIRST_LINES)
        self._free = list(range(FIRST_LINES - 1, -1, -1))

    @property
    def n_used(self) -> int:
        return len(self.cells.bound) - len(self._free)

    def reserve(self, count: int) -> Index:
        """Lines that are free; the arrays grow if there are not enough."""
        while len(self._free) < count:
            size = len(self.cells.bound)
            self.cells = self.cells.grown(GROWTH * size)
            self._free = [*range(GROWTH * size - 1, size - 1, -1), *self._free]
        return np.array([self._free.pop() for _ in range(count)], dtype=np.intp)

    def release(self, lines: Index) -> None:
        """Give lines back."""
        self._free += lines.tolist()


class CellSearch(Tree):
    """Best-first search for losses below a cutoff, over all coefficients.

    Parameters
    ----------
    samples : Samples
    control : Control
    kind : Kinds, optional
        What is known of all better solutions.
    proved : float, optional
        A lower bound of the loss.
    memory_limit : int, optional
        Bytes that open cells may take. Beyond it the search goes depth first, which needs hardly more.
    faces : Faces, optional
        What is known of faces, if this is the search in one of them.
    members : Mask, optional
        The samples of this face.
    limits : Limits, optional
        Constraints.
    is_cone : bool, default=True
        Whether with a solution all its multiples satisfy them. Otherwise minima along rays may violate them,
        and what is said of scales holds for all better solutions.
    recorder : CellRecorder, optional
        Writes a proof file. Then nothing is used that such a file cannot say: no largest scale.
    """

    def __init__(
        self,
        samples: Samples,
        control: Control,
        *,
        kind: Kinds | None = None,
        proved: float = 0.0,
        memory_limit: int = MEMORY_LIMIT,
        faces: Faces | None = None,
        members: Mask | None = None,
        limits: Limits | None = None,
        is_cone: bool = True,
        recorder: CellRecorder | None = None,
    ) -> None:
        super().__init__(control, proved)
        self._recorder = recorder
        self.least_found = np.inf
        self._first_bound = proved
        self._turn = _choose_axes(samples)
        ridge = self._turn.T @ samples.ridge @ self._turn
        self.samples = Samples.from_rows(samples.Z @ self._turn, samples.y, ridge)
        self._is_cone = is_cone
        self._limits = Limits.none(len(ridge)) if limits is None else limits.turned(self._turn)
        self._first_kind = first_kinds(samples.y) if kind is None else kind
        self._squares = float(samples.y @ samples.y)
        n, q = samples.Z.shape
        self.memory_limit = memory_limit
        self._pool = CellPool(n, q, memory_limit)
        # Open cells: least bound first, and those that are finished first because the memory is full.
        self._queue: list[tuple[float, int]] = []
        self._stack: list[int] = []
        self._taken = np.inf
        self._rooms: deque[CellRoom] = deque()
        # Samples looked at in faces, on behalf of this search.
        self._face_work = 0.0
        # Work elsewhere that needs a bound of the scale.
        self.also_for = 0
        # Where the search in a face runs.
        self._mapped: Callable[..., Iterator[Any]] = map
        self._members = np.ones(n, np.bool_) if members is None else members
        if faces is None:
            whole = None if recorder is None else recorder.recorder
            faces = Faces(samples, control, memory_limit, limits, is_cone, whole)
        self.faces = faces
        # Rows of constraints have no loss; their largest u is known as that of samples is.
        self.room = 0.0 if self._limits.are_cone else self._explained
        self._more = self._limits.rows_below(self.room)
        self.scale = ScaleSearch(
            self._with_limits(),
            self.cutoff,
            lambda kind: self.bound_face(kind[:n]),
            lambda: self.face_bounds().followed_by(len(self._more)),
        )
        self._round = int(np.clip(ROUND_WORK // max(n * q, 1), MIN_ROUND_CELLS, ROUND_CELLS))
        self._open_pyramids()

    @property
    def n_open(self) -> int:
        return len(self._queue) + len(self._stack)

    @property
    def reached(self) -> float:
        """What is proved by the open cells alone."""
        stack = float(self._pool.cells.bound[self._stack].min(initial=np.inf))
        return min(self.cutoff, self._leaves, self._taken, stack, *(bound for bound, _ in self._queue[:1]))

    @property
    def gap_left(self) -> float:
        """What is left of the first distance between bound and cutoff."""
        return (self.cutoff - self.reached) / max(self.cutoff - self._first_bound, MIN_GAP)

    @property
    def kind(self) -> Kinds:
        """What is settled for all better solutions: what all cells that are open have in common."""
        lines = np.array([*(line for _, line in self._queue), *self._stack], dtype=np.intp)
        if lines.size == 0:
            return self._first_kind
        kinds, n = self._pool.cells.kinds, self._first_kind.size
        common, same = unpack_kinds(kinds[lines[0]], n), np.ones(n, dtype=np.bool_)
        for part in np.array_split(lines, 1 + lines.size // FIRST_LINES):
            same &= (unpack_kinds(kinds[part], n) == common).all(axis=0)
        return np.where(same & (common >= ON), common, self._first_kind)

    @property
    def _explained(self) -> float:
        """The largest |u_+| of a better ray minimum, or of any better solution."""
        if self._recorder is not None and self._is_cone:
            # What a checker knows of it from the beginning.
            return math.sqrt(self._squares - self._first_bound) * (1.0 + INTERVAL_RTOL)
        if self._is_cone:
            return math.sqrt(max(self._squares - self._proved, 0.0)) * (1.0 + SUM_TOL)
        return (math.sqrt(self._squares) + math.sqrt(max(self.cutoff, 0.0))) * (1.0 + SUM_TOL)

    @property
    def _needed(self) -> float:
        """The least |u_+| of a better ray minimum, with the ridge, or of any better solution."""
        if self._is_cone:
            return math.sqrt(max(self._squares - self.cutoff, 0.0)) * (1.0 - SUM_TOL)
        return max(math.sqrt(self._squares) * (1.0 - SUM_TOL) - math.sqrt(max(self.cutoff, 0.0)), 0.0)

    def _with_limits(self) -> Samples:
        """The samples, and rows of constraints among them."""
        Z, _, y, ridge = self.samples
        if not len(self._more):
            return self.samples
        return Samples.from_rows(np.vstack([Z, self._more]), np.append(y, np.zeros(len(self._more))), ridge)

    @property
    def largest_mean(self) -> float:
        """The largest |u_+|, with those of constraints: an upper end of the mean of all u."""
        return math.hypot(self._explained, self.room)

    def least_mean(self, mean: Vector) -> float:
        """A lower bound of mean'b over better ray minima, for the mean with the weights of `scale.centre`."""
        return self.scale.least_mean(self._turn.T @ mean, self.largest_mean)

    @property
    def mean(self) -> Vector:
        """A mean of all u that falls where all samples are off, with the weights of `scale.centre`."""
        return np.asarray(self._turn @ (self.scale.samples.Z.T @ self.scale.centre()))

    @property
    def total_work(self) -> float:
        """Looks at all samples, for cells, the scale and faces."""
        return self.work + (self.scale.work + self._face_work) / max(self.samples.y.size, 1)

    def run(self, mapped: Callable[..., Iterator[Any]] = map) -> bool:
        """Search until nothing below the cutoff is left (True) or the search must end."""
        while not self.is_done:
            if self.control.is_over():
                return False
            self.advance(mapped)
            self.control.report()
        return self.is_closed

    def advance(self, mapped: Callable[..., Iterator[Any]] = map) -> None:
        """One round: split the cells with the least bounds, and go on with the scale."""
        # Until cells that are taken are sorted out, nothing better is proved, wherever that is interrupted.
        self._proved = self._taken = self.lower_bound
        lines = self._take()
        if lines.size == 0:
            self._taken = np.inf
            return
        self.scale.lower_cutoff(self.cutoff)
        others = self._pool.reserve(lines.size)
        q = self.samples.Z.shape[1]
        found, explained = Found.empty(lines.size, q), self._explained
        log = CellLog.empty(0 if self._recorder is None else lines.size, *self.samples.Z.shape)
        limit = self.largest_mean / self.scale.proved if self.scale.proved > 0.0 else np.inf
        limits = (self.cutoff, explained, self._needed, limit)
        # Those at the beginning of the round, for the search for a scale may add some in the meantime.
        faces = self.face_bounds()
        size = -(-lines.size // (1 if mapped is map else PARTS_PER_THREAD * self.control.n_threads))
        tasks: list[Callable[[], Any]] = [
            partial(self._expand, lines[part], others[part], limits, faces, found.part(part), log.part(part))
            for part in (slice(e, e + size) for e in range(0, lines.size, size))
        ]
        # Cells on other threads, where there are any, while this one goes on with the scale.
        expanded = mapped(lambda task: task(), tasks)
        self.advance_scale(mapped)
        for _ in expanded:
            pass
        self.n_nodes += lines.size
        steps, pricings = found.counts.sum(axis=0)
        self.work += int(steps) + int(pricings * max(1.0, (1 << min(q - 1, MAX_LISTED)) / CORNERS_PER_LOOK))
        self._sort_out(lines, others, found, log)
        self._taken = np.inf

    def advance_scale(self, mapped: Callable[..., Iterator[Any]] = map) -> None:
        """Go on with the scale, by a share of all other work."""
        self._mapped = mapped
        if self._recorder is not None:
            return
        work = (self.work + self.also_for) * self.samples.y.size
        due = int(SCALE_SHARE * work) + FIRST_SCALE_WORK - self.scale.work
        if due > 0:
            self.scale.advance(due)

    def _open_pyramids(self) -> None:
        q = self.samples.Z.shape[1]
        matters = np.maximum(self.samples.y, 0.0) @ np.abs(self.samples.Z)
        for axis in range(q):
            others = np.where(np.arange(q) == axis, -1.0, matters)
            for sign in (1, -1):
                (line,) = self._pool.reserve(1)
                cells = self._pool.cells
                cells.low[line], cells.high[line] = -1.0, 1.0
                cells.low[line, axis] = cells.high[line, axis] = sign
                cells.axis[line], cells.sign[line], cells.split[line] = axis, sign, int(np.argmax(others))
                cells.n_corners[line], cells.bound[line], cells.limit[line] = 0, self._proved, np.inf
                cells.kinds[line] = pack_kinds(self._first_kind)
                heapq.heappush(self._queue, (self._proved, int(line)))
        if self._recorder is not None:
            lines = [line for _, line in sorted(self._queue, key=itemgetter(1))]
            self._recorder.begin(self._turn, self._pool.cells.split[lines], lines)

    def _take(self) -> Index:
        """The cells of the next round; those that can be dropped are."""
        if self._stack:
            lines, self._stack = self._stack[-self._round :], self._stack[: -self._round]
            return np.array(lines, dtype=np.intp)
        if self._queue and self._queue[0][0] >= self.cutoff:
            self._pool.release(np.array([line for _, line in self._queue], dtype=np.intp))
            self._queue = []
        count = min(self._round, len(self._queue))
        return np.array([heapq.heappop(self._queue)[1] for _ in range(count)], dtype=np.intp)

    def _expand(
        self,
        lines: Index,
        others: Index,
        limits: tuple[float, float, float, float],
        faces: FaceBounds,
        found: Found,
        log: CellLog,
    ) -> None:
        """Split cells, on one thread."""
        try:
            room = self._rooms.pop()
        except IndexError:
            n, q = self.samples.Z.shape
            room = make_room(n, q, self._limits.ends.size)
        samples, cells, bounded = tuple(self.samples), tuple(self._pool.cells), tuple(self._limits)
        records = map(tuple, (faces, *room, found, log))
        expand(samples, bounded, cells, lines, others, limits, *records)
        self._rooms.append(room)

    def _sort_out(self, lines: Index, others: Index, found: Found, log: CellLog) -> None:
        """Drop cells that are closed, look into faces, put the rest where it belongs, and offer points."""
        self._offer(found)
        cells, cutoff, parts = self._pool.cells, self.cutoff, np.column_stack([lines, others]).ravel()
        faces: dict[int, int] = {}
        for e in np.flatnonzero(cells.state[parts] == THIN).tolist():
            face = self._face_of(unpack_kinds(cells.kinds[parts[e]], self.samples.y.size))
            bound = -np.inf if face is None else self._bound_in(face)
            if face is not None and bound > cells.bound[parts[e]]:
                cells.bound[parts[e]], faces[e] = bound, face.number
        is_open = (cells.state[parts] != CLOSED) & (cells.bound[parts] < cutoff)
        is_leaf = is_open & (cells.split[parts] < 0)
        self._leaves = min(self._leaves, float(cells.bound[parts[is_leaf]].min(initial=np.inf)))
        if self._recorder is not None:
            ends = np.where(is_leaf, TOO_NARROW, cells.split[parts])
            ends[~is_open] = CLOSED_END
            self._recorder.record(lines, others, log, ends.tolist(), faces)
        self._pool.release(parts[~is_open | is_leaf])
        kept = parts[is_open & ~is_leaf].tolist()
        if self._pool.n_used >= self._pool.capacity:
            self._stack += kept
            return
        for item in zip(cells.bound[kept].tolist(), kept, strict=True):
            heapq.heappush(self._queue, item)

    def face_bounds(self) -> FaceBounds:
        """What is known of faces, for the samples of this search."""
        return self.faces.bounds_for(self._members)

    def bound_face(self, kind: Kinds) -> float:
        """A lower bound of the loss of coefficients for which all these samples are off."""
        face = self._face_of(kind)
        return -np.inf if face is None else self._bound_in(face)

    def _face_of(self, kind: Kinds) -> Face | None:
        """The face of the samples that are not off, if they span less than the whole space."""
        Z, rest = self.samples.Z, kind != OFF
        basis = span_of(Z[rest])
        if basis.shape[1] in (0, Z.shape[1]):
            return None
        inside = self._members.copy()
        inside[self._members] = lies_in(Z, basis)
        if not inside[self._members][rest].all():
            return None
        return self.faces.face(inside)

    def _bound_in(self, face: Face) -> float:
        """What is proved of the loss in a face, after some more work on it where that is too little."""
        missing, nodes, work = self.faces.mass_outside(self._members), face.search.n_nodes, face.work
        if face.bound - missing < self.cutoff:
            face.advance(max(MIN_FACE_CELLS, int(FACE_SHARE * self.n_nodes)), self._mapped)
            self.n_nodes += face.search.n_nodes - nodes
            self._face_work += face.work - work
        return face.bound - missing

    def _offer(self, found: Found) -> None:
        """Offer the best points of a round."""
        allowed = self._limits.allow(found.points)
        self.least_found = min(self.least_found, float(found.losses[allowed].min(initial=np.inf)))
        best = np.argsort(found.losses, kind="stable")[:MAX_OFFERS]
        for e in best[found.losses[best] < self.control.promising()]:
            self.control.offer(self._turn @ found.points[e])


class Face:
    """The samples that lie in a subspace, as a problem of less dimension.

    More is proved of it than that it holds nothing below the cutoff: a share of the way from there to its own
    least loss, for the more it costs, the more of the samples outside must be on. A face of a face costs more
    than that, so that what is proved of it is enough there.
    """

    def __init__(self, faces: Faces, inside: Mask) -> None:
        samples, self._faces, self._inside = faces.samples, faces, inside
        basis = span_of(samples.Z[inside])
        rows = samples.Z[inside] @ basis
        to_white = np.linalg.inv(np.linalg.cholesky(rows.T @ rows)).T
        self.outside = faces.mass_outside(inside)
        self.budget = 0
        q, back, y = basis.shape[1], basis @ to_white, samples.y[inside]
        inner = Samples.from_rows(rows @ to_white, y, np.zeros((q, q)))
        limits = faces.limits_of(inside).within(basis, to_white)
        control = Control(
            lambda: self._target() - self.outside,
            lambda b: faces.control.offer(self._lift(back @ b)),
            lambda: self.search.n_nodes >= self.budget or self.is_hopeless or faces.control.is_over(),
            promising=lambda: faces.control.promising() - self.outside,
        )
        # Outside of the flat, all other samples fall in this direction, if there is one.
        rest = samples.Z[~inside] - (samples.Z[~inside] @ basis) @ basis.T
        self._falling = falling_direction(rest)
        start, self._least = _follow(inner, limits)
        self._proved = -np.inf
        # The search asks for its cutoff when it is made.
        self._search: CellSearch | None = None
        memory, recorder = faces.memory_limit // FACE_MEMORY, None
        if faces.recorder is not None:
            recorder = faces.recorder.tree(inside, back, self.outside)
        self._search = CellSearch(
            inner,
            control,
            memory_limit=memory,
            faces=faces,
            members=inside,
            limits=limits,
            is_cone=faces.is_cone or limits.ends.size == 0,
            recorder=recorder,
        )
        self.number = 0 if recorder is None else recorder.number
        if self._least < control.promising():
            control.offer(start)

    @property
    def search(self) -> CellSearch:
        assert self._search is not None
        return self._search

    def _lift(self, b: Vector) -> Vector:
        """Coefficients of the flat with all samples outside of it off, if that is possible."""
        if self._falling is None:
            return b
        u = self._faces.samples.Z[~self._inside] @ b
        return np.asarray(b + float(u.max(initial=0.0)) * self._falling)

    def _target(self) -> float:
        """What is to be proved of the loss of all samples."""
        cutoff = self._faces.control.cutoff()
        return cutoff + FACE_MARGIN * max(self.least - cutoff, 0.0)

    @property
    def least(self) -> float:
        """The least loss of all samples that is known, with those outside off."""
        found = np.inf if self._search is None else self._search.least_found
        return self.outside + min(self._least, found)

    @property
    def is_hopeless(self) -> bool:
        """Whether there is a loss below the cutoff, so that the face cannot be closed."""
        return self.least < self._faces.control.cutoff()

    @property
    def bound(self) -> float:
        """A lower bound of the loss of all samples, where those outside are off."""
        return max(self._proved, self.outside + self.search.lower_bound)

    @property
    def work(self) -> float:
        """Samples looked at."""
        return self.search.total_work * self.search.samples.y.size

    def advance(self, n_cells: int, mapped: Callable[..., Iterator[Any]] = map) -> None:
        """Search on, up to so many cells in all."""
        self.budget = n_cells
        if self.search.is_done or self.is_hopeless:
            return
        if self.search.run(mapped):
            self._proved = self._target()
        if self.bound >= self._faces.control.cutoff():
            self._faces.note(self._inside, self.bound)


class Faces:
    """What happens where many samples are off, and the others span less than the whole space.

    If those that are not OFF lie in a subspace V, all samples outside of V are off and cost y^2, and the rest
    cannot cost less than the least loss of all samples in V, wherever the coefficients are: a problem of less
    dimension. Its bound B holds elsewhere as well, less what samples outside may gain by being on:

        L(b) >= B - sum of y_i^2 over samples outside of V that are on and have y_i > 0.

    Of the constraints those hold there whose rows lie in V.

    There is one collection of them for the whole search: each face is searched once, whether it is met in the
    search around it or in another face.
    """

    def __init__(
        self,
        samples: Samples,
        control: Control,
        memory_limit: int,
        limits: Limits | None = None,
        is_cone: bool = True,
        recorder: Recorder | None = None,
    ) -> None:
        self.samples, self.control, self.memory_limit = samples, control, memory_limit
        self.recorder = recorder
        self.limits, self.is_cone = Limits.none(samples.Z.shape[1]) if limits is None else limits, is_cone
        self._squares = np.square(samples.y)
        self._faces: dict[bytes, Face] = {}
        self.bounds = FaceBounds.none(samples.y.size)

    def __len__(self) -> int:
        return len(self._faces)

    def face(self, inside: Mask) -> Face | None:
        """The face of these samples, all that lie in the subspace that they span.

        None where a proof file is written that cannot say what this subspace is.
        """
        if self.recorder is not None and self.recorder.null_space(inside) is None:
            return None
        key = np.packbits(inside).tobytes()
        if key not in self._faces:
            self._faces[key] = Face(self, inside)
        return self._faces[key]

    def limits_of(self, inside: Mask) -> Limits:
        """The constraints, or those of which a proof file can say that they lie in a subspace if they do."""
        return self.limits if self.recorder is None else self.limits.chosen(self.recorder.limits_in(inside))

    def note(self, inside: Mask, bound: float) -> None:
        """Note what is proved of a face. Proof files do not use it elsewhere."""
        if self.recorder is not None:
            return
        self.bounds = self.bounds.plus(~inside, bound * (1.0 - SUM_TOL))

    def mass_outside(self, inside: Mask) -> float:
        """What samples that are not inside cost if they are off."""
        return float(self._squares[~inside].sum()) * (1.0 - SUM_TOL)

    def bounds_for(self, members: Mask) -> FaceBounds:
        """Bounds of faces of a face, in the problem of its samples alone.

        Those of other faces count samples that are not among these.
        """
        outside, bound = self.bounds
        within = outside[:, ~members].all(axis=1)
        inner = np.ascontiguousarray(outside[within][:, members])
        return FaceBounds(inner, bound[within] - self.mass_outside(members))


def _follow(samples: Samples, limits: Limits) -> tuple[Vector, float]:
    """Coefficients with a small loss, by least squares over the samples that are on, and their loss.

    Only those count that satisfy the constraints; if none do, all samples are off.
    """
    Z, _, y, _ = samples
    on, best, least = np.ones(y.size, np.bool_), np.zeros(Z.shape[1]), float(y @ y)
    for _ in range(MAX_FOLLOWED):
        b = np.asarray(np.linalg.lstsq(Z[on], y[on], rcond=None)[0], np.float64)
        u = Z @ b
        loss = float(np.square(np.maximum(u, 0.0) - y).sum())
        if not loss < least or not limits.allow(b[None])[0]:
            break
        best, least, on = b, loss, u > 0.0
    return best, least


def _choose_axes(samples: Samples) -> Matrix:
    """An orthogonal matrix whose columns are good axes for cells.

    The first is the direction in which all u fall on average, in the middle of those in which few samples are
    on. The others make rows as sparse as they can be, those of large outcomes above all, for u varies over a
    cell by the sum of |z_k| times half-widths: fixed-point steps towards the largest sum of fourth powers.
    """
    Z, y = samples.Z, np.maximum(samples.y, 0.0)
    q = Z.shape[1]
    mean = -Z.sum(axis=0)
    basis = np.linalg.qr(np.column_stack([mean, np.eye(q)]))[0]
    basis[:, 0] *= 1.0 if float(basis[:, 0] @ mean) >= 0.0 else -1.0
    rest = Z @ basis[:, 1:]
    length = np.maximum(np.linalg.norm(rest, axis=1), MIN_ROW)
    turn = np.linalg.eigh((rest.T * (y / length)) @ rest)[1]
    weight, best, least = (y / length**3)[:, None], turn, np.inf
    for _ in range(AXES_STEPS):
        turned = rest @ turn
        spread = float(y @ np.abs(turned).sum(axis=1))
        if spread < least:
            best, least = turn, spread
        left, _, right = np.linalg.svd(rest.T @ (weight * turned**3))
        before, turn = turn, left @ right
        if np.abs(turn - before).max(initial=0.0) < AXES_TOL:
            break
    return np.column_stack([basis[:, 0], basis[:, 1:] @ best])
