"""Text with separators as a table of texts: its encoding, its separator, and the lines of its rows.

The standard library's csv module checks the file, because it knows the lines; polars reads the entries.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rectifit.formatting import write_count

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "NoRowsError",
    "TextFormat",
    "TextTable",
    "decode",
    "find_separator",
    "join_spaces",
    "name_columns",
    "read_text",
]

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
# Bytes from which the separator is found.
SAMPLE_BYTES = 1 << 16
# What files begin with whose encoding is certain; the mark of UTF-32 begins with that of UTF-16.
ENCODING_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


QUOTED_OR_SPACES = re.compile(rb'("(?:[^"]|"")*")| +')
SPACE_AT_END = re.compile(rb"^ | (?=\r?$)", re.MULTILINE)


class NoRowsError(Exception):
    """A table has no rows."""


@dataclass(frozen=True)
class TextFormat:
    """How text is to be read; None stands for what the file itself shows."""

    separator: str | None = None
    decimal: str | None = None
    encoding: str | None = None


@dataclass(frozen=True)
class TextTable:
    """Entries as texts.

    `find_lines` gives the lines of rows in the file, counted from 1, by their positions in the table; `place`
    is what these lines are called. `has_options` says whether a `TextFormat` could read numbers otherwise.
    """

    texts: pl.DataFrame
    find_lines: Callable[[Sequence[int]], list[int]]
    place: str = "line"
    has_options: bool = True


def decode(data: bytes, encoding: str | None, name: str) -> bytes:
    """The text in UTF-8, without a byte-order mark, with lines that end in a line feed."""
    marked = next((known for mark, known in ENCODING_MARKS if data.startswith(mark)), "utf-8")
    used = encoding or marked
    try:
        text = data.decode(used).removeprefix("\ufeff")
        is_unchanged = used == "utf-8" and not data.startswith(codecs.BOM_UTF8)
        plain = data if is_unchanged else text.encode()
    except LookupError:
        raise ValueError(
            f"--encoding is {encoding!r}, which is not known; examples are latin-1, cp1252 and utf-16"
        ) from None
    except UnicodeError as error:
        line = data[: error.start].count(b"\n") + 1 if isinstance(error, UnicodeDecodeError) else 1
        example = "utf-16" if b"\0" in data else "cp1252"
        hint = "choose another --encoding" if encoding else f"name its encoding, such as --encoding {example}"
        raise ValueError(f"{name} is not {used.upper()} text (see line {line:,}); {hint}") from None
    if "\0" in text:
        raise ValueError(
            f"{name} contains NUL characters; it is not text, or needs another encoding, such as "
            "--encoding utf-16"
        )
    if "\r" in text and "\n" not in text:
        plain = plain.replace(b"\r", b"\n")
    return plain


def find_separator(data: bytes, name: str) -> str:
    """The separator that gives every row of the beginning the same number of entries, two or more."""
    sample = data[:SAMPLE_BYTES]
    if len(sample) < len(data) and b"\n" in sample:
        sample = sample[: sample.rindex(b"\n") + 1]
    text = sample.decode(errors="ignore")
    widths = {separator: _find_widths(text, separator) for separator in SEPARATORS}
    regular = [separator for separator, found in widths.items() if min(found) == max(found) > 1]
    if len(regular) > 1:
        found = " or ".join(SEPARATORS[separator] for separator in regular)
        raise ValueError(f"{name} may be separated by {found}; choose with --separator")
    words = _find_widths(join_spaces(sample).decode(errors="ignore"), " ")
    if not regular and min(words) == max(words) > 1:
        raise ValueError(f"{name} seems to be separated by spaces; confirm with --separator space")
    # In a file with faults, the header decides; a file without any separator has one column.
    return regular[0] if regular else max(SEPARATORS, key=lambda separator: widths[separator][0])


def _find_widths(text: str, separator: str) -> list[int]:
    """Numbers of entries in the rows, without blank lines."""
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if any(row)]
    except csv.Error:
        rows = []
    return [len(row) for row in rows] or [0]


def join_spaces(data: bytes) -> bytes:
    """One space for several, outside of quotation marks: columns of text are often aligned by spaces.

    Examples
    --------
    >>> join_spaces(b'  y   a  "p  q" ')
    b'y a "p  q"'
    """
    joined = QUOTED_OR_SPACES.sub(lambda found: found[1] or b" ", data)
    return SPACE_AT_END.sub(b"", joined)


def read_text(data: bytes, separator: str, name: str) -> TextTable:
    """Read UTF-8 text; rows without any entry are left out."""
    import polars as pl

    rows = (row for _, row in _read_rows(data, separator, name))
    header = next(rows, [])
    n_rows = sum(1 for _ in rows)
    if not n_rows:
        raise NoRowsError
    try:
        texts = _parse(data, separator, header)
        is_read = texts.height == n_rows
    except pl.exceptions.PolarsError:
        is_read = False
    if not is_read:
        # Quotation marks inside of entries, for instance: both agree on rows in which every entry is quoted.
        texts = _parse(_quote(row for _, row in _read_rows(data, separator, name)), ",", header)

    def find_lines(positions: Sequence[int]) -> list[int]:
        _, *lines = (line for line, _ in _read_rows(data, separator, name))
        return [lines[position] for position in positions]

    return TextTable(name_columns(texts, header, name), find_lines)


def _read_rows(data: bytes, separator: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Rows from the header on, each with its first line.

    Rows without any entry are left out. In a single column they are missing values.
    """
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="")
    reader = csv.reader(text, delimiter=separator, strict=True)
    line, width, n_rows = 1, 0, 0
    try:
        for row in reader:
            if width == 0:
                width = len(row) if any(row) else 0
                is_row = width > 0
            elif len(row) == width:
                is_row = width == 1 or any(row)
            else:
                is_row = width == 1 and not row
                if any(cell.strip() for cell in row):
                    raise ValueError(
                        _describe_ragged(name, line, len(row), width, separator, is_first=n_rows == 1)
                    )
            n_rows += is_row
            if is_row:
                yield line, row or [""]
            line = reader.line_num + 1
    except csv.Error as error:
        if "limit" in str(error):
            raise ValueError(
                f"{name} has an entry of more than {csv.field_size_limit():,} characters in line {line:,}; a "
                "quotation mark may not be closed"
            ) from None
        raise ValueError(
            f"{name} has an entry in line {line:,} whose quotation mark is not closed, or closed too early; "
            "within quotation marks, write a quotation mark twice"
        ) from None


