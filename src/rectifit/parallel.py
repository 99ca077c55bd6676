"""Work on several threads, with results in order. The compiled kernels let go of the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TypeVar

__all__ = ["map_ordered"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_ordered(
    work: Callable[[Item], Result], items: Iterable[Item], n_threads: int, abandoned: Event
) -> Iterator[Result]:
    """Results of work(item), in the order of the items.

    With several threads BLAS uses one each. When the caller stops or is interrupted, `abandoned` is set, for
    running work to look at, and what has not begun is given up.
    """
    if n_threads == 1:
        yield from map(work, items)
        return
    from threadpoolctl import threadpool_limits

    pool = ThreadPoolExecutor(n_threads)
    try:
        with threadpool_limits(1):
            yield from pool.map(work, items)
    except BaseException:
        abandoned.set()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
