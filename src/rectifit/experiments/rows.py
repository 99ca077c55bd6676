"""One row per fit, in a CSV file that can be killed at any moment.

Rows are appended as whole lines. A line without its end was not finished: it is not read, and is cut off
before anything is appended.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from rectifit.experiments.grid import Setting, Task

__all__ = ["Row", "RowFile"]


@dataclass(frozen=True)
class Row:
    """What came out of one task; measures as in the paper, evaluated by the runner.

    machine : which entry of machine.json it was run on
    """

    p: int
    n: int
    sparsity: float
    noise: float
    beta_variance: float
    instance: int
    method: str
    prediction_error: float
    objective: float
    recovery_error: float
    generalization_error: float
    lower_bound: float
    status: str
    seconds: float
    machine: int

    @property
    def setting(self) -> Setting:
        return Setting(self.p, self.n, self.sparsity, self.noise, self.beta_variance)

    @property
    def task(self) -> Task:
        return Task(self.setting, self.instance, self.method)


HEADER = [field.name for field in fields(Row)]
READERS = {"int": int, "float": float, "str": str}


class RowFile:
    """The rows of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Row]:
        """All finished rows."""
        lines = self._finished().decode().splitlines()
        if not lines:
            return []
        header, *rows = csv.reader(lines)
        if header != HEADER:
            raise ValueError(f"{self.path} has columns {', '.join(header)}; it must have {', '.join(HEADER)}")
        readers = [READERS[str(field.type)] for field in fields(Row)]
        return [Row(*(read(cell) for read, cell in zip(readers, row, strict=True))) for row in rows]

    def repair(self) -> None:
        """Cut off what was not finished, and begin a file that has nothing."""
        finished = self._finished()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("r+b" if self.path.exists() else "wb") as file:
            file.truncate(len(finished))
        if not finished:
            self._write([HEADER])

    def append(self, rows: Iterable[Row]) -> None:
        """Write rows behind what is there, in one piece."""
        self._write(astuple(row) for row in rows)

    def _write(self, lines: Iterable[Iterable[object]]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        with self.path.open("ab") as file:
            file.write(text.getvalue().encode())

    def _finished(self) -> bytes:
        content = self.path.read_bytes() if self.path.exists() else b""
        return content[: content.rfind(b"\n") + 1]
