"""Kernels made ready before they are called: loaded from the cache, or compiled, side by side in processes.

A process per core compiles one kernel after the other into the cache on disk, and what they have compiled is
then loaded. These are plain programs that read names of kernels from a pipe and end with it, so that scripts
need no guard around their main part, and notebooks and workers of other pools work as well. Whatever no
process delivers, for want of a core, a cache on disk or the right to start one, is compiled here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from rectifit.clock import standing_still
from rectifit.compiling import Kernel, kernel_of
from rectifit.interrupts import holding_interrupts
from rectifit.numba_internals import CACHE_DIR
from rectifit.progress import Progress

__all__ = ["WORKER", "compile_side_by_side", "prepare"]

# The option of `python -m rectifit.precompile` with which it reads names from a pipe.
WORKER = "--worker"
# Seconds after which a process is given up.
MAX_SECONDS = 300.0
# Seconds between two looks at the processes.
LOOK = 0.05

_lock = Lock()
# Kernels that are known to be loaded: a look here is faster than at each of them.
_ready = set[Any]()


def prepare(*functions: Any) -> None:
    """Make kernels ready to be called; name those first that take longest to compile.

    All clocks stand still meanwhile, and a line on a terminal says what is going on.
    """
    if _ready.issuperset(functions):
        return
    kernels = [kernel_of(function) for function in functions]
    if all(kernel.is_loaded for kernel in kernels):
        _ready.update(functions)
        return
    with _lock, standing_still():
        new = [kernel for kernel in kernels if not kernel.is_loaded and not kernel.is_cached]
        if new:
            with Progress(1, at_once=True) as progress:
                text = "compiling for this machine, once"
                progress.update(text, 0, len(new))
                compile_side_by_side(new, lambda *_: progress.update(text, count_cached(new), len(new)))
        for kernel in kernels:
            if not kernel.is_loaded:
                # To load a kernel takes a moment, to compile it may take long.
                with holding_interrupts() if kernel.is_cached else nullcontext():
                    kernel.load()


def count_cached(kernels: Sequence[Kernel]) -> int:
    """How many of the kernels were compiled before."""
    return sum(kernel.is_cached for kernel in kernels)


def compile_side_by_side(kernels: Sequence[Kernel], done: Callable[[str, float], None]) -> None:
    """Compile kernels into the cache, as far as there are cores and processes can be started.

    A single kernel is left to the caller. done(name, seconds) is called after each, on some thread.
    """
    from joblib import cpu_count

    n_processes = min(cpu_count(), len(kernels))
    if n_processes < 2 or not _can_start() or any(kernel.folder is None for kernel in kernels):
        return
    crew = _Crew(deque(kernel.name for kernel in kernels), done)
    threads = [Thread(target=crew.run) for _ in range(n_processes)]
    deadline = time.perf_counter() + MAX_SECONDS
    try:
        for thread in threads:
            thread.start()
        # Short waits, because Ctrl-C does not end a long one on every system.
        while time.perf_counter() < deadline and (alive := [t for t in threads if t.is_alive()]):
            alive[0].join(LOOK)
    finally:
        crew.end()
        for thread in threads:
            if thread.ident is not None:
                thread.join()


class _Crew:
    """Processes that share a list of names; each has a thread here."""

    def __init__(self, left: deque[str], done: Callable[[str, float], None]) -> None:
        self._left, self._done = left, done
        self._children: list[subprocess.Popen[str]] = []
        self._over = Event()

    def run(self) -> None:
        """Start a process and have it compile what is left, one by one."""
        with suppress(OSError), _start() as child:
            self._children.append(child)
            if self._over.is_set():
                child.kill()
            self._feed(child)

    def end(self) -> None:
        """End all processes, those that are just being started as well."""
        self._left.clear()
        self._over.set()
        for child in self._children:
            child.kill()

    def _feed(self, child: subprocess.Popen[str]) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        while self._left:
            try:
                name = self._left.popleft()
            except IndexError:
                # Another thread was faster.
                return
            began = time.perf_counter()
            child.stdin.write(f"{name}\n")
            child.stdin.flush()
            if not child.stdout.readline():
                return
            self._done(name, time.perf_counter() - began)


def _can_start() -> bool:
    """Whether sys.executable is an interpreter, and not a program that has one built in."""
    name = Path(sys.executable or "").name.lower()
    return name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)


def _start() -> subprocess.Popen[str]:
    """A process that finds the same packages and the same cache."""
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    environment = os.environ | {"PYTHONPATH": path}
    if CACHE_DIR:
        environment["NUMBA_CACHE_DIR"] = CACHE_DIR
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "rectifit.precompile", WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        text=True,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )
