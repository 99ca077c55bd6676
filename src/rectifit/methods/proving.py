"""A search for a proof as part of a run of stages."""

from __future__ import annotations

import numpy as np

from rectifit.certificate.ascent_kernel import ascend, decide, shrink
from rectifit.certificate.cell_kernel import expand
from rectifit.certificate.driver import Driver, Listener
from rectifit.certificate.kernel import build, support
from rectifit.certificate.proof import MEMORY_LIMIT, TARGET_GAP
from rectifit.certificate.recording import ProofFile
from rectifit.certificate.scale_kernel import find_cut, is_empty, search_nodes
from rectifit.fit import Stop
from rectifit.methods.search import Halt, Search
from rectifit.preparing import prepare
from rectifit.surrogate.engine import Minimum
from rectifit.surrogate.kernel import evaluate_with_bound, minimise
from rectifit.surrogate.rows_kernel import are_determined, place_rows, scale_columns

__all__ = ["bound_within", "prepare_bound", "prepare_proof", "prove"]

# In the order of the time that they take to compile.
BOUND_KERNELS = (
    minimise,
    evaluate_with_bound,
    build,
    support,
    shrink,
    decide,
    place_rows,
    are_determined,
    scale_columns,
)


def prepare_bound(search: Search) -> None:
    """Make ready what a fit with a bound needs, all at once.

    With an intercept the bound rarely needs the ascent, which takes as long to compile as all else.
    """
    prepare(*(() if search.problem.fit_intercept else (ascend,)), *BOUND_KERNELS)


def prepare_proof() -> None:
    """Make ready what a proof needs, all at once."""
    prepare(expand, ascend, search_nodes, find_cut, is_empty, *BOUND_KERNELS)


def prove(
    search: Search,
    box: float | None = None,
    memory_limit: int = MEMORY_LIMIT,
    proof: ProofFile | None = None,
) -> Stop:
    """Prove down to the target gap, or as far as time and rounding allow."""
    prepare_proof()
    driver = _make_driver(search, box, memory_limit, proof=proof)
    status, closed = "interrupted", False
    try:
        closed = driver.run()
        status = "optimal" if closed else "time_limit"
    finally:
        _take_over(search, driver, status)
    if closed:
        return Stop.TARGET
    if driver.is_exhausted:
        return Stop.ROUNDING
    raise Halt(Stop.TIME_LIMIT)


def bound_within(search: Search, looks: int) -> None:
    """As good a bound as so many looks at all samples allow."""
    prepare_bound(search)
    driver = _make_driver(search, budget=looks)
    try:
        driver.run()
    finally:
        _take_over(search, driver, "bound_only")


def _make_driver(
    search: Search,
    box: float | None = None,
    memory_limit: int = MEMORY_LIMIT,
    budget: float = np.inf,
    proof: ProofFile | None = None,
) -> Driver:
    assert search.best is not None

    def record(minimum: Minimum) -> None:
        search.n_surrogates += 1
        search.record(minimum)

    return Driver(
        search.engine,
        search.best,
        TARGET_GAP if search.target_gap is None else search.target_gap,
        search.lower_bound,
        search.clock,
        n_threads=search.n_threads,
        box=box,
        budget=budget,
        memory_limit=memory_limit,
        listener=Listener(record, search.note),
        proof=proof,
    )


def _take_over(search: Search, driver: Driver, status: str) -> None:
    """Put incumbent, bound and proof into the search."""
    if search.best is None or driver.best.beta is not search.best.beta:
        search.offer(driver.best)
    # Evaluated as the proof has done it, which may differ from the engine's evaluation by rounding.
    search.best = driver.best
    search.lower_bound = max(search.lower_bound, driver.lower_bound)
    search.proof = driver.result(status)
