"""The first sheet of an Excel file as a table of texts."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rectifit.tables.source import describe_source
from rectifit.tables.text import NoRowsError, TextTable, name_columns

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read_excel"]


def read_excel(path: str | Path) -> TextTable:
    """Read the first sheet, whose first row with an entry is the header; empty rows are left out."""
    import polars as pl

    name = describe_source(path)
    if find_spec("fastexcel") is None:
        raise ValueError("Excel files need fastexcel; install it with: pip install 'rectifit[excel]'")
    with Path(path).open("rb") as file:
        data = file.read()
    if not data:
        raise NoRowsError
    try:
        texts, numbers = (_read_sheet(data, kind) for kind in ("string", "float"))
    except Exception as error:
        # fastexcel is imported only here, and its errors have no common base with those of polars.
        if type(error).__module__.split(".")[0] not in ("_fastexcel", "fastexcel", "polars"):
            raise
        raise ValueError(f"{name} is not a valid Excel file") from None
    if texts.width == 0 or numbers.shape != texts.shape:
        raise NoRowsError
    texts = texts.with_columns(map(_write_exactly, texts, numbers))
    filled = texts.select(pl.any_horizontal(pl.all().is_not_null() & (pl.all() != ""))).to_series()
    rows = filled.arg_true().to_list()
    if len(rows) < 2:
        raise NoRowsError
    texts = texts.filter(filled)

    def find_rows(positions: Sequence[int]) -> list[int]:
        return [rows[position + 1] + 1 for position in positions]

    return TextTable(name_columns(texts.slice(1), texts.row(0), name), find_rows, "row", has_options=False)


def _read_sheet(data: bytes, kind: str) -> pl.DataFrame:
    import polars as pl

    return pl.read_excel(
        data,
        has_header=False,
        drop_empty_rows=False,
        drop_empty_cols=False,
        raise_if_empty=False,
        read_options={"dtypes": kind, "skip_rows": 0, "header_row": None},
    )


def _write_exactly(text: pl.Series, number: pl.Series) -> pl.Series:
    """The texts with all digits of numbers: fastexcel's own have nine decimals."""
    import polars as pl

    number = number.cast(pl.Float64)
    is_rounded = number.is_not_null() & text.cast(pl.Float64, strict=False).is_not_null()
    is_rounded &= text.cast(pl.Float64, strict=False) != number
    exact = pl.when(is_rounded.fill_null(False)).then(number.cast(pl.String)).otherwise(text)
    return pl.select(exact.alias(text.name)).to_series()
