"""Parquet files, several or large, as one table that is read in passes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from rectifit.data import open_parquet
from rectifit.routing import FILE_BYTES
from rectifit.tables import DataTable, TextFormat, choose_numbers, read_table

__all__ = ["is_large_file", "open_files"]

# Rows from which the columns are chosen.
N_HEAD_ROWS = 100


def is_large_file(path: str) -> bool:
    """Whether it is a Parquet file that is better read in passes."""
    return path.endswith(".parquet") and Path(path).is_file() and Path(path).stat().st_size > FILE_BYTES


def open_files(
    paths: Sequence[str],
    form: TextFormat,
    target: str,
    features: Sequence[str] | None,
    weights: str | None,
) -> DataTable:
    """The rows of all files, with columns chosen from the first file that has rows."""
    wrong = next((path for path in paths if not path.endswith(".parquet")), None)
    if wrong is not None:
        raise click.UsageError(f"{wrong!r} is not a Parquet file; several files must all be Parquet files.")
    heads = (
        read_table(path, form, n_rows=N_HEAD_ROWS, may_be_empty=path != paths[-1]).frame for path in paths
    )
    head = next(frame for frame in heads if frame.height > 0)
    encoding, notes = choose_numbers(head, target, features, weights)
    try:
        data = open_parquet(list(paths), target=target, features=encoding.columns, weights=weights)
    except (ImportError, TypeError) as error:
        # pyarrow is missing, or a column has the wrong type: both are errors of usage.
        raise click.UsageError(str(error)) from None
    return DataTable(data, None, None, encoding, target, tuple(notes))
