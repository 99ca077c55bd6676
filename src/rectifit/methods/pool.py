"""Engines of one problem for work on several threads, or in other processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue

from rectifit.surrogate.engine import Engine

__all__ = ["EnginePool"]


class EnginePool:
    """Makes an engine when none is free; only what the engine needs goes to other processes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._free: SimpleQueue[Engine] = SimpleQueue()
        self._free.put(engine)

    @contextmanager
    def acquire(self) -> Iterator[Engine]:
        """An engine for exclusive use."""
        try:
            engine = self._free.get_nowait()
        except Empty:
            engine = self._engine.copy()
        try:
            yield engine
        finally:
            self._free.put(engine)

    def __reduce__(self) -> tuple[type[EnginePool], tuple[Engine]]:
        return EnginePool, (self._engine,)
