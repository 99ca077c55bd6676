"""The search over directions, for data that leave signs and sizes open: low signal, an intercept.

For coefficients b = s d with s >= 0 it depends on the direction d alone which samples are on, so the search
space is a sphere, and nothing needs to be bounded. It is covered by the 2q pyramids

    { b : sigma b_j = s >= 0,   low_k s <= b_k <= high_k s },      low = -1, high = 1 at first,

in coordinates where all rows together have the Gram matrix 1 and the incumbent lies on an axis. In such a
cone u_i lies between r_i s and R_i s (interval arithmetic). A sample with r_i >= 0 is on, one with R_i <= 0
is off and costs y_i^2. For any other one with y_i > 0 let m be linear in b with max(0, u_i) <= m in the cone;
then

    (max(0, u_i) - y_i)^2 >= (y_i - m)_+^2 + (u_i - y_i)_+^2.

Two such m are the chord R_i (u_i - r_i s) / (R_i - r_i), and s times the Lovasz extension of max(0, .) over
the box of ratios, linearised at a point: max(0, .) of a sum is supermodular once coordinates are flipped to
raise u, so this is the concave envelope on the box, and any ordering of the coordinates gives a linear
function above it. A convex mix of the two is used. The faces of the cone enter as penalties. All of it are
pieces for the surrogate's kernel, and the bound is that of relaxation.py.

Cones are split at the coordinate whose interval, weighted with the samples it leaves open, is widest.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from rectifit.certificate.envelope import CONVEX, FREE, OFF, ON, Kinds
from rectifit.certificate.kernel import build_cone
from rectifit.certificate.relaxation import Pieces, Start
from rectifit.problem import Matrix, Vector
from rectifit.surrogate.rows import Index

__all__ = ["ConeSearch"]

# Root of the weight of the penalties, and share of the Lovasz extension.
PENALTY, MIX = 100.0, 0.8
# Samples span less than the whole space where an eigenvalue of their Gram matrix is below this share, and lie
# in a subspace if they leave it by no more than this share of their length. A face may take so many nodes.
FLAT, EXACT, FACE_NODES = 1e-12, 1e-9, 20_000
# Nodes between two reports.
REPORT = 20


@dataclass(order=True)
class Cone:
    """A cone with a bound, and where its relaxation was last minimised."""

    bound: float
    order: int
    axis: int = field(compare=False)
    sign: float = field(compare=False)
    low: Vector = field(compare=False)
    high: Vector = field(compare=False)
    kind: Kinds = field(compare=False)
    b: Vector = field(compare=False)


class ConeSearch:
    """Best-first search for losses below a cutoff, over all coefficients.

    Parameters
    ----------
    Z, y, ridge : the data
    along : a point on the first axis
    cutoff : the loss down to which a proof must reach; it may fall while the search runs
    offer : told every point that may be a better solution
    is_over, report : asked and told after every node
    """

    def __init__(
        self,
        Z: Matrix,
        y: Vector,
        ridge: Matrix,
        along: Vector,
        cutoff: Callable[[], float],
        offer: Callable[[Vector], None],
        is_over: Callable[[], bool],
        report: Callable[[], None],
    ) -> None:
        self._turn = _first_axis_along(along)
        self.Z: Matrix = np.ascontiguousarray(Z @ self._turn)
        self.y = y
        self.ridge: Matrix = self._turn.T @ ridge @ self._turn
        self.cutoff, self.offer, self.is_over, self.report = cutoff, offer, is_over, report
        self.n_nodes = 0
        self._order = count()
        self._open: list[Cone] = []
        self._current: Cone | None = None
        self._floor = float(np.square(y[y <= 0.0]).sum()) * (1.0 - 1e-12)
        # Sets of samples that are not all off in any better solution, and faces that were gone into.
        self._nogoods: list[Index] = []
        self._faces: dict[bytes, float] = {}
        n, q = self.Z.shape
        kind = np.where(y > 0.0, FREE, CONVEX).astype(np.int8)
        for axis in range(q):
            for sign in (1.0, -1.0):
                low, high, b = -np.ones(q), np.ones(q), np.zeros(q)
                low[axis] = high[axis] = b[axis] = sign
                cone = Cone(self._floor, next(self._order), axis, sign, low, high, kind.copy(), b)
                heapq.heappush(self._open, cone)
        size = 2 * n + 2 * q
        self._space = np.empty((size, q)), np.empty(size), np.empty(size), np.empty(size)

    @property
    def lower_bound(self) -> float:
        """What is proved so far."""
        least = self._open[0].bound if self._open else np.inf
        if self._current is not None:
            least = min(least, self._current.bound)
        return min(self.cutoff(), max(self._floor, least))

    @property
    def n_open(self) -> int:
        return len(self._open)

    def run(self) -> bool:
        """Search until nothing below the cutoff is left (True) or the time is up."""
        while self._open:
            if self.is_over():
                return False
            if self._open[0].bound >= self.cutoff():
                self._open = []
                break
            # Until its children are there, an interrupted cone counts as open.
            self._current = self._open[0]
            heapq.heappop(self._open)
            self._expand(self._current)
            self._current = None
            if self.n_nodes % REPORT == 0:
                self.report()
        return True

    def _expand(self, cone: Cone) -> None:
        """Bound a cone, and split it if it may hold something better."""
        self.n_nodes += 1
        weights = np.empty(self.Z.shape[1])
        pieces = self._relax(cone, weights)
        if pieces.constant >= self.cutoff() or self._is_known(cone.kind):
            return
        bound = pieces.minimise(Start(cone.b))
        cone.bound = max(cone.bound, bound.value)
        if cone.bound >= self.cutoff():
            return
        if bound.factor is None:
            cone.bound = max(cone.bound, self._face_bound(cone.kind))
            if cone.bound >= self.cutoff():
                return
        self.offer(self._turn @ bound.b)
        widths = cone.high - cone.low
        widths[cone.axis] = 0.0
        k = int(np.argmax(widths * (weights + 1e-12)))
        middle = 0.5 * (cone.low[k] + cone.high[k])
        for side in (0, 1):
            low, high = cone.low.copy(), cone.high.copy()
            (high if side == 0 else low)[k] = middle
            child = Cone(
                cone.bound, next(self._order), cone.axis, cone.sign, low, high, cone.kind.copy(), bound.b
            )
            heapq.heappush(self._open, child)

    def _relax(self, cone: Cone, weights: Vector) -> Pieces:
        """The relaxation in a cone, whose kinds are updated; weights <- how much each coordinate matters."""
        rows, norms, kinks, outcomes = self._space
        mix = MIX if cone.sign * cone.b[cone.axis] > 1e-9 else 0.0
        m, constant = build_cone(
            self.Z,
            self.y,
            cone.axis,
            cone.sign,
            cone.low,
            cone.high,
            cone.b,
            mix,
            PENALTY,
            cone.kind,
            rows,
            norms,
            kinks,
            outcomes,
            weights,
        )
        on = self.Z[cone.kind == ON]
        K = self.ridge + on.T @ on
        slope = np.zeros(self.Z.shape[1])
        return Pieces(self.Z, self.ridge, K, rows[:m], norms[:m], kinks[:m], outcomes[:m], slope, constant)

    def _is_known(self, kind: Kinds) -> bool:
        return any(bool((kind[nogood] == OFF).all()) for nogood in self._nogoods)

    def _face_bound(self, kind: Kinds) -> float:
        """A bound where the samples that are not off span too little: their own problem, of less dimension.

        If they lie in a subspace V, all samples outside of V are off and cost y^2, and the rest cannot cost
        less than the least loss of all samples in V, wherever the coefficients are. If that closes it, no
        better solution has all samples outside of V off.
        """
        rest = self.Z[kind != OFF]
        values, vectors = np.linalg.eigh(rest.T @ rest)
        spans = values > FLAT * max(values[-1], FLAT)
        if spans.all() or not spans.any():
            return -np.inf
        basis = vectors[:, spans]
        away = np.linalg.norm(self.Z - (self.Z @ basis) @ basis.T, axis=1)
        inside = away <= EXACT * np.linalg.norm(self.Z, axis=1)
        if not inside[kind != OFF].all():
            return -np.inf
        key = np.packbits(inside).tobytes()
        if key not in self._faces:
            outside = float(np.square(self.y[~inside]).sum())
            rows = np.ascontiguousarray(self.Z[inside] @ basis)
            face = ConeSearch(
                rows,
                self.y[inside],
                np.zeros((basis.shape[1],) * 2),
                np.linalg.lstsq(rows, np.maximum(self.y[inside], 0.0), rcond=None)[0],
                lambda: self.cutoff() - outside,
                lambda b: self.offer(self._turn @ (basis @ b)),
                lambda: face.n_nodes >= FACE_NODES or self.is_over(),
                self.report,
            )
            if face.run():
                self._nogoods.append(np.flatnonzero(~inside))
            self._faces[key] = outside + face.lower_bound
            self.n_nodes += face.n_nodes
        return self._faces[key]

    @property
    def kind(self) -> Kinds:
        """What is settled for all better solutions: nothing but what the cones still open have in common."""
        kinds = [cone.kind for cone in (*self._open, *([self._current] if self._current else []))]
        settled = np.where(self.y > 0.0, FREE, CONVEX).astype(np.int8)
        for value in (ON, OFF):
            if kinds:
                settled[np.all([kind == value for kind in kinds], axis=0)] = value
        return settled


def _first_axis_along(b: Vector) -> Matrix:
    """An orthogonal matrix whose first column has the direction of b."""
    q, length = b.size, float(np.linalg.norm(b))
    if length == 0.0:
        return np.eye(q)
    v = b / length
    v = v + np.eye(q)[0] * (1.0 if v[0] >= 0.0 else -1.0)
    return np.asarray(np.eye(q) - 2.0 * np.outer(v, v) / float(v @ v))
