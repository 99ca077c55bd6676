"""What is changed in numba: how helpers are compiled, and where compiled code is found.

Helpers are functions that are only ever part of other compiled code. numba optimises every function together
with all that it calls, and makes machine code of it: a helper four calls deep is treated four times, and
three times for nothing, because what runs is the copy in the outermost function. Here a helper stays in the
compiler's intermediate language until it is linked into a function that Python calls, which is optimised as a
whole. For a thousand lines that saves a third of the time, and the code that runs is as fast.

Types. For every a + b numba tries about ten definitions of addition until one fits the types, and code like
this has thousands of such calls with a few dozen types. While a kernel is compiled, what was found for a
built-in function and the types of its arguments is remembered, which saves a sixth of the time.

Constants. numba compiles a function once more for each constant that it is called with, 0, True or False, and
for constants that it takes variables for until it has seen all assignments to them. Here helpers are compiled
for numbers.

The cache. numba only looks for code in a folder that it can write to. Code that was compiled when a container
was built is often found where nobody may write, and is used here all the same.

Where a future numba lacks one of the internals that this rests on, code is compiled as numba does it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from numba import config, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

__all__ = ["CACHE_DIR", "HELPER_PIPELINE", "KernelCache", "remembered_types", "take_constants_as_numbers"]


class HelperLibrary(JITCodeLibrary):
    """The code of one helper, which has no address."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002
        """No address."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> HelperLibrary:
        """Stands for the code generator where an environment is set."""
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Nothing: the environment of a function is for calls from Python."""


class HelperCompiler(Compiler):
    """numba's compiler with such a library."""

    def compile_extra(self, function: Any) -> Any:
        """Compile a function."""
        self.state.library = HelperLibrary(self.state.targetctx.codegen(), function.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(function)


def _knows_internals() -> bool:
    names = (
        "_optimize_final_module",
        "_finalize_final_module",
        "_finalize_dynamic_globals",
        "_ensure_finalized",
    )
    return all(hasattr(JITCodeLibrary, name) for name in names)


# Types that say all about a call of a built-in function.
PLAIN = (types.Number, types.Boolean, types.Array)

# Options of `numba.njit` for helpers.
HELPER_PIPELINE: dict[str, Any] = {"pipeline_class": HelperCompiler} if _knows_internals() else {}


def take_constants_as_numbers(dispatcher: Any) -> Any:
    """Let a helper be compiled for the types of constants, not for each of their values."""
    resolve = getattr(dispatcher, "get_call_template", None)
    if resolve is not None:

        def resolve_numbers(arguments: Any, keywords: Any) -> Any:
            numbers = {name: types.unliteral(value) for name, value in keywords.items()}
            return resolve(tuple(types.unliteral(value) for value in arguments), numbers)

        dispatcher.get_call_template = resolve_numbers
    return dispatcher


@contextmanager
def remembered_types() -> Iterator[None]:
    """Resolve each call of a built-in function with numbers and arrays once, while code is compiled."""
    known: dict[Any, Any] = {}
    context = cpu_target.typing_context
    resolve = getattr(type(context), "resolve_function_type", None)

    def look_up(function: Any, arguments: Any, keywords: Any) -> Any:
        assert resolve is not None
        is_plain = isinstance(function, types.Function) and all(isinstance(a, PLAIN) for a in arguments)
        if keywords or not is_plain:
            return resolve(context, function, arguments, keywords)
        found = known.get((function, arguments))
        if found is None:
            found = known[function, arguments] = resolve(context, function, arguments, keywords)
        return found

    # One thread compiles at a time, and waits here for the others.
    with global_compiler_lock:
        if resolve is not None:
            context.resolve_function_type = look_up
        try:
            yield
        finally:
            vars(context).pop("resolve_function_type", None)


_PLACES = CompileResultCacheImpl._locator_classes
# The folder that NUMBA_CACHE_DIR names, empty if it names none; then code is kept beside the source.
CACHE_DIR: str = getattr(config, "CACHE_DIR", "")
_FIRST_PLACE: Any = _PLACES[0] if CACHE_DIR else _PLACES[1]


class HeldPlace(_FIRST_PLACE):
    """The first place, where it holds the code of a function, whether or not it can be written to."""

    @classmethod
    def from_function(cls, function: Any, file: str) -> Any:
        """The place of the code, None if it is not there."""
        place = cls(function, file)
        held = Path(place.get_cache_path()).glob(f"*.{function.__qualname__}-*.nbc")
        return place if any(held) else None


class KernelCacheFiles(CompileResultCacheImpl):
    """numba's files, found where they are."""

    _locator_classes: Any = (HeldPlace, *_PLACES)


class KernelCache(FunctionCache):
    """numba's cache of a function; where nothing can be written, nothing is kept."""

    _impl_class = KernelCacheFiles

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code."""
        with suppress(OSError):
            super().save_overload(sig, data)
