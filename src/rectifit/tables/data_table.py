"""The data of one fit, chosen from a table and checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rectifit._typing import Vector
from rectifit.tables.encoding import (
    Encoder,
    Encoding,
    Learner,
    find_column,
    find_example,
    find_levels,
    is_numeric,
    is_text,
    read_numbers,
)
from rectifit.tables.missing import DROP, without_missing

if TYPE_CHECKING:
    import polars as pl

__all__ = ["DataTable", "choose_numbers", "make_table", "refuse_faults"]

NO_FEATURES = "no features are left; at least one numeric column besides the target is needed"
# Columns that had no name, and the index of a pandas data frame.
UNNAMED = re.compile(r"|Unnamed: \d+(\.\d+)*|__index_level_\d+__")


@dataclass(frozen=True, eq=False)
class DataTable:
    """Data ready to fit: numbers, their names, and notes on what was left out.

    X may also be `Data` that is read in passes and has its own outcomes and weights; y and weights are None
    then. `groups` has the columns of groups, one or two, if any.
    """

    X: Any
    y: Any
    weights: Vector | None
    encoding: Encoder
    target: str
    notes: tuple[str, ...] = ()
    groups: pl.DataFrame | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of X."""
        return self.encoding.names

    def named(self) -> pl.DataFrame:
        """X as a data frame."""
        import polars as pl

        return pl.DataFrame(self.X, schema=list(self.names), orient="row")


def make_table(
    frame: pl.DataFrame,
    target: str,
    *,
    features: Sequence[str] | None = None,
    weights: str | None = None,
    one_hot: Sequence[str] | None = None,
    missing: str = "error",
    encoding: Encoder | None = None,
    formula: Learner | None = None,
    groups: Sequence[str] = (),
    faults: Mapping[str, str] | None = None,
    remedy: str = DROP,
) -> DataTable:
    """Choose and check the columns of a fit.

    Parameters
    ----------
    frame : polars.DataFrame
    target : str
        The outcome.
    features : sequence of str, optional
        Default: all other numeric columns; the notes name the columns left out.
    weights : str, optional
        A column of non-negative weights.
    one_hot : sequence of str, optional
        Columns to encode as categories, in addition to the features; ("all",) means every text column.
    missing : {"error", "drop"}
        What to do with rows that have missing values in a column that is used.
    encoding : Encoder, optional
        The encoding of an earlier fit, instead of features and one_hot.
    formula : Learner, optional
        A formula that learns its encoding from these rows, instead of features and one_hot.
    groups : sequence of str
        Columns of groups for standard errors. They are features only if they are named as such.
    faults : mapping of str to str, optional
        What is wrong with columns that should be numbers, as in `FileTable`; an error if one is used.
    remedy : str
        How a user asks for missing="drop".

    Returns
    -------
    DataTable

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"rain": [0.0, 2.5, 1.0], "wind": [3, 7, 5], "sky": ["blue", "grey", "grey"]})
    >>> table = make_table(frame, "rain", one_hot=["sky"])
    >>> table.names, table.X.tolist()
    (('wind', 'sky=grey'), [[3.0, 0.0], [7.0, 1.0], [5.0, 1.0]])
    """
    reserved = _reserve(frame, target, weights)
    refuse_faults(reserved, faults)
    groups = [find_column(frame, column).name for column in groups]
    categories, notes = list[str](), list[str]()
    known = encoding or formula
    if known is None:
        columns, categories, notes = _choose(frame, reserved, features, one_hot or (), faults, groups)
    else:
        columns = [find_column(frame, column).name for column in known.columns]
        _refuse_reserved(columns, reserved)
        refuse_faults(known.numbers, faults)
    frame, dropped = without_missing(frame, _unique([*reserved, *columns, *groups]), missing, target, remedy)
    if formula is not None:
        encoding = formula.learn(frame)
    if encoding is None:
        encoding = Encoding(tuple(columns), {c: find_levels(frame[c]) for c in columns if c in categories})
        notes += [
            f"column {c!r} has only one level, {levels[0]!r}, and is left out"
            for c, levels in encoding.levels.items()
            if len(levels) == 1
        ]
    names = encoding.names
    if not names:
        raise ValueError(NO_FEATURES)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two features are called {twice!r}; rename one of the columns")
    w = None if weights is None else read_numbers(frame[weights])
    if w is not None and (w.min() < 0.0 or w.max() == 0.0):
        found = f"the negative number {w.min():g}" if w.min() < 0.0 else "only zeros"
        raise ValueError(f"column {weights!r} has {found}; weights must be non-negative and not all zero")
    y = read_numbers(frame[target])
    chosen = frame.select(groups) if groups else None
    return DataTable(encoding.encode(frame), y, w, encoding, target, (*notes, *dropped), chosen)


