"""Memory for intermediate results, kept from one piece of the data to the next."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

__all__ = ["Workspace"]


class Workspace:
    """Named arrays that are used again.

    Allocating them anew costs more than most sums where a process returns memory at once, as dask workers do.

    Parameters
    ----------
    empty : makes an uninitialised array of a length and a dtype
    kept : the arrays, which blocks that follow each other can share
    """

    def __init__(self, empty: Callable[[int, str], Any], kept: dict[str, Any]) -> None:
        self._empty = empty
        self._kept = kept

    def __call__(self, name: str, shape: tuple[int, ...], kind: str = "float64") -> Any:
        """An uninitialised array; the array that had the name before is overwritten."""
        size, kept = math.prod(shape), self._kept.get(name)
        if kept is None or kept.shape[0] < size:
            kept = self._kept[name] = self._empty(size, kind)
        return kept[:size].reshape(shape)
