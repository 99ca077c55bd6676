"""What all benchmarks share: a clock and the console."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from rich.console import Console
from rich.table import Table

console = Console(width=132)

# What took longer than this in all is not run again for a median.
PATIENCE = 5.0
# Targets in seconds are for a core on which the yardstick takes this long.
REFERENCE = 0.9e-3


def timed(work: Callable[[], object], repeat: int) -> float:
    """Median seconds of a few runs."""
    seconds = []
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
        if sum(seconds) > PATIENCE:
            break
    return median(seconds)


def table_of(title: str, *names: str) -> Table:
    table = Table(title=title)
    for name in names:
        table.add_column(name, justify="left" if name in ("data", "trainer") else "right")
    return table
