"""Columns as numbers: numeric columns unchanged, categories as one indicator per level except the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Protocol

import numpy as np

from rectifit._typing import Matrix, Vector

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "Encoder",
    "Encoding",
    "Learner",
    "find_column",
    "find_example",
    "find_levels",
    "is_numeric",
    "is_text",
    "read_numbers",
    "shorten",
]

# A column with more levels is an identifier, or a numeric column.
MAX_LEVELS = 1000


class Encoder(Protocol):
    """How rows of a table become numbers."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that are used."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, in the order of the coefficients."""
        ...

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that are read as numbers."""
        ...

    def encode(self, frame: pl.DataFrame) -> Matrix:
        """The rows of the frame as numbers, one column per name."""
        ...


class Learner(Protocol):
    """What becomes an encoding when it sees the rows of a fit."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that are used."""
        ...

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that are read as numbers."""
        ...

    def learn(self, frame: pl.DataFrame) -> Encoder:
        """The encoding that these rows define."""
        ...


@dataclass(frozen=True)
class Encoding:
    """How rows become numbers: the columns that are read, and the levels of those that are categories.

    A category has one indicator per level except the first, with names such as "region=north".

    Examples
    --------
    >>> Encoding(("age", "region"), {"region": ("east", "north", "south")}).names
    ('age', 'region=north', 'region=south')
    """

    columns: tuple[str, ...]
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features, in the order of the coefficients."""
        names: list[str] = []
        for column in self.columns:
            levels = self.levels.get(column)
            names += [column] if levels is None else [f"{column}={level}" for level in levels[1:]]
        return tuple(names)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Columns that are read as numbers."""
        return tuple(column for column in self.columns if column not in self.levels)

    def encode(self, frame: pl.DataFrame) -> Matrix:
        """The rows of the frame as numbers, one column per name."""
        parts = []
        for column in self.columns:
            series = find_column(frame, column)
            levels = self.levels.get(column)
            if levels is None:
                parts.append(read_numbers(series, "numeric, or be encoded with --one-hot"))
            else:
                parts += _indicators(series, levels)
        return np.column_stack(parts) if parts else np.empty((frame.height, 0))


def find_column(frame: pl.DataFrame, column: str) -> pl.Series:
    """The column of that name, or an error that suggests similar names."""
    if column in frame.columns:
        return frame[column]
    begun = next((name for name in frame.columns if name.startswith(f"{column},")), None)
    if begun is not None:
        quoted = f"'\"{begun}\"'"
        raise ValueError(
            f"there is no column {column!r}; in a list, a name with a comma needs quotation marks: {quoted}"
        )
    near = get_close_matches(column, frame.columns, n=3, cutoff=0.5)
    hint = (
        f"did you mean {' or '.join(map(repr, near))}?" if near else f"columns are {shorten(frame.columns)}"
    )
    raise ValueError(f"there is no column {column!r}; {hint}")


def read_numbers(series: pl.Series, allowed: str = "numeric") -> Vector:
    """The column in float64, if all of its entries are finite numbers."""
    import polars as pl

    if not is_numeric(series):
        raise ValueError(
            f"column {series.name!r} has entries such as {find_example(series)}; it must be {allowed}"
        )
    values: Vector = series.cast(pl.Float64).to_numpy().astype(np.float64)
    if np.isnan(values).any():
        raise ValueError(f"column {series.name!r} has missing values; all of its entries must be numbers")
    if np.isinf(values).any():
        raise ValueError(f"column {series.name!r} has an infinite value; all of its entries must be finite")
    return values


def find_example(series: pl.Series) -> str:
    """The first entry that is not a number, for an error or a note."""
    import polars as pl

    filled = series.drop_nulls()
    if series.dtype != pl.String:
        return next(map(str, filled), "none")
    others = filled.filter(filled.cast(pl.Float64, strict=False).is_null())
    return repr(next(iter(others), *filled[:1]))


def find_levels(series: pl.Series) -> tuple[str, ...]:
    """Levels of a category: numbers in numerical order, text in alphabetical order."""
    labels = set(_labels(series))
    if len(labels) > MAX_LEVELS:
        raise ValueError(
            f"column {series.name!r} has {len(labels):,} levels; a category may have at most {MAX_LEVELS:,}"
        )
    return tuple(sorted(labels, key=float if series.dtype.is_numeric() else str))


def _indicators(series: pl.Series, levels: Sequence[str]) -> list[Vector]:
    labels = np.array(_labels(series), dtype=object)
    unknown = set(labels) - set(levels)
    if unknown:
        raise ValueError(
            f"column {series.name!r} has the level {min(unknown)!r}; known levels are {shorten(levels)}"
        )
    return [(labels == level).astype(np.float64) for level in levels[1:]]


def _labels(series: pl.Series) -> list[str]:
    """Entries as text, whole numbers without a point, so that a level reads the same in every file."""
    import polars as pl

    if not (is_text(series) or is_numeric(series)):
        raise ValueError(
            f"column {series.name!r} is of type {series.dtype}; a category must be text or numbers"
        )
    if series.null_count():
        raise ValueError(f"column {series.name!r} has missing values; every entry must have a level")
    if series.dtype.is_float():
        return [str(int(value)) if value.is_integer() else str(value) for value in series]
    labels: list[str] = series.cast(pl.String).to_list()
    return labels


def is_numeric(series: pl.Series) -> bool:
    """Whether the column is of numbers, or of true and false."""
    import polars as pl

    return bool(series.dtype.is_numeric() or series.dtype == pl.Boolean)


def is_text(series: pl.Series) -> bool:
    """Whether the column is of text."""
    import polars as pl

    return series.dtype in (pl.String, pl.Categorical, pl.Enum)


def shorten(names: Sequence[object]) -> str:
    """The first names or levels, and how many there are besides."""
    shown = ", ".join(map(repr, names[:8]))
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
