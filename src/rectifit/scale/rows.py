"""Rows of a piece as passes use them: X itself where it can be, and memory that is used again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit._typing import Matrix, Vector

if TYPE_CHECKING:
    from rectifit.scale.blocks import Block

__all__ = ["Held", "Moments", "Rows", "Space"]

# Numbers in the rows that are held before they are multiplied, and at least so many rows.
HELD, FEWEST = 1 << 17, 256


class Space:
    """Memory for what is computed on the way, kept from piece to piece and from block to block.

    New memory costs more than most sums where the process gives it back at once, as workers of dask do.
    """

    def __init__(self, block: Block) -> None:
        self._block = block
        self._kept = block.kept

    def __call__(self, name: str, shape: tuple[int, ...], kind: str = "float64") -> Any:
        """An array with anything in it; what had the name before is overwritten."""
        size, kept = math.prod(shape), self._kept.get(name)
        if kept is None or kept.shape[0] < size:
            kept = self._kept[name] = self._block.empty(size, kind)
        return kept[:size].reshape(shape)


class Rows(NamedTuple):
    """Rows z = [a, side] * unit of a piece, and outcomes v.

    Attributes
    ----------
    piece, space : where they come from
    matrix : (n_rows, n_columns), the a
    edge : (n_rows, 1 or 2), the column of the intercept where the matrix has none, and v
    unit : a factor per coordinate of z
    """

    piece: Block
    space: Space
    matrix: Any
    edge: Any
    unit: Vector

    def times(self, gammas: Matrix) -> Any:
        """Pre-activations of all rows, one line per point."""
        m, p = self.matrix.shape
        factors = self.piece.lift(gammas * self.unit)
        out = self.space("times", (len(gammas), m))
        U = self.piece.xp.matmul(factors[:, :p], self.matrix.T, out=out)
        if p < self.unit.size:
            # Without weights the column is all ones.
            U += factors[:, p:] * (self.edge[:1, 0] if self.piece.w is None else self.edge[:, 0])
        return U

    def dense(self) -> Any:
        """The z, in the library of the piece."""
        (m, p), q = self.matrix.shape, self.unit.size
        Z = self.piece.empty((m, q), "float64")
        Z[:, :p] = self.matrix
        Z[:, p:] = self.edge[:, : q - p]
        Z *= self.piece.lift(self.unit)
        return Z

    def moments(self, factors: Any = None) -> Any:
        """C'C, or C'diag(factors)C, of the columns C = [Z, v], in the library of the piece."""
        piece, A, edge = self.piece, self.matrix, self.edge
        p, unit, left, right = A.shape[1], piece.lift(np.append(self.unit, 1.0)), A, edge
        if factors is not None:
            left = piece.xp.multiply(A, factors[:, None], out=self.space("weighted", tuple(A.shape)))
            right = edge * factors[:, None]
        q = unit.shape[0]
        total = piece.empty((q, q), "float64")
        total[:p, :p] = piece.product(left, A)
        total[:p, p:] = piece.product(left, edge)
        total[p:, :p] = total[:p, p:].T
        total[p:, p:] = piece.product(right, edge)
        total *= unit
        total *= unit[:, None]
        return total


class Held:
    """Rows gathered from the pieces of a block until they are many: products of few rows are slow."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._rows: Rows | None = None
        self._n = 0

    def add(self, rows: Rows, index: Any, edge: Any = None) -> Iterator[Rows]:
        """Add some rows, with an edge of their own if given; yields what is many, to be used at once."""
        n = int(index.shape[0])
        if n == 0:
            return
        most = max(HELD // rows.unit.size, FEWEST)
        at_once = 2 * n > most
        if at_once or self._n + n > most:
            yield from self.release()
        edge = rows.edge[index] if edge is None else edge
        if self._rows is None:
            name, size = ("taken", rows.matrix.shape[0]) if at_once else (self._name, most)
            A = rows.space(name, (size, rows.matrix.shape[1]))
            self._rows = rows._replace(matrix=A, edge=rows.space(f"edge of {name}", (size, edge.shape[1])))
        place = slice(self._n, self._n + n)
        rows.piece.take(rows.matrix, index, self._rows.matrix[place])
        self._rows.edge[place] = edge
        self._n += n
        if at_once:
            yield from self.release()

    def release(self) -> Iterator[Rows]:
        """All rows that are held, if any."""
        rows, n = self._rows, self._n
        self._rows, self._n = None, 0
        if rows is not None:
            yield rows._replace(matrix=rows.matrix[:n], edge=rows.edge[:n])


class Moments:
    """Moments of chosen rows of the pieces of a block, one matrix per line."""

    def __init__(self, block: Block, n_lines: int, n_directions: int) -> None:
        self._block = block
        self._totals = block.lift(np.zeros((n_lines, n_directions + 1, n_directions + 1)))
        self._held: dict[tuple[int, float], Held] = {}

    def add(self, line: int, rows: Rows, chosen: Any, sign: float = 1.0) -> None:
        """Add the rows that a mask chooses, or with the sign -1 subtract them."""
        held = self._held.get((line, sign))
        if held is None:
            held = self._held[line, sign] = Held(f"held {line} {sign}")
        for ready in held.add(rows, rows.piece.xp.nonzero(chosen)[0]):
            self._totals[line] += sign * ready.moments()

    def finish(self) -> npt.NDArray[np.float64]:
        """The matrices."""
        for (line, sign), held in self._held.items():
            for ready in held.release():
                self._totals[line] += sign * ready.moments()
        return np.asarray(self._block.lower(self._totals))
