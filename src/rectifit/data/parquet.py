"""Parquet files, read some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

from rectifit.data.base import Data
from rectifit.data.blocks import Block, S, merge_all, run_blocks

__all__ = ["ParquetData", "open_parquet"]

# Numbers in memory at a time, per thread.
BATCH_NUMBERS = 1 << 21
# Bytes read at a time, per column, of row groups of any size.
BUFFER_BYTES = 1 << 18


def open_parquet(
    paths: str | Path | Iterable[str | Path],
    *,
    target: str,
    features: Sequence[str] | None = None,
    weights: str | None = None,
    n_threads: int | None = None,
) -> ParquetData:
    """Parquet files as one data set, for `solve` and `ReLURegressor.fit`; only their footers are read now.

    Parameters
    ----------
    paths : path, pattern such as ``data/*.parquet``, or several of them; rows are in this order
    target : column of outcomes
    features : columns of X; default: all others, in the order of the first file
    weights : column of sample weights, optional
    n_threads : int, optional
        Default: as many as BLAS may use.

    Examples
    --------
    >>> import tempfile, numpy as np, polars as pl
    >>> from rectifit import solve
    >>> x = np.linspace(-1.0, 1.0, 50)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pl.DataFrame({"x": x, "y": np.maximum(3.0 * x, 0.0)}).write_parquet(f"{folder}/a.parquet")
    ...     solution = solve(open_parquet(f"{folder}/*.parquet", target="y"), None)
    >>> round(float(solution.beta[0]), 6)
    3.0
    """
    return ParquetData(_expand(paths), target, features, weights, n_threads)


class ParquetData(Data):
    """Files with one block per row group, streamed in batches; made by `open_parquet`."""

    def __init__(
        self,
        paths: Sequence[Path],
        target: str,
        features: Sequence[str] | None,
        weights: str | None,
        n_threads: int | None,
    ) -> None:
        reader = _import_reader()
        self._target, self._weights, self.n_threads = target, weights, n_threads
        # Row groups: file, number in it, first row.
        self._groups: list[tuple[Path, int, int]] = []
        start, names = 0, list[str]()
        for path in paths:
            with reader.ParquetFile(path) as file:
                found = list(file.schema_arrow.names)
                if features is None:
                    features = [name for name in found if name not in (target, weights)]
                names = [target, *features, *([] if weights is None else [weights])]
                if missing := [name for name in names if name not in found]:
                    raise ValueError(f"{path} has no column {missing[0]!r}; it has {', '.join(found)}")
                for name in names:
                    _check_type(name, file.schema_arrow.field(name).type)
                for group in range(file.metadata.num_row_groups):
                    rows = file.metadata.row_group(group).num_rows
                    if rows > 0:
                        self._groups.append((path, group, start))
                    start += rows
        assert features is not None
        if start == 0 or not features:
            raise ValueError(f"X has shape ({start}, {len(features)}) and is empty; rows are needed")
        self.feature_names = tuple(features)
        self.n_samples, self.n_features = start, len(features)
        self.is_weighted = weights is not None

    def reduce(self, task: Callable[[Block], S], *, design: bool = True) -> S:
        """One pass over the files."""
        reader = _import_reader()
        names = [self._target, *([] if self._weights is None else [self._weights])]
        names += self.feature_names or () if design else ()
        size = max(1, BATCH_NUMBERS // self.n_features)

        def work(index: int, kept: dict[str, Any]) -> S:
            path, group, start = self._groups[index]
            with reader.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER_BYTES) as file:
                batches = file.iter_batches(size, row_groups=[group], columns=names, use_threads=False)
                return merge_all(map(task, self._blocks(batches, start, design, kept)))

        return run_blocks(work, len(self._groups), self.n_threads)

    def _blocks(
        self, batches: Iterable[Any], start: int, design: bool, kept: dict[str, Any]
    ) -> Iterator[Block]:
        for batch in batches:
            X = None
            if design:
                columns = [_numbers(batch, name) for name in self.feature_names or ()]
                kind = np.float32 if all(column.dtype == np.float32 for column in columns) else np.float64
                X = np.empty((batch.num_rows, len(columns)), dtype=kind, order="F")
                for j, column in enumerate(columns):
                    X[:, j] = column
            w = None if self._weights is None else _numbers(batch, self._weights)
            yield Block(X, _numbers(batch, self._target), w, start, kept)
            start += batch.num_rows


def _check_type(name: str, kind: Any) -> None:
    from pyarrow import types

    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        raise TypeError(f"column {name!r} has type {kind}; it must be real numbers")


def _numbers(batch: Any, name: str) -> Any:
    column = batch.column(name)
    if column.null_count > 0:
        raise ValueError(f"column {name!r} has missing entries; all entries must be present")
    return column.to_numpy(zero_copy_only=False)


def _expand(paths: Any) -> list[Path]:
    several = [paths] if isinstance(paths, str | Path) else list(paths)
    found: list[Path] = []
    for path in several:
        matches = sorted(glob(str(path)))  # noqa: PTH207 - patterns may be absolute
        if not matches:
            raise ValueError(f"paths has {str(path)!r}, where there is no file; paths must be Parquet files")
        found += map(Path, matches)
    if not found:
        raise ValueError("paths is empty; at least one Parquet file is needed")
    return found


def _import_reader() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            "reading Parquet files in passes needs pyarrow: pip install 'rectifit[parquet]'"
        ) from None
    return pyarrow.parquet
