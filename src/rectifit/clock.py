"""How long a search has run, and whether it must end; it can be sent to other processes."""

from __future__ import annotations

import time
from threading import Event
from typing import Any

__all__ = ["Clock"]


class Clock:
    """The time of one search.

    Parameters
    ----------
    time_limit : seconds, optional
    """

    def __init__(self, time_limit: float | None = None) -> None:
        self._began = time.perf_counter()
        self._deadline = None if time_limit is None else self._began + time_limit
        # Set when the search has ended, for work that still runs on other threads.
        self.abandoned = Event()

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self._began

    def is_late(self) -> bool:
        """Whether the time is up."""
        return self._deadline is not None and time.perf_counter() >= self._deadline

    def is_over(self) -> bool:
        """Whether the time is up, or the search has ended."""
        return self.is_late() or self.abandoned.is_set()

    def __getstate__(self) -> dict[str, Any]:
        # Clocks of two machines differ: what travels is the time that is left.
        now = time.perf_counter()
        left = None if self._deadline is None else self._deadline - now
        return {"seconds": now - self._began, "left": left}

    def __setstate__(self, state: dict[str, Any]) -> None:
        now = time.perf_counter()
        self._began = now - state["seconds"]
        self._deadline = None if state["left"] is None else now + state["left"]
        self.abandoned = Event()
