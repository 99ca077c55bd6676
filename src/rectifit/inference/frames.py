"""Numbers by name as a data frame of pandas or polars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["LIBRARIES", "make_frame"]

LIBRARIES = ("pandas", "polars")


def make_frame(library: str, rows: Sequence[str], columns: Mapping[str, Any], index: str = "name") -> Any:
    """A data frame with one line per name.

    Parameters
    ----------
    library : {"pandas", "polars"}
    rows : names of the lines, the index in pandas and the first column in polars
    columns : the numbers of each column
    index : what the names are called
    """
    if library not in LIBRARIES:
        raise ValueError(f"library is {library!r}; it must be 'pandas' or 'polars'")
    try:
        module = import_module(library)
    except ImportError:
        raise ImportError(f"to_frame needs {library}; install it with: pip install {library}") from None
    if library == "polars":
        return module.DataFrame({index: list(rows)} | dict(columns))
    return module.DataFrame(dict(columns), index=module.Index(list(rows), name=index))
