"""Blocks of rows, and how a pass over them runs.

A pass is `data.reduce(task)`: `task` is called with every block and returns a summary, and summaries are
merged, always in the same order. Tasks and summaries are plain picklable objects whose size does not depend
on the number of rows, so a pass can run on threads, in other processes or on other machines, and only
summaries travel.

Tasks use only those array functions that the Python array API standard has, under its names, from `block.xp`:
NumPy or `array_api_compat`. A block of another library overrides `xp` and the methods that make, read or move
arrays, and all tasks work on it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce as fold
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from rectifit._typing import Vector
from rectifit.data.workspace import Workspace
from rectifit.parallel import limit_threads

__all__ = [
    "Block",
    "ChosenRows",
    "Layout",
    "Mergeable",
    "S",
    "Total",
    "blas_threads",
    "line_slices",
    "merge_all",
    "run_blocks",
]

# Numbers of X in a piece of a block, which stays in the processor's cache.
PIECE_NUMBERS = 1 << 19
# Blocks per thread that are begun before the first of them is merged.
MAX_WAITING = 2


class Mergeable(Protocol):
    """What a task returns for a block."""

    def merge(self, other: Self) -> Self:
        """The summary of both blocks."""
        ...


S = TypeVar("S", bound=Mergeable)


@dataclass(frozen=True)
class Total:
    """A summary that is added up: a number or an array."""

    value: Any

    def merge(self, other: Total) -> Total:
        """The sum over both blocks."""
        return Total(self.value + other.value)


def line_slices(counts: npt.NDArray[np.int64]) -> list[slice]:
    """Where every line is in an array that has one line after another."""
    ends = np.cumsum(counts).tolist()
    return [slice(begin, end) for begin, end in zip([0, *ends[:-1]], ends, strict=True)]


class Layout:
    """How rows of several lines stand in an array: one line after another.

    Parameters
    ----------
    counts : rows of every line

    Attributes
    ----------
    joins_columns : whether a copy of all columns and one product take less time than several products
    """

    joins_columns = False

    def __init__(self, counts: npt.NDArray[np.int64]) -> None:
        self.counts = counts

    def arrange(self, values: Any) -> Any:
        """Values of the rows where these stand."""
        return values

    def pick(self, values: Any) -> Any:
        """From where the rows stand, their values."""
        return values

    def only_rows(self, values: Any) -> Any:
        """The same, with zeros where no row stands."""
        return values

    @property
    def is_row(self) -> Any:
        """1 where a row stands, and 0 where none does."""
        return np.ones(int(self.counts.sum()))

    @property
    def lines(self) -> Any:
        """The number of its line for every row."""
        return np.repeat(np.arange(self.counts.size), self.counts)

    def products(self, left: Any, right: Any) -> Any:
        """left'right for every line, a sum over its rows."""
        return np.stack([left[line].T @ right[line] for line in line_slices(self.counts)])


class ChosenRows(NamedTuple):
    """Rows of a block, line after line: their numbers in the block, and how many each line has."""

    index: Any
    counts: npt.NDArray[np.int64]

    def part(self, place: slice) -> ChosenRows:
        """Those in one place of the index."""
        ends = np.clip(np.cumsum(self.counts), place.start, place.stop)
        return ChosenRows(self.index[place], np.diff(ends, prepend=place.start))

    def only(self, block: Block, kept: Any) -> ChosenRows:
        """Those that a mask keeps."""
        where = block.to_numpy(block.xp.nonzero(kept)[0])
        ends = np.searchsorted(where, np.cumsum(self.counts))
        return ChosenRows(self.index[kept], np.diff(ends, prepend=0))


