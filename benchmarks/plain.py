"""Tables as plain text, for machines without rich."""

from __future__ import annotations


class Table:
    """A title, columns and rows; what the benchmarks use of `rich.table.Table`."""

    def __init__(self, title: str) -> None:
        self.title = title
        self._names: list[str] = []
        self._is_left: list[bool] = []
        self._rows: list[tuple[str, ...]] = []

    def add_column(self, name: str, justify: str = "right", no_wrap: bool = True) -> None:  # noqa: ARG002
        self._names.append(name)
        self._is_left.append(justify == "left")

    def add_row(self, *cells: str) -> None:
        self._rows.append(cells)

    def add_section(self) -> None:
        """Rows follow each other without a line between sections."""

    def __str__(self) -> str:
        rows = [tuple(self._names), *self._rows]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if is_left else cell.rjust(width)
                for cell, width, is_left in zip(row, widths, self._is_left, strict=True)
            ).rstrip()
            for row in rows
        ]
        return "\n".join([self.title, lines[0], "-" * (sum(widths) + 2 * len(widths) - 2), *lines[1:], ""])


class Console:
    """Prints; `width` is for rich alone, plain lines are as long as they are."""

    def __init__(self, width: int) -> None:
        self.width = width

    def print(self, what: object) -> None:
        print(what, flush=True)
