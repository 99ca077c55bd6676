"""What all benchmarks share: a clock, the console, and the memory of a process."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

try:
    from rich.console import Console
    from rich.table import Table
except ModuleNotFoundError:
    # A machine that is only lent for a run may have nothing but what rectifit needs.
    from plain import Console, Table

console = Console(width=132)

# What took longer than this in all is not run again for a median.
PATIENCE = 5.0
# Targets in seconds are for a core on which the yardstick takes this long.
REFERENCE = 0.9e-3


def timed(work: Callable[[], object], repeat: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Median seconds of a few runs, by a clock."""
    seconds = []
    for _ in range(repeat):
        started = clock()
        work()
        seconds.append(clock() - started)
        if sum(seconds) > PATIENCE:
            break
    return median(seconds)


def table_of(title: str, *names: str) -> Table:
    table = Table(title=title)
    for name in names:
        is_label = name in ("data", "trainer")
        table.add_column(name, justify="left" if is_label else "right", no_wrap=is_label)
    return table


def memory_of(process: int | str = "self", what: str = "VmRSS") -> float:
    """Resident memory of a process in bytes, not a number where the system hides it; VmHWM: its peak."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return math.nan
    fields = dict(line.split(":", 1) for line in lines)
    return 1024.0 * int(fields[what].split()[0]) if what in fields else math.nan


def peak_memory() -> float:
    """Largest resident memory of this process so far, in bytes; not a number where the system hides it."""
    return memory_of(what="VmHWM")
