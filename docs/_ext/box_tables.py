"""Tables drawn with box characters, as rich prints them, told apart from the text around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

__all__ = ["BoxTable", "split_text"]

BORDERS = "┏┡├└┌╞╘"


@dataclass
class BoxTable:
    """Cells of a table, and the title above it."""

    title: str
    columns: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)


def split_text(text: str) -> Iterator[str | BoxTable]:
    """Paragraphs and tables of a text, in order."""
    lines = [line.strip() for line in text.splitlines()]
    parts = [list(part) for drawn, part in groupby(lines, key=bool) if drawn]
    for part in parts:
        # No empty line need be between two tables.
        begin = 0
        for end in [e for e, line in enumerate(part) if line[0] == "└"]:
            first = next(e for e in range(begin, end) if part[e][0] in BORDERS)
            yield _read_table(" ".join(part[begin:first]), part[first:end])
            begin = end + 1
        if part[begin:]:
            yield "\n".join(part[begin:])


def _read_table(title: str, lines: list[str]) -> BoxTable:
    table = BoxTable(title)
    for line in lines:
        cells = [cell.strip() for cell in line[1:-1].replace("┃", "│").split("│")]
        if line[0] == "┃":
            table.columns = _join(table.columns, cells) if table.columns else cells
        elif line[0] == "│":
            # A row that is too long for its line goes on in the next one, where only some cells have text.
            goes_on = table.rows and not any(cells[1:])
            if goes_on:
                table.rows[-1] = _join(table.rows[-1], cells)
            else:
                table.rows.append(cells)
    return table


def _join(above: list[str], below: list[str]) -> list[str]:
    return [f"{one} {other}".strip() for one, other in zip(above, below, strict=True)]
