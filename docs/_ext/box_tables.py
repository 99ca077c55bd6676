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
        first = next((e for e, line in enumerate(part) if line[0] in BORDERS), len(part))
        last = max((e for e, line in enumerate(part) if line[0] == "└"), default=len(part))
        if first < len(part):
            yield _read_table(" ".join(part[:first]), part[first:last])
            if part[last + 1 :]:
                yield "\n".join(part[last + 1 :])
        else:
            yield "\n".join(part)


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
