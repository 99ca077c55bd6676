"""A fit to columns of a table, which turns rows of other tables into numbers by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rectifit.api import certify
from rectifit.solution import Certificate, Solution
from rectifit.tables import Encoding
from rectifit.tables.encoding import find_column, read_numbers

if TYPE_CHECKING:
    import polars as pl

    from rectifit.inference import Summary

__all__ = ["FittedModel"]


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fit that was read from a model file; all functions of `rectifit.inference` take it.

    Rows are data frames of pandas or polars with the columns of the fit, or arrays with one column per
    coefficient.

    Attributes
    ----------
    solution_ : Solution
        Without its data.
    encoding : Encoding
        How rows of a table become numbers.
    weights : str or None
        Name of the column of weights.
    """

    solution_: Solution
    encoding: Encoding
    weights: str | None = None

    def encode(self, data: Any) -> Any:
        """Rows as numbers, one column per coefficient."""
        if not hasattr(data, "columns"):
            return data
        return self.encoding.encode(_as_polars(data, self.encoding.columns))

    def predict(self, data: Any) -> Any:
        """max(floor, X beta + intercept) for rows of a table, or for an array X."""
        return self.solution_.predict(self.encode(data))

    def summary(self, **options: Any) -> Summary:
        """A table with standard errors and intervals; the options are those of `inference.summarise`."""
        return self.solution_.summary(**options)

    def certify(self, data: Any, **options: Any) -> Certificate:
        """Prove how good the fit is on a table that also has the columns of the outcome and of the weights.

        Parameters
        ----------
        data : data frame of pandas or polars
        **options : as for `Solution.certify`
        """
        names = [name for name in (self.solution_.target, self.weights) if name is not None]
        columns = _as_polars(data, names)
        outcome, *weights = (read_numbers(columns[name]) for name in names)
        return certify(
            self.encode(data),
            outcome,
            self.solution_,
            sample_weight=weights[0] if weights else None,
            **options,
        )


def _as_polars(data: Any, names: tuple[str, ...] | list[str]) -> pl.DataFrame:
    """Some columns of a data frame of pandas or polars."""
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
        columns[name] = pl.Series(name, values if is_number else list(values), strict=False)
    return pl.DataFrame(columns)
