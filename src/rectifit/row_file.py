"""Records as rows of a CSV file that survives an interruption at any moment.

Rows are appended as whole lines. A last line without its line end is incomplete: it is ignored when the file
is read, and removed before anything is appended. Runs that share a file take turns.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import IO, Any, Generic, TypeVar, cast, get_type_hints

from rectifit.writing import naming

try:
    import fcntl
except ImportError:
    # Windows has no such locks: there, runs must not share a file.
    fcntl = None  # type: ignore[assignment]

__all__ = ["RowFile", "parse_rows"]

Record = TypeVar("Record")


class RowFile(Generic[Record]):
    """The rows of a run in a CSV file.

    Parameters
    ----------
    path : the file
    kind : a data class; its fields are the columns, and fields of a field that is a data class itself take
        its place. Fields are texts, numbers, truth values, or tuples of numbers.
    """

    def __init__(self, path: Path, kind: type[Record]) -> None:
        self.path = path
        self.kind = kind

    def read(self) -> list[Record]:
        """All complete rows."""
        return parse_rows(self._complete_lines().decode(), self.kind, str(self.path))

    def repair(self) -> None:
        """Remove an incomplete line; write the header if the file is empty or missing."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._write([])

    def append(self, rows: Iterable[Record]) -> None:
        """Append rows in a single write."""
        self._write(_cells(row) for row in rows)

    def _write(self, lines: Iterable[Iterable[object]]) -> None:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        with naming(self.path), self.path.open("a+b") as file, _locked(file):
            size = file.seek(0, io.SEEK_END)
            file.seek(max(size - 1, 0))
            if file.read(1) not in (b"\n", b""):
                size = len(self._complete_lines())
                file.truncate(size)
            if size == 0:
                writer.writerow([name for name, _ in _columns(self.kind)])
            writer.writerows(lines)
            file.write(text.getvalue().encode())

    def _complete_lines(self) -> bytes:
        content = self.path.read_bytes() if self.path.exists() else b""
        return content[: content.rfind(b"\n") + 1]


@contextmanager
def _locked(file: IO[bytes]) -> Iterator[None]:
    """Alone with an open file. The lock ends with the process, however that ends."""
    if fcntl is not None:
        # Some network file systems have no locks.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
        file.flush()
    finally:
        if fcntl is not None:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)


def parse_rows(text: str, kind: type[Record], source: str) -> list[Record]:
    """The records in the text of a file; `source` names it in errors."""
    lines = text.splitlines()
    if not lines:
        return []
    names = [name for name, _ in _columns(kind)]
    header, *rows = csv.reader(lines)
    if header != names:
        raise ValueError(f"{source} has columns {', '.join(header)}; it must have {', '.join(names)}")
    found = []
    for number, row in enumerate(rows, start=2):
        if len(row) != len(names):
            raise ValueError(f"line {number} of {source} has {len(row)} cells; it must have {len(names)}")
        try:
            found.append(_build(kind, iter(row)))
        except ValueError as error:
            raise ValueError(f"line {number} of {source} cannot be read: {error}") from None
    return found


def _columns(kind: type) -> Iterator[tuple[str, Any]]:
    """Names and types of all columns."""
    for name, of_field in get_type_hints(kind).items():
        if is_dataclass(of_field):
            yield from _columns(cast("type", of_field))
        else:
            yield name, of_field


def _cells(row: Any) -> Iterator[object]:
    """The values of a row in the order of the columns."""
    for field in fields(row):
        value = getattr(row, field.name)
        if is_dataclass(value):
            yield from _cells(value)
        else:
            yield " ".join(map(repr, value)) if isinstance(value, tuple) else value


def _build(kind: type[Record], cells: Iterator[str]) -> Record:
    """Build a record from the texts of its cells."""
    values = [
        _build(cast("type", of_field), cells) if is_dataclass(of_field) else _parse(of_field, next(cells))
        for of_field in get_type_hints(kind).values()
    ]
    return kind(*values)


def _parse(kind: Any, text: str) -> Any:
    if kind is bool:
        if text not in ("True", "False"):
            raise ValueError(f"{text!r} is neither True nor False")
        return text == "True"
    if kind in (str, int, float):
        return kind(text)
    return tuple(map(float, text.split()))
