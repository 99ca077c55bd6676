"""A table of numbers and words, and how it is shown: text, CSV, LaTeX, HTML, on a page, in a terminal."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from html import escape
from math import isfinite
from typing import Any, NamedTuple

__all__ = ["Cell", "Column", "Rounded", "Table"]


class Rounded(NamedTuple):
    """A number that its row, not its column, says how to write."""

    value: float
    text: str


Cell = str | float | int | Rounded | None

# Characters that have a meaning in LaTeX, or other glyphs in its default encoding.
ESCAPES = {
    "\\": r"\textbackslash{}",
    "%": r"\%",
    "_": r"\_",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
# In terminals: characters between two columns and at either side; characters of a name for which columns are
# left out, and for which no more can be.
COLUMN_GAP = 2
MAX_NAME = 14
MIN_NAME = 8
# The sign and the power of ten of a number.
MINUS = re.compile(r"^(\(?)-(?=\d)")
POWER = re.compile(r"(?<=\d)e([+-]\d+)")


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
        if isinstance(cell, Rounded):
            return cell.text
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

    def to_grid(
        self, width: int, styles: Sequence[str] = (), optional: Sequence[Collection[str]] = ()
    ) -> Any:
        """For a terminal, as a table of rich that is not wider.

        Where there is too little room, headings are broken into lines, columns are left out, and the first
        column is folded, in this order.

        Parameters
        ----------
        width : int
            Characters of a line.
        styles : sequence of str, optional
            One per row, such as "bold".
        optional : sequence of collections of str, optional
            Groups of columns that may be left out, by their names, the least important group first.
        """
        from rich.box import HORIZONTALS
        from rich.markup import escape as as_is
        from rich.padding import Padding
        from rich.table import Table as Grid

        table, (first, *others) = self._narrow(width, optional)
        # Versions of rich count padding that is collapsed differently: there is none on the left of a column.
        grid = Grid(box=HORIZONTALS, padding=(0, 1, 0, 0))
        name, *headings = table.headings
        edge = (0, 0, 0, 1)
        grid.add_column(Padding(name, edge), width=first + 1, overflow="fold")
        for heading, room in zip(headings, others, strict=True):
            grid.add_column(heading, width=room, justify="right")
        for i, row in enumerate(table.texts()):
            name, *cells = map(as_is, row)
            grid.add_row(Padding(name, edge), *cells, style=styles[i] if styles else None)
        return grid

    def _narrow(self, width: int, optional: Sequence[Collection[str]]) -> tuple[Table, list[int]]:
        """The columns for which there is room, and their widths."""
        table = self
        for group in ((), *optional):
            table = table.without(group)
            first, *natural = table.widths()
            # Headings are broken at spaces, numbers are not.
            body = replace(
                table, columns=tuple(replace(c, name=_longest_word(c.name)) for c in table.columns)
            )
            _, *broken = body.widths()
            for others in (natural, broken):
                room = width - sum(others) - COLUMN_GAP * (len(others) + 2)
                if room >= min(first, MAX_NAME):
                    return table, [min(first, room), *others]
        return table, [max(min(first, room), MIN_NAME), *broken]

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
        writer.writerows(
            [cell.value if isinstance(cell, Rounded) else cell for cell in row] for row in self.rows
        )
        return text.getvalue()

    def to_latex(self) -> str:
        """A tabular with rules of booktabs, in a table with its caption and note."""
        lines = [[_escape(name) for name in self.headings]]
        lines += [
            [_to_latex(cell, text) for cell, text in zip(row, texts, strict=True)]
            for row, texts in zip(self.rows, self.texts(), strict=True)
        ]
        head, *body = (" & ".join(line) + r" \\" for line in lines)
        if self.n_foot:
            body.insert(len(body) - self.n_foot, r"\midrule")
        align = "l" + "r" * (len(self.columns) - 1)
        note = [r"\par\smallskip", rf"{{\footnotesize {_escape(self.note)}\par}}"] if self.note else []
        return "\n".join(
            [
                r"\begin{table}",
                r"\centering",
                *([rf"\caption{{{_escape(self.title)}}}"] if self.title else []),
                rf"\label{{tab:{self.key}}}",
                rf"\begin{{tabular}}{{{align}}}",
                r"\toprule",
                head,
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                *note,
                r"\end{table}",
                "",
            ]
        )

    def to_html(self) -> str:
        """A table element with its caption, and the note below it; all texts are escaped."""
        cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.headings)
        head = [f"<thead><tr>{cells}</tr></thead>"] if any(self.headings) else []
        rows = [_html_row(*texts) for texts in self.texts()]
        cut = len(rows) - self.n_foot
        return "\n".join(
            [
                '<table class="rectifit">',
                *([f"<caption>{escape(self.title)}</caption>"] if self.title else []),
                *head,
                "<tbody>",
                *rows[:cut],
                "</tbody>",
                *(["<tfoot>", *rows[cut:], "</tfoot>"] if self.n_foot else []),
                "</table>",
                *([f"<p>{escape(self.note)}</p>"] if self.note else []),
                "",
            ]
        )


def _longest_word(text: str) -> str:
    return max(text.split(), key=len, default="")


def _sort_key(cell: Cell) -> Cell:
    if isinstance(cell, Rounded):
        cell = cell.value
    return None if isinstance(cell, float) and not isfinite(cell) else cell


def _html_row(name: str, *texts: str) -> str:
    cells = "".join(f"<td>{escape(text)}</td>" for text in texts)
    return f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>'


def _to_latex(cell: Cell, text: str) -> str:
    """Words are escaped; numbers have the minus sign and the powers of ten of mathematics."""
    text = _escape(text)
    if isinstance(cell, str) or cell is None:
        return text
    return POWER.sub(lambda found: rf"$\times 10^{{{int(found[1])}}}$", MINUS.sub(r"\1$-$", text))


def _escape(text: str) -> str:
    return "".join(ESCAPES.get(letter, letter) for letter in text)
