"""Names for the arrays that go through the package."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Index", "Mask", "Matrix", "Selection", "Vector"]

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
# Numbers of rows.
Index = npt.NDArray[np.intp]
# Rows, by a slice or by their numbers.
Selection = slice | Index
