"""The search over directions, for data that do not determine signs and sizes: low signal, an intercept.

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
function above it. A convex mix of the two is used. The faces of the cone enter as penalties. All these are
pieces for the surrogate's kernel, and the bound is that of `rectifit.bounds`.

Cones are split at the coordinate whose interval, weighted with the samples it leaves open, is widest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rectifit._typing import Index, Matrix, Vector
from rectifit.certificate.best_first import BestFirst, Control, Node, first_kinds
from rectifit.certificate.cone_kernel import EMPTY, GOOD, UNSURE, bound_parts, build_cone
from rectifit.certificate.records import (
    OFF,
    ON,
    ConeBounds,
    ConeHalves,
    ConeShape,
    KernelRows,
    Kinds,
    Samples,
)
from rectifit.certificate.relaxation import Pieces, Start
from rectifit.tolerances import FACE_DISTANCE_TOL, GRAM_RANK_TOL

__all__ = ["Cone", "ConeSearch"]

# Nodes that the search in a face may take.
MAX_FACE_NODES = 20_000
# A share of y below which no u lies: all pieces beyond y are used.
EVERY_PIECE = -np.inf


@dataclass(slots=True)
class Cone(Node):
    """A cone, where its relaxation has its minimum, and the coordinate at which to split it."""

    axis: int
    sign: float
    low: Vector
    high: Vector
    kind: Kinds
    b: Vector
    split: int


class ConeSearch(BestFirst[Cone]):
    """Best-first search for losses below a cutoff, over all coefficients; `along` lies on the first axis."""

    def __init__(self, Z: Matrix, y: Vector, ridge: Matrix, along: Vector, control: Control) -> None:
        super().__init__(y, control)
        self._turn = _first_axis_along(along)
        self.samples = Samples.from_rows(Z @ self._turn, y, self._turn.T @ ridge @ self._turn)
        # Sets of samples that are not all off in any better solution, and bounds of faces that were searched.
        self._nogoods: list[Index] = []
        self._faces: dict[bytes, float] = {}
        q, matters = Z.shape[1], np.maximum(y, 0.0) @ np.abs(self.samples.Z)
        for axis in range(q):
            for sign in (1.0, -1.0):
                low, high, b = -np.ones(q), np.ones(q), np.zeros(q)
                low[axis] = high[axis] = b[axis] = sign
                others = np.where(np.arange(q) == axis, -1.0, matters)
                split = int(np.argmax(others))
                self._push([Cone(self._proved, axis, sign, low, high, first_kinds(y), b, split)])

    def _expand(self, cone: Cone) -> list[Cone]:
        if self._is_known(cone.kind):
            return []
        halves = ConeHalves.of(cone.axis, cone.sign, cone.split, cone.low, cone.high, cone.kind, cone.b)
        found, cutoff = ConeBounds(np.empty(2), np.empty(2, np.int64), np.empty(2, np.int64)), self.cutoff
        bound_parts(tuple(self.samples), tuple(halves), cutoff, tuple(found))
        parts = []
        for e in range(2):
            if found.states[e] == EMPTY:
                continue
            bound = max(cone.bound, float(found.bounds[e]))
            part = Cone(bound, cone.axis, cone.sign, *halves.half(e), int(found.splits[e]))
            if found.states[e] == UNSURE:
                bound, part.b = self._relax(part).minimise(Start(part.b))[:2]
                part.bound = max(part.bound, bound)
            if found.states[e] != GOOD:
                part.bound = max(part.bound, self._face_bound(part.kind))
            if part.bound >= cutoff:
                continue
            self.control.offer(self._turn @ part.b)
            if part.split < 0:
                self._leave(part.bound)
            else:
                parts.append(part)
        return parts

    def _relax(self, cone: Cone, mix: float = 0.0) -> Pieces:
        """The relaxation in a cone, whose kinds are updated, where the compiled bound is not certain."""
        n, q = self.samples.Z.shape
        pieces = KernelRows.empty(2 * n + 2 * q, q)
        shape = ConeShape(cone.axis, cone.sign, cone.low, cone.high)
        m, constant = build_cone(
            tuple(self.samples), tuple(shape), cone.b, mix, EVERY_PIECE, cone.kind, tuple(pieces), np.empty(q)
        )
        on = self.samples.Z[cone.kind == ON]
        K = self.samples.ridge + on.T @ on
        return Pieces(self.samples.Z, self.samples.ridge, K, pieces.first(m), np.zeros(q), constant)

    def _is_known(self, kind: Kinds) -> bool:
        return any(bool((kind[nogood] == OFF).all()) for nogood in self._nogoods)

    def _face_bound(self, kind: Kinds) -> float:
        """A bound where the samples that are not off span too little: their own problem, of less dimension.

        If they lie in a subspace V, all samples outside of V are off and cost y^2, and the rest cannot cost
        less than the least loss of all samples in V, wherever the coefficients are. If that closes it, no
        better solution has all samples outside of V off.
        """
        rest = self.samples.Z[kind != OFF]
        values, vectors = np.linalg.eigh(rest.T @ rest)
        spans = values > GRAM_RANK_TOL * max(values[-1], GRAM_RANK_TOL)
        if spans.all() or not spans.any():
            return -np.inf
        basis = vectors[:, spans]
        away = np.linalg.norm(self.samples.Z - (self.samples.Z @ basis) @ basis.T, axis=1)
        inside = away <= FACE_DISTANCE_TOL * np.linalg.norm(self.samples.Z, axis=1)
        if not inside[kind != OFF].all():
            return -np.inf
        key = np.packbits(inside).tobytes()
        if key not in self._faces:
            outside = float(np.square(self.samples.y[~inside]).sum())
            rows = np.ascontiguousarray(self.samples.Z[inside] @ basis)
            control = Control(
                lambda: self.cutoff - outside,
                lambda b: self.control.offer(self._turn @ (basis @ b)),
                lambda: face.n_nodes >= MAX_FACE_NODES or self.control.is_over(),
            )
            along = np.linalg.lstsq(rows, np.maximum(self.samples.y[inside], 0.0), rcond=None)[0]
            face = ConeSearch(rows, self.samples.y[inside], np.zeros((basis.shape[1],) * 2), along, control)
            if face.run():
                self._nogoods.append(np.flatnonzero(~inside))
            self._faces[key] = outside + face.lower_bound
            with self._lock:
                self.n_nodes += face.n_nodes
        return self._faces[key]

    @property
    def kind(self) -> Kinds:
        """What is settled for all better solutions: nothing but what the cones still open have in common."""
        kinds = [cone.kind for cone in self.nodes]
        settled = first_kinds(self.samples.y)
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
