"""Texts as numbers: what counts as a number, what as missing, and what is a mistake."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["BadCells", "find_bad_cells", "find_decimal", "read_cells"]

# In lower case: what is missing in every column, and what is missing only among numbers.
NA = ("", "na", "n/a", "#n/a", "#na", "<na>", "nan", "null", "none")
NA_AMONG_NUMBERS = (*NA, ".", "..", "-", "--", "?", "missing")
# Numbers in other notations, as regular expressions of whole entries.
COMMA = r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?"
POINT = r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?"
THOUSANDS = r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?"
OTHER_THOUSANDS = "|".join(
    rf"[+-]?[1-9]\d{{0,2}}(?:{mark}\d{{3}})+(?:[.,]\d*)?" for mark in ("['’]", r"\s", r"\.")
)
PERCENT = r"[+-]?[\d.,]*\d[\d.,]*\s*%"
CURRENCY = r"[+-]?[$€£¥]\s*[+-]?[\d.,]*\d[\d.,]*|[+-]?[\d.,]*\d[\d.,]*\s*[$€£¥]"
NOTATIONS = "|".join((COMMA, POINT, THOUSANDS, OTHER_THOUSANDS, PERCENT, CURRENCY))
COMMA_HINT = "read decimal commas with --decimal ','"
POINT_HINT = "read decimal points with --decimal '.'"
THOUSANDS_HINT = "remove the thousands separators"
# Other entries are mistakes among numbers if they are at most this share, or this many different ones.
MAX_BAD_SHARE = 0.2
MAX_BAD_KINDS = 5


@dataclass(frozen=True)
class BadCells:
    """Entries of a column of numbers that are not numbers: how many, and the first one with its position."""

    count: int
    position: int
    cell: str

    @property
    def hint(self) -> str | None:
        """What to do about a number in another notation."""
        if re.fullmatch(PERCENT, self.cell):
            return "write percentages without the percent sign"
        if re.fullmatch(CURRENCY, self.cell):
            return "remove the currency signs"
        # An entry with a point is a number unless decimals have commas, and the other way round.
        mark = POINT_HINT if re.fullmatch(POINT, self.cell) else COMMA_HINT
        if re.fullmatch(f"{THOUSANDS}|{OTHER_THOUSANDS}", self.cell):
            if re.fullmatch(f"{COMMA}|{POINT}", self.cell):
                return f"{THOUSANDS_HINT}, or {mark}"
            is_other = re.fullmatch(OTHER_THOUSANDS, self.cell) and "," in self.cell
            return f"{THOUSANDS_HINT}, and {COMMA_HINT}" if is_other else THOUSANDS_HINT
        return mark if re.fullmatch(f"{COMMA}|{POINT}", self.cell) else None


def read_cells(text: pl.Series, decimal: str = ".") -> pl.Series:
    """A column as whole numbers, numbers, or true and false; as text if it has other entries.

    Examples
    --------
    >>> import polars as pl
    >>> for cells in (["1", " +2", "NA"], ["1.5", "3", "?"], ["a", "NA", "?"]):
    ...     print(read_cells(pl.Series(cells)).to_list())
    [1, 2, None]
    [1.5, 3.0, None]
    ['a', None, '?']
    """
    import polars as pl

    cells = text.str.strip_chars()
    numbers = _read_numbers(cells, decimal)
    others = {cell.lower() for cell in cells.filter(cells.is_not_null() & numbers.is_null()).unique()}
    if others <= set(NA_AMONG_NUMBERS):
        whole = cells.cast(pl.Int64, strict=False)
        return whole if numbers.null_count() == whole.null_count() < len(text) else numbers
    if others - set(NA) <= {"true", "false"} and numbers.null_count() == len(text):
        lower = cells.str.to_lowercase()
        return lower.replace_strict({"true": True, "false": False}, default=None, return_dtype=pl.Boolean)
    return _remove(text, _is_among(cells, NA))


def find_decimal(texts: pl.DataFrame) -> str:
    """The decimal point, or a comma if columns have such numbers, no column has points, and no doubt is left.

    1,304 may be a thousand and more: one entry such as 1,5 is needed.
    """
    has_commas = False
    for column in texts:
        cells = column.str.strip_chars()
        filled = cells.filter(cells.is_not_null() & ~_is_among(cells, NA_AMONG_NUMBERS))
        if filled.str.contains(".", literal=True).any() and _read_numbers(filled, ".").null_count() == 0:
            return "."
        with_comma = filled.filter(filled.str.contains(",", literal=True))
        if filled.str.contains(rf"^(?:{COMMA}|[+-]?\d+)$").all():
            has_commas |= not with_comma.str.contains(rf"^(?:{THOUSANDS})$").all()
    return "," if has_commas else "."


def find_bad_cells(text: pl.Series, decimal: str = ".") -> BadCells | None:
    """The mistakes in a column of text that is mostly numbers; None in any other.

    Examples
    --------
    >>> import polars as pl
    >>> find_bad_cells(pl.Series(["1", "2.5", "oops", "?"]))
    BadCells(count=1, position=2, cell='oops')
    >>> find_bad_cells(pl.Series(["1", "north", "south"]))
    """
    cells = text.str.strip_chars()
    filled = cells.is_not_null() & ~_is_among(cells, NA_AMONG_NUMBERS)
    is_bad = filled & _read_numbers(cells, decimal).is_null()
    bad = cells.filter(is_bad)
    if bad.is_empty():
        return None
    others = bad.filter(~bad.str.contains(f"^(?:{NOTATIONS})$"))
    n_filled = int(filled.sum())
    if 2 * len(others) >= n_filled:
        return None
    if len(others) > MAX_BAD_SHARE * n_filled and others.n_unique() > MAX_BAD_KINDS:
        return None
    return BadCells(len(bad), int(is_bad.arg_max() or 0), bad[0])


def _read_numbers(cells: pl.Series, decimal: str) -> pl.Series:
    """Numbers, and None for what is none."""
    import polars as pl

    if decimal == ",":
        with_point = cells.str.contains(".", literal=True).fill_null(False)
        cells = _remove(cells, with_point).str.replace(",", ".", literal=True)
    return cells.cast(pl.Float64, strict=False).fill_nan(None)


def _is_among(cells: pl.Series, words: tuple[str, ...]) -> pl.Series:
    return cells.str.to_lowercase().is_in(words).fill_null(False)


def _remove(cells: pl.Series, is_missing: pl.Series) -> pl.Series:
    """None where it is missing."""
    import polars as pl

    return pl.select(pl.when(~is_missing).then(cells)).to_series().alias(cells.name)
