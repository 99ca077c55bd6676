"""One line about work that takes long, on a terminal only."""

from __future__ import annotations

import math
import sys
import time
from shutil import get_terminal_size
from typing import Any

__all__ = ["Progress"]

# Seconds before anything is shown, and between two pictures.
DELAY = 0.5
# The text is so many times as wide as the bar.
TEXT_SHARE = 4


class Progress:
    """Shows what runs and how far it is. Silent with verbose=0, in pipes, and in the first half second.

    A progress bar where rich is installed, otherwise one line that is written over. With `at_once` it begins
    with the first update.
    """

    def __init__(self, verbose: int, at_once: bool = False) -> None:
        self._shown_at = -math.inf if at_once else time.perf_counter()
        self._on = verbose > 0 and sys.stderr.isatty()
        self._bar: Any = None
        self._task: Any = None
        self._written = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._on = False
        if self._bar is not None:
            self._bar.stop()
        elif self._written:
            sys.stderr.write("\n")

    @property
    def is_on(self) -> bool:
        """Whether anything may be shown."""
        return self._on

    def update(self, text: str, done: int, total: int | None) -> None:
        """Show what runs, how many steps are done, and of how many if the total is known."""
        now = time.perf_counter()
        if not self._on or now - self._shown_at < DELAY:
            return
        self._shown_at = now
        if self._bar is None and not self._written:
            self._bar = _make_bar()
        if self._bar is None:
            share = f"{done:,}" if total is None else f"{done:,} of {total:,}"
            line = f"{text}, {share}"[: max(get_terminal_size().columns - 1, 1)]
            sys.stderr.write(f"\r{line}\x1b[K")
            sys.stderr.flush()
            self._written = True
            return
        if self._task is None:
            self._task = self._bar.add_task(text, total=total)
        self._bar.update(self._task, description=text, completed=done, total=total)


def _make_bar() -> Any:
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar
        from rich.table import Column
    except ImportError:
        return None
    # Counts and times keep their width, and the text is cut where the terminal is narrow; a line that wraps
    # could not be written over.
    text = TextColumn(
        "{task.description}", table_column=Column(ratio=TEXT_SHARE, no_wrap=True, overflow="ellipsis")
    )
    line = BarColumn(bar_width=None, table_column=Column(ratio=1))
    columns = (text, line, MofNCompleteColumn(), TimeElapsedColumn())
    bar = Bar(*columns, console=Console(stderr=True), transient=True, expand=True)
    bar.start()
    return bar
