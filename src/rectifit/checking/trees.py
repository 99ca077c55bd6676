"""The trees of cells in a proof file: what they say of which rows, and a walk through all of them.

    TREE     number of coordinates q, rows that it is about as bits, T, N, the coordinate at which each of the
             first 2q cells is split
    EXPAND   the number of a tree, that of a cell in it, and both of its parts, which get the next two numbers
    END

A part is its number of steps, the steps, and the coordinate at which it is split next, or CLOSED. The tree 0
is about all rows. Every other one is about some of them, with all others at their cost w y^2, and is checked
if a cell rests on it. A cell without parts has to be closed, by its steps or by the last bound or face of a
cell around it.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from rectifit._typing import Mask
from rectifit.checking.cells import BOUND, DRAW, FACE, FAR, LENGTH, OFF, Cell, CellRules, Corners
from rectifit.checking.reading import Claim, ProofError, Reader
from rectifit.checking.rounding import SLACK
from rectifit.checking.rows import Distinct
from rectifit.checking.sign_tree import NODE, SIGNS, SignTree

__all__ = ["CLOSED", "END", "EXPAND", "TREE", "check_trees"]

# Tags of records, and the end of a cell that is not split.
END, EXPAND, TREE = 0, 1, 2
CLOSED = 255


class CellTree:
    """A tree of cells: where the parts of each cell are, and a walk through all of it."""

    def __init__(self, reader: Reader, data: Distinct, claim: Claim) -> None:
        self.reader, self._data, d = reader, data, claim.n_columns
        self._allowed = claim.allowed
        (self.q,) = reader.take("B")
        n = len(data.y)
        bits = reader.array((n + 7) // 8, "u1")
        self.members: Mask = np.unpackbits(bits, count=n).astype(np.bool_)
        if self.q > d:
            raise ProofError("a tree has more coordinates than there are coefficients")
        self._T = reader.vector(d * self.q).reshape(d, self.q)
        self._N = reader.vector(d * (d - self.q)).reshape(d, d - self.q)
        self._splits = reader.array(2 * self.q, "u1").tolist()
        unit = claim.setting.get("unit")
        if type(unit) is not float:
            raise ProofError("the head of the file does not say in which unit multipliers are")
        self._unit = float(np.ldexp(unit, -data.exponent))
        # What trees of faces prove beyond the bound, for rows that are off only almost.
        self._reserve = 0.0 if self.members.all() else claim.reserve
        self._spare = float(np.ldexp(claim.reserve, -data.exponent))
        self.n_cells: int = 2 * self.q
        self.is_limited = False
        # Of every cell that is split, the number of its first part, and where both are described.
        self._parts: dict[int, tuple[int, int]] = {}

    def index(self) -> None:
        """Note where the parts of a cell are, and pass over them."""
        (parent,) = self.reader.take("I")
        if parent >= self.n_cells or parent in self._parts:
            raise ProofError("a cell is split that does not exist or was split before")
        self._parts[parent] = (self.n_cells, self.reader.at)
        for _ in range(2):
            for _ in range(self.reader.take("B")[0]):
                self._skip_step()
            self.reader.skip(1)
        self.n_cells += 2

    def _skip_step(self) -> None:
        reader = self.reader
        (code,) = reader.take("B")
        if code == LENGTH:
            reader.skip(8 * self.q)
        elif code == FACE:
            reader.skip(4)
        elif code in (BOUND, DRAW, FAR):
            reader.skip(8 if code == FAR else 0)
            self._skip_corners()
            if code == DRAW:
                reader.skip(16 + 16 * self.q)
                reader.skip(4 * int(reader.take("I")[0]))
        else:
            raise ProofError("there is a step of an unknown kind")

    def _skip_corners(self) -> None:
        self.reader.skip(12 * int(self.reader.take("B")[0]))

    def _take_corners(self) -> Corners:
        (size,) = self.reader.take("B")
        return Corners(self.reader.array(size, "<u4").astype(np.int64), self.reader.vector(size))

    def walk(self, trees: list[CellTree]) -> set[int]:
        """Check every cell, depth first. Returns the numbers of the trees that this one rests on."""
        rows = self._data.inside(self.members, self._T, self._N, self._reserve)
        walls = self._data.walls(self._T, self._N, self._allowed)
        rules = CellRules(rows, walls, self._unit, self._data.longest)
        stack = list(zip(range(2 * self.q), map(rules.settle, rules.roots()), self._splits, strict=True))
        needed: set[int] = set()
        while stack:
            number, cell, split = stack.pop()
            if cell.is_closed:
                continue
            if number not in self._parts:
                if cell.face is None:
                    raise ProofError(f"cell {number} of a tree is neither closed nor split")
                needed.add(cell.face)
                continue
            if split >= self.q:
                raise ProofError("a cell is split at a coordinate that it does not have")
            first, self.reader.at = self._parts[number]
            for part in range(2):
                is_split = first + part in self._parts
                stack.append(
                    (first + part, *self._check_part(rules, cell.part(split, part == 1), is_split, trees))
                )
        self.is_limited = rules.is_limited
        return needed

    def _check_part(
        self, rules: CellRules, cell: Cell, is_split: bool, trees: list[CellTree]
    ) -> tuple[Cell, int]:
        """Take the steps of a cell; returns it and where it is split. Bounds are for cells that are not."""
        reader, q = self.reader, self.q
        (n_steps,) = reader.take("B")
        cell = rules.settle(cell)
        for _ in range(n_steps):
            if cell.is_closed:
                self._skip_step()
                continue
            (code,) = reader.take("B")
            if code == LENGTH:
                cell = rules.shorten(cell, reader.vector(q))
            elif code == FAR:
                (scale,) = reader.take("d")
                cell = rules.close_far(cell, scale, self._take_corners())
            elif code == BOUND:
                cell = replace(cell, bound=(replace(cell, bound=None), reader.at))
                self._skip_corners()
            elif code == FACE:
                loss = rules.loss_of_almost(cell)
                cell = replace(cell, face=self._face(cell, loss, reader.take("I")[0], trees))
            else:
                cell = self._draw_in(rules, cell)
        (split,) = reader.take("B")
        if not (cell.is_closed or is_split or cell.bound is None):
            (where, at), after = cell.bound, reader.at
            reader.at = at
            cell = replace(cell, is_closed=rules.bound(where, self._take_corners()) >= rules.cutoff)
            reader.at = after
        return cell, int(split)

    def _draw_in(self, rules: CellRules, cell: Cell) -> Cell:
        reader, corners = self.reader, self._take_corners()
        rate, cutoff = reader.take("dd")
        ends = reader.vector(self.q), reader.vector(self.q)
        settled = reader.array(reader.take("I")[0], "<u4").astype(np.int64)
        if settled.max(initial=-1) >= rules.n:
            raise ProofError("a sample is settled that does not exist")
        above = rules.rows.above(cutoff)
        return rules.settle(rules.draw_in(cell, corners, rate * self._unit, ends, above, settled))

    def _face(self, cell: Cell, loss: float, number: int, trees: list[CellTree]) -> int:
        """The tree of a face, if all rows with y > 0 that it is not about are off in a cell."""
        if number >= len(trees):
            raise ProofError("a cell rests on a tree that does not exist")
        members = trees[number].members
        is_smaller = bool((members <= self.members).all()) and int(members.sum()) < int(self.members.sum())
        outside = self.members & ~members
        off = np.ones(len(members), dtype=np.bool_)
        off[self.members] = cell.kind == OFF
        if not loss <= self._spare:
            raise ProofError("a cell rests on a face whose reserve is too small")
        if not (is_smaller and (off | (self._data.y <= 0.0))[outside].all()):
            raise ProofError("a cell rests on a face of which samples are not known to be off")
        return int(number)


def check_trees(claim: Claim, data: Distinct, reader: Reader) -> tuple[int, float]:
    """Check all trees of a file that count.

    Returns how many cells there are, and for coefficients up to which length the proof holds.
    """
    trees: list[CellTree] = []
    signs: SignTree | None = None
    while (tag := reader.take("B")[0]) != END:
        if tag == SIGNS and signs is None:
            signs = SignTree(reader, data, claim)
        elif tag == NODE and signs is not None:
            signs.index()
        elif tag == TREE:
            trees.append(CellTree(reader, data, claim))
        elif tag == EXPAND and (number := reader.take("I")[0]) < len(trees):
            trees[number].index()
        else:
            raise ProofError("there is a record of an unknown kind or tree")
    if reader.at != len(reader.content):
        raise ProofError("something follows the end of the proof")
    n_nodes = sum(tree.n_cells for tree in trees) + (0 if signs is None else signs.n_nodes)
    if data.is_settled:
        return n_nodes, math.inf
    if signs is not None:
        signs.walk()
        return n_nodes, math.inf
    if not trees:
        raise ProofError("the file has no proof")
    if not trees[0].members.all():
        raise ProofError("the first tree of the file is not about all samples")
    checked, todo = set(), [0]
    while todo:
        number = todo.pop()
        checked.add(number)
        # Trees rest on those of fewer rows alone, so none rests on itself.
        todo += [other for other in trees[number].walk(trees) if other not in checked | set(todo)]
    is_limited = any(trees[number].is_limited for number in checked)
    if not is_limited:
        return n_nodes, math.inf
    half, odd = divmod(data.exponent, 2)
    return n_nodes, float(np.ldexp(data.longest * math.sqrt(1.0 + odd) * (1.0 - SLACK), half))
