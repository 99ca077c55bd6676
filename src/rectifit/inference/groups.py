"""Groups of rows whose errors may be correlated, such as firms, schools or days; in one way or in two."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rectifit._typing import Integers
from rectifit.checks import check_length, to_numpy

__all__ = ["Groups", "read_groups"]

ALLOWED = "an array with one group per row of X, or two columns for two ways"
# Marks of missing values in object arrays that are not equal to anything, or that refuse to be compared.
MISSING_TYPES = ("NAType", "NaTType")


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of all rows.

    Attributes
    ----------
    ways : one or two arrays with a number per row, equal for rows of one group
    cells : the same for pairs of groups; with one way, its groups
    """

    ways: tuple[Integers, ...]
    cells: Integers


def read_groups(groups: Any, n_samples: int) -> Groups:
    """Groups as a user gives them, checked.

    Parameters
    ----------
    groups : array of shape (n_samples,) or (n_samples, 2), data frame of two columns, or pair of arrays
        Numbers, dates or texts without missing values.
    n_samples : int

    Examples
    --------
    >>> read_groups(["north", "south", "north"], 3).ways
    (array([0, 1, 0]),)
    >>> read_groups((["north", "south", "north"], [2021, 2021, 2021]), 3).cells
    array([0, 1, 0])
    """
    columns = [_column(column) for column in _split(groups)]
    ways = tuple(_number(check_length(column, "groups", n_samples)) for column in columns)
    if len(ways) == 1:
        return Groups(ways, ways[0])
    first, second = ways
    return Groups(ways, _number(first * (int(second.max()) + 1) + second))


def _split(groups: Any) -> list[Any]:
    """The columns, one or two."""
    if isinstance(groups, str | bytes) or not hasattr(groups, "__len__"):
        raise TypeError(f"groups is {groups!r}; it must be {ALLOWED}")
    if hasattr(groups, "columns"):
        found = [groups[name] for name in groups.columns]
    elif isinstance(groups, list | tuple) and len(groups) == 2 and all(map(_is_column, groups)):
        found = list(groups)
    else:
        array = _array(groups)
        if array.ndim not in (1, 2):
            raise ValueError(f"groups has shape {array.shape}; it must be {ALLOWED}")
        found = [array] if array.ndim == 1 else list(array.T)
    if len(found) not in (1, 2):
        raise ValueError(f"groups has {len(found)} columns; one or two are supported")
    return found


def _is_column(values: Any) -> bool:
    return hasattr(values, "__len__") and not isinstance(values, str | bytes)


def _array(values: Any) -> npt.NDArray[Any]:
    """An array; of mixed types, one of objects."""
    if isinstance(values, list | tuple) and any(isinstance(entry, str) for entry in values):
        # NumPy would turn numbers beside texts, and None, into texts.
        return np.array(values, dtype=object)
    try:
        return np.asarray(to_numpy(values))
    except ValueError:
        raise ValueError(f"groups is ragged; it must be {ALLOWED}") from None


def _column(values: Any) -> npt.NDArray[Any]:
    """One group per row, none of them missing."""
    column = _array(values)
    if column.ndim != 1:
        raise ValueError(f"groups has a column of shape {column.shape}; it must be one-dimensional")
    if column.dtype.kind in "fc":
        missing = np.isnan(column)
    elif column.dtype.kind in "mM":
        missing = np.isnat(column)
    else:
        has_none = column.dtype.kind == "O"
        missing = np.array([has_none and _is_missing(value) for value in column], dtype=np.bool_)
    if missing.any():
        row = int(np.flatnonzero(missing)[0])
        raise ValueError(
            f"groups has {int(missing.sum())} missing values, the first in row {row}; every row needs a group"
        )
    return column


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in MISSING_TYPES or bool(value != value)


def _number(column: npt.NDArray[Any]) -> Integers:
    """Numbers from 0 on for the different values, in the order of the values or of their first rows."""
    if column.dtype.kind != "O":
        return np.unique(column, return_inverse=True)[1].astype(np.int64)
    known: dict[Hashable, int] = {}
    values: Iterable[Hashable] = column.tolist()
    return np.array([known.setdefault(value, len(known)) for value in values], dtype=np.int64)
