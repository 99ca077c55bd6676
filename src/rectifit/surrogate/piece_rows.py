"""Rows of a piece of the data as passes use them: X itself where that is possible, and reused memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.coordinates import Coordinates
from rectifit.data.blocks import Block, ChosenRows, Layout
from rectifit.data.workspace import Workspace

__all__ = ["Part", "PieceRows", "by_lines", "read_piece"]

# Chosen rows are multiplied so many at a time, as a share of a piece.
CHOSEN_SHARE = 2


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
        p = self.matrix.shape[1]
        factors = self.piece.to_float64(gammas * self.unit)
        U = self.piece.times(self.matrix, factors[:, :p], self.space)
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

    def line_moments(self, layout: Layout, weights: Any = None, *more: Any) -> Any:
        """C'diag(weights)C of every line, for the columns C = [Z, v] and more.

        `weights` has one column, or several: they stand one after another in the second place. Without them
        all rows count alike.
        """
        xp, A = self.piece.xp, self.matrix
        edge = xp.concat([self.edge, *(column[:, None] for column in more)], axis=1) if more else self.edge
        (_, p), e, n_weights = A.shape, edge.shape[1], 1 if weights is None else weights.shape[1]
        found = self.piece.empty((layout.counts.size, n_weights, p + e, p + e), "float64")
        if layout.joins_columns:
            A, edge = xp.concat([A, edge], axis=1), edge[:, :0]
        for s in range(n_weights):
            if weights is None:
                left, left_edge = layout.only_rows(A), layout.only_rows(edge)
            else:
                left, left_edge = A * weights[:, s : s + 1], edge * weights[:, s : s + 1]
            self._multiply(layout.products, (left, left_edge), (A, edge), found[:, s])
        return found

    def moments(self) -> Any:
        """C'C of the columns C = [Z, v], in the library of the piece."""
        q = self.unit.size + 1
        total = self.piece.empty((q, q), "float64")
        both = self.matrix, self.edge
        self._multiply(self.piece.product, both, both, total)
        return total

    def _multiply(
        self, product: Callable[[Any, Any], Any], left: tuple[Any, Any], right: tuple[Any, Any], out: Any
    ) -> None:
        """Write left'right in units of the coordinates; both are a matrix and the columns beside it.

        The matrix is not copied to stand beside them, and an array times itself costs half of a product.
        """
        (A, A_edge), (B, edge) = left, right
        p, n_edges = B.shape[1], edge.shape[1]
        out[..., :p, :p] = product(A, B)
        if n_edges > 0:
            out[..., :p, p:] = product(A, edge)
            out[..., p:, :p] = self.piece.xp.matrix_transpose(out[..., :p, p:])
            out[..., p:, p:] = product(A_edge, edge)
        unit = self.piece.to_float64(np.concatenate([self.unit, np.ones(p + n_edges - self.unit.size)]))
        out *= unit
        out *= unit[:, None]


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
        Z = coordinates.rows(A, xp, piece.to_float64)
    return PieceRows(piece, space, Z, v[:, None], np.ones(coordinates.n_directions)), v


class Part(NamedTuple):
    """Some of the chosen rows of a block.

    Attributes
    ----------
    place : which of the chosen rows they are
    layout : how they stand in the arrays
    rows, v : the rows and their outcomes
    """

    place: slice
    layout: Layout
    rows: PieceRows
    v: Any


def by_lines(coordinates: Coordinates, block: Block, chosen: ChosenRows, space: Workspace) -> Iterator[Part]:
    """Chosen rows, some at a time."""
    size = max(block.piece_numbers // (CHOSEN_SHARE * coordinates.n_columns), 1)
    for begin in range(0, int(chosen.index.shape[0]), size):
        place = slice(begin, begin + size)
        part = chosen.part(place)
        layout = block.layout(part.counts)
        rows = block.choose(layout.arrange(part.index), space)
        yield Part(place, layout, *read_piece(coordinates, rows, space))
