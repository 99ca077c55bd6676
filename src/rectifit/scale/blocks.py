"""Data as a sequence of blocks of rows, and the one operation on it: reduce.

A pass is `blocks.reduce(task)`: `task` is called with every block and returns a summary, and summaries are
merged, always in the same order. Tasks and summaries are plain picklable objects whose size does not depend
on the number of rows, so a pass can run on threads, in other processes or on other machines, and only
summaries travel.

Tasks use of a block's arrays only what the Python array API standard has, under its names, in `block.xp`: of
NumPy or of `array_api_compat`. A block of another library overrides `xp` and what makes, reads or moves
arrays, and all tasks work on it.
"""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field, replace
from functools import reduce as fold
from threading import Event
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.checks import check_array, check_length
from rectifit.scale.rows import Space

__all__ = ["ArrayBlocks", "Block", "Blocks", "Summary", "Total", "blas_threads", "merge_all", "run_blocks"]

# A block of an array holds about so many numbers, a piece of it, worked on at a time, so many.
BLOCK, PIECE = 1 << 22, 1 << 19


class Summary(Protocol):
    """What a task returns for a block."""

    def merge(self, other: Self) -> Self:
        """The summary of both blocks."""
        ...


S = TypeVar("S", bound=Summary)


@dataclass(frozen=True)
class Total:
    """A summary that is added up: a number or an array."""

    value: Any

    def merge(self, other: Total) -> Total:
        """The sum over both blocks."""
        return Total(self.value + other.value)


@dataclass(frozen=True)
class Block:
    """Some consecutive rows in NumPy arrays; X is None in a pass that needs only outcomes and weights.

    `kept` is the memory of `rectifit.scale.rows.Space`, which blocks that follow each other can share.
    """

    X: Any
    y: Any
    w: Any
    start: int
    kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def xp(self) -> Any:
        """The namespace of the arrays."""
        return np

    @property
    def n_rows(self) -> int:
        return int(self.y.shape[0])

    def pieces(self, n_beside: int = 0) -> Iterator[Block]:
        """The block in parts that stay in the processor's cache, with so many numbers per row beside X."""
        size = self.n_rows if self.X is None else self.piece_size // (self.X.shape[1] + n_beside)
        for begin in range(0, self.n_rows, max(size, 1)):
            end = min(begin + size, self.n_rows)
            yield replace(
                self,
                X=None if self.X is None else self.X[begin:end],
                y=self.y[begin:end],
                w=None if self.w is None else self.w[begin:end],
                start=self.start + begin,
            )

    @property
    def piece_size(self) -> int:
        """Numbers of X in a piece."""
        return PIECE

    def matrix(self, space: Space) -> Any:
        """Rows sqrt(w) x in float64: X itself where that is what it holds."""
        if self.w is None and self.is_plain:
            return self.X
        A = space("matrix", tuple(self.X.shape))
        if self.w is None:
            A[...] = self.X
            return A
        return self.xp.multiply(self.X, self.root_weight[:, None], out=A)

    def columns(self, scale: Vector, fit_intercept: bool, space: Space) -> Any:
        """Rows sqrt(w) [x, 1] in float64, column j times scale[j]."""
        m, p = self.X.shape
        A = space("columns", (m, p + int(fit_intercept)))
        A[:, :p] = self.X
        A[:, p:] = 1.0
        A *= self.lift(scale)
        if self.w is not None:
            A *= self.root_weight[:, None]
        return A

    @property
    def root_weight(self) -> Any:
        """Square roots of the weights, or ones, in float64."""
        if self.w is None:
            return self.xp.ones_like(self.y, dtype=self.xp.float64)
        return self.xp.sqrt(self.lift(self.w))

    def outcomes(self) -> Any:
        """sqrt(w) y in float64."""
        y = self.lift(self.y)
        return y if self.w is None else self.root_weight * y

    @property
    def is_plain(self) -> bool:
        """Whether X is float64, row by row; a chunk that came over a network may lie across the words."""
        flags = self.X.flags
        return bool(self.X.dtype == np.float64 and flags.c_contiguous and flags.aligned)

    def empty(self, shape: int | tuple[int, ...], kind: str) -> Any:
        """An array with anything in it."""
        return np.empty(shape, dtype=kind)

    def take(self, array: Any, index: Any, out: Any) -> Any:
        """array[index] in memory that is there."""
        return np.take(array, index, axis=0, out=out, mode="clip")

    def product(self, left: Any, right: Any) -> Any:
        """left'right, a sum over rows."""
        return left.T @ right

    def row_numbers(self) -> Any:
        """Numbers of the rows."""
        return np.arange(self.start, self.start + self.n_rows)

    def bits(self, values: Any) -> Any:
        """The bits of float64 numbers as whole numbers."""
        return values.view(np.int64)

    def lift(self, array: Any) -> Any:
        """An array in float64 in the namespace of the block."""
        return np.asarray(array, dtype=np.float64)

    def lower(self, array: Any) -> Any:
        """An array of the block's namespace as a NumPy array."""
        return np.asarray(array)


