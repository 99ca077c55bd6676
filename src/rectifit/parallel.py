"""Work on several threads, with results in order. The compiled kernels let go of the interpreter's lock.

Where joblib is configured to use a cluster, as by `joblib.parallel_config("dask")`, work runs there instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

__all__ = ["count_threads", "limit_threads", "map_ordered", "uses_cluster", "workers"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def count_threads(n_jobs: Any) -> int:
    """Threads of this process asked for by n_jobs: one for None, all processors for -1.

    How many workers a cluster has does not matter here: work that goes there needs no threads.
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer):
        raise TypeError(f"n_jobs is {n_jobs!r}; it must be None, a positive number of threads, or -1 for all")
    if n_jobs == 0:
        raise ValueError("n_jobs is 0; it must be None, a positive number of threads, or -1 for all")
    from joblib import cpu_count, effective_n_jobs

    if uses_cluster():
        return int(n_jobs) if n_jobs > 0 else max(1, cpu_count() + 1 + int(n_jobs))
    return int(effective_n_jobs(int(n_jobs)))


def limit_threads(user_api: str | None = None) -> AbstractContextManager[Any]:
    """One thread for every matrix product meanwhile, or for all that libraries of one kind do ("blas")."""
    limits: AbstractContextManager[Any] = _controller(len(sys.modules)).limit(limits=1, user_api=user_api)
    return limits


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> Any:  # noqa: ARG001 - more libraries may be loaded with more modules
    """The libraries that have threads; to look for them takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def workers(n_threads: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """A function like `map` whose work is done on so many threads, with one BLAS thread each."""
    if n_threads == 1:
        yield map
        return
    pool = ThreadPoolExecutor(n_threads)
    try:
        with limit_threads():
            yield pool.map
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def uses_cluster() -> bool:
    """Whether a joblib backend beyond this machine is active."""
    # Without joblib loaded none can be.
    if "joblib" not in sys.modules:
        return False
    from joblib.parallel import get_active_backend

    return not type(get_active_backend()[0]).__module__.startswith("joblib._parallel_backends")


def map_ordered(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    n_threads: int,
    abandon: Callable[[], None] | None = None,
) -> Iterator[Result]:
    """Results of work(item), in the order of the items.

    When the caller stops or is interrupted, what has not begun is given up, and `abandon` is called to tell
    running work.
    """
    if uses_cluster():
        from joblib import Parallel, delayed

        yield from Parallel(return_as="generator")(delayed(work)(item) for item in items)
        return
    with workers(n_threads) as mapped:
        try:
            yield from mapped(work, items)
        except BaseException:
            if abandon is not None:
                abandon()
            raise
