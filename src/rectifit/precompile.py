"""`python -m rectifit.precompile`: compile all kernels ahead, for containers and clusters."""

from __future__ import annotations

import argparse
import errno
import sys
import time
from collections.abc import Callable

from rectifit.compiling import all_kernels
from rectifit.preparing import WORKER, compile_side_by_side

__all__ = ["main", "precompile"]


def precompile(show: Callable[[str], None]) -> None:
    """Compile all kernels into the cache; `show` is given a line about each, and a summary.

    Raises PermissionError where compiled code cannot be kept.
    """
    began, kernels = time.perf_counter(), all_kernels()
    new = [kernel for kernel in kernels if not kernel.is_cached]
    compile_side_by_side(new, lambda name, seconds: show(f"{name}: {seconds:.1f} s"))
    for kernel in new:
        if not kernel.is_cached:
            at = time.perf_counter()
            kernel.load()
            show(f"{kernel.name}: {time.perf_counter() - at:.1f} s")
    folders = sorted({str(kernel.folder) for kernel in kernels if kernel.is_cached})
    if not all(kernel.is_cached for kernel in kernels):
        advice = "name a folder that can be in NUMBA_CACHE_DIR"
        raise PermissionError(errno.EACCES, advice, "the cache of compiled code")
    before = f", {len(kernels) - len(new)} were compiled before" if len(new) < len(kernels) else ""
    seconds = time.perf_counter() - began
    show(f"{len(new)} kernels compiled in {seconds:.1f} s{before}; cached in {', '.join(folders)}")


def work() -> None:
    """Compile the kernels whose names are read from a pipe, and answer with each name when it is done."""
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
    except PermissionError as error:
        sys.exit(f"rectifit: {error.filename} cannot be written: {error.strerror}")


if __name__ == "__main__":
    main()
