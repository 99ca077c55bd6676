"""A fit to columns of a table, which turns rows of other tables into numbers by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rectifit.api import certify
from rectifit.solution import Certificate, Solution
from rectifit.tables import Encoder
from rectifit.tables.encoding import find_column, read_numbers

if TYPE_CHECKING:
    import polars as pl

    from rectifit.inference import Summary

__all__ = ["FittedModel", "as_polars"]


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fit of `rectifit.relu`, or one that was read from a model file.

    All functions of `rectifit.inference` and `rectifit.plot` take it.

    Rows are data frames of pandas or polars with the columns of the fit, or arrays with one column per
    coefficient.

    Attributes
    ----------
    solution_ : Solution
        Without its data if it was read from a file.
    encoding : Encoding or FormulaEncoding
        How rows of a table become numbers.
    weights : str or None
        Name of the column of weights.
    """

    solution_: Solution
    encoding: Encoder
    weights: str | None = None

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return self.solution_._repr_html_()

    def encode(self, data: Any) -> Any:
        """Rows as numbers, one column per coefficient."""
        if not hasattr(data, "columns"):
            return data
        return self.encoding.encode(as_polars(data, self.encoding.columns))

    def predict(self, data: Any) -> Any:
        """max(floor, X beta + intercept) for rows of a table, or for an array X."""
        return self.solution_.predict(self.encode(data))

    def summary(self, **options: Any) -> Summary:
        """A table with standard errors and intervals; the options are those of `inference.summarise`."""
        return self.solution_.summary(**options)

    def certify(self, data: Any = None, **options: Any) -> Certificate:
        """Prove how good the fit is.

        Parameters
        ----------
        data : data frame of pandas or polars, optional
            With the columns of the outcome and of the weights. It may be left out where the fit has its data.
        **options : as for `Solution.certify`
        """
        if data is None:
            return self.solution_.certify(**options)
        names = [name for name in (self.solution_.target, self.weights) if name is not None]
        columns = as_polars(data, names)
        outcome, *weights = (read_numbers(columns[name]) for name in names)
        return certify(
            self.encode(data),
            outcome,
            self.solution_,
            sample_weight=weights[0] if weights else None,
            **options,
        )


def as_polars(data: Any, names: Sequence[str]) -> pl.DataFrame:
    """Some columns of a data frame of pandas or polars; categories of pandas keep their order."""
    import polars as pl

    if isinstance(data, pl.DataFrame):
        return data
    columns = dict[str, Any]()
    for name in names:
        if name not in data.columns:
            # The error says which columns there are.
            find_column(pl.DataFrame({str(column): [] for column in data.columns}), name)
        column = data[name]
        is_number = getattr(column.dtype, "kind", "O") in "biuf"
        values = column.to_numpy() if is_number else column.astype(object).where(column.notna(), None)
        categories: Any = getattr(column.dtype, "categories", None)
        is_enum = categories is not None and all(isinstance(level, str) for level in categories)
        dtype = pl.Enum(list(categories)) if is_enum else None
        columns[name] = pl.Series(name, values if is_number else list(values), dtype, strict=False)
    return pl.DataFrame(columns)
