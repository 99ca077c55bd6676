"""Ctrl-C that waits where it would leave something half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["holding_interrupts"]


@contextmanager
def holding_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block; a second one does not wait.

    A library that was imported in part, or compiled code that was loaded in part, would fail later on, or end
    the process. Only the main thread is interrupted, so nothing is done on others.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    held: list[tuple[int, FrameType | None]] = []

    def hold(number: int, frame: FrameType | None) -> None:
        held.append((number, frame))
        if len(held) > 1:
            before(number, frame)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if len(held) == 1:
        before(*held[0])
