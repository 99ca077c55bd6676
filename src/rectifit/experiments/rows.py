"""One row per fit, in a CSV file that survives an interruption at any moment.

Rows are appended as whole lines. A last line without its line end is incomplete: it is ignored when the file
is read, and removed before anything is appended.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import astuple, dataclass, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

from rectifit.experiments.grid import Setting, Task

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


# The columns of the file: the fields of all three records that are no record themselves.
COLUMNS: dict[str, type] = {
    name: kind
    for record in (Setting, Task, FitRow)
    for name, kind in get_type_hints(record).items()
    if not is_dataclass(kind)
}


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
        if header != list(COLUMNS):
            raise ValueError(
                f"{self.path} has columns {', '.join(header)}; it must have {', '.join(COLUMNS)}"
            )
        return [_parse(row) for row in rows]

    def repair(self) -> None:
        """Remove an incomplete line; write the header if the file is empty or missing."""
        complete = self._complete_lines()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.truncate(len(complete))
        if not complete:
            self._write([COLUMNS])

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


def _flatten(row: FitRow) -> list[Any]:
    """The values of a row in the order of the columns."""
    (setting, *task), *results = astuple(row)
    return [*setting, *task, *results]


def _parse(cells: Iterable[str]) -> FitRow:
    """Build a row from the texts of its cells."""
    p, n, sparsity, noise, beta_variance, instance, method, *results = (
        kind(cell) for kind, cell in zip(COLUMNS.values(), cells, strict=True)
    )
    return FitRow(Task(Setting(p, n, sparsity, noise, beta_variance), instance, method), *results)
