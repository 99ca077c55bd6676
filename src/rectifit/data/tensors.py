"""Torch tensors: passes run on the device of the tensors, and only their summaries come to the host.

On an accelerator pieces are large, so that a pass is a handful of large kernels. float32 tensors are read as
they are; all sums are in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from rectifit.checks import check_array, check_length, check_tensor, import_torch, is_tensor, to_numpy
from rectifit.data.base import Data
from rectifit.data.blocks import PIECE_NUMBERS, Block, Layout, S, merge_all
from rectifit.data.workspace import Workspace

__all__ = ["TensorBlock", "TensorData"]

# An accelerator has one number of a piece per so many bytes of its memory: large pieces save calls, each of
# which takes longer than a million numbers.
BYTES_PER_NUMBER = 96
# An accelerator makes a pass sooner than the host works on many rows.
NEAR_FACTOR = 10
SAMPLE_FACTOR = 20
MAX_SOLVED_SAMPLE = 1 << 19
# Products of tall matrices are sums over parts of so many rows, which keep the whole device busy.
PART_ROWS = 1 << 13
# Share of the free memory that a copy of X may take.
COPY_SHARE = 0.25
# Numbers from which on a tensor goes to the host by way of pinned memory, which takes longer to get.
PINNED_NUMBERS = 1 << 14


@cache
def import_namespace() -> Any:
    """Torch under the names of the array API standard."""
    import_torch()
    try:
        import array_api_compat.torch
    except ImportError:
        raise ImportError("tensors need array-api-compat: pip install 'rectifit[torch]'") from None
    return array_api_compat.torch


@cache
def has_triton(device: Any) -> bool:
    """Whether Triton compiles for a device."""
    return bool(device.type == "cuda") and find_spec("triton") is not None


@cache
def count_piece_numbers(device: Any) -> int:
    """Numbers in a piece on an accelerator."""
    return int(import_torch().cuda.get_device_properties(device).total_memory) // BYTES_PER_NUMBER


class TensorBlock(Block):
    """Some consecutive rows in tensors."""

    @property
    def xp(self) -> Any:
        """The namespace of the tensors, with the names of the array API standard."""
        return import_namespace()

    @property
    def has_triton(self) -> bool:
        """Whether Triton compiles for the device of the tensors."""
        return has_triton(self.y.device)

    @property
    def piece_numbers(self) -> int:
        """Numbers in a piece."""
        if self.y.device.type == "cpu":
            return PIECE_NUMBERS
        return count_piece_numbers(self.y.device)

    @property
    def is_plain(self) -> bool:
        """Whether X is float64, row by row."""
        return bool(self.X.dtype == self.xp.float64 and self.X.is_contiguous())

    @property
    def kind(self) -> str:
        """Name of the dtype of X."""
        return str(self.X.dtype).removeprefix("torch.")

    def empty(self, shape: int | tuple[int, ...], kind: str) -> Any:
        """A tensor with anything in it, on the device of the block."""
        return self.xp.empty(shape, dtype=getattr(self.xp, kind), device=self.y.device)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        """Zeros in float64, on the device of the block."""
        return self.xp.zeros(shape, dtype=self.xp.float64, device=self.y.device)

    def take(self, array: Any, index: Any, out: Any) -> Any:
        """array[index] in memory that is there."""
        return self.xp.index_select(array, 0, index, out=out)

    def times(self, rows: Any, factors: Any, space: Workspace) -> Any:
        """Products of all rows with some factors, one line per factor."""
        out = space("times", (int(factors.shape[0]), int(rows.shape[0])))
        return self.xp.matmul(factors, rows.T, out=out)

    def product(self, left: Any, right: Any) -> Any:
        """left'right as the sum of the products of many parts."""
        m = right.shape[0]
        whole = m // PART_ROWS * PART_ROWS
        if whole <= PART_ROWS:
            return left.T @ right
        lefts, rights = (a[:whole].reshape(-1, PART_ROWS, a.shape[1]) for a in (left, right))
        return (lefts.transpose(1, 2) @ rights).sum(0) + left[whole:].T @ right[whole:]

    def layout(self, counts: npt.NDArray[np.int64]) -> Layout:
        """How rows of several lines are to stand in a tensor: in parts of the same size."""
        return PaddedLayout(counts, self.y.device)

    def squares(self, lines: Any) -> Any:
        """Sum of squares of every line, in whose place the squares are written."""
        return lines.square_().sum(1)

    def count(self, masks: Any) -> npt.NDArray[np.int64]:
        """How many entries of every line are true."""
        return np.asarray(to_numpy(masks.sum(1)))

    def row_numbers(self) -> Any:
        """Numbers of the rows."""
        return self.xp.arange(self.start, self.start + self.n_rows, device=self.y.device)

    def bits(self, values: Any) -> Any:
        """The bits of float64 numbers as whole numbers."""
        return values.view(self.xp.int64)

    def to_float64(self, array: Any) -> Any:
        """An array in float64 on the device of the block."""
        if not is_tensor(array):
            # Copied: a tensor cannot share memory that must not be written to.
            array = self.xp.from_numpy(np.array(array, dtype=np.float64))
        return array.to(self.y.device, self.xp.float64)

    def to_numpy(self, array: Any) -> Any:
        """A tensor as a NumPy array."""
        if array.device.type == "cpu" or array.numel() < PINNED_NUMBERS:
            return to_numpy(array)
        # Straight to memory that the device reaches by itself.
        host = self.xp.empty(array.shape, dtype=array.dtype, pin_memory=True)
        return host.copy_(array).numpy()


