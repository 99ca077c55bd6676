"""Parquet files, several or large, as one table that is read in blocks and never whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from rectifit.scale import open_parquet
from rectifit.tables import Table, choose_numbers, read_frame

__all__ = ["is_large_file", "open_files"]

# First rows, by which columns are chosen.
HEAD = 100
# Bytes of a file that is not read whole.
LARGE = 1 << 30


def is_large_file(path: str) -> bool:
    """Whether it is a Parquet file that is better read in blocks."""
    return path.endswith(".parquet") and Path(path).is_file() and Path(path).stat().st_size > LARGE


def open_files(
    paths: Sequence[str], target: str, features: Sequence[str] | None, weights: str | None
) -> Table:
    """Rows of all files together, with the columns of the first that has any."""
    wrong = next((path for path in paths if not path.endswith(".parquet")), None)
    if wrong is not None:
        raise click.UsageError(
            f"{wrong!r} is not a Parquet file; several files are read only if all of them are."
        )
    heads = (read_frame(path, HEAD, may_be_empty=path != paths[-1]) for path in paths)
    head = next(frame for frame in heads if frame.height > 0)
    encoding, notes = choose_numbers(head, target, features, weights)
    try:
        blocks = open_parquet(list(paths), target=target, features=encoding.columns, weights=weights)
    except (ImportError, TypeError) as error:
        # Only the call needs the package that reads the files; and of a wrong type is a column.
        raise click.UsageError(str(error)) from None
    return Table(blocks, None, None, encoding, target, tuple(notes))
