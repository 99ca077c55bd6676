"""Work on several threads, with results in order. The compiled kernels let go of the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any, TypeVar

import numpy as np

__all__ = ["count_threads", "map_ordered", "workers"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def count_threads(n_jobs: Any) -> int:
    """Threads asked for by n_jobs: one for None, all processors for -1."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer):
        raise TypeError(f"n_jobs is {n_jobs!r}; it must be None, a positive number of threads, or -1 for all")
    if n_jobs == 0:
        raise ValueError("n_jobs is 0; it must be None, a positive number of threads, or -1 for all")
    from joblib import effective_n_jobs

    return int(effective_n_jobs(int(n_jobs)))


@contextmanager
def workers(n_threads: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """A function like `map` whose work is done on so many threads, with one BLAS thread each."""
    if n_threads == 1:
        yield map
        return
    from threadpoolctl import threadpool_limits

    pool = ThreadPoolExecutor(n_threads)
    try:
        with threadpool_limits(1):
            yield pool.map
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def map_ordered(
    work: Callable[[Item], Result], items: Iterable[Item], n_threads: int, abandoned: Event
) -> Iterator[Result]:
    """Results of work(item), in the order of the items.

    When the caller stops or is interrupted, `abandoned` is set, for running work to look at, and what has not
    begun is given up.
    """
    with workers(n_threads) as mapped:
        try:
            yield from mapped(work, items)
        except BaseException:
            abandoned.set()
            raise
