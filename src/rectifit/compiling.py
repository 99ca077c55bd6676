"""Decorators of compiled code, and a cache on disk that cannot be stale.

A function that Python calls is a kernel. Its parameters are annotated, and it is compiled for these types
alone, so that it can be compiled before there are data: a record (a NamedTuple) stands for the plain tuple of
its fields, an array for a contiguous one that can be written to. The names of arrays in `_typing.py` have the
number of dimensions.

numba's cache of a function depends on the file of that function alone, while helpers and constants from other
files are compiled into it. Here a digest of all sources that may be compiled in, of numba's version and of
the processor is a part of the function's qualified name, and so of the names of its cache files: after any
change numba finds no file and compiles again.
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import numba
import numpy as np
from llvmlite import binding
from numba.extending import register_jitable

from rectifit.numba_internals import (
    HELPER_PIPELINE,
    KernelCache,
    remembered_types,
    take_constants_as_numbers,
)

__all__ = ["SOURCES", "Kernel", "all_kernels", "compiled", "inner", "kernel_of", "shared"]

# All modules with compiled code, and all modules of this package that these import.
SOURCES = (
    "_typing.py",
    "bounds.py",
    "certificate/ascent_kernel.py",
    "certificate/cell_kernel.py",
    "certificate/flats.py",
    "certificate/kernel.py",
    "certificate/records.py",
    "certificate/scale_kernel.py",
    "compiling.py",
    "coordinates.py",
    "numba_internals.py",
    "pieces.py",
    "surrogate/kernel.py",
    "surrogate/look_kernel.py",
    "surrogate/records.py",
    "surrogate/rows_kernel.py",
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
HELPER: dict[str, Any] = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True} | HELPER_PIPELINE

SCALARS = {int: numba.types.int64, float: numba.types.float64, bool: numba.types.boolean}


class Kernel(NamedTuple):
    """A function that Python calls, and the types that it is compiled for."""

    name: str
    function: Any
    types: tuple[Any, ...]

    @property
    def is_loaded(self) -> bool:
        """Whether it can run at once."""
        # Where numba is switched off it is a plain function.
        overloads = getattr(self.function, "overloads", None)
        return overloads is None or len(overloads) > 0

    @property
    def is_cached(self) -> bool:
        """Whether it was compiled before, by this process or another."""
        folder, name = self.folder, self.function.__name__
        return folder is not None and any(folder.glob(f"*.{name}-{DIGEST}-*.nbc"))

    @property
    def folder(self) -> Path | None:
        """Where it is cached, None if it cannot be."""
        folder = self.function.stats.cache_path if hasattr(self.function, "stats") else None
        return None if folder is None else Path(folder)

    def load(self) -> None:
        """Take it from the cache, or compile it."""
        # Compiling makes hundreds of thousands of objects that live until it ends.
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            with remembered_types():
                _with_room_for_calls(self.function.compile, self.types)
        finally:
            if was_enabled:
                gc.enable()


_kernels: dict[str, Kernel] = {}


def _with_room_for_calls(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


# CPython keeps the frames of calls in chunks of 16 KB. A call that does not fit into one takes another from
# the system, and gives it back when it returns. The compiler recurses deeply, and where its loops happen to
# run across such an edge it spends half as much time again on that. A frame that says it needs a large stack
# gets a large chunk, of which half is left for the calls that follow.
STACK_SLOTS = (1 << 16) + 1
_with_room_for_calls.__code__ = _with_room_for_calls.__code__.replace(co_stacksize=STACK_SLOTS)


def _digest() -> str:
    """Of sources, numba and processor; empty where no sources can be read, as in a frozen program."""
    machine = numba.__version__, binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    digest = hashlib.sha256("\n".join(machine).encode())
    for name in SOURCES:
        try:
            digest.update(files("rectifit").joinpath(name).read_bytes())
        except OSError:
            return ""
    return digest.hexdigest()[:16]


DIGEST = _digest()


def compiled(function: Callable[..., Any], allocates: bool = True) -> Any:
    """Compile a function that Python calls, for the types of its annotations, and cache it on disk.

    allocates: see `inner`.
    """
    name, types = f"{function.__module__}.{function.__name__}", _types_of(function)
    function.__qualname__ += f"-{DIGEST}"
    dispatcher = numba.njit(**(OPTIONS | UNWRAPPED | {"_nrt": allocates}))(function)
    if dispatcher is not function:
        # Where there is no folder for a cache at all, every process compiles for itself.
        with suppress(RuntimeError):
            dispatcher._cache = KernelCache(function)
    _kernels[name] = Kernel(name, dispatcher, types)
    return dispatcher


def inner(function: Callable[..., Any], allocates: bool = False) -> Any:
    """Compile a function that only compiled code calls: it is cached inside its callers.

    Unless it allocates arrays, it does not count references to those that it is given or takes parts of. Each
    count is an atomic operation, and a call with a record of twenty arrays has forty of them.
    """
    return take_constants_as_numbers(numba.njit(**(OPTIONS | HELPER | {"_nrt": allocates}))(function))


def shared(*functions: Callable[..., Any]) -> None:
    """Let compiled code call these functions, which stay plain Python for all other callers."""
    for function in functions:
        register_jitable(**OPTIONS)(function)


def kernel_of(function: Any) -> Kernel:
    """What is known of a function that Python calls."""
    return _kernels[f"{function.__module__}.{function.__name__}"]


def all_kernels() -> list[Kernel]:
    """All kernels of the package."""
    for source in SOURCES:
        import_module("rectifit." + source.removesuffix(".py").replace("/", "."))
    return list(_kernels.values())


def _types_of(function: Callable[..., Any]) -> tuple[Any, ...]:
    """Types of the parameters, from their annotations."""
    hints = get_type_hints(function, include_extras=True)
    hints.pop("return", None)
    n_parameters = function.__code__.co_argcount
    if len(hints) < n_parameters:
        raise TypeError(f"{function.__name__} is compiled for Python: all its parameters need annotations")
    return tuple(_type_of(hint) for hint in hints.values())


def _type_of(hint: Any) -> Any:
    if hint in SCALARS:
        return SCALARS[hint]
    if get_origin(hint) is Annotated:
        array, n_dimensions = get_args(hint)
        # By numpy's version NDArray[float64] has one argument, or is ndarray[shape, dtype[float64]].
        *_, dtype = get_args(array)
        dtype = get_args(dtype)[0] if get_args(dtype) else dtype
        return numba.types.Array(numba.from_dtype(np.dtype(dtype)), n_dimensions, "C")
    fields = get_args(hint) or tuple(get_type_hints(hint, include_extras=True).values())
    return numba.types.Tuple([_type_of(field) for field in fields])
