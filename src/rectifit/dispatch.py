"""Array API dispatch of scikit-learn: a fit lives in the array library and on the device of its X.

scikit-learn finds the functions of the library. Only the estimators need this module.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.utils._array_api import (
    _convert_to_numpy,
    _max_precision_float_dtype,
    get_namespace,
    get_namespace_and_device,
)

from rectifit.checks import is_tensor, to_numpy

__all__ = ["Home", "home_of", "readable", "to_host"]

# Numbers of X in a piece that is copied to another precision.
PIECE = 1 << 26


class Home(NamedTuple):
    """Where an array lives: the functions of its library, and its device there."""

    xp: Any
    device: Any

    def asarray(self, values: Any) -> Any:
        """Values of any library as an array that lives here; numbers and None stay."""
        if np.ndim(values) == 0 and not isinstance(values, np.ndarray):
            return values
        if home_of(values) == self:
            return values
        host = np.array(to_host(values))
        dtype = _max_precision_float_dtype(self.xp, self.device) if host.dtype == np.float64 else None
        return self.xp.asarray(host, dtype=dtype, device=self.device)

    def product(self, X: Any, coef: Any) -> Any:
        """X coef in the precision of coef, some rows at a time: such a copy of all of X might not fit."""
        n, p = X.shape
        size = max(1, PIECE // p)
        parts = (X[first : min(first + size, n), :] for first in range(0, n, size))
        return self.xp.concat([self.xp.astype(part, coef.dtype, copy=False) @ coef for part in parts])

    def __str__(self) -> str:
        return f"{self.xp.__name__.rpartition('.')[2]} on {self.device}"


def home_of(values: Any) -> Home | None:
    """Where an array of another library than NumPy lives; None without scikit-learn's array API dispatch."""
    if not _is_foreign(values) or not get_config()["array_api_dispatch"]:
        return None
    xp, _, device = get_namespace_and_device(values)
    return Home(xp, device)


def to_host(values: Any) -> Any:
    """A tensor, or where scikit-learn dispatches any array, as a NumPy array; all else as it is."""
    if is_tensor(values) or not _is_foreign(values) or not get_config()["array_api_dispatch"]:
        return to_numpy(values)
    return _convert_to_numpy(values, get_namespace(values)[0])


def readable(values: Any) -> Any:
    """An array that `solve` can read: tensors stay on their device, other arrays are copied to the host."""
    return values if is_tensor(values) else to_host(values)


def _is_foreign(values: Any) -> bool:
    return hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray | np.generic)
