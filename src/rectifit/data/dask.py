"""Dask arrays and data frames: passes as graphs of tasks on whatever scheduler is in use.

Chunks stay where they are. A pass sends a task to every chunk, and summaries are merged in a tree on the
workers; at most eight come back. Tasks are pure, so a chunk or summary that is lost with its worker is
computed again, and the answer is the same.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from threading import local
from typing import Any

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.checks import check_array, check_length
from rectifit.data.base import Data
from rectifit.data.blocks import Block, S, merge_all
from rectifit.data.prediction import relu
from rectifit.parallel import limit_threads

__all__ = ["DaskData", "check_dimensions", "is_dask", "predict_chunks"]

# Summaries merged by one task, and by the client.
FAN_IN = 8
# Bytes of tasks that go along with chunks.
MAX_COPIED_BYTES = 1 << 22


class DaskData(Data):
    """A dask array or data frame X, with y and weights that are dask collections too, or arrays.

    Parameters
    ----------
    X : dask array of shape (n_samples, n_features), or dask data frame
    y, sample_weight : dask array or series, or array

    Examples
    --------
    >>> import dask.array as da, numpy as np
    >>> X = da.random.default_rng(0).normal(size=(1000, 2), chunks=(100, 2))
    >>> data = DaskData(X, da.maximum(X @ np.array([1.0, 2.0]), 0.0))
    >>> data.n_samples, data.n_features
    (1000, 2)
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        check_dimensions(X, "X", 2)
        if hasattr(X, "columns"):
            # As in scikit-learn, columns that are numbered have no names.
            if all(isinstance(name, str) for name in X.columns):
                self.feature_names = tuple(X.columns)
            self._X, lengths = _partitions(X)
            self.n_features = len(X.columns)
        else:
            X = X.rechunk({1: -1})
            self.n_features = int(X.shape[1])
            self._X, lengths = _chunks(X)
        if sum(lengths) == 0 or self.n_features == 0:
            raise ValueError(f"X has shape ({sum(lengths)}, {self.n_features}) and is empty; rows are needed")
        self.n_samples = sum(lengths)
        self._starts = np.cumsum([0, *lengths[:-1]]).tolist()
        self._lengths = lengths
        self._y = _align(y, "y", lengths)
        self._w = None if sample_weight is None else _align(sample_weight, "sample_weight", lengths)
        self.is_weighted = sample_weight is not None

    def reduce(self, task: Callable[[Block], S], *, design: bool = True) -> S:
        """One pass, on the scheduler in use."""
        from dask.base import compute
        from dask.delayed import delayed

        # A large task travels once and is shared by the chunks, a small one goes along with every chunk.
        is_large = len(pickle.dumps(task)) * len(self._lengths) > MAX_COPIED_BYTES
        apply = delayed(_apply if is_large else partial(_apply, task), pure=False)
        shared = [delayed(task, traverse=False)] if is_large else []
        merge = delayed(merge_all, pure=False)
        summaries = [
            apply(
                *shared,
                self._X[e] if design else None,
                self._y[e],
                None if self._w is None else self._w[e],
                self._starts[e],
            )
            for e, length in enumerate(self._lengths)
            if length > 0
        ]
        while len(summaries) > FAN_IN:
            summaries = [merge(summaries[e : e + FAN_IN]) for e in range(0, len(summaries), FAN_IN)]
        # The limit is for schedulers in this process; workers have their own.
        with limit_threads("blas"):
            parts: tuple[S, ...] = compute(*summaries)
        return merge_all(parts)


def is_dask(values: object) -> bool:
    """Whether it is a dask collection; dask need not be there."""
    return type(values).__module__.partition(".")[0] in ("dask", "dask_expr")


def predict_chunks(X: Any, beta: Vector, intercept: float, floor: float) -> Any:
    """max(floor, X beta + intercept) as a dask array, computed chunk by chunk when it is asked for."""
    X = X.to_dask_array() if hasattr(X, "columns") else X.rechunk({1: -1})
    dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
    # By name: arrays among the other arguments would be taken for chunked ones.
    named = {"beta": np.asarray(beta, np.float64), "intercept": intercept, "floor": floor, "result": dtype}
    # A table of one column: where an axis is dropped, old versions of dask copy the chunks first.
    column = X.map_blocks(_predict_chunk, **named, chunks=(X.chunks[0], (1,)), meta=np.empty((0, 0), dtype))
    return column[:, 0]


