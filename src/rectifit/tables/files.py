"""Tables in files: CSV, TSV, Parquet and NDJSON, recognised by their extension."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

__all__ = ["STANDARD_STREAM", "check_extension", "read_frame", "write_frame"]

# CSV on standard input or output.
STANDARD_STREAM = "-"
EXTENSIONS = (".csv", ".tsv", ".parquet", ".ndjson")
# What counts as missing in CSV and TSV, besides an empty field.
MISSING = ["NA", "N/A", "NaN", "nan", "null"]


def read_frame(source: str | Path, n_rows: int | None = None, *, may_be_empty: bool = False) -> pl.DataFrame:
    """Read a CSV, TSV, Parquet or NDJSON file, or its first rows; "-" is CSV on standard input."""
    import polars as pl

    text: dict[str, Any] = {"null_values": MISSING, "infer_schema_length": None, "n_rows": n_rows}
    readers: dict[str, Any] = {
        ".csv": lambda data: pl.read_csv(data, **text),
        ".tsv": lambda data: pl.read_csv(data, separator="\t", **text),
        ".parquet": lambda data: pl.read_parquet(data, n_rows=n_rows),
        ".ndjson": lambda data: pl.read_ndjson(data, infer_schema_length=None),
    }
    is_stream = str(source) == STANDARD_STREAM
    name = "standard input" if is_stream else f"the file {str(source)!r}"
    kind = ".csv" if is_stream else check_extension(source)
    try:
        if is_stream:
            frame = readers[kind](sys.stdin.buffer.read())
        else:
            with Path(source).open("rb") as file:
                frame = readers[kind](file)
    except FileNotFoundError:
        raise ValueError(f"there is no file {str(source)!r}") from None
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror or error}") from None
    except pl.exceptions.NoDataError:
        raise ValueError(f"{name} is empty; a table with a header and at least one row is needed") from None
    except pl.exceptions.PolarsError as error:
        reason = str(error).strip().split("\n")[0]
        raise ValueError(f"{name} is not a valid {kind[1:].upper()} table: {reason}") from None
    if frame.width == 0 or (frame.height == 0 and not may_be_empty):
        raise ValueError(f"{name} has no rows; a table with a header and at least one row is needed")
    assert isinstance(frame, pl.DataFrame)
    return frame.head(n_rows) if n_rows is not None else frame


def write_frame(frame: pl.DataFrame, target: str | Path) -> None:
    """Write a table in the format of the extension; "-" is CSV on standard output."""
    if str(target) == STANDARD_STREAM:
        sys.stdout.write(frame.write_csv())
        return
    writers: dict[str, Any] = {
        ".csv": frame.write_csv,
        ".tsv": lambda path: frame.write_csv(path, separator="\t"),
        ".parquet": frame.write_parquet,
        ".ndjson": frame.write_ndjson,
    }
    writers[check_extension(target)](Path(target))


def check_extension(path: str | Path) -> str:
    """The extension, if tables of this kind can be read and written."""
    extension = Path(path).suffix.lower()
    if extension not in EXTENSIONS:
        raise ValueError(
            f"the file {str(path)!r} has the extension {extension!r}; allowed are {', '.join(EXTENSIONS)}"
        )
    return extension
