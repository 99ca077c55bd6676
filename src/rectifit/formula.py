"""A fit by a formula."""

from __future__ import annotations

import warnings
from typing import Any

from rectifit.api import solve
from rectifit.fitted_model import FittedModel, as_polars
from rectifit.formulas import read_formula
from rectifit.tables import make_table

__all__ = ["relu"]

MISSING = ("error", "drop")


def relu(
    formula: str,
    data: Any,
    *,
    weights: str | None = None,
    missing: str = "error",
    method: str = "auto",
    **options: Any,
) -> FittedModel:
    """Fit a ReLU regression that a formula describes; needs the extra `formula`.

    Parameters
    ----------
    formula : str
        Such as "hours ~ educ + I(age**2) + C(region)", in the notation of R, patsy and formulaic. Columns of
        text are categories, and so is C(column). "- 1" leaves the intercept out, and "." stands for all other
        columns. Functions are I, log, exp, sqrt and other functions of NumPy, and center, scale, poly, bs, cr
        and cc, which remember the data of the fit.
    data : data frame of pandas or polars
    weights : str, optional
        Name of a column of weights.
    missing : {"error", "drop"}
        What to do with rows that have missing values in a column that is used; rows that are dropped are
        counted in a warning.
    method, **options : as for `rectifit.solve`
        Names of coefficients, for `bounds` and `monotonic_cst`, are those of the summary.

    Returns
    -------
    FittedModel
        With `summary`, `predict`, `certify` and `solution_`.

    Examples
    --------
    >>> import polars as pl
    >>> days = pl.DataFrame({"mm": [0, 0, 2, 5, 0], "wind": [1, 2, 3, 4, 2], "sky": list("bbggb")})
    >>> model = relu("mm ~ wind + sky", days)
    >>> model.summary().names
    ('wind', 'sky[T.g]', 'intercept')
    """
    if missing not in MISSING:
        raise ValueError(f"missing is {missing!r}; it must be 'error' or 'drop'")
    if isinstance(data, str) or not hasattr(data, "columns"):
        raise TypeError(f"data is of type {type(data).__name__}; it must be a data frame of pandas or polars")
    if "fit_intercept" in options:
        raise TypeError('fit_intercept cannot be given with a formula; "- 1" in the formula leaves it out')
    read = read_formula(formula, [str(name) for name in data.columns if name != weights])
    if read.target is None:
        raise ValueError(
            f'formula is {formula!r}; it must name the outcome, such as "y ~ {formula.strip(" ~")}"'
        )
    used = [read.target, *read.columns, *([] if weights is None else [weights])]
    table = make_table(
        as_polars(data, used),
        read.target,
        weights=weights,
        missing=missing,
        formula=read,
        remedy="missing='drop'",
    )
    for note in table.notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    solution = solve(
        table.named(),
        table.y,
        method,
        sample_weight=table.weights,
        fit_intercept=read.encoding.has_intercept,
        **options,
    )
    return FittedModel(solution.of(solution, table.names, table.target), table.encoding, weights)