def _predict_chunk(chunk: Any, beta: Vector, intercept: float, floor: float, result: Any) -> Matrix:
    if chunk.shape[0] == 0:
        return np.empty((0, 1), result)
    predicted = relu(check_array(chunk, "X", dimensions=2), beta, intercept, floor)
    return np.asarray(predicted[:, None], result)


class _Thread(local):
    """What a thread of a worker keeps from task to task."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}


_THREAD = _Thread()


def _apply(task: Callable[[Block], S], X: Any, y: Any, w: Any, start: int) -> S:
    return task(
        Block(
            None if X is None else _numbers(X, "X", 2),
            _numbers(y, "y", 1),
            None if w is None else _numbers(w, "sample_weight", 1),
            start,
            _THREAD.kept,
        )
    )


def _numbers(values: Any, name: str, dimensions: int) -> Any:
    """A chunk as an array. Only the first pass over the data looks for NaN."""
    array = np.asarray(values)
    if array.dtype.kind in "fiub" and array.ndim == dimensions:
        # What came over a network may be unaligned; of X the tasks copy some rows at a time.
        return array if dimensions == 2 else np.require(array, requirements="A")
    return check_array(values, name, dimensions)


def check_dimensions(values: Any, name: str, dimensions: int) -> None:
    """Refuse what is no dask array or data frame of so many dimensions."""
    from dask.utils import is_arraylike, is_dataframe_like, is_series_like

    found, n = f"is a dask {type(values).__name__}", None
    if is_dataframe_like(values) or is_series_like(values):
        n = 2 if is_dataframe_like(values) else 1
    elif is_arraylike(values):
        found, n = f"has shape {values.shape}", values.ndim
    if n != dimensions:
        allowed = "a dask array or data frame of shape (n_samples, n_features)"
        if dimensions == 1:
            allowed = "an array, dask array or dask series of one dimension"
        raise (TypeError if n is None else ValueError)(f"{name} {found}; it must be {allowed}")


def _partitions(frame: Any) -> tuple[list[Any], list[int]]:
    """Partitions of a data frame or series, and their lengths, for which they are looked at once."""
    parts = list(frame.to_delayed())
    return parts, _count_rows(parts)


def _count_rows(parts: list[Any]) -> list[int]:
    from dask.base import compute
    from dask.delayed import delayed

    return [int(length) for length in compute(*(delayed(len)(part) for part in parts))]


def _chunks(array: Any) -> tuple[list[Any], list[int]]:
    """Chunks of an array along its first axis, and their lengths."""
    parts = array.to_delayed().ravel().tolist()
    if any(np.isnan(length) for length in array.chunks[0]):
        return parts, _count_rows(parts)
    return parts, [int(length) for length in array.chunks[0]]


def _align(values: Any, name: str, lengths: list[int]) -> list[Any]:
    """The parts of y or weights that belong to the chunks of X."""
    from dask.array import from_array

    if not is_dask(values):
        column = check_array(values, name, dimensions=1).astype(np.float64, copy=False)
        check_length(column, name, sum(lengths))
        # Sent with every pass: what a worker is given once, it can lose.
        return _align(from_array(column, chunks=(tuple(lengths),)), name, lengths)
    check_dimensions(values, name, 1)
    if hasattr(values, "chunks"):
        if not any(np.isnan(length) for length in values.chunks[0]) and values.shape[0] == sum(lengths):
            values = values.rechunk((tuple(lengths),))
        parts, found = _chunks(values)
    else:
        parts, found = _partitions(values)
    if found != lengths:
        raise ValueError(
            f"{name} has {sum(found)} rows in {len(found)} chunks, X has {sum(lengths)} in {len(lengths)};"
            " chunk by chunk they must be equally many"
        )
    return parts
