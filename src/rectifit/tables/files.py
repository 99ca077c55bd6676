"""Tables in files, recognised by their extension: text with separators, NDJSON, Parquet and Excel."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rectifit.tables.cells import find_decimal, read_cells
from rectifit.tables.excel import read_excel
from rectifit.tables.faults import find_faults
from rectifit.tables.source import (
    STANDARD_STREAM,
    check_extension,
    compress,
    describe_source,
    read_bytes,
    split_extension,
)
from rectifit.tables.text import (
    NoRowsError,
    TextFormat,
    TextTable,
    decode,
    find_separator,
    join_spaces,
    read_text,
)
from rectifit.writing import write_file

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FileTable", "read_frame", "read_table", "write_frame"]

# Bytes of a text file that are read where only its first rows are needed.
HEAD_BYTES = 1 << 20
NEEDED = "a table with a header and at least one row is needed"
PLAIN = TextFormat()
SEPARATED = (".csv", ".tsv", ".txt")
NDJSON = (".ndjson", ".jsonl")
# The beginning of a line that is neither blank nor an object.
NO_OBJECT = re.compile(rb"^[ \t\r]*[^ \t\r\n{]", re.MULTILINE)
KINDS = {".parquet": "Parquet", ".xlsx": "Excel"}


@dataclass(frozen=True)
class FileTable:
    """A table, and what is wrong with columns of numbers that are text because of a few entries."""

    frame: pl.DataFrame
    faults: Mapping[str, str] = field(default_factory=dict)


def read_frame(source: str | Path, n_rows: int | None = None, *, may_be_empty: bool = False) -> pl.DataFrame:
    """Read a table, or its first rows; "-" is CSV on standard input."""
    frame = read_table(source, n_rows=n_rows, may_be_empty=may_be_empty).frame
    return frame if n_rows is None else frame.head(n_rows)


def read_table(
    source: str | Path, form: TextFormat = PLAIN, *, n_rows: int | None = None, may_be_empty: bool = False
) -> FileTable:
    """Read a table, and find mistakes in its columns of numbers."""
    import polars as pl

    name = describe_source(source)
    extension = ".csv" if str(source) == STANDARD_STREAM else check_extension(source)
    _check_format(form, extension, name)
    try:
        if extension == ".parquet":
            with Path(source).open("rb") as file:
                table = FileTable(pl.read_parquet(file, n_rows=n_rows))
        elif extension == ".xlsx":
            table = _type_cells(read_excel(source), ".")
        else:
            data = decode(_read(source, is_head=n_rows is not None), form.encoding, name)
            is_ndjson = extension in NDJSON
            table = _read_ndjson(data, name) if is_ndjson else _read_separated(data, form, extension, name)
        if table.frame.width == 0 or (table.frame.height == 0 and not may_be_empty):
            raise NoRowsError
    except NoRowsError:
        raise ValueError(f"{name} has no rows; {NEEDED}") from None
    except FileNotFoundError:
        raise ValueError(f"there is no file {str(source)!r}") from None
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror or error}") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = str(error).strip().split("\n")[0]
        kind = KINDS.get(extension, extension[1:].upper())
        raise ValueError(f"{name} is not a valid {kind} table: {reason}") from None
    return table


def _read(source: str | Path, *, is_head: bool) -> bytes:
    """The bytes of text, or the complete lines at its beginning."""
    data = read_bytes(source, HEAD_BYTES if is_head else -1)
    return data[: data.rindex(b"\n") + 1] if len(data) == HEAD_BYTES and b"\n" in data else data


def _check_format(form: TextFormat, extension: str, name: str) -> None:
    """Options that say nothing about this kind of file are an error."""
    is_text = extension in (*SEPARATED, *NDJSON)
    given = {
        "--separator": form.separator is not None and extension not in SEPARATED,
        "--decimal": form.decimal is not None and extension not in SEPARATED,
        "--encoding": form.encoding is not None and not is_text,
    }
    option = next((option for option, is_wrong in given.items() if is_wrong), None)
    if option is not None:
        kind = KINDS.get(extension, extension[1:].upper())
        raise ValueError(f"{option} is for text files such as CSV; {name} is {kind}")


def _read_separated(data: bytes, form: TextFormat, extension: str, name: str) -> FileTable:
    if not data.strip():
        raise ValueError(f"{name} is empty; {NEEDED}")
    separator = form.separator or ("\t" if extension == ".tsv" else find_separator(data, name))
    table = read_text(join_spaces(data) if separator == " " else data, separator, name)
    # Between commas, a decimal comma would have to be quoted: that is too rare to look for.
    decimal = form.decimal or ("." if separator == "," else find_decimal(table.texts))
    return _type_cells(table, decimal)


def _type_cells(table: TextTable, decimal: str) -> FileTable:
    frame = table.texts.with_columns(read_cells(column, decimal) for column in table.texts)
    faults = find_faults(
        frame, table.find_lines, place=table.place, decimal=decimal, with_options=table.has_options
    )
    return FileTable(frame, faults)


def _read_ndjson(data: bytes, name: str) -> FileTable:
    import polars as pl

    if not data.strip():
        raise ValueError(f"{name} is empty; at least one row is needed")
    try:
        frame = _parse_ndjson(data)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        wrong = next((j for j, line in enumerate(data.split(b"\n"), 1) if not _is_record(line)), None)
        if wrong is None:
            raise
        raise ValueError(f"{name} is not valid NDJSON: line {wrong:,} is not a JSON object") from None

    def find_lines(positions: Sequence[int]) -> list[int]:
        lines = [j for j, line in enumerate(data.split(b"\n"), 1) if line.strip()]
        return [lines[position] for position in positions]

    return FileTable(frame, find_faults(frame, find_lines))


def _parse_ndjson(data: bytes) -> pl.DataFrame:
    """Columns of records. What is wrong is an error of Polars, whichever version it has."""
    import polars as pl

    # Versions before 2 take a number for a row without values.
    if NO_OBJECT.search(data):
        raise pl.exceptions.ComputeError("a line is not a JSON object")
    try:
        return pl.read_ndjson(data, infer_schema_length=None)
    except RuntimeError as error:
        # Versions before 1.22.
        raise pl.exceptions.ComputeError(str(error)) from None


def _is_record(line: bytes) -> bool:
    """Whether a line is blank or a JSON object."""
    try:
        return not line.strip() or isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def write_frame(frame: pl.DataFrame, target: str | Path) -> None:
    """Write a table in the format of the extension; "-" is CSV on standard output."""
    import polars as pl

    is_stream = str(target) == STANDARD_STREAM
    extension = ".csv" if is_stream else check_extension(target, to_write=True)
    content = io.BytesIO()
    try:
        if extension == ".parquet":
            frame.write_parquet(content)
        elif extension in NDJSON:
            frame.write_ndjson(content)
        else:
            frame.write_csv(content, separator="\t" if extension == ".tsv" else ",")
    except pl.exceptions.PolarsError as error:
        reason = str(error).strip().split("\n")[0]
        raise ValueError(f"this table cannot be written as {extension[1:].upper()}: {reason}") from None
    if is_stream:
        sys.stdout.write(content.getvalue().decode())
    else:
        write_file(target, compress(content.getvalue(), split_extension(target)[1]))
