"""The tree of a search over signs in a proof file, and a walk through all of it.

    SIGNS    number of coordinates q, T
    NODE     number, number of steps, the steps, the row by whose sign it is split, or UNSPLIT

Node 0 holds everything. The parts of a node that is split get the next two numbers: first u >= 0, then
u <= 0. A node that is not split, or of which the file says nothing, has to be closed, by its steps or by the
bound of a node around it.
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
CUTOFF, SHARES, WITHOUT_SHARES, BOX, POINT, TILTS = 10, 11, 12, 13, 14, 15
UNSPLIT = 2**32 - 1
# The bit of a line that is tilted upwards.
UPWARDS = 2**31


class SignTree:
    """A tree of nodes: where each is described, and a walk through all of them."""

    def __init__(self, reader: Reader, data: Distinct, claim: Claim) -> None:
        self.reader, self._data, d = reader, data, claim.n_columns
        (self.q,) = reader.take("B")
        if self.q != d:
            raise ProofError("a tree of signs has another number of coordinates than there are coefficients")
        self._T = reader.vector(d * d).reshape(d, d)
        self.n, self.n_nodes = len(data.y), 1
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
        if self.reader.take("I")[0] != UNSPLIT:
            self.n_nodes += 2

    def _skip_step(self) -> None:
        reader, (code,) = self.reader, self.reader.take("B")
        if code == SHARES:
            reader.skip(4 * self.n)
        elif code == CUTOFF:
            reader.skip(8)
        elif code == BOX:
            reader.skip(16 * self.q * self.q)
        elif code in (POINT, TILTS):
            for _ in range(reader.take("I")[0] if code == TILTS else 1):
                reader.skip((4 if code == TILTS else 0) + 8 * self.q)
                reader.skip(12 * int(reader.take("I")[0]))
        elif code != WITHOUT_SHARES:
            raise ProofError("there is a step of an unknown kind")

    def walk(self) -> None:
        """Check every node, depth first."""
        rules = SignRules(self._data.inside(np.ones(self.n, dtype=np.bool_), self._T, self._T[:, :0]))
        stack = [(0, rules.root())]
        while stack:
            number, node = stack.pop()
            split, first = UNSPLIT, 0
            if not node.is_closed and number in self._places:
                self.reader.at, first = self._places[number]
                node, split = self._check_node(rules, node)
            if node.is_closed or (split == UNSPLIT and node.value >= rules.cutoff):
                continue
            if split == UNSPLIT:
                raise ProofError(f"node {number} of the tree is neither closed nor split")
            if split >= self.n or not node.low[split] < 0.0 < node.high[split]:
                raise ProofError("a node is split by the sign of a row whose sign is not open")
            stack += [(first + part, rules.part(node, split, part == 0)) for part in (0, 1)]

    def _check_node(self, rules: SignRules, node: Node) -> tuple[Node, int]:
        """Take the steps of a node, until one closes it; returns it and where it is split."""
        for _ in range(self.reader.take("I")[0]):
            node = self._check_step(rules, node)
            if node.is_closed:
                return node, UNSPLIT
        return node, int(self.reader.take("I")[0])

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
