"""Predicted margins: the mean of E[y | x] with one column set to one value after the other.

Standard errors are those of the delta method, for the rows at hand: that other rows would have other values
in the other columns is not in them. An interval ends at the floor where the floor is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from rectifit._typing import Vector
from rectifit.checks import check_array, check_number
from rectifit.fit import Fit, fit_of
from rectifit.formatting import write_number
from rectifit.inference.columns import SETTERS, delta_errors, find_column, read_columns
from rectifit.inference.covariance import Covariance, find_covariance
from rectifit.inference.summary import feature_names
from rectifit.inference.tables import Estimates, Summary, quantile

__all__ = ["PredictedMargins", "predicted_margins"]

# Values of a column between its least and its largest one, unless the user names them.
N_VALUES = 21


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictedMargins(Estimates):
    """Means of E[y | x] with one column set to a value; `print` shows the table.

    Attributes
    ----------
    feature : name of the column
    values : what it is set to
    at : "average" over the rows, or at the "means" of the other columns
    floor : no mean is below it
    is_dummy : whether the column has only zeros and ones
    change, change_std_error : the last mean minus the first one; for a column of zeros and ones that are set
        to 0 and 1, this is the discrete effect

    The other attributes are those of `Estimates`; coefficient has the means.
    """

    feature: str
    values: Vector
    at: str
    floor: float
    is_dummy: bool
    change: float
    change_std_error: float

    @cached_property
    def low(self) -> Vector:
        return np.maximum(self.coefficient - quantile(self.level) * self.std_error, self.floor)

    @property
    def change_interval(self) -> tuple[float, float]:
        """The interval of the change, of the same level."""
        reach = quantile(self.level) * self.change_std_error
        return self.change - reach, self.change + reach

    HEADING = "mean prediction"

    def _title(self) -> str:
        where = "averaged over the rows" if self.at == "average" else "at the means of the other columns"
        return f"Predicted margins of {self.feature}, {where}"

    def _change(self) -> str:
        low, high = map(write_number, self.change_interval)
        return f"Change from first to last: {write_number(self.change)}, from {low} to {high}"

    def _facts(self) -> list[str]:
        return [f"{self._change()}.", *super()._facts()]

    def __str__(self) -> str:
        """The table as text."""
        rows = self._rows("E[y]")
        width = len(rows[0])
        lines = [self._title(), "=" * width, rows[0], "-" * width]
        return "\n".join(
            [*lines, *rows[1:], "=" * width, self._change(), *(f"Note: {note}" for note in self.notes)]
        )


def predicted_margins(
    solution: Fit | Any,
    feature: str | int,
    values: npt.ArrayLike | None = None,
    *,
    at: str = "average",
    covariance: str | Covariance | Summary | None = None,
    level: float = 0.95,
    names: Sequence[str] | None = None,
    **options: Any,
) -> PredictedMargins:
    """The mean prediction if a column had one value in all rows, for several values.

    Parameters
    ----------
    solution : Solution or fitted estimator
        With its data.
    feature : str or int
        Name or number of the column.
    values : array-like, optional
        Default: 0 and 1 for a column that has no others, else 21 values from its least to its largest one.
    at : {"average", "means"}
        Averaged over the rows, with their weights and their other columns as they are, or for one row that
        has the weighted means in the other columns.
    covariance, level, names, **options : as in `marginal_effects`

    Examples
    --------
    >>> from rectifit import solve
    >>> from rectifit.datasets import load_drug_spending
    >>> X, y, names, *_ = load_drug_spending()
    >>> margins = predicted_margins(solve(X, y), "female", names=names, covariance="HC1")
    >>> margins.values.tolist(), margins.coefficient.round(1).tolist(), round(margins.change, 1)
    ([0.0, 1.0], [12.9, 19.8], 6.9)
    """
    solution = fit_of(solution)
    if at not in SETTERS:
        raise ValueError(f"at is {at!r}; it must be 'average' or 'means'")
    level = check_number(level, "level", above=0.0, below=1.0)
    names = feature_names(solution.feature_names if names is None else names, solution.beta.size)
    j = find_column(feature, names)
    found = find_covariance(solution, covariance, **options)
    columns = read_columns(found.moments)
    at_values = _choose_values(columns.low[j], columns.high[j], bool(columns.is_dummy[j]), values)
    settings = [(j, value) for value in at_values.tolist()]
    means, slopes = SETTERS[at](solution, found.moments, settings)
    return PredictedMargins(
        names=tuple(f"{names[j]} = {write_number(value, 6)}" for value in at_values),
        coefficient=means,
        std_error=delta_errors(slopes, found.matrix),
        at_bound=(False,) * at_values.size,
        level=level,
        covariance=found.label,
        notes=found.notes,
        feature=names[j],
        values=at_values,
        at=at,
        floor=-np.inf if solution.floor_is_estimated else solution.floor,
        is_dummy=bool(columns.is_dummy[j]),
        change=float(means[-1] - means[0]),
        change_std_error=float(delta_errors(slopes[-1:] - slopes[:1], found.matrix)[0]),
    )


def _choose_values(low: float, high: float, is_dummy: bool, values: npt.ArrayLike | None) -> Vector:
    if values is not None:
        return check_array(values, "values", dimensions=1).astype(np.float64)
    if is_dummy:
        return np.array([0.0, 1.0])
    return np.linspace(low, high, N_VALUES) if low < high else np.array([low])
