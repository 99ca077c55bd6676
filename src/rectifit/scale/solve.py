"""`solve` for data in blocks: from the data and the name of a method to a Solution."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from rectifit.checks import check_start
from rectifit.methods.search import warn_of_dead_fit
from rectifit.problem import Vector
from rectifit.progress import Progress
from rectifit.scale.blocks import ArrayBlocks, Blocks, blas_threads
from rectifit.scale.methods import BlockAuto, BlockIterative, BlockSearch, BlockSorting
from rectifit.scale.problem import BlockProblem
from rectifit.solution import Solution

__all__ = ["as_blocks", "solve_blocks"]

STAGES: dict[str, Any] = {"auto": BlockAuto, "sorting": BlockSorting, "iterative": BlockIterative}


def as_blocks(X: Any, y: Any, sample_weight: Any = None) -> Blocks | None:
    """Data that is read in blocks: `Blocks`, a mapped file, or a dask collection; None for all else."""
    if isinstance(X, Blocks):
        if y is not None or sample_weight is not None:
            raise ValueError(
                "y or sample_weight is given beside blocks that have their own; both must be None"
            )
        return X
    if isinstance(X, np.memmap):
        return ArrayBlocks(X, y, sample_weight)
    if type(X).__module__.partition(".")[0] in ("dask", "dask_expr"):
        from rectifit.scale.dask import DaskBlocks

        return DaskBlocks(X, y, sample_weight)
    return None


def solve_blocks(
    blocks: Blocks,
    method: Any,
    options: dict[str, Any],
    *,
    fit_intercept: bool,
    alpha: float,
    start: Any,
    n_threads: int | None,
    verbose: int,
    **search_options: Any,
) -> Solution:
    """Survey the data and run the stages."""
    stages = _make_stages(method, options)
    if n_threads is not None:
        blocks = blocks.limit_threads(n_threads)
    threads = n_threads or blas_threads()
    with Progress(verbose) as progress:
        problem = BlockProblem(
            blocks,
            fit_intercept=fit_intercept,
            alpha=alpha,
            on_pass=lambda n: progress.update("passes over the data", n, None),
        )
        search = BlockSearch(problem, n_threads=threads, progress=progress, **search_options)
        if start is not None:
            search.at = search.look([_check_start(problem, start)])[0]
            search.best = search.evaluate(*problem.frame.coefficients(search.at.gamma))
        stopped = search.run(stages)
        solution = search.solution(method, stopped)
    if search.at is None or search.at.highest <= 0.0:
        warn_of_dead_fit(problem.survey.n_positive, stacklevel=4)
    return solution


def _make_stages(method: Any, options: dict[str, Any]) -> list[tuple[str, Any]]:
    if not isinstance(method, str):
        raise TypeError(f"method is {method!r}; it must be a string of stages joined by '+'")
    stages = []
    for name in (part.strip() for part in method.split("+")):
        if name not in STAGES:
            known = ", ".join(map(repr, STAGES))
            raise ValueError(
                f"method is {method!r} with stage {name!r}; for data read in blocks they are {known}"
            )
        own = {f.name for f in fields(STAGES[name])}
        chosen = {key: value for key, value in options.items() if key in own and value is not None}
        stages.append((name, STAGES[name](**chosen)))
    return stages


def _check_start(problem: BlockProblem, start: Any) -> Vector:
    gamma = problem.frame.from_coefficients(*check_start(start, problem))
    if not np.isfinite(gamma).all():
        raise ValueError("start has an objective that is not finite; smaller coefficients are needed")
    return gamma
