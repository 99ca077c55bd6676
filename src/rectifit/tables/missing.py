"""Rows with missing values: which columns have the gaps, and what is lost with the rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rectifit.formatting import write_count
from rectifit.tables.encoding import find_column, is_numeric

if TYPE_CHECKING:
    import polars as pl

__all__ = ["DROP", "WARNING", "Gaps", "find_gaps", "without_missing"]

# How a user of the command line asks for rows to be dropped.
DROP = "--missing drop"
# Begins a note that should not be overlooked.
WARNING = "warning: "


@dataclass(frozen=True)
class Gaps:
    """Rows that are complete, and the numbers of missing values by column."""

    is_complete: pl.Series
    counts: dict[str, int]

    @property
    def n_incomplete(self) -> int:
        """Rows with a missing value."""
        return len(self.is_complete) - int(self.is_complete.sum())

    @property
    def rows(self) -> str:
        """How many rows have a missing value, with a verb to follow."""
        total = write_count(len(self.is_complete), "row")
        return f"{self.n_incomplete:,} of {total} {'is' if self.n_incomplete == 1 else 'are'}"

    @property
    def columns(self) -> str:
        """The columns with their numbers of missing values."""
        return ", ".join(f"{name!r} ({count:,})" for name, count in self.counts.items())


def find_gaps(frame: pl.DataFrame, columns: Iterable[str]) -> Gaps:
    """Missing values in these columns; NaN is one, too.

    Examples
    --------
    >>> import polars as pl
    >>> gaps = find_gaps(pl.DataFrame({"a": [1.0, None, 3.0], "b": [None, None, 1]}), ["a", "b"])
    >>> gaps.columns, gaps.n_incomplete
    ("'a' (1), 'b' (2)", 2)
    """
    import polars as pl

    used = frame.select(find_column(frame, column) for column in columns).fill_nan(None)
    counts = {name: count for name, count in used.null_count().row(0, named=True).items() if count}
    return Gaps(used.select(pl.all_horizontal(pl.all().is_not_null())).to_series(), counts)


def without_missing(
    frame: pl.DataFrame, columns: Iterable[str], missing: str, target: str | None = None, remedy: str = DROP
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Rows with a value in each of the columns, and notes on those that were dropped.

    The notes say how many zeros of the target are dropped: they are what makes a ReLU fit differ from a line.
    With missing="error", ValueError if a value is missing.
    """
    gaps = find_gaps(frame, columns)
    if not gaps.counts:
        return frame, ()
    zeros, lost, because = _find_lost_zeros(frame, gaps, target)
    all_zeros = f"{'the only row' if zeros == 1 else f'all {zeros:,} rows'} in which {target!r} is 0"
    if missing != "drop":
        advice = f"fill them in, or drop these rows with {remedy}"
        loss = f", which would drop {all_zeros}" if 0 < lost == zeros else ""
        raise ValueError(f"values are missing in {gaps.columns}; {advice}{loss}")
    kept = frame.filter(gaps.is_complete)
    if kept.height == 0:
        found = f"all {frame.height:,} rows have missing values, in {gaps.columns}"
        raise ValueError(f"{found}; at least one complete row is needed")
    note = f"{gaps.rows} dropped, because values are missing in {gaps.columns}"
    if 0 < lost < zeros:
        note += f"; this includes {lost:,} of the {zeros:,} rows in which {target!r} is 0"
    if not 0 < lost == zeros:
        return kept, (note,)
    return kept, (
        note,
        f"{WARNING}this drops {all_zeros}, because {because} missing there; other features would keep "
        f"{'it' if zeros == 1 else 'them'}",
    )


def _find_lost_zeros(frame: pl.DataFrame, gaps: Gaps, target: str | None) -> tuple[int, int, str]:
    """Rows in which the target is 0, those of them that are incomplete, and what is missing in them."""
    import polars as pl

    if target is None or not is_numeric(frame[target]):
        return 0, 0, ""
    is_zero = (frame[target].cast(pl.Float64) == 0.0).fill_null(False)
    lost = frame.filter(is_zero & ~gaps.is_complete)
    names = find_gaps(lost, gaps.counts).counts
    because = f"{' and '.join(map(repr, names))} {'is' if len(names) == 1 else 'are'}"
    return int(is_zero.sum()), lost.height, because
