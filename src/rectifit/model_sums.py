"""What a model file keeps for inference: sums over the rows of the fit, and covariances, as plain data.

Symmetric matrices are written as the lines of their lower triangle. A model with more columns than
`MAX_COLUMNS` keeps none of this: the file would mostly consist of these matrices.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from rectifit._typing import Matrix, Vector
from rectifit.data.blocks import Total
from rectifit.fit import Fit
from rectifit.inference.collinear import Sizes
from rectifit.inference.columns import ColumnSums
from rectifit.inference.sandwich import Meat, Moments
from rectifit.inference.sums import FitMoments, Line

__all__ = ["MAX_COLUMNS", "Count", "Record", "Size", "Sums", "Triangle", "fill_triangle", "lower_triangle"]

MAX_COLUMNS = 500
# An entry of a matrix of squares may exceed the bound of Cauchy and Schwarz by this share: rounding.
SCHWARZ_SLACK = 1e-6


class Record(BaseModel):
    """Entries of exactly these types: no conversion, no others, no infinities, no NaN."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", allow_inf_nan=False, from_attributes=True
    )


Count = Annotated[int, Field(ge=0)]
Size = Annotated[float, Field(ge=0.0)]
Numbers = tuple[float, ...]
Lengths = tuple[Size, ...]


def _check_triangle(lines: tuple[tuple[float | None, ...], ...]) -> tuple[tuple[float | None, ...], ...]:
    """The lines of the lower triangle of a matrix of squares and products."""
    if [len(line) for line in lines] != list(range(1, len(lines) + 1)):
        raise ValueError("the lines of a lower triangle, each with one entry more than the one before")
    matrix = fill_triangle(lines)
    squares = matrix.diagonal()
    if (squares < 0.0).any():
        raise ValueError("a lower triangle without negative numbers at the ends of its lines")
    known = ~np.isnan(matrix)
    roots = np.sqrt(squares)
    limit = np.outer(roots, roots) * (1.0 + SCHWARZ_SLACK)
    if (np.abs(matrix[known]) > limit[known]).any() or np.isnan(limit[known]).any():
        raise ValueError("a lower triangle in which no number exceeds the root of the product of its squares")
    return lines


# None where a number is not defined.
Triangle = Annotated[tuple[tuple[float | None, ...], ...], AfterValidator(_check_triangle)]


def lower_triangle(matrix: Matrix) -> tuple[tuple[float | None, ...], ...]:
    """The lines of the lower triangle of a symmetric matrix.

    Examples
    --------
    >>> lower_triangle(np.array([[1.0, 0.5], [0.5, np.nan]]))
    ((1.0,), (0.5, None))
    """
    lines = (row[: i + 1] for i, row in enumerate(matrix.tolist()))
    return tuple(tuple(None if np.isnan(value) else value for value in line) for line in lines)


def fill_triangle(lines: tuple[tuple[float | None, ...], ...]) -> Matrix:
    """The symmetric matrix of which these are the lines.

    Examples
    --------
    >>> fill_triangle(((1.0,), (0.5, None))).tolist()
    [[1.0, 0.5], [0.5, nan]]
    """
    matrix = np.zeros((len(lines), len(lines)))
    for i, line in enumerate(lines):
        matrix[i, : i + 1] = matrix[: i + 1, i] = [np.nan if value is None else value for value in line]
    return matrix


class ActiveRows(Record):
    """`Moments` of the rows above the floor."""

    n_rows: Count
    weight: Size
    mean: Numbers
    largest: Lengths
    unit: Lengths
    gram: Triangle
    squares: Size

    def read(self, has_intercept: bool) -> Moments:
        """The moments."""
        return Moments(
            self.n_rows,
            self.weight,
            np.array(self.mean),
            np.array(self.largest),
            fill_triangle(self.gram),
            self.squares,
            np.array(self.unit),
            has_intercept,
        )


class FloorRows(Record):
    """`Moments` of the rows at the floor."""

    n_rows: Count
    weight: Size
    squares: Size

    def read(self) -> Moments:
        """The moments."""
        none = np.zeros(0)
        return Moments(self.n_rows, self.weight, none, none, np.zeros((0, 0)), self.squares, none, True)


class MeatRecord(Record):
    """`Meat` of the rows above the floor, or of those at it, with its power."""

    is_above: bool
    power: Size
    matrix: Triangle
    n_alone: Count


