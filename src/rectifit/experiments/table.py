"""A table of numbers and words, and its forms: text, CSV, LaTeX."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

from rectifit.web import TableView

__all__ = ["Cell", "Column", "Table"]

Cell = str | float | int | None

# What LaTeX reads otherwise.
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
    """A heading, and how its numbers are written."""

    name: str
    spec: str = ""

    def text(self, cell: Cell) -> str:
        """A cell for people; nothing where there is none."""
        if cell is None:
            return ""
        return cell if isinstance(cell, str) else format(cell, self.spec)


@dataclass(frozen=True)
class Table:
    """Rows under columns. `key` names its files; `note` says what to see; the last `n_foot` rows sum up."""

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    n_foot: int = 0

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"a row of {self.key} has {len(row)} cells; it must have {len(self.columns)}"
                )

    def texts(self) -> list[list[str]]:
        """All cells as people read them."""
        return [
            [column.text(cell) for column, cell in zip(self.columns, row, strict=True)] for row in self.rows
        ]

    def view(self, folded: bool = False) -> TableView:
        """For a page; it sorts by numbers, not by how they are written."""
        names = [column.name for column in self.columns]
        return TableView(self.title, names, self.texts(), self.rows, self.note, self.n_foot, folded)

    def to_text(self) -> str:
        """Aligned columns."""
        lines = [[column.name for column in self.columns], *self.texts()]
        widths = [max(len(line[j]) for line in lines) for j in range(len(self.columns))]
        drawn = [
            "  ".join(
                cell.ljust(width) if j == 0 else cell.rjust(width)
                for j, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        head, body = drawn[0], drawn[1:]
        cut = len(body) - self.n_foot
        foot = [rule, *body[cut:]] if self.n_foot else []
        parts = [self.title, rule, head, rule, *body[:cut], *foot, rule]
        return "\n".join([*parts, *([self.note] if self.note else [])]) + "\n"

    def to_csv(self) -> str:
        """Numbers in full."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([column.name for column in self.columns])
        writer.writerows(self.rows)
        return text.getvalue()

    def to_latex(self) -> str:
        """A tabular with rules of booktabs, in a table with its caption."""
        body = [" & ".join(map(_escape, line)) + r" \\" for line in self.texts()]
        if self.n_foot:
            body.insert(len(body) - self.n_foot, r"\midrule")
        align = "l" + "r" * (len(self.columns) - 1)
        head = " & ".join(_escape(column.name) for column in self.columns) + r" \\"
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


def _escape(text: str) -> str:
    return "".join(ESCAPES.get(letter, letter) for letter in text)
