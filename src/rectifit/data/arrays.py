"""Arrays, in memory or mapped from files, read in blocks of rows."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any

import numpy as np

from rectifit._typing import Matrix
from rectifit.checks import check_array, check_length
from rectifit.data.base import Data
from rectifit.data.blocks import Block, S, run_blocks

__all__ = ["ArrayData"]

# Numbers of X in a block.
BLOCK_NUMBERS = 1 << 22


class ArrayData(Data):
    """Arrays of which blocks are views, or files of which one block is mapped at a time.

    Parameters
    ----------
    X : array of shape (n_samples, n_features), float32 or float64
        A `numpy.memmap` with contiguous rows is opened anew for every block, so that pages that were read do
        not stay in memory.
    y : array of shape (n_samples,)
    sample_weight : array of shape (n_samples,), optional
    n_threads : int, optional
        Default: as many as BLAS may use.
    block_rows : int, optional

    Examples
    --------
    >>> import numpy as np
    >>> data = ArrayData(np.ones((10, 2)), np.arange(10.0), block_rows=3)
    >>> data.n_samples, data.n_features
    (10, 2)
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        n_threads: int | None = None,
        block_rows: int | None = None,
    ) -> None:
        if not isinstance(X, np.ndarray):
            X = check_array(X, "X", dimensions=2)
        if X.ndim != 2 or X.size == 0:
            raise ValueError(f"X has shape {X.shape}; it must be a table with rows and columns")
        if X.dtype.kind not in "fiub":
            raise TypeError(f"X has dtype {X.dtype}; it must be real numbers")
        self.n_samples, self.n_features = X.shape
        self.X = X
        self.y = _column(y, "y", self.n_samples)
        weight = None if sample_weight is None else _column(sample_weight, "sample_weight", self.n_samples)
        self.sample_weight = weight
        self.is_weighted = weight is not None
        self.n_threads = n_threads
        self.block_rows = block_rows

    def reduce(self, task: Callable[[Block], S], *, design: bool = True) -> S:
        """One pass over the arrays."""
        size = self.block_rows or max(1, self._block_numbers // self.n_features)

        def work(index: int, kept: dict[str, Any]) -> S:
            rows = slice(index * size, min((index + 1) * size, self.n_samples))
            X = self._rows(rows) if design else None
            w = None if self.sample_weight is None else _read_rows(self.sample_weight, rows)
            return task(Block(X, _read_rows(self.y, rows), w, rows.start, kept))

        return run_blocks(work, -(-self.n_samples // size), self.n_threads)

    @property
    def _block_numbers(self) -> int:
        return BLOCK_NUMBERS

    def _rows(self, rows: slice) -> Any:
        return _read_rows(self.X, rows)


def _column(values: Any, name: str, n_samples: int) -> Any:
    """One number per row; what lies in a file stays there, and is checked in the first pass."""
    if not isinstance(values, np.ndarray):
        values = check_array(values, name, dimensions=1)
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}; it must be one-dimensional")
    if values.dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {values.dtype}; it must be real numbers")
    return check_length(values, name, n_samples)


def _read_rows(array: Any, rows: slice) -> Matrix:
    """Some rows of an array; of a mapped file, through a mapping of their own that is closed with them."""
    root: Any = array
    while isinstance(root, np.memmap) and isinstance(root.base, np.memmap):
        root = root.base
    # The stubs of NumPy know no base but an array.
    base: Any = root.base
    if (
        not isinstance(root, np.memmap)
        or not isinstance(base, mmap.mmap)
        or root.filename is None
        or not array.flags.c_contiguous
    ):
        part: Matrix = array[rows]
        return part
    bytes_per_row = array.dtype.itemsize * int(np.prod(array.shape[1:]))
    offset = root.offset + (array.ctypes.data - root.ctypes.data) + rows.start * bytes_per_row
    shape = (rows.stop - rows.start, *array.shape[1:])
    return np.asarray(np.memmap(root.filename, array.dtype, "r", offset, shape))