@dataclass(frozen=True)
class Block:
    """Some consecutive rows in NumPy arrays; X is None in a pass that needs only outcomes and weights.

    `kept` is the memory of a `Workspace`, which blocks that follow each other can share.
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
    def has_triton(self) -> bool:
        """Whether Triton compiles for the device that has the arrays."""
        return False

    @property
    def n_rows(self) -> int:
        return int(self.y.shape[0])

    def pieces(self, n_beside: int = 0) -> Iterator[Block]:
        """The block in parts that stay in the processor's cache, with so many numbers per row beside X."""
        size = self.n_rows if self.X is None else self.piece_numbers // (self.X.shape[1] + n_beside)
        size = max(size, 1)
        for begin in range(0, self.n_rows, size):
            end = min(begin + size, self.n_rows)
            yield replace(
                self,
                X=None if self.X is None else self.X[begin:end],
                y=self.y[begin:end],
                w=None if self.w is None else self.w[begin:end],
                start=self.start + begin,
            )

    @property
    def piece_numbers(self) -> int:
        """Numbers of X in a piece."""
        return PIECE_NUMBERS

    def workspace(self) -> Workspace:
        """Memory for the pieces of the block."""
        return Workspace(self.empty, self.kept)

    def matrix(self, space: Workspace) -> Any:
        """Rows sqrt(w) x in float64: X itself if it holds just that."""
        if self.w is None and self.is_plain:
            return self.X
        A = space("matrix", tuple(self.X.shape))
        if self.w is None:
            A[...] = self.X
            return A
        return self.xp.multiply(self.X, self.root_weight[:, None], out=A)

    def columns(self, scale: Vector, fit_intercept: bool, space: Workspace) -> Any:
        """Rows sqrt(w) [x, 1] in float64, column j times scale[j]."""
        m, p = self.X.shape
        A = space("columns", (m, p + int(fit_intercept)))
        A[:, :p] = self.X
        A[:, p:] = 1.0
        A *= self.to_float64(scale)
        if self.w is not None:
            A *= self.root_weight[:, None]
        return A

    @property
    def root_weight(self) -> Any:
        """Square roots of the weights, or ones, in float64."""
        if self.w is None:
            return self.xp.ones_like(self.y, dtype=self.xp.float64)
        return self.xp.sqrt(self.to_float64(self.w))

    def outcomes(self) -> Any:
        """sqrt(w) y in float64."""
        y = self.to_float64(self.y)
        return y if self.w is None else self.root_weight * y

    def preactivation(self, beta: Vector, intercept: float, space: Workspace) -> Any:
        """sqrt(w) (X beta + intercept)."""
        u = self.matrix(space) @ self.to_float64(beta)
        u += intercept if self.w is None else intercept * self.root_weight
        return u

    @property
    def is_plain(self) -> bool:
        """Whether X is float64 and C-contiguous; a chunk that came over a network may be unaligned."""
        flags = self.X.flags
        return bool(self.X.dtype == np.float64 and flags.c_contiguous and flags.aligned)

    def empty(self, shape: int | tuple[int, ...], kind: str) -> Any:
        """An uninitialised array."""
        return np.empty(shape, dtype=kind)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        """Zeros in float64."""
        return np.zeros(shape)

    def take(self, array: Any, index: Any, out: Any) -> Any:
        """array[index], written to existing memory."""
        return np.take(array, index, axis=0, out=out, mode="clip")

    def times(self, rows: Any, factors: Any, space: Workspace) -> Any:
        """Products of all rows with some factors, one line per factor; equal factors are multiplied once."""
        known: dict[bytes, int] = {}
        places = [known.setdefault(factor.tobytes(), len(known)) for factor in factors]
        firsts = [places.index(place) for place in range(len(known))]
        m = int(rows.shape[0])
        # The long side first: BLAS takes half the time, and to transpose what it finds takes little of that.
        right = np.ascontiguousarray(factors[firsts].T)
        found = np.matmul(rows, right, out=space("products", (m, len(firsts))))
        lines = space("times", (len(places), m))
        for line, place in zip(lines, places, strict=True):
            line[...] = found[:, place]
        return lines

    def product(self, left: Any, right: Any) -> Any:
        """left'right, a sum over rows."""
        return left.T @ right

    def choose(self, index: Any, space: Workspace) -> Block:
        """Some of the rows, in memory that is used again; they have no numbers."""
        # Blocks that share their memory may differ in their dtypes.
        shape = int(index.shape[0]), self.X.shape[1]
        X = self.take(self.X, index, space(f"chosen {self.kind}", shape, self.kind))
        return replace(self, X=X, y=self.y[index], w=None if self.w is None else self.w[index])

    @property
    def kind(self) -> str:
        """Name of the dtype of X."""
        return str(self.X.dtype.name)

    def layout(self, counts: npt.NDArray[np.int64]) -> Layout:
        """How rows of several lines are to stand in an array."""
        return Layout(counts)

    def squares(self, lines: Any) -> Any:
        """Sum of squares of every line; the array may be overwritten."""
        return np.vecdot(lines, lines)

    def count(self, masks: Any) -> npt.NDArray[np.int64]:
        """How many entries of every line are true."""
        # Faster than a sum of truth values over an axis.
        return np.array([np.count_nonzero(line) for line in masks], dtype=np.int64)

    def row_numbers(self) -> Any:
        """Numbers of the rows."""
        return np.arange(self.start, self.start + self.n_rows)

    def bits(self, values: Any) -> Any:
        """The bits of float64 numbers as whole numbers."""
        return values.view(np.int64)

    def to_float64(self, array: Any) -> Any:
        """An array in float64 in the namespace of the block."""
        return np.asarray(array, dtype=np.float64)

    def to_numpy(self, array: Any) -> Any:
        """An array of the block's namespace as a NumPy array."""
        return np.asarray(array)


def merge_all(summaries: Iterable[S]) -> S:
    """Merge summaries in their order, as they come: only their sum is kept."""
    return fold(lambda left, right: left.merge(right), summaries)


def blas_threads() -> int:
    """Threads that matrix products may use now: what the environment or `threadpool_limits` allows."""
    from threadpoolctl import threadpool_info

    return max(
        (int(pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas"), default=1
    )


def run_blocks(work: Callable[[int, dict[str, Any]], S], n_blocks: int, n_threads: int | None) -> S:
    """Merge work(0, kept), work(1, kept), ... in this order on some threads, with one BLAS thread each.

    So sums do not depend on the threads, to the last digit. A thread works with memory `kept` that no other
    one uses meanwhile, and only a few summaries wait for those before them. None is as many threads as matrix
    products may use now.
    """
    # One block needs one thread; to ask for more takes milliseconds.
    n_threads = 1 if n_blocks <= 1 else max(1, min(n_threads or blas_threads(), n_blocks))
    free: list[dict[str, Any]] = [{} for _ in range(n_threads)]

    def work_on(index: int) -> S:
        kept = free.pop()
        try:
            return work(index, kept)
        finally:
            free.append(kept)

    with limit_threads("blas"):
        if n_threads == 1:
            return merge_all(map(work_on, range(n_blocks)))
        with ThreadPoolExecutor(n_threads) as pool:
            running: deque[Future[S]] = deque()

            def results() -> Iterator[S]:
                for index in range(n_blocks):
                    running.append(pool.submit(work_on, index))
                    if len(running) > MAX_WAITING * n_threads:
                        yield running.popleft().result()
                while running:
                    yield running.popleft().result()

            try:
                return merge_all(results())
            finally:
                pool.shutdown(cancel_futures=True)
