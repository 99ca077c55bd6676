"""The prediction, max(floor, X beta + intercept)."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["rectify", "relu"]


def rectify(u: Any, floor: float = 0.0, xp: Any = np) -> Any:
    """max(floor, u), for arrays of the namespace xp."""
    return xp.clip(u, floor, None)


def relu(X: Any, beta: Any, intercept: Any = 0.0, floor: float = 0.0, xp: Any = np) -> Any:
    """max(floor, X beta + intercept) for arrays of the namespace xp; X may be a SciPy sparse array.

    Examples
    --------
    >>> relu(np.array([[1.0], [-1.0]]), np.array([2.0]), 0.5).tolist()
    [2.5, 0.0]
    """
    return rectify(X @ beta + intercept, floor, xp)