def choose_numbers(
    head: pl.DataFrame, target: str, features: Sequence[str] | None, weights: str | None
) -> tuple[Encoding, list[str]]:
    """The columns of a fit without categories, chosen by the first rows, and notes on what is left out.

    Examples
    --------
    >>> import polars as pl
    >>> head = pl.DataFrame({"rain": [0.0, 2.5], "wind": [3, 7], "sky": ["blue", "grey"]})
    >>> choose_numbers(head, "rain", None, None)
    (Encoding(columns=('wind',), levels={}), ["column 'sky' is left out because of entries such as 'blue'"])
    """
    columns, _, notes = _choose(head, _reserve(head, target, weights), features, None)
    if not columns:
        raise ValueError(NO_FEATURES)
    return Encoding(tuple(columns)), notes


def _reserve(frame: pl.DataFrame, target: str, weights: str | None) -> list[str]:
    """Columns that cannot be features."""
    if weights == target:
        raise ValueError(f"column {target!r} is both target and weights; they must be two columns")
    reserved = [target] if weights is None else [target, weights]
    return [find_column(frame, column).name for column in reserved]


def refuse_faults(columns: Iterable[str], faults: Mapping[str, str] | None, remedy: str = "") -> None:
    """ValueError, with the remedy, if something is wrong with one of the columns."""
    found = next((faults[column] for column in columns if faults and column in faults), None)
    if found is not None:
        raise ValueError(f"{found}{remedy}")


def _choose(
    frame: pl.DataFrame,
    reserved: Sequence[str],
    features: Sequence[str] | None,
    one_hot: Sequence[str] | None,
    faults: Mapping[str, str] | None = None,
    groups: Sequence[str] = (),
) -> tuple[list[str], list[str], list[str]]:
    """Columns of the features, those that are categories, and notes on the columns left out.

    one_hot is None where categories are not supported.
    """
    rest = [column for column in frame.columns if column not in reserved]
    text = [column for column in rest if is_text(frame[column])]
    is_every_text = list(one_hot or ()) == ["all"]
    wanted = text if is_every_text else one_hot or ()
    categories = [find_column(frame, column).name for column in wanted]
    _refuse_reserved([*(features or ()), *categories], reserved)
    rest = [column for column in rest if column in categories or column not in groups]
    numbers = [column for column in (rest if features is None else features) if column not in categories]
    hint = "; or leave the column out with --features, or encode it with --one-hot"
    # Not every text column: a mistake would make a category of each number.
    refuse_faults([*numbers, *(text if is_every_text else ())], faults, hint)
    if features is not None:
        for column in features:
            find_column(frame, column)
        return _unique([*features, *categories]), categories, []
    reasons = {column: _reason_to_leave_out(frame[column], one_hot is not None) for column in numbers}
    columns = [column for column in rest if reasons.get(column) is None]
    notes = [f"column {column!r} {reason}" for column, reason in reasons.items() if reason is not None]
    return columns, categories, notes


def _refuse_reserved(columns: Iterable[str], reserved: Sequence[str]) -> None:
    for column in columns:
        if column in reserved:
            raise ValueError(f"column {column!r} is the target or the weights and cannot also be a feature")


def _reason_to_leave_out(series: pl.Series, may_encode: bool) -> str | None:
    """Why a column that is not a category is no feature, unless it is named; None if it is one."""
    if series.null_count() == len(series):
        return "is empty and left out"
    if UNNAMED.fullmatch(series.name):
        if series.dtype.is_integer() and series.null_count() == 0 and series.n_unique() == len(series):
            return "has no name and numbers the rows; it is left out"
        return "has no name and is left out; name it in the file to use it"
    if is_numeric(series):
        return None
    hint = "; --one-hot would encode it" if is_text(series) and may_encode else ""
    return f"is left out because of entries such as {find_example(series)}{hint}"


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