class Blocks(ABC):
    """Rows of X, outcomes and weights, in blocks.

    Attributes
    ----------
    n_samples, n_features : the shape of X
    has_weights : whether the blocks have weights
    feature_names : names of the columns, where they have any
    n_threads : threads of this process that read; None: as many as BLAS may use
    near_factor : rows per coefficient that a pass should bring back; more of them save passes, but take time
        between passes
    """

    n_samples: int
    n_features: int
    has_weights: bool
    feature_names: tuple[str, ...] | None = None
    n_threads: int | None = None
    near_factor: int = 100

    @abstractmethod
    def reduce(self, task: Callable[[Block], S], *, design: bool = True) -> S:
        """One pass: the merged summaries of all blocks. With design=False blocks come without X."""

    def with_threads(self, n_threads: int) -> Self:
        """The same data, read by so many threads."""
        other = copy(self)
        other.n_threads = n_threads
        return other


def merge_all(summaries: Iterable[S]) -> S:
    """Merge summaries in their order, as they come: only their sum is kept."""
    return fold(lambda left, right: left.merge(right), summaries)


def blas_threads() -> int:
    """Threads that products of matrices may use now: what the environment or `threadpool_limits` allows."""
    from threadpoolctl import threadpool_info

    return max(
        (int(pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas"), default=1
    )


def run_blocks(work: Callable[[int, dict[str, Any]], S], n_blocks: int, n_threads: int) -> S:
    """Merge work(0, kept), work(1, kept), ... on some threads, with one BLAS thread each.

    Thread k has the blocks k, k + n_threads, ...: neighbours are read at about the same time, and every
    thread holds one of them, one summary, and what it has `kept`.
    """
    from threadpoolctl import threadpool_limits

    n_threads, given_up = max(1, min(n_threads, n_blocks)), Event()

    def share(first: int) -> S:
        kept: dict[str, Any] = {}
        total = work(first, kept)
        for index in range(first + n_threads, n_blocks, n_threads):
            if given_up.is_set():
                break
            total = total.merge(work(index, kept))
        return total

    with threadpool_limits(1, "blas"):
        if n_threads == 1:
            return share(0)
        with ThreadPoolExecutor(n_threads) as pool:
            try:
                return merge_all(pool.map(share, range(n_threads)))
            except BaseException:
                given_up.set()
                raise


class ArrayBlocks(Blocks):
    """Arrays in memory, of which blocks are views, or in files, of which a block is mapped at a time.

    Parameters
    ----------
    X : array of shape (n_samples, n_features), float32 or float64
        A `numpy.memmap` whose rows lie one after the other is opened anew for every block, so that pages that
        were read do not stay.
    y : array of shape (n_samples,)
    sample_weight : array of shape (n_samples,), optional
    n_threads : int, optional
        Default: as many as BLAS may use.
    block_rows : int, optional

    Examples
    --------
    >>> import numpy as np
    >>> blocks = ArrayBlocks(np.ones((10, 2)), np.arange(10.0), block_rows=3)
    >>> blocks.n_samples, blocks.n_features
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
        self._X = X
        self._y = _column(y, "y", self.n_samples)
        self._w = None if sample_weight is None else _column(sample_weight, "sample_weight", self.n_samples)
        self.has_weights = sample_weight is not None
        self.n_threads = n_threads
        self._size = block_rows or max(1, BLOCK // self.n_features)

    def reduce(self, task: Callable[[Block], S], *, design: bool = True) -> S:
        """One pass over the arrays."""
        n_blocks = -(-self.n_samples // self._size)

        def work(index: int, kept: dict[str, Any]) -> S:
            rows = slice(index * self._size, min((index + 1) * self._size, self.n_samples))
            block = Block(
                _read_rows(self._X, rows) if design else None,
                _read_rows(self._y, rows),
                None if self._w is None else _read_rows(self._w, rows),
                rows.start,
                kept,
            )
            return task(block)

        return run_blocks(work, n_blocks, self.n_threads or blas_threads())


def _column(values: Any, name: str, n_samples: int) -> Any:
    """One number per row; what lies in a file stays there, and is looked at in the first pass."""
    if not isinstance(values, np.ndarray):
        values = check_array(values, name, dimensions=1)
    if values.ndim != 1:
        raise ValueError(f"{name} has shape {values.shape}; it must be one-dimensional")
    if values.dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {values.dtype}; it must be real numbers")
    return check_length(values, name, n_samples)


def _read_rows(array: Any, rows: slice) -> Matrix:
    """Some rows of an array; of a mapped file, through a mapping of their own that goes with them."""
    root = array
    while isinstance(root, np.memmap) and isinstance(root.base, np.memmap):
        root = root.base
    if (
        not isinstance(root, np.memmap)
        or not isinstance(root.base, mmap.mmap)
        or root.filename is None
        or not array.flags.c_contiguous
    ):
        part: Matrix = array[rows]
        return part
    bytes_per_row = array.dtype.itemsize * int(np.prod(array.shape[1:]))
    offset = root.offset + (array.ctypes.data - root.ctypes.data) + rows.start * bytes_per_row
    shape = (rows.stop - rows.start, *array.shape[1:])
    return np.asarray(np.memmap(root.filename, array.dtype, "r", offset, shape))
