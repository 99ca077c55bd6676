"""Rows of a piece of the data as passes use them: X itself where that is possible, and reused memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from rectifit._typing import Matrix, Vector
from rectifit.coordinates import Coordinates
from rectifit.data.blocks import Block
from rectifit.data.workspace import Workspace

__all__ = ["MomentSums", "PieceRows", "RowBuffer", "read_piece"]

# Numbers in the rows that are buffered before they are multiplied, and rows that are buffered at least.
BUFFER_NUMBERS = 1 << 17
MIN_BUFFER_ROWS = 256


class PieceRows(NamedTuple):
    """Rows z = [a, side] * unit of a piece, and outcomes v.

    Attributes
    ----------
    piece, space : where they come from
    matrix : (n_rows, n_columns), the a
    edge : (n_rows, 1 or 2), the column of the intercept where the matrix has none, and v
    unit : a factor per coordinate of z
    """

    piece: Block
    space: Workspace
    matrix: Any
    edge: Any
    unit: Vector

    def times(self, gammas: Matrix) -> Any:
        """Pre-activations of all rows, one line per point."""
        m, p = self.matrix.shape
        factors = self.piece.to_float64(gammas * self.unit)
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
        Z *= self.piece.to_float64(self.unit)
        return Z

    def moments(self, factors: Any = None) -> Any:
        """C'C, or C'diag(factors)C, of the columns C = [Z, v], in the library of the piece."""
        piece, A, edge = self.piece, self.matrix, self.edge
        p, unit, left, right = A.shape[1], piece.to_float64(np.append(self.unit, 1.0)), A, edge
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


def read_piece(coordinates: Coordinates, piece: Block, space: Workspace) -> tuple[PieceRows, Any]:
    """Rows z and outcomes v of a piece."""
    xp, m = piece.xp, piece.n_rows
    v = xp.multiply(piece.outcomes(), 1.0 / coordinates.scale, out=space("v", (m,)))
    fit_intercept, diagonal = coordinates.fit_intercept, coordinates.diagonal
    if coordinates.is_tame:
        assert diagonal is not None
        edge = space("edge", (m, 1 + int(fit_intercept)))
        if fit_intercept:
            edge[:, 0] = 1.0 if piece.w is None else piece.root_weight
        edge[:, -1] = v
        return PieceRows(piece, space, piece.matrix(space), edge, diagonal), v
    if diagonal is not None:
        Z = piece.columns(diagonal, fit_intercept, space)
    else:
        A = piece.columns(np.ones(coordinates.n_columns), fit_intercept, space)
        T = piece.to_float64(coordinates.T)
        Z = xp.matmul(A, T, out=space("rows", (m, coordinates.n_directions)))
    return PieceRows(piece, space, Z, v[:, None], np.ones(coordinates.n_directions)), v


class RowBuffer:
    """Rows gathered from the pieces of a block until they are many: products of few rows are slow."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._rows: PieceRows | None = None
        self._n = 0

    def add(self, rows: PieceRows, index: Any, edge: Any = None) -> Iterator[PieceRows]:
        """Add some rows, with an edge of their own if given; yields a full buffer, to be used at once."""
        n = int(index.shape[0])
        if n == 0:
            return
        capacity = max(BUFFER_NUMBERS // rows.unit.size, MIN_BUFFER_ROWS)
        at_once = 2 * n > capacity
        if at_once or self._n + n > capacity:
            yield from self.release()
        edge = rows.edge[index] if edge is None else edge
        if self._rows is None:
            name, size = ("taken", rows.matrix.shape[0]) if at_once else (self._name, capacity)
            A = rows.space(name, (size, rows.matrix.shape[1]))
            self._rows = rows._replace(matrix=A, edge=rows.space(f"edge of {name}", (size, edge.shape[1])))
        place = slice(self._n, self._n + n)
        rows.piece.take(rows.matrix, index, self._rows.matrix[place])
        self._rows.edge[place] = edge
        self._n += n
        if at_once:
            yield from self.release()

    def release(self) -> Iterator[PieceRows]:
        """All rows in the buffer, if any."""
        rows, n = self._rows, self._n
        self._rows, self._n = None, 0
        if rows is not None:
            yield rows._replace(matrix=rows.matrix[:n], edge=rows.edge[:n])


class MomentSums:
    """Moments of chosen rows of the pieces of a block, one matrix per line."""

    def __init__(self, block: Block, n_lines: int, n_directions: int) -> None:
        self._block = block
        self._totals = block.to_float64(np.zeros((n_lines, n_directions + 1, n_directions + 1)))
        self._buffers: dict[tuple[int, float], RowBuffer] = {}

    def add(self, line: int, rows: PieceRows, chosen: Any, sign: float = 1.0) -> None:
        """Add the rows that a mask chooses, or with the sign -1 subtract them."""
        buffer = self._buffers.get((line, sign))
        if buffer is None:
            buffer = self._buffers[line, sign] = RowBuffer(f"buffer {line} {sign}")
        for ready in buffer.add(rows, rows.piece.xp.nonzero(chosen)[0]):
            self._totals[line] += sign * ready.moments()

    def finish(self) -> npt.NDArray[np.float64]:
        """The matrices."""
        for (line, sign), buffer in self._buffers.items():
            for ready in buffer.release():
                self._totals[line] += sign * ready.moments()
        return np.asarray(self._block.to_numpy(self._totals))
