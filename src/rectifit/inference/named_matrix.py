"""A square matrix with names for its rows and columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rectifit._typing import Matrix
from rectifit.display import Column, Table
from rectifit.formatting import write_number
from rectifit.inference.frames import make_frame

__all__ = ["NamedMatrix"]


@dataclass(frozen=True, eq=False, repr=False)
class NamedMatrix:
    """Numbers for pairs of names. NumPy's functions take it as an array.

    Attributes
    ----------
    names : of the rows, and of the columns in the same order
    values : the numbers

    Examples
    --------
    >>> cov = NamedMatrix(("age", "price"), np.array([[4.0, 0.5], [0.5, 1.0]]))
    >>> float(cov["age", "price"]), cov["age"].tolist(), np.sqrt(np.diag(cov)).tolist()
    (0.5, [4.0, 0.5], [2.0, 1.0])
    >>> print(cov)
           age  price
    age    4    0.5
    price  0.5  1
    """

    names: tuple[str, ...]
    values: Matrix

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.names), len(self.names)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __getitem__(self, key: Any) -> Any:
        """Entries by names, numbers or slices; one name gives a row."""
        keys = key if isinstance(key, tuple) else (key,)
        return self.values[tuple(self._find(part) if isinstance(part, str) else part for part in keys)]

    def _find(self, name: str) -> int:
        if name not in self.names:
            raise KeyError(f"{name!r} is not one of {', '.join(self.names)}")
        return self.names.index(name)

    def __str__(self) -> str:
        """A table."""
        columns = (Column(""), *(Column(name, write_number) for name in self.names))
        rows = tuple((name, *row) for name, row in zip(self.names, self.values.tolist(), strict=True))
        table = Table("matrix", "", columns, rows)
        lines = [table.headings, *table.texts()]
        widths = table.widths()
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )

    __repr__ = __str__

    def to_frame(self, library: str = "pandas") -> Any:
        """The same as a data frame, of pandas or of polars."""
        columns = dict(zip(self.names, self.values.T.copy(), strict=True))
        return make_frame(library, self.names, columns)
