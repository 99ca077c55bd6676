"""One row per fit, in a CSV file that survives an interruption at any moment.

Rows are appended as whole lines. A last line without its line end is incomplete: it is ignored when the file
is read, and removed before anything is appended.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from rectifit.experiments.grid import Task

__all__ = ["FitRow", "RowFile"]


@dataclass(frozen=True)
class FitRow:
    """The result of one task: the measures of the paper, the lower bound, and the time.

    `machine` is the position of the machine in machine.json. The columns of the file are these fields, with
    those of the task and of its setting in place of `task`.
    """

    task: Task
    prediction_error: float
    objective: float
    recovery_error: float
    generalization_error: float
    lower_bound: float
    status: str
    seconds: float
    machine: int

    @property
    def is_proved(self) -> bool:
        """Whether the certificate proves that the fit is optimal."""
        return self.status == "optimal"


class RowFile:
    """The rows of a run in a CSV file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[FitRow]:
        """All complete rows."""
        lines = self._complete_lines().decode().splitlines()
        if not lines:
            return []
        header, *rows = csv.reader(lines)
        if header != HEADER:
            raise ValueError(f"{self.path} has columns {', '.join(header)}; it must have {', '.join(HEADER)}")
        return [_parse(FitRow, iter(row)) for row in rows]

    def repair(self) -> None:
        """Remove an incomplete line; write the header if the file is empty or missing."""
        complete = self._complete_lines()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.truncate(len(complete))
        if not complete:
            self._write([HEADER])

    def append(self, rows: Iterable[FitRow]) -> None:
        """Append rows in a single write."""
        self._write(_flatten(row) for row in rows)

    def _write(self, lines: Iterable[Iterable[object]]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        with self.path.open("ab") as file:
            file.write(text.getvalue().encode())

    def _complete_lines(self) -> bytes:
        content = self.path.read_bytes() if self.path.exists() else b""
        return content[: content.rfind(b"\n") + 1]


@cache
def _types(record: type) -> dict[str, type]:
    return get_type_hints(record)


def _columns(record: type) -> list[str]:
    """Names of the fields, a nested record replaced by its own fields."""
    names = []
    for name, kind in _types(record).items():
        names += _columns(kind) if is_dataclass(kind) else [name]
    return names


def _flatten(record: Any) -> list[Any]:
    """The values of a record in the order of `_columns`."""
    values = []
    for field in fields(record):
        value = getattr(record, field.name)
        values += _flatten(value) if is_dataclass(value) else [value]
    return values


def _parse(record: type, cells: Iterator[str]) -> Any:
    """Build a record from its values as text, in the order of `_columns`."""
    return record(
        *(
            _parse(kind, cells) if is_dataclass(kind) else kind(next(cells))
            for kind in _types(record).values()
        )
    )


HEADER = _columns(FitRow)