class PaddedLayout(Layout):
    """Rows of lines in parts of the same size, the last part of a line padded: one product serves all parts.

    Any row may stand where there is none; what is summed up there must be multiplied by 0.
    """

    joins_columns = True

    def __init__(self, counts: npt.NDArray[np.int64], device: Any) -> None:
        super().__init__(counts)
        torch = import_torch()
        self._size = size = int(np.clip(counts.max(initial=1), 1, PART_ROWS))
        n_parts, ends = -(-counts // size), np.cumsum(counts)
        # Of every part: its line, its first row, and where the rows of the line end.
        line = np.repeat(np.arange(counts.size), n_parts)
        first = (ends - counts)[line] + size * (np.arange(line.size) - (np.cumsum(n_parts) - n_parts)[line])
        parts = torch.from_numpy(np.stack([line, first, ends[line]])).to(device)
        rows = parts[1][:, None] + torch.arange(size, device=device)
        self._is_row = (rows < parts[2][:, None]).flatten()
        self._rows = rows.clamp_(max=max(int(counts.sum()) - 1, 0)).flatten()
        self._line_of_part = parts[0]
        # A product with zeros and ones adds up the parts of a line in the same order every time.
        self._is_part = None
        if (n_parts != 1).any():
            self._is_part = (parts[0] == torch.arange(counts.size, device=device)[:, None]).double()

    def arrange(self, values: Any) -> Any:
        """Values of the rows where these stand."""
        return values[self._rows]

    def pick(self, values: Any) -> Any:
        """From where the rows stand, their values."""
        return values[self._is_row]

    def only_rows(self, values: Any) -> Any:
        """The same, with zeros where no row stands."""
        return values * self._is_row[:, None]

    @property
    def is_row(self) -> Any:
        """1 where a row stands, and 0 where none does."""
        return self._is_row.double()

    @property
    def lines(self) -> Any:
        """The number of its line for every row."""
        return self._line_of_part.repeat_interleave(self._size, output_size=self._rows.numel())

    def products(self, left: Any, right: Any) -> Any:
        """left'right for every line, a sum over its rows."""
        lefts, rights = (a.reshape(-1, self._size, a.shape[1]) for a in (left, right))
        products = lefts.transpose(1, 2) @ rights
        if self._is_part is None:
            return products
        return (self._is_part @ products.flatten(1)).reshape(-1, *products.shape[1:])


class TensorData(Data):
    """Tensors on one device.

    Parameters
    ----------
    X : tensor of shape (n_samples, n_features), of any real dtype
    y : tensor or array of shape (n_samples,); goes to the device of X
    sample_weight : tensor or array of shape (n_samples,), optional
    block_rows : int, optional
        Default: one block.

    Examples
    --------
    >>> import torch  # doctest: +SKIP
    >>> from rectifit import solve
    >>> X = torch.linspace(-1.0, 1.0, 101, device="cuda")[:, None]  # doctest: +SKIP
    >>> solution = solve(TensorData(X, torch.relu(2.0 * X[:, 0] - 0.5)), None)  # doctest: +SKIP
    """

    remembers = True

    def __init__(self, X: Any, y: Any, sample_weight: Any = None, *, block_rows: int | None = None) -> None:
        self._torch = import_torch()
        self._X = self._real(X, "X")
        if X.ndim != 2 or X.numel() == 0:
            raise ValueError(
                f"X has shape {tuple(X.shape)}; it must be a table with at least one row and one column"
            )
        if X.device.type == "mps":
            raise ValueError("X is on the device mps, which has no float64; it must be on the CPU or on CUDA")
        self.n_samples, self.n_features = map(int, X.shape)
        self._y = self._column(y, "y")
        self._w = None if sample_weight is None else self._column(sample_weight, "sample_weight")
        self.is_weighted = sample_weight is not None
        self._size = block_rows or self.n_samples
        if X.device.type != "cpu":
            self.near_factor, self.sample_factor = NEAR_FACTOR, SAMPLE_FACTOR
            self.max_solved_sample = MAX_SOLVED_SAMPLE

    def for_passes(self) -> Data:
        """With X in float64, where the device has memory to spare for that, as all sums are."""
        if self._X.dtype == self._torch.float64 or self._X.device.type == "cpu":
            return self
        free, _ = self._torch.cuda.mem_get_info(self._X.device)
        if self._X.numel() * 8 > COPY_SHARE * free:
            return self
        other = copy(self)
        other._X = self._X.double()
        return other

    def reduce(self, task: Callable[[Block], S], *, design: bool = True) -> S:
        """One pass over the tensors."""
        with self._torch.no_grad():
            return merge_all(map(task, self._blocks(design)))

    def _blocks(self, design: bool) -> Iterator[TensorBlock]:
        for start in range(0, self.n_samples, self._size):
            rows = slice(start, start + self._size)
            weight = None if self._w is None else self._w[rows]
            yield TensorBlock(self._X[rows] if design else None, self._y[rows], weight, start)

    def _column(self, values: Any, name: str) -> Any:
        """One number per row, on the device of X."""
        if not is_tensor(values):
            values = self._torch.from_numpy(np.array(check_array(values, name, dimensions=1)))
        if values.ndim != 1:
            raise ValueError(f"{name} has shape {tuple(values.shape)}; it must be one-dimensional")
        return check_length(self._real(values, name).to(self._X.device), name, self.n_samples)

    def _real(self, values: Any, name: str) -> Any:
        values = check_tensor(values, name)
        kept = (self._torch.float32, self._torch.float64)
        return values if values.dtype in kept else values.to(self._torch.float64)
