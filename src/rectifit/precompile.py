"""`python -m rectifit.precompile`: compile everything ahead, for containers and clusters."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from rectifit.compiling import all_kernels
from rectifit.preparing import WORKER, compile_side_by_side

__all__ = ["NoCacheError", "main", "precompile"]


class NoCacheError(OSError):
    """There is no folder in which compiled code could be kept."""


def precompile(show: Callable[[str], None]) -> None:
    """Compile all kernels into the cache; `show` is given a line after each, and a summary."""
    began, kernels = time.perf_counter(), all_kernels()
    folders = sorted({str(kernel.folder) for kernel in kernels if kernel.folder is not None})
    if len(folders) < 1 or any(kernel.folder is None for kernel in kernels):
        raise NoCacheError("no folder for compiled code can be written to; name one in NUMBA_CACHE_DIR")
    new = [kernel for kernel in kernels if not kernel.is_cached]
    compile_side_by_side(new, lambda name, seconds: show(f"{name}: {seconds:.1f} s"))
    for kernel in new:
        if not kernel.is_cached:
            at = time.perf_counter()
            kernel.load()
            show(f"{kernel.name}: {time.perf_counter() - at:.1f} s")
    if not all(kernel.is_cached for kernel in kernels):
        raise NoCacheError(f"compiled code cannot be written to {', '.join(folders)}")
    old = len(kernels) - len(new)
    known = f", {old} were known" if old else ""
    seconds = time.perf_counter() - began
    show(f"{len(new)} kernels compiled in {seconds:.1f} s{known}; cached in {', '.join(folders)}")


def work() -> None:
    """Compile kernels whose names are read from a pipe, and answer with each name when it is done."""
    kernels = {kernel.name: kernel for kernel in all_kernels()}
    for line in sys.stdin:
        kernels[line.strip()].load()
        print(line.strip(), flush=True)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser("python -m rectifit.precompile", description=__doc__)
    parser.add_argument(WORKER, action="store_true", help=argparse.SUPPRESS)
    if parser.parse_args().worker:
        work()
        return
    try:
        precompile(print)
    except NoCacheError as error:
        sys.exit(f"rectifit: {error}")


if __name__ == "__main__":
    main()
