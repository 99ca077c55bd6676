"""The tree of a search over signs in a proof file, and a walk through all of it.

    SIGNS    number of coordinates q, T, N, number of walls beside constraints, these walls
    NODE     number, number of steps, the steps, the row at which it is split, and where, or UNSPLIT

Node 0 holds everything. A node is split by the sign of u of a row, or at another u of a wall. Its parts get
the next two numbers: first the one above, then the one below. A node that is not split, or of which the file
says nothing, has to be closed, by its steps or by the bound of a node around it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rectifit.checking.reading import Claim, ProofError, Reader
from rectifit.checking.rows import Distinct
from rectifit.checking.signs import Node, Point, SignRules, Tilt

__all__ = [
    "BOX",
    "CUTOFF",
    "FAR",
    "NEAR",
    "NODE",
    "POINT",
    "SHARES",
    "SIGNS",
    "TILTS",
    "UNSPLIT",
    "UPWARDS",
    "WITHOUT_SHARES",
    "SignTree",
]

# Tags of records.
SIGNS, NODE = 3, 4
# Steps in a node.
CUTOFF, SHARES, WITHOUT_SHARES, BOX, POINT, TILTS, FAR, NEAR = 10, 11, 12, 13, 14, 15, 16, 17
UNSPLIT = 2**32 - 1
# The bit of a line that is tilted upwards.
UPWARDS = 2**31
# Entries of walls beside constraints are below this.
MAX_WALL = 1e100


class SignTree:
    """A tree of nodes: where each is described, and a walk through all of them."""

    def __init__(self, reader: Reader, data: Distinct, claim: Claim) -> None:
        self.reader, self._data, d = reader, data, claim.n_columns
        (self.q,) = reader.take("I")
        if self.q > d:
            raise ProofError("a tree has more coordinates than there are coefficients")
        T, N = reader.vector(d * self.q).reshape(d, self.q), reader.vector(d * (d - self.q))
        self._T, self._N = T, N.reshape(d, d - self.q)
        (n_walls,) = reader.take("B")
        more = reader.vector(n_walls * self.q).reshape(n_walls, self.q)
        if not (np.isfinite(more).all() and (np.abs(more) < MAX_WALL).all()):
            raise ProofError("a wall of the proof is not a row of numbers")
        self._walls = data.walls(T, self._N, claim.allowed).and_rows(more)
        self.n_samples, self.n_nodes = len(data.y), 1
        self.n = self.n_samples + len(self._walls.low)
        # Of every node that is described where that is, and the number of its first part.
        self._places: dict[int, tuple[int, int]] = {}

    def index(self) -> None:
        """Note where a node is described, and pass over it."""
        (number,) = self.reader.take("I")
        if number >= self.n_nodes or number in self._places:
            raise ProofError("a node is described that does not exist or was described before")
        self._places[number] = self.reader.at, self.n_nodes
        for _ in range(self.reader.take("I")[0]):
            self._skip_step()
        if self._take_split()[0] != UNSPLIT:
            self.n_nodes += 2

    def _take_split(self) -> tuple[int, float]:
        """Where a node is split: a row and a u of it."""
        (row,) = self.reader.take("I")
        return int(row), self.reader.take("d")[0] if self.n_samples <= row < UNSPLIT else 0.0

    def _skip_step(self) -> None:
        reader, (code,) = self.reader, self.reader.take("B")
        if code == SHARES:
            reader.skip(4 * self.n)
        elif code in (CUTOFF, FAR):
            reader.skip(8 if code == CUTOFF else 4)
        elif code == BOX:
            reader.skip(16 * self.q * self.q)
        elif code in (POINT, TILTS):
            for _ in range(reader.take("I")[0] if code == TILTS else 1):
                reader.skip((4 if code == TILTS else 0) + 8 * self.q)
                reader.skip(12 * int(reader.take("I")[0]))
        elif code not in (WITHOUT_SHARES, NEAR):
            raise ProofError("there is a step of an unknown kind")

    def walk(self) -> None:
        """Check every node, depth first."""
        every = np.ones(self.n_samples, dtype=np.bool_)
        rules = SignRules(self._data.inside(every, self._T, self._N), self._walls)
        stack = [(0, rules.root())]
        while stack:
            number, node = stack.pop()
            split, at, first = UNSPLIT, 0.0, 0
            if not node.is_closed and number in self._places:
                self.reader.at, first = self._places[number]
                node, (split, at) = self._check_node(rules, node)
            if node.is_closed or (split == UNSPLIT and node.value >= rules.cutoff):
                continue
            if split == UNSPLIT:
                raise ProofError(f"node {number} of the tree is neither closed nor split")
            if split >= self.n or not node.low[split] < at < node.high[split]:
                raise ProofError("a node is split where the value of a row is not open")
            stack += [(first + part, rules.part(node, split, part == 0, at)) for part in (0, 1)]

    def _check_node(self, rules: SignRules, node: Node) -> tuple[Node, tuple[int, float]]:
        """Take the steps of a node, until one closes it; returns it and where it is split."""
        for _ in range(self.reader.take("I")[0]):
            node = self._check_step(rules, node)
            if node.is_closed:
                return node, (UNSPLIT, 0.0)
        return node, self._take_split()

    def _check_step(self, rules: SignRules, node: Node) -> Node:
        reader, (code,) = self.reader, self.reader.take("B")
        if code == WITHOUT_SHARES:
            return replace(node, shares=np.zeros(self.n))
        if code == SHARES:
            shares = np.asarray(reader.array(self.n, "<f4"), dtype=np.float64)
            if not np.isfinite(shares).all():
                raise ProofError("a share of a curvature is not a number")
            return replace(node, shares=shares)
        if code == CUTOFF:
            cutoff = rules.rows.above(reader.take("d")[0])
            if not rules.cutoff <= cutoff < np.inf:
                raise ProofError("a step is about a lower cutoff than that of the proof")
            return rules.below(node, cutoff)
        if code == BOX:
            points = reader.vector(2 * self.q * self.q).reshape(2 * self.q, self.q)
            if not np.isfinite(points).all():
                raise ProofError("a point is not a number")
            return rules.boxed(node, points)
        if code == NEAR:
            return rules.near(node)
        if code == FAR:
            (wall,) = reader.take("I")
            if not self.n_samples <= wall < self.n:
                raise ProofError("a node is far behind a wall that does not exist")
            return rules.far(node, int(wall))
        if code == POINT:
            return rules.bounded(node, self._take_point())
        tilts = []
        for _ in range(reader.take("I")[0]):
            line = int(reader.take("I")[0])
            if line % UPWARDS >= self.n + self.q:
                raise ProofError("a line is tilted that does not exist")
            tilts.append(Tilt(line % UPWARDS, -1.0 if line >= UPWARDS else 1.0, self._take_point()))
        return rules.tilted(node, tilts)

    def _take_point(self) -> Point:
        reader = self.reader
        x, count = reader.vector(self.q), reader.take("I")[0]
        rows, slopes = reader.array(count, "<u4").astype(np.int64), reader.vector(count)
        if rows.max(initial=-1) >= self.n:
            raise ProofError("a slope is that of a row that does not exist")
        if not (np.isfinite(x).all() and np.isfinite(slopes).all()):
            raise ProofError("a point or a slope is not a number")
        return Point(x, rows, slopes)
