"""Working coordinates of data in blocks, from a first pass over it.

The coordinates are those of `rectifit.surrogate.rows`: rows z_i = sqrt(w_i) [x_i, 1] T and outcomes
v_i = sqrt(w_i) y_i / s, with columns of length 1, and whitened where they are nearly dependent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.scale.blocks import Block, Total, merge_all
from rectifit.scale.rows import Rows, Space
from rectifit.surrogate.rows import NOISE, RESOLVED, WELL_CONDITIONED

__all__ = ["Frame", "Sample", "Survey", "SurveyTask", "join_samples", "make_frame"]


# Columns longer than this, or shorter than one over it, are scaled before anything is squared.
TAME = 1e100


class Sample(NamedTuple):
    """Some rows in memory: X, y, weights or None, and their numbers."""

    X: Any
    y: Vector
    w: Vector | None
    index: Any


def join_samples(parts: list[Sample]) -> Sample:
    """Samples of several pieces as one."""
    X, y, w, index = zip(*parts, strict=True)
    weights = None if w[0] is None else np.concatenate(w)
    return Sample(np.concatenate(X), np.concatenate(y), weights, np.concatenate(index))


@dataclass(frozen=True)
class Survey:
    """Sizes and sums over rows a = sqrt(w) [x, 1] and v = sqrt(w) y; every column over its largest entry.

    Attributes
    ----------
    n_rows, n_weighted, n_positive : rows, those with weight, and of these those with y > 0
    largest, top : largest |a_j| of every column, largest |v|
    gram, cross : A'A and A'v in these units
    total, fixed : sums of v^2 over all rows, and over y <= 0, in units of top^2
    sample : some of the rows
    """

    n_rows: int
    n_weighted: int
    n_positive: int
    largest: Vector
    top: float
    gram: Matrix
    cross: Vector
    total: float
    fixed: float
    sample: list[Sample]

    def __getstate__(self) -> dict[str, Any]:
        # Few large arrays travel faster than many small ones.
        return self.__dict__ | {"sample": [join_samples(self.sample)] if self.sample else []}

    def merge(self, other: Survey) -> Survey:
        """Both, in the units of the larger."""
        largest, top = np.maximum(self.largest, other.largest), max(self.top, other.top)
        gram, cross, total, fixed = np.zeros_like(self.gram), np.zeros_like(self.cross), 0.0, 0.0
        for part in (self, other):
            ratio = part.largest / np.where(largest > 0.0, largest, 1.0)
            share = part.top / top if top > 0.0 else 0.0
            gram += part.gram * np.outer(ratio, ratio)
            cross += part.cross * ratio * share
            total += part.total * share * share
            fixed += part.fixed * share * share
        return Survey(
            self.n_rows + other.n_rows,
            self.n_weighted + other.n_weighted,
            self.n_positive + other.n_positive,
            largest,
            top,
            gram,
            cross,
            total,
            fixed,
            self.sample + other.sample,
        )


@dataclass(frozen=True)
class SurveyTask:
    """The first pass. Each row is in the sample with probability `share`, by its number alone."""

    fit_intercept: bool
    share: float

    def __call__(self, block: Block) -> Survey:
        """Check the numbers of a block and sum them up."""
        space = Space(block)
        return merge_all(self._survey(piece, space) for piece in block.pieces())

    def _survey(self, piece: Block, space: Space) -> Survey:
        xp = piece.xp
        if piece.w is not None:
            _check_finite(piece.w, "sample_weight", xp)
            if not bool(xp.all(piece.w >= 0.0)):
                raise ValueError("sample_weight has a negative entry; weights must be non-negative")
        A, v = piece.matrix(space), piece.outcomes()
        # Both are NaN where an entry is.
        largest = piece.lower(xp.maximum(xp.max(A, axis=0), -xp.min(A, axis=0)))
        top = float(xp.max(xp.abs(v)))
        if not (np.isfinite(largest).all() and np.isfinite(top)):
            _check_finite(piece.X, "X", xp)
            _check_finite(piece.y, "y", xp)
        if self.fit_intercept:
            largest = np.append(largest, float(xp.max(piece.root_weight)))
        unit = 1.0 / np.where(largest > 0.0, largest, 1.0)
        v = v * (1.0 / top) if top > 0.0 else v
        frame = Frame(np.diag(unit), unit, unit, top or 1.0, self.fit_intercept)
        weighted = v == v if piece.w is None else piece.w > 0.0
        positive = (v > 0.0) & weighted
        squares = v * v
        moments = piece.lower(frame.rows(piece, space)[0].moments())
        return Survey(
            piece.n_rows,
            int(xp.sum(weighted)),
            int(xp.sum(positive)),
            largest,
            top,
            moments[:-1, :-1],
            moments[:-1, -1],
            float(xp.sum(squares)),
            float(xp.sum(squares[v <= 0.0])),
            self._sample(piece),
        )

    def _sample(self, piece: Block) -> list[Sample]:
        index = piece.row_numbers()
        # Never empty: the first row is always in it.
        chosen = (_hash(index) < self.share * 2.0**53) | (index == 0)
        if not bool(piece.xp.any(chosen)):
            return []
        # Rows are copied: a view would keep the block.
        return [
            Sample(
                np.array(piece.lower(piece.X[chosen])),
                np.array(piece.lower(piece.y[chosen]), dtype=np.float64),
                None if piece.w is None else np.array(piece.lower(piece.w[chosen]), dtype=np.float64),
                np.array(piece.lower(index[chosen])),
            )
        ]


def _check_finite(values: Any, name: str, xp: Any) -> None:
    if not bool(xp.all(xp.isfinite(values))):
        found = "NaN" if bool(xp.any(xp.isnan(values))) else "an infinite value"
        raise ValueError(f"{name} contains {found}; all entries must be finite")


def _hash(index: Any) -> Any:
    """A whole number below 2^53 for every row number, as good as random (splitmix64).

    Written for signed numbers, the only ones that every array library has: shifts are masked, and the
    multipliers are those of splitmix64 less 2^64.
    """
    h = index * -0x61C8864680B583EB
    h = (h ^ ((h >> 30) & ((1 << 34) - 1))) * -0x40A7B892E31B1A47
    h = (h ^ ((h >> 27) & ((1 << 37) - 1))) * -0x6B2FB644ECCEEE15
    return ((h ^ ((h >> 31) & ((1 << 33) - 1))) >> 11) & ((1 << 53) - 1)


@dataclass(frozen=True)
class Frame:
    """The map from data to working coordinates: small, and sent along with every task.

    Attributes
    ----------
    T : (n_columns, n_directions), from working coordinates to coefficients over `scale`, the intercept last
    diagonal : the diagonal of T where it is a diagonal matrix
    unit : one over the largest entry of every column
    scale : s, a power of two
    """

    T: Matrix
    diagonal: Vector | None
    unit: Vector
    scale: float
    fit_intercept: bool

    def __getstate__(self) -> dict[str, Any]:
        # The diagonal is all that a diagonal matrix needs to travel.
        return self.__dict__ if self.diagonal is None else self.__dict__ | {"T": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        T = state["T"] if state["diagonal"] is None else np.diag(state["diagonal"])
        self.__dict__.update(state | {"T": T})

    @property
    def n_directions(self) -> int:
        return int(self.T.shape[1])

    def rows(self, piece: Block, space: Space) -> tuple[Rows, Any]:
        """Rows z and outcomes v of a piece."""
        xp, m = piece.xp, piece.n_rows
        v = xp.multiply(piece.outcomes(), 1.0 / self.scale, out=space("v", (m,)))
        if self.is_tame:
            assert self.diagonal is not None
            edge = space("edge", (m, 1 + int(self.fit_intercept)))
            if self.fit_intercept:
                edge[:, 0] = 1.0 if piece.w is None else piece.root_weight
            edge[:, -1] = v
            return Rows(piece, space, piece.matrix(space), edge, self.diagonal), v
        if self.diagonal is not None:
            Z = piece.columns(self.diagonal, self.fit_intercept, space)
        else:
            A = piece.columns(np.ones(self.T.shape[0]), self.fit_intercept, space)
            Z = xp.matmul(A, piece.lift(self.T), out=space("rows", (m, self.n_directions)))
        return Rows(piece, space, Z, v[:, None], np.ones(self.n_directions)), v

    @cached_property
    def is_tame(self) -> bool:
        """Whether columns are only scaled, and squares are finite before that too."""
        return self.diagonal is not None and bool(
            (self.diagonal > 1.0 / TAME).all() and (self.diagonal < TAME).all()
        )

    def coefficients(self, gamma: Vector) -> tuple[Vector, float]:
        """Coefficients and intercept of a point."""
        b = self.T @ (gamma * self.scale)
        p = b.size - int(self.fit_intercept)
        return b[:p], float(b[p:].sum())

    def from_coefficients(self, beta: Vector, intercept: float) -> Vector:
        """Working coordinates whose coefficients are nearest to the given ones."""
        b = (np.append(beta, intercept) if self.fit_intercept else np.asarray(beta)) / self.scale
        if self.diagonal is not None:
            return b / self.diagonal
        return np.asarray(np.linalg.lstsq(self.T / self.unit[:, None], b / self.unit, rcond=None)[0])

    def plain(self) -> Frame:
        """Coordinates of which every coefficient is one, up to its unit."""
        return Frame(np.diag(self.unit), self.unit, self.unit, self.scale, self.fit_intercept)


@dataclass(frozen=True)
class _GramTask:
    frame: Frame

    def __call__(self, block: Block) -> Total:
        space = Space(block)
        rows = (self.frame.rows(piece, space)[0] for piece in block.pieces())
        return merge_all(Total(part.piece.lower(part.moments())[:-1, :-1]) for part in rows)


def make_frame(
    survey: Survey, penalty: Vector, fit_intercept: bool, reduce: Callable[[Any], Any]
) -> tuple[Frame, Matrix]:
    """Frame and Z'Z; further passes only where columns are nearly dependent."""
    scale = 2.0 ** math.ceil(math.log2(survey.top)) if survey.top > 0.0 else 1.0
    unit = 1.0 / np.where(survey.largest > 0.0, survey.largest, 1.0)
    lengths = np.sqrt(np.diag(survey.gram) + penalty * np.square(unit))
    shrink = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
    diagonal = unit * shrink
    gram = survey.gram * np.outer(shrink, shrink)
    frame = Frame(np.diag(diagonal), diagonal, unit, scale, fit_intercept)

    def stiffness() -> Matrix:
        return np.asarray(gram + frame.T.T @ (penalty[:, None] * frame.T))

    try:
        if float(np.linalg.cholesky(stiffness()).diagonal().min() ** 2) >= WELL_CONDITIONED:
            return frame, gram
    except np.linalg.LinAlgError:
        pass
    # Of the scaled columns, in ascending order; the last as many as there are directions span their rows.
    spans = np.linalg.eigh(gram)[1]
    # In rounds, as a Gram matrix squares conditions.
    for attempt in range(5):
        values, vectors = np.linalg.eigh(stiffness())
        if values[-1] <= 0.0:
            break
        keep = values > (NOISE * values[-1] if attempt > 0 else -np.inf)
        if attempt > 0 and keep.all() and values[0] > 0.1 * values[-1]:
            break
        stretch = 1.0 / np.sqrt(np.maximum(values[keep], RESOLVED * values[-1]))
        frame = Frame(frame.T @ (vectors[:, keep] * stretch), None, unit, scale, fit_intercept)
        gram = reduce(_GramTask(frame)).value
    if 0 < frame.n_directions < diagonal.size:
        # Dependent columns: of all equal solutions the shortest, which lies in the span of the rows.
        rows = spans[:, -frame.n_directions :]
        T = diagonal[:, None] * (rows @ (rows.T @ (frame.T / diagonal[:, None])))
        frame = replace(frame, T=T)
        gram = reduce(_GramTask(frame)).value
    return frame, gram
