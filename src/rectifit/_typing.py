"""Names for the arrays that go through the package.

The number is that of dimensions. Type checkers ignore it, compiled code is compiled for it (see
`compiling.py`).
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt

__all__ = ["Counts", "Index", "Integers", "Mask", "Masks", "Matrix", "Selection", "Stack", "Vector"]

Vector = Annotated[npt.NDArray[np.float64], 1]
Matrix = Annotated[npt.NDArray[np.float64], 2]
# Matrices of one size.
Stack = Annotated[npt.NDArray[np.float64], 3]
Integers = Annotated[npt.NDArray[np.int64], 1]
Counts = Annotated[npt.NDArray[np.int64], 2]
Mask = Annotated[npt.NDArray[np.bool_], 1]
# One line per active set.
Masks = Annotated[npt.NDArray[np.bool_], 2]
# Numbers of rows.
Index = npt.NDArray[np.intp]
# Rows, by a slice or by their numbers.
Selection = slice | Index
