"""Proof files of the search over signs: points, curvatures and slopes from which its bounds follow.

The checker takes slopes at a point as they are best there. Where the point is at a kink, they do not follow
from it, and those with which the quadratic is least at the point are written down, too. Slopes are in units
of the checker, whose rows are multiples of those of the search.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from rectifit._typing import Index, Matrix, Vector
from rectifit.certificate.ascent_kernel import decide
from rectifit.certificate.flats import falling_direction
from rectifit.certificate.records import CONVEX, FAR_FREE, FREE, Region, Samples
from rectifit.certificate.relaxation import Relaxation, Start
from rectifit.checking.rows import Rows, Walls
from rectifit.checking.sign_tree import (
    BOX,
    CUTOFF,
    FAR,
    NEAR,
    NODE,
    POINT,
    SHARES,
    SIGNS,
    TILTS,
    UNSPLIT,
    UPWARDS,
    WITHOUT_SHARES,
)
from rectifit.checking.signs import Curves, Node, Point, SignRules, Tilt
from rectifit.checking.slopes import Slopes

__all__ = ["Checked", "NodeRecord", "SignRecorder"]

# A slope is at a kink if u is no farther from it than this share of the largest outcome.
KINK_SHARE = 1e-7
# Rows at kinks that are written with a point at most, per coefficient.
MAX_KINKS_PER_COEFFICIENT = 4
# Curvature that counts as 0, in whitened units.
SMALL_CURVATURE = 1e-12
# Curvature that keeps rows at their kinks.
STIFF = 1e6
# Gradients, as shares of all slopes, that count as 0, and Newton steps towards that.
BALANCED_SHARE = 1e-13
MAX_STEPS = 8
# What a gradient may cost of a bound, as a share of the cutoff.
CHEAP_SHARE = 1e-9
# The coordinates of a box may leave so much of a direction over.
MAX_REST = 0.4


class Checked(NamedTuple):
    """The data as the checker has them: in coordinates of the search, from which [T null] leads back."""

    rows: Rows
    walls: Walls
    T: Matrix
    null: Matrix


@dataclass
class NodeRecord:
    """What is to be written of a node: its steps, and the row at which it is split, and where.

    known: what the checker will know of it. is_over: whether it was expanded, and not only tightened.
    """

    known: Node | None = None
    number: int = 0
    steps: list[bytes] = field(default_factory=list)
    row: int = UNSPLIT
    at: float = 0.0
    parts: tuple[NodeRecord, ...] = ()
    is_over: bool = False


class SignRecorder:
    """Writes down the tree of a search over signs.

    Parameters
    ----------
    file : called with bytes that are to be written
    checked : the data as the checker has them, in the coordinates of the search
    samples : those of the search; constraints behind samples are the first walls of the checker
    to_objective : from losses of the search to objectives
    """

    def __init__(
        self,
        file: Callable[[bytes], None],
        checked: Checked,
        samples: Samples,
        to_objective: Callable[[float], float],
    ) -> None:
        self._file, self._checked, self._n_nodes = file, checked, 0
        self._mean, self._to_objective = np.zeros((0, checked.T.shape[1])), to_objective
        rows, n = checked.rows, len(checked.rows.y)
        lengths = np.linalg.norm(samples.Z[:n], axis=1)
        self._scale = np.linalg.norm(rows.Z, axis=1) / np.where(lengths > 0.0, lengths, 1.0)
        # From losses of the search to those of the checker.
        self._unit = float(np.median(rows.w * np.square(self._scale))) if n else 1.0
        self._kink = KINK_SHARE * float(np.abs(rows.y).max(initial=0.0))
        self._n_given = len(samples.Z)
        self._rules = SignRules(rows, checked.walls)

    @property
    def _lines(self) -> Index:
        """Of every row of the search the line of the checker: those of samples, constraints and the mean."""
        return np.append(np.arange(self._n_given), self._rules.n - 1)[: self._n_given + len(self._mean)]

    @staticmethod
    def rounded(c: Vector) -> Vector:
        """Curvatures as they are written, no larger than they were."""
        short = c.astype("<f4")
        larger = np.abs(short) > np.abs(c)
        return np.where(larger, np.nextafter(short, np.float32(0.0)), short).astype(np.float64)

    def _at(self, record: NodeRecord, cutoff: float) -> SignRules:
        """The rules of the checker, for what is left below a cutoff, which is written if it has changed."""
        objective = self._to_objective(cutoff)
        self._rules.cutoff = self._rules.rows.above(objective)
        if record.known is not None and record.known.cutoff != self._rules.cutoff:
            record.steps.append(struct.pack("<Bd", CUTOFF, objective))
            record.known = self._rules.below(record.known, self._rules.cutoff)
        return self._rules

    def begin(self, record: NodeRecord, cutoff: float) -> None:
        """The whole space, of another cutoff than the one that is written first."""
        record.known = replace(self._rules.root(), cutoff=-np.inf)
        self._at(record, cutoff)

    def bound_coordinates(self, record: NodeRecord, cutoff: float) -> bool:
        """Write down why coordinates of better solutions are bounded. False if they are not."""
        rules = self._at(record, cutoff)
        assert record.known is not None
        if np.isfinite(record.known.box).all():
            return True
        Z = self._holding_rows(record.known)
        if falling_direction(Z) is not None:
            return False
        n, q = Z.shape
        nothing = Samples.from_rows(Z, np.zeros(n), np.zeros((q, q)))
        far = np.full(n, np.inf)
        relaxation = Relaxation(nothing, Region(np.full(n, CONVEX, np.int8), -far, far), np.zeros(n))
        V = np.vstack([np.eye(q), -np.eye(q)])
        points = relaxation.minimise_tilted(Start(np.zeros(q)), -V)[1]
        # |(Za)_+|^2 - v'a at its minimum, which a little curvature has moved.
        for _ in range(MAX_STEPS):
            U = np.maximum(points @ Z.T, 0.0)
            gradient = 2.0 * U @ Z - V
            if not np.abs(gradient).sum(axis=1).max() > MAX_REST:
                break
            for e in range(2 * q):
                inside = Z[U[e] > 0.0]
                H = 2.0 * inside.T @ inside + SMALL_CURVATURE * np.eye(q)
                points[e] -= np.linalg.solve(H, gradient[e])
        record.known = rules.boxed(record.known, points)
        record.steps.append(struct.pack("<B", BOX) + points.astype("<f8").tobytes())
        return bool(np.isfinite(record.known.box).all())

    @property
    def may_grow(self) -> bool:
        """Whether there are directions in which no row rises."""
        return falling_direction(self._holding_rows(self._rules.root())) is not None

    def _holding_rows(self, node: Node) -> Matrix:
        """Rows whose u cannot grow in a node: those of samples, and walls with ends, up and down."""
        rows, n = self._rules.rows, self._rules.n_samples
        walls, low, high = rows.Z[n:], node.low[n:], node.high[n:]
        samples = rows.Z[:n] * np.sqrt(rows.w[:n])[:, None]
        held = np.vstack([samples, walls[high < np.inf], -walls[low > -np.inf]])
        return np.asarray(held / np.sqrt(self._unit))

    def cut(self, record: NodeRecord, mean: Vector, cuts: Vector, cutoff: float) -> list[NodeRecord]:
        """Write the root, cut into slabs of a mean of u; returns their records, the far one at the end."""
        self._mean = mean[None] * np.sqrt(self._unit)
        self._rules = SignRules(self._checked.rows, self._checked.walls.and_rows(self._mean))
        record.steps = []
        self.begin(record, cutoff)
        slabs, rest = list[NodeRecord](), record
        for cut in cuts.tolist():
            slabs.append(NodeRecord())
            below = NodeRecord()
            self.split_mean(rest, cut, slabs[-1], below)
            rest.is_over = True
            self.write(rest)
            rest = below
        self.go_far(rest)
        return [*slabs, rest]

    def split_mean(self, record: NodeRecord, at: float, above: NodeRecord, below: NodeRecord) -> None:
        """Write down that a node is split at some mean."""
        self.split(record, self._rules.n - 1, above, below, at * float(np.sqrt(self._unit)))

    def go_far(self, record: NodeRecord) -> None:
        """Write down that a node is looked at for all larger scales at once."""
        assert record.known is not None
        record.known = self._rules.far(record.known, self._rules.n - 1)
        record.steps.append(struct.pack("<BI", FAR, self._rules.n - 1))

    def go_near(self, record: NodeRecord) -> None:
        """Write down that the scales of a far node are told apart again."""
        assert record.known is not None
        record.known = self._rules.near(record.known)
        record.steps.append(struct.pack("<B", NEAR))

    def sync(self, record: NodeRecord, region: Region) -> bool:
        """What the checker will know becomes what the search knows. False if that closes the node."""
        assert record.known is not None
        n, far = self._scale.size, record.known.is_far
        low, high = record.known.low, record.known.high
        # What the search has settled by itself may not follow from what is written.
        region.kind[:n] = np.where(self._checked.rows.y > 0.0, FAR_FREE if far else FREE, CONVEX)
        region.l[:n], region.U[:n] = low[:n] / self._scale, high[:n] / self._scale
        if len(self._mean):
            root = np.sqrt(self._unit)
            region.l[-1], region.U[-1] = low[-1] / root, high[-1] / root
        return decide(tuple(region)) >= 0 and not record.known.is_closed

    def value(self, record: NodeRecord) -> float:
        """The bound that the checker will derive, as a loss of the search."""
        assert record.known is not None
        rows, zero = self._rules.rows, self._to_objective(0.0)
        objective = float(np.ldexp(record.known.value + rows.constant, rows.exponent))
        return (objective - zero) / (self._to_objective(1.0) - zero)

    def note_point(self, record: NodeRecord, c: Vector, b: Vector, cutoff: float) -> None:
        """Write down a bound, and where it was found."""
        rules = self._at(record, cutoff)
        node = self._with_shares(record, c)
        point = self._point(node, rules.curves(node), b, None)
        record.steps.append(struct.pack("<B", POINT) + packed(point))
        record.known = rules.bounded(node, point)

    def note_tilts(
        self, record: NodeRecord, c: Vector, cutoff: float, lines: Index, sign: float, points: Matrix
    ) -> None:
        """Write down which lines were tilted, and where the minima were."""
        rules = self._at(record, cutoff)
        node = self._with_shares(record, c)
        tilts, step = list[Tilt](), list[bytes]()
        curves = rules.curves(node)
        # Coordinates are behind all rows.
        lines = np.append(self._lines, rules.n + np.arange(rules.q))[lines]
        for line, b in zip(lines.tolist(), points, strict=True):
            v = rules.direction(line, sign)
            tilts.append(Tilt(line, sign, self._point(node, curves, b, v)))
            step.append(struct.pack("<I", line if sign > 0.0 else line + UPWARDS) + packed(tilts[-1].point))
        if tilts:
            record.steps.append(struct.pack("<BI", TILTS, len(tilts)) + b"".join(step))
            record.known = rules.tilted(node, tilts)

    def _with_shares(self, record: NodeRecord, c: Vector) -> Node:
        """Write down curvatures, if they are others than those of the last step."""
        assert record.known is not None
        c, given = np.zeros(self._rules.n), c
        c[self._lines] = given
        if not np.array_equal(c, record.known.shares):
            record.known = replace(record.known, shares=c)
            shares = struct.pack("<B", SHARES) + c.astype("<f4").tobytes()
            record.steps.append(shares if c.any() else struct.pack("<B", WITHOUT_SHARES))
        return record.known

    def split(
        self, record: NodeRecord, row: int, above: NodeRecord, below: NodeRecord, at: float = 0.0
    ) -> None:
        """Write down that a node is split, and into what."""
        assert record.known is not None
        record.row, record.at, record.parts = row, at, (above, below)
        above.known, below.known = (self._rules.part(record.known, row, high, at) for high in (True, False))

    def _point(self, node: Node, curves: Curves, b: Vector, v: Vector | None) -> Point:
        """A point, with the slopes of rows at kinks; of a tilt along v, with any factor."""
        rules, x, best, least = self._rules, b, Point(b, np.zeros(0, np.int64), np.zeros(0)), np.inf
        K, slopes, Z, tau = curves.K, curves.slopes, rules.rows.Z, 0.0
        for turn in range(MAX_STEPS):
            u = Z @ x
            lam = slopes.at(u)
            gradient = Z.T @ lam + 2.0 * (K @ x)
            kinks, low, high = self._kinks(node, slopes, u)
            if v is not None and turn == 0:
                # The factor with which tilt and kinks together balance the point best.
                system = np.vstack([v, Z[kinks]]).T
                tau = max(float(np.linalg.lstsq(system, -gradient, rcond=SMALL_CURVATURE)[0][0]), 0.0)
            gradient += 0.0 if v is None else tau * v
            if kinks.size > 0:
                chosen = nearest_within(Z[kinks].T, lam[kinks], -gradient, low, high)
                gradient += Z[kinks].T @ (chosen - lam[kinks])
                lam[kinks] = chosen
            size = float(np.abs(gradient).max())
            if size < least:
                best, least = Point(x, kinks, lam[kinks]), size
            if size <= BALANCED_SHARE * np.abs(lam).sum() or self._is_cheap(gradient, curves):
                break
            # A Newton step, with curvatures as they are.
            bend = np.clip(slopes.bends(u), 0.0, 2.0 * rules.weight)
            bend[kinks] = STIFF * rules.weight[kinks]
            H = 2.0 * K + Z.T @ (bend[:, None] * Z)
            try:
                x = x - np.linalg.solve(H + SMALL_CURVATURE * np.eye(len(H)), gradient)
            except np.linalg.LinAlgError:
                # Singular up to rounding: the best point so far is as good as any.
                break
        return best

    def _is_cheap(self, gradient: Vector, curves: Curves) -> bool:
        """Whether this gradient costs next to nothing of a bound: g'K^-1 g / 4."""
        if not curves.known or curves.known[0].paid > 0.0:
            return False
        pull = curves.known[0].W @ gradient
        return float(pull @ pull) <= CHEAP_SHARE * abs(self._rules.cutoff)

    def _kinks(self, node: Node, slopes: Slopes, u: Vector) -> tuple[Index, Vector, Vector]:
        """Rows at kinks, and between which numbers their slopes may lie."""
        rules = self._rules
        below, above = (slopes.on(slopes.piece(u + side * self._kink), u) for side in (-1.0, 1.0))
        # Beyond an end every slope that leads away is one of the envelope.
        below = np.where(u <= node.low + self._kink, -np.inf, below)
        above = np.where(u >= node.high - self._kink, np.inf, above)
        jump = above - below - 8.0 * self._kink * rules.weight
        index = np.flatnonzero(jump > 0.0)
        most = MAX_KINKS_PER_COEFFICIENT * rules.q
        if index.size > most:
            index = np.sort(index[np.argsort(-jump[index], kind="stable")[:most]])
        return index, below[index], above[index]

    def write(self, record: NodeRecord) -> None:
        """Write a node that was expanded; its parts get the next two numbers."""
        if not record.is_over:
            return
        if self._n_nodes == 0:
            T, null = self._checked.T, self._checked.null
            matrices = b"".join(np.ascontiguousarray(matrix, "<f8").tobytes() for matrix in (T, null))
            more = struct.pack("<B", len(self._mean)) + self._mean.astype("<f8").tobytes()
            self._file(struct.pack("<BI", SIGNS, T.shape[1]) + matrices + more)
            self._n_nodes = 1
        head = struct.pack("<BII", NODE, record.number, len(record.steps))
        end = struct.pack("<I", record.row)
        if self._rules.n_samples <= record.row < UNSPLIT:
            end += struct.pack("<d", record.at)
        self._file(head + b"".join(record.steps) + end)
        for part in record.parts:
            part.number = self._n_nodes
            self._n_nodes += 1
        record.steps, record.parts, record.known = [], (), None

    def write_open(self, record: NodeRecord) -> None:
        """Write what is known of a node that is open at the end."""
        if record.steps:
            record.is_over = True
            self.write(record)


def nearest_within(A: Matrix, x: Vector, target: Vector, low: Vector, high: Vector) -> Vector:
    """The x' between two ends with which A (x' - x) is nearest to a target."""
    from scipy.optimize import lsq_linear

    moved = x + np.linalg.lstsq(A, target, rcond=SMALL_CURVATURE)[0]
    within = np.clip(moved, low, high)
    if np.array_equal(moved, within):
        return within
    found = lsq_linear(A, target, (low - x, high - x), method="bvls", tol=SMALL_CURVATURE)
    return np.asarray(np.clip(x + found.x, low, high))


def packed(point: Point) -> bytes:
    """A point as it is written."""
    rows = point.rows.astype("<u4").tobytes() + point.slopes.astype("<f8").tobytes()
    return point.x.astype("<f8").tobytes() + struct.pack("<I", point.rows.size) + rows
