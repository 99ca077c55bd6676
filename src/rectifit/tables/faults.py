"""Columns of numbers that are text because of a few entries, or have infinite ones, and where these are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rectifit.tables.cells import BadCells, find_bad_cells

if TYPE_CHECKING:
    import polars as pl

__all__ = ["find_faults"]

# Characters of a wrong entry that an error shows.
MAX_SHOWN = 40
ADVICE = "correct it, or leave it empty if the value is missing"


def find_faults(
    frame: pl.DataFrame,
    find_lines: Callable[[Sequence[int]], list[int]],
    *,
    place: str = "line",
    decimal: str = ".",
    with_options: bool = False,
) -> dict[str, str]:
    """Sentences about these columns, by their names.

    Parameters
    ----------
    frame : polars.DataFrame
    find_lines : callable
        The lines in the file of rows, by their positions in the table.
    place : str
        What these lines are called.
    decimal : {".", ","}
        The decimal mark.
    with_options : bool
        Whether the reader has options for other notations of numbers.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"a": ["1", "2", "oops"]})
    >>> find_faults(frame, lambda positions: [j + 2 for j in positions])["a"].split(";")[0]
    "column 'a' has an entry that is not a number, 'oops' in line 4"
    """
    import polars as pl

    found = {column.name: find_bad_cells(column, decimal) for column in frame if column.dtype == pl.String}
    bad = {name: cells for name, cells in found.items() if cells is not None}
    infinite = {
        column.name: int(column.is_infinite().arg_max() or 0)
        for column in frame
        if column.dtype.is_float() and column.is_infinite().any()
    }
    if not bad and not infinite:
        return {}
    lines = find_lines([*(cells.position for cells in bad.values()), *infinite.values()])
    where = {name: f"{place} {line:,}" for name, line in zip([*bad, *infinite], lines, strict=True)}
    return {
        name: _describe(name, cells, where[name], (with_options and cells.hint) or ADVICE)
        for name, cells in bad.items()
    } | {
        name: f"column {name!r} has an infinite value in {where[name]}; all of its entries must be finite"
        for name in infinite
    }


def _describe(name: str, bad: BadCells, where: str, advice: str) -> str:
    cell = repr(bad.cell if len(bad.cell) <= MAX_SHOWN else f"{bad.cell[:MAX_SHOWN]}...")
    if bad.count == 1:
        return f"column {name!r} has an entry that is not a number, {cell} in {where}; {advice}"
    found = f"{bad.count:,} entries that are not numbers; the first is {cell} in {where}"
    return f"column {name!r} has {found}; {advice}"