class ColumnsRecord(Record):
    """`ColumnSums`."""

    low: Numbers
    high: Numbers
    n_others: tuple[Count, ...]


class SettingRecord(Record):
    """Sums over the rows with a column set to a value, as in `inference.columns`."""

    column: Count
    value: float
    sums: Numbers


class Sums(Record):
    """Sums over the rows of the fit, as in `inference.sums.FitMoments`, but for the fit itself.

    Attributes
    ----------
    active, floor : rows above the floor, and at it
    n_kinks, n_positive, least, means, mean_u, std_u, spread_y, n_effective : as in `FitMoments`
    zero : what counts as 0 in the linear part
    meats, settings, density, columns, deviations : sums that were asked for; None for those that were not
    """

    active: ActiveRows
    floor: FloorRows
    n_kinks: Count
    n_positive: Count
    least: float
    means: Numbers
    mean_u: float
    std_u: Size
    spread_y: Size
    n_effective: Size
    zero: Size
    meats: tuple[MeatRecord, ...] = ()
    settings: tuple[SettingRecord, ...] = ()
    density: Numbers | None = None
    columns: ColumnsRecord | None = None
    deviations: tuple[tuple[Size, Size], ...] | None = None

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        rows, p = self.active, len(self.means)
        lengths = [len(rows.mean), len(rows.largest), len(rows.unit), len(rows.gram)]
        if self.columns is not None:
            lengths += [len(self.columns.low), len(self.columns.high), len(self.columns.n_others)]
        if self.density is not None:
            lengths.append(len(self.density) - 1)
        lengths += [len(setting.sums) - 2 for setting in self.settings]
        if any(length != p for length in lengths):
            raise ValueError("'sums' must have as many entries as there are columns in each of its lists")
        return self

    @classmethod
    def of(cls, moments: FitMoments) -> Self:
        """Those of a fit."""
        known, above = dict(moments.known), moments.above
        density, columns, sizes = (known.pop(key, None) for key in ("density", "columns", "collinear"))
        meats = [
            MeatRecord(
                is_above=bool(is_above),
                power=power,
                matrix=lower_triangle(meat.matrix),
                n_alone=meat.n_alone,
            )
            for (is_above, power), meat in known.items()
        ]
        return cls(
            active=ActiveRows(
                n_rows=above.n_rows,
                weight=above.weight,
                mean=_plain(above.mean),
                largest=_plain(above.largest),
                unit=_plain(above.unit),
                gram=lower_triangle(above.gram),
                squares=above.squares,
            ),
            floor=FloorRows.model_validate(moments.below),
            meats=tuple(meats),
            settings=tuple(
                SettingRecord(column=j, value=value, sums=_plain(sums))
                for (j, value), sums in moments.settings.items()
            ),
            density=None if density is None else _plain(density.value),
            columns=None
            if columns is None
            else ColumnsRecord(
                low=_plain(columns.low), high=_plain(columns.high), n_others=_plain(columns.n_others)
            ),
            deviations=None
            if sizes is None
            else tuple(zip(sizes.deviation.tolist(), sizes.largest.tolist(), strict=True)),
            means=_plain(moments.means),
            zero=moments.line.zero,
            **{name: getattr(moments, name) for name in SCALARS},
        )

    def read(self, fit: Fit) -> FitMoments:
        """The sums of a fit whose data are gone."""
        known: dict[Any, Any] = {
            (meat.is_above, meat.power): Meat(fill_triangle(meat.matrix), meat.n_alone) for meat in self.meats
        }
        if self.density is not None:
            known["density"] = Total(np.array(self.density))
        if self.columns is not None:
            known["columns"] = ColumnSums(*(np.array(values) for _, values in self.columns))
        if self.deviations is not None:
            known["collinear"] = Sizes(*np.array(self.deviations).reshape(-1, 2).T)
        return FitMoments(
            above=self.active.read(fit.fit_intercept),
            below=self.floor.read(),
            means=np.array(self.means),
            line=Line(fit.beta, fit.intercept - fit.floor, self.zero),
            floor=fit.floor,
            known=known,
            settings={(one.column, one.value): np.array(one.sums) for one in self.settings},
            **{name: getattr(self, name) for name in SCALARS},
        )


SCALARS = ("n_kinks", "n_positive", "least", "mean_u", "std_u", "spread_y", "n_effective")


def _plain(values: Vector) -> tuple[Any, ...]:
    return tuple(values.tolist())
