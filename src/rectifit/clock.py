"""How long a search has run, and whether it must end; it can be sent to other processes.

All clocks of the process stand still while code is compiled: that happens once on a machine, whatever the
search.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

__all__ = ["Clock", "now", "standing_still"]


class _Time:
    """Seconds that count."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_holding = 0
        self._held_at = self._lost = 0.0

    def now(self) -> float:
        with self._lock:
            return (self._held_at if self._n_holding else time.perf_counter()) - self._lost

    def hold(self) -> None:
        with self._lock:
            if self._n_holding == 0:
                self._held_at = time.perf_counter()
            self._n_holding += 1

    def release(self) -> None:
        with self._lock:
            self._n_holding -= 1
            if self._n_holding == 0:
                self._lost += time.perf_counter() - self._held_at


_time = _Time()


def now() -> float:
    """Seconds since some moment, without those in which all clocks stood still."""
    return _time.now()


@contextmanager
def standing_still() -> Iterator[None]:
    """Let all clocks stand still meanwhile."""
    _time.hold()
    try:
        yield
    finally:
        _time.release()


class Clock:
    """The time of one search.

    Parameters
    ----------
    time_limit : seconds, optional
    """

    def __init__(self, time_limit: float | None = None) -> None:
        self._began = now()
        self._deadline = None if time_limit is None else self._began + time_limit
        self._is_abandoned = False

    @property
    def seconds(self) -> float:
        """Seconds since the beginning."""
        return now() - self._began

    def is_late(self) -> bool:
        """Whether the time is up."""
        return self._deadline is not None and now() >= self._deadline

    def is_over(self) -> bool:
        """Whether the time is up, or the search has ended."""
        return self._is_abandoned or self.is_late()

    def abandon(self) -> None:
        """Say that the search has ended, to work that still runs on other threads."""
        self._is_abandoned = True

    def __getstate__(self) -> dict[str, Any]:
        # Clocks of two machines differ: what travels is the time that is left.
        at = now()
        left = None if self._deadline is None else self._deadline - at
        return {"seconds": at - self._began, "left": left}

    def __setstate__(self, state: dict[str, Any]) -> None:
        at = now()
        self._began = at - state["seconds"]
        self._deadline = None if state["left"] is None else at + state["left"]
        self._is_abandoned = False