def _describe_ragged(
    name: str, line: int, n_entries: int, n_columns: int, separator: str, *, is_first: bool
) -> str:
    entries = f"{n_entries:,} {'entry' if n_entries == 1 else 'entries'}"
    between = SEPARATORS.get(separator, f"the separator {separator!r}")
    hint = f"; an entry with {between} in it needs quotation marks" if n_entries > n_columns else ""
    # Tables of R number their rows, and have no name for this column.
    hint += ", or a name is missing in the header" * (is_first and n_entries == n_columns + 1)
    return (
        f"{name} has {entries} in line {line:,}, but its header has {write_count(n_columns, 'column')}{hint}"
    )


def _parse(data: bytes, separator: str, header: Sequence[str]) -> pl.DataFrame:
    """The entries below the header; what is empty is None."""
    import polars as pl

    quote = '"' if b'"' in data else None
    texts = pl.read_csv(data, separator=separator, has_header=False, infer_schema_length=0, quote_char=quote)
    if texts.width != len(header):
        raise pl.exceptions.ComputeError("the columns are not those of the header")
    texts = texts.select(pl.when(pl.all() != "").then(pl.all()))
    filled = texts.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
    texts = texts.slice(filled.arg_max() or 0) if texts.width == 1 else texts.filter(filled)
    if texts.height == 0 or texts.row(0) != tuple(cell or None for cell in header):
        raise pl.exceptions.ComputeError("the header is not the first row")
    return texts.slice(1)


def _quote(rows: Iterator[list[str]]) -> bytes:
    """The same rows with quotation marks around every entry."""
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def name_columns(texts: pl.DataFrame, header: Sequence[str | None], name: str) -> pl.DataFrame:
    """Names without spaces around them; a column without a name is called as pandas calls it.

    Columns with neither a name nor an entry, such as after a separator at the end of lines, are left out.
    """
    names = [(cell or "").strip() or f"Unnamed: {j}" for j, cell in enumerate(header)]
    twice = next((column for column, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"{name} has two columns called {twice!r}; rename one of them")
    texts.columns = names
    return texts.select(
        column
        for cell, column in zip(header, texts, strict=True)
        if (cell or "").strip() or column.null_count() < len(column)
    )
