"""Decorators of compiled code, and a cache on disk that cannot be stale.

numba's cache of a function depends on the file of that function alone, while helpers and constants from other
files are compiled into it. Here a digest of all sources that may be compiled in is a part of the function's
qualified name, and so of the names of its cache files: after any change of these sources numba finds no file
and compiles again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numba
from numba.extending import register_jitable

__all__ = ["SOURCES", "compiled", "inlined", "inner", "is_cached", "shared"]

# All modules with compiled code, and all modules of this package that these import.
SOURCES = (
    "_typing.py",
    "bounds.py",
    "certificate/cell_kernel.py",
    "certificate/kernel.py",
    "certificate/records.py",
    "certificate/scale_kernel.py",
    "compiling.py",
    "pieces.py",
    "surrogate/kernel.py",
    "surrogate/records.py",
    "tolerances.py",
)

# Reassociation lets sums use vector instructions; infinities and NaN keep their meaning.
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz"},
}
# Nothing but compiled code calls helpers, and nothing but Python other functions: wrappers would cost time.
UNWRAPPED: dict[str, Any] = {"no_cfunc_wrapper": True}
HELPER: dict[str, Any] = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}


def _digest() -> str:
    """Of the contents of all sources; empty where they are not there to be read, as in a frozen program."""
    digest = hashlib.sha256()
    for name in SOURCES:
        try:
            digest.update(files("rectifit").joinpath(name).read_bytes())
        except OSError:
            return ""
    return digest.hexdigest()[:16]


DIGEST = _digest()


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, and cache it on disk."""
    function.__qualname__ += f"-{DIGEST}"
    return numba.njit(cache=True, **(OPTIONS | UNWRAPPED))(function)


def inner(function: Callable[..., Any]) -> Any:
    """Compile a function that only compiled code calls: it is cached inside its callers."""
    return numba.njit(**(OPTIONS | HELPER))(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function as a part of its callers: with one or two of them, that takes less time."""
    return numba.njit(inline="always", **(OPTIONS | HELPER))(function)


def shared(*functions: Callable[..., Any]) -> None:
    """Let compiled code call these functions, which stay plain Python for all other callers."""
    for function in functions:
        register_jitable(**OPTIONS)(function)


def is_cached(function: Any) -> bool:
    """Whether a function can run at once, because it was compiled before, in this process or another."""
    name = function.py_func.__qualname__
    return bool(function.signatures) or any(Path(function.stats.cache_path).glob(f"*.{name}-*.nbi"))
