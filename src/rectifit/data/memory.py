"""Data in memory: dense or sparse X, validated once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from rectifit import pieces
from rectifit._typing import Mask, Matrix, Selection, Vector
from rectifit.active import ActiveSet
from rectifit.checks import check_design, check_outcome, check_weight, row_blocks
from rectifit.data.arrays import BLOCK_NUMBERS, ArrayData
from rectifit.data.blocks import PIECE_NUMBERS, Block
from rectifit.data.sums import OutcomeSums

__all__ = ["MemoryData"]


class MemoryData(ArrayData):
    """Arrays in memory; X is a NumPy array or a SciPy CSR array.

    Attributes
    ----------
    X, y, sample_weight : the arrays; sample_weight may be None
    """

    in_memory = True
    remembers = True

    def __init__(self, X: Any, y: Vector, sample_weight: Vector | None = None) -> None:
        # What was validated is not validated again.
        self.X, self.y, self.sample_weight = X, y, sample_weight
        self.n_samples, self.n_features = map(int, X.shape)
        self.is_weighted = sample_weight is not None
        self.is_sparse = not isinstance(X, np.ndarray)
        self.block_rows = None

    @classmethod
    def from_arrays(cls, X: object, y: object, sample_weight: object = None) -> MemoryData:
        """Check everything; ValueError or TypeError, in one sentence, if anything is wrong."""
        table = check_design(X)
        n_samples = table.shape[0]
        return cls(table, check_outcome(y, n_samples), check_weight(sample_weight, n_samples))

    def load(self, purpose: str) -> MemoryData:  # noqa: ARG002
        """The data itself."""
        return self

    def shifted(self, floor: float) -> MemoryData:
        """The same rows with y - floor for y."""
        return self if floor == 0.0 else self._with(y=self.y - floor)

    def reweighted(self, sample_weight: Vector) -> MemoryData:
        """The same rows with other weights."""
        return self._with(sample_weight=sample_weight)

    def _with(self, **changes: Any) -> MemoryData:
        given = {"X": self.X, "y": self.y, "sample_weight": self.sample_weight}
        return MemoryData(**given | changes)

    @property
    def n_entries(self) -> int:
        """Numbers that are stored."""
        return int(self.X.nnz) if self.is_sparse else self.n_samples * self.n_features

    def dense(self, select: Selection = slice(None)) -> Matrix:
        """Some rows of X as an array, of the dtype that X has."""
        rows = self.X[select]
        return rows if isinstance(rows, np.ndarray) else np.asarray(rows.toarray())

    @cached_property
    def positive(self) -> Mask:
        """Samples with y > 0; only their terms of the objective are not convex."""
        positive: Mask = self.y > 0.0
        return positive

    @cached_property
    def root_weight(self) -> Vector:
        """Square roots of the weights. Scaling a row and its y by it replaces the weight."""
        return np.ones(self.n_samples) if self.sample_weight is None else np.sqrt(self.sample_weight)

    @cached_property
    def weighted_y(self) -> Vector:
        """sqrt(w) y."""
        return np.asarray(self.y if self.sample_weight is None else self.root_weight * self.y)

    @cached_property
    def outcomes(self) -> OutcomeSums:
        """Sums over outcomes and weights."""
        v, positive = self.weighted_y, self.positive
        top = float(np.abs(v).max())
        scaled = v / top if top > 0.0 else v
        fixed = np.minimum(scaled, 0.0)
        n_weighted, n_positive = self.n_samples, int(np.count_nonzero(positive))
        if self.is_weighted:
            weighted = self.root_weight > 0.0
            n_weighted, n_positive = map(int, map(np.count_nonzero, (weighted, weighted & positive)))
        return OutcomeSums(
            self.n_samples,
            n_weighted,
            n_positive,
            top,
            float(scaled @ scaled),
            float(fixed @ fixed),
        ).checked()

    def mask_of(self, active: ActiveSet) -> Mask:
        """An active set as a mask over samples."""
        block = Block(self.X, self.y, self.sample_weight, 0)
        return np.asarray(active.mark(block, self.weighted_y, 1.0))

    def preactivation(self, beta: npt.ArrayLike, intercept: npt.ArrayLike = 0.0) -> Vector:
        """u = X beta + intercept, in float64. A matrix beta has one column per candidate, and so has u."""
        b = np.asarray(beta, dtype=np.float64)
        u: Vector
        if self.X.dtype == np.float64:
            u = self.X @ b
        else:
            u = np.empty((self.n_samples, *b.shape[1:]))
            for block in row_blocks(*self.X.shape):
                u[block] = self.X[block].astype(np.float64) @ b
        u += np.asarray(intercept)
        return u

    def transposed_product(self, slopes: Vector) -> Vector:
        """X'slopes, in float64."""
        if self.X.dtype == np.float64:
            return np.asarray(slopes @ self.X)
        total = np.zeros(self.n_features)
        for block in row_blocks(*self.X.shape):
            total += slopes[block] @ self.X[block].astype(np.float64)
        return total

    def loss_at(self, u: Vector) -> Any:
        """sum w (max(0, u) - y)^2; one number per column where u is a matrix."""
        return self._squares(np.maximum(u, 0.0))

    def loss(self, beta: Vector, intercept: float) -> float:
        """sum w (max(0, u) - y)^2."""
        return float(self.loss_at(self.preactivation(beta, intercept)))

    def surrogate_loss(self, active: ActiveSet, beta: Vector, intercept: float) -> float:
        """The convex surrogate F_I without the ridge."""
        kinks = pieces.kinks(self.y, self.mask_of(active))
        return float(self._squares(np.maximum(self.preactivation(beta, intercept), kinks)))

    def _squares(self, fitted: Vector) -> Any:
        # Scaling before squaring keeps extreme weights and outcomes representable.
        scaled = fitted.T - self.y
        if self.is_weighted:
            scaled *= self.root_weight
        return scaled @ scaled if scaled.ndim == 1 else np.einsum("ji,ji->j", scaled, scaled)

    @property
    def _block_numbers(self) -> int:
        # A sparse X becomes dense a few rows at a time.
        return PIECE_NUMBERS if self.is_sparse else BLOCK_NUMBERS

    def _rows(self, rows: slice) -> Any:
        return self.dense(rows)
