"""Working rows of a sparse X: the same numbers from CSR products, and X is never made dense."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rectifit._typing import Index, Matrix, Selection, Vector
from rectifit.problem import Problem
from rectifit.surrogate.rows import WorkingRows

__all__ = ["SparseRows", "working_rows"]

# T'(A'A)T keeps its digits while T magnifies no column by more than this.
MAGNIFIED = 1e3


def working_rows(problem: Problem) -> WorkingRows:
    """The rows of a problem, dense or sparse."""
    return WorkingRows(problem) if isinstance(problem.X, np.ndarray) else SparseRows(problem)


class SparseRows(WorkingRows):
    """Keeps the rows sqrt(w_i) [x_i, 1] as CSR, columns of size 1; only rows asked for become dense."""

    def __init__(self, problem: Problem) -> None:
        from scipy.sparse import diags_array, hstack

        A = problem.X
        if problem.fit_intercept:
            A = hstack([A, np.ones((problem.n_samples, 1))], format="csr")
        if problem.sample_weight is not None:
            A = diags_array(problem.root_weight) @ A
        maxima = np.asarray(abs(A).max(axis=0).toarray(), dtype=np.float64).ravel()
        self._maxima = np.where(maxima > 0.0, maxima, 1.0)
        self._A = (A @ diags_array(1.0 / self._maxima)).tocsr()
        self._lengths = np.sqrt(self._A.power(2).sum(axis=0))
        super().__init__(problem)

    def gram_of(self, index: Index, sign: Vector | None = None) -> tuple[Matrix, Vector]:
        """Z'SZ and Z'Sy' over these rows, from A'SA while that is exact enough."""
        T = self.T * self._maxima[:, None]
        if float(np.abs(T * self._lengths[:, None]).max()) > MAGNIFIED:
            return super().gram_of(index, sign)
        A = self._A if index.size == self.n_rows else self._A[index]
        signed = A if sign is None else A.multiply(sign[:, None]).tocsr()
        return T.T @ (signed.T @ A).toarray() @ T, (self.y[index] @ signed) @ T

    def _measure_rows(self) -> None:
        if self._diagonal is None:
            super()._measure_rows()
        else:
            scale = self._maxima * self._diagonal
            self.norms = np.sqrt(self._A.power(2) @ np.square(scale))
            self.cross = (self.y @ self._A) * scale

    def _largest(self) -> Vector:
        return np.asarray(self._maxima * (self._lengths > 0.0))

    def _dense(self, select: Selection) -> Any:
        return self.problem.X[select].toarray()

    def _passes(self) -> Iterable[slice]:
        return [slice(0, self.n_rows)]
