"""A table of numbers and words, and how it is shown: text, CSV, LaTeX, on a page, in a terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

__all__ = ["Cell", "Column", "Table"]

Cell = str | float | int | None

# Characters that have a meaning in LaTeX.
ESCAPES = {
    "\\": r"\textbackslash{}",
    "%": r"\%",
    "_": r"\_",
    "&": r"\&",
    "#": r"\#",
    "~": r"\textasciitilde{}",
}


@dataclass(frozen=True)
class Column:
    """A heading, and how its numbers are written: a format specification or a function of `formatting`."""

    name: str
    spec: str | Callable[[Any], str] = ""
    missing: str = ""

    def text(self, cell: Cell) -> str:
        """A cell for people."""
        if cell is None:
            return self.missing
        if isinstance(cell, str):
            return cell
        return format(cell, self.spec) if isinstance(self.spec, str) else self.spec(cell)


@dataclass(frozen=True)
class Table:
    """Rows under columns.

    Attributes
    ----------
    key : name of its files, and its label in LaTeX
    title, note : what stands above and below
    columns, rows : as many cells in each row as there are columns
    n_foot : number of rows at the end that sum up the others
    is_folded : whether a page shows only the title until a reader unfolds the table
    """

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    n_foot: int = 0
    is_folded: bool = False

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"a row of {self.key} has {len(row)} cells; it must have {len(self.columns)}"
                )

    @property
    def headings(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    def texts(self) -> list[list[str]]:
        """All cells as people read them."""
        return [
            [column.text(cell) for column, cell in zip(self.columns, row, strict=True)] for row in self.rows
        ]

    def widths(self) -> list[int]:
        """Characters of the longest text in every column, headings included."""
        return [max(map(len, column)) for column in zip(self.headings, *self.texts(), strict=True)]

    def without(self, names: Collection[str]) -> Table:
        """The table without the columns of these names."""
        kept = [j for j, name in enumerate(self.headings) if name not in names]
        return replace(
            self,
            columns=tuple(self.columns[j] for j in kept),
            rows=tuple(tuple(row[j] for j in kept) for row in self.rows),
        )

    def sortable_rows(self) -> list[list[tuple[str, Cell]]]:
        """All cells for a page: the text, and the key to sort by, which is None without a finite number."""
        return [
            [(text, _sort_key(cell)) for text, cell in zip(texts, row, strict=True)]
            for texts, row in zip(self.texts(), self.rows, strict=True)
        ]

    def to_grid(self, styles: Sequence[str] = (), min_width: int | None = None) -> Any:
        """For a terminal, as a table of rich.

        Parameters
        ----------
        styles : sequence of str, optional
            One per row, such as "bold".
        min_width : int, optional
            Characters of the first column, which is folded where the terminal is narrow.
        """
        from rich.box import HORIZONTALS
        from rich.markup import escape
        from rich.table import Table as Grid

        grid = Grid(box=HORIZONTALS, collapse_padding=True)
        first, *others = self.headings
        grid.add_column(first, overflow="fold", min_width=min_width)
        for heading in others:
            grid.add_column(heading, justify="right", no_wrap=True)
        for i, row in enumerate(self.texts()):
            grid.add_row(*map(escape, row), style=styles[i] if styles else None)
        return grid

    def to_text(self) -> str:
        """Aligned columns."""
        widths = self.widths()
        head, *body = (
            "  ".join(
                cell.ljust(width) if j == 0 else cell.rjust(width)
                for j, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in [self.headings, *self.texts()]
        )
        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        cut = len(body) - self.n_foot
        foot = [rule, *body[cut:]] if self.n_foot else []
        parts = [self.title, rule, head, rule, *body[:cut], *foot, rule]
        return "\n".join([*parts, *([self.note] if self.note else [])]) + "\n"

    def to_csv(self) -> str:
        """Numbers in full."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.headings)
        writer.writerows(self.rows)
        return text.getvalue()

    def to_latex(self) -> str:
        """A tabular with rules of booktabs, in a table with its caption."""
        head, *body = (" & ".join(map(_escape, line)) + r" \\" for line in [self.headings, *self.texts()])
        if self.n_foot:
            body.insert(len(body) - self.n_foot, r"\midrule")
        align = "l" + "r" * (len(self.columns) - 1)
        return "\n".join(
            [
                r"\begin{table}",
                rf"\caption{{{_escape(self.title)}}}",
                rf"\label{{tab:{self.key}}}",
                rf"\begin{{tabular}}{{{align}}}",
                r"\toprule",
                head,
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )


def _sort_key(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and not isfinite(cell) else cell


def _escape(text: str) -> str:
    return "".join(ESCAPES.get(letter, letter) for letter in text)
