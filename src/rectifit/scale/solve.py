"""`solve` for data in blocks: from the data and the name of a method to a Solution."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from rectifit._typing import Mask, Vector
from rectifit.checks import check_start, is_tensor
from rectifit.methods.search import make_stages, warn_of_dead_fit
from rectifit.problem import Problem
from rectifit.progress import Progress
from rectifit.scale.blocks import ArrayBlocks, Blocks, blas_threads
from rectifit.scale.frame import Frame
from rectifit.scale.methods import BlockAuto, BlockIterative, BlockSearch, BlockSorting
from rectifit.scale.problem import BlockProblem
from rectifit.scale.sweep import Above, Rule
from rectifit.scale.torch_blocks import TorchBlocks
from rectifit.solution import Solution

__all__ = ["as_blocks", "is_large", "reads_blocks", "solve_blocks", "solve_large"]

# A mapped file is read in blocks from this size on (bytes); a smaller one is an array like any other.
MAPPED = 1 << 28
# Arrays in memory are worked on in blocks, too, where that is faster: from so many rows on, and so many more
# per column. "auto" searches longer where it has the data at hand, and does so up to this many numbers.
ROWS, ROWS_PER_COLUMN, LARGE = 30_000, 3_000, 12_000_000
# Tensors with more numbers than this stay on their accelerator; smaller ones are solved faster by the host.
LARGE_TENSOR = 1 << 22

STAGES: dict[str, Any] = {"auto": BlockAuto, "sorting": BlockSorting, "iterative": BlockIterative}
UNKNOWN = "with stage {name!r}; for data read in blocks they are {known}"


def as_blocks(X: Any, y: Any, sample_weight: Any = None) -> Blocks | None:
    """Data that is read in blocks: `Blocks`, a large mapped file, a dask collection, a large tensor.

    None for all else: host memory holds it, or soon will.
    """
    if isinstance(X, Blocks):
        if y is not None or sample_weight is not None:
            raise ValueError(
                "y or sample_weight is given beside blocks that have their own; both must be None"
            )
        return X
    if is_tensor(X) and X.device.type != "cpu" and X.numel() > LARGE_TENSOR:
        return TorchBlocks(X, y, sample_weight)
    if isinstance(X, np.memmap) and X.nbytes >= MAPPED:
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
    floor: float,
    start: Any,
    n_threads: int | None,
    verbose: int,
    **search_options: Any,
) -> Solution:
    """Survey the data and run the stages."""
    stages = make_stages(method, options, STAGES, UNKNOWN)
    threads = n_threads or blocks.n_threads or blas_threads()
    # Threads work on blocks and surrogates; products of matrices use one each.
    with threadpool_limits(1, "blas"), Progress(verbose) as progress:
        problem = BlockProblem(
            blocks.with_threads(threads),
            fit_intercept=fit_intercept,
            alpha=alpha,
            floor=floor,
            on_pass=lambda n: progress.update("passes over the data", n, None),
        )
        search = BlockSearch(problem, n_threads=threads, progress=progress, **search_options)
        if start is not None:
            search.at = search.look([_check_start(problem, start)])[0]
            search.best = search.evaluate(*problem.frame.coefficients(search.at.gamma))
        stopped = search.run(stages)
        solution = search.solution(method, stopped)
    if search.at is None or search.is_dead:
        warn_of_dead_fit(problem.survey.n_positive, floor, stacklevel=4)
    return replace(solution, intercept=solution.intercept + floor, floor=floor)


def reads_blocks(method: Any) -> bool:
    """Whether all stages of a method can read data in blocks."""
    return isinstance(method, str) and all(part.strip() in STAGES for part in method.split("+"))


def is_large(problem: Problem, method: Any) -> bool:
    """Whether data in memory is fitted faster in blocks: on several threads, many surrogates per pass."""
    n, p = problem.n_samples, problem.n_features
    if not reads_blocks(method) or not isinstance(problem.X, np.ndarray):
        return False
    return n >= ROWS + ROWS_PER_COLUMN * p and ("auto" not in method or n * p >= LARGE)


def solve_large(problem: Problem, method: str, options: dict[str, Any], **search_options: Any) -> Solution:
    """The same as `solve_blocks` for a problem in memory, which the solution keeps."""
    solution = solve_blocks(
        ArrayBlocks(problem.X, problem.y, problem.sample_weight),
        method,
        options,
        fit_intercept=problem.fit_intercept,
        alpha=problem.alpha,
        **search_options,
    )
    met: Any = solution.surrogate
    if met is not None:
        blocks: Any = solution.problem
        shifted = problem.shifted(solution.floor)
        met = met._replace(active=_active_set(shifted, blocks.frame, met.active))
    return replace(solution, problem=problem, surrogate=met)


def _active_set(problem: Problem, frame: Frame, rule: Rule) -> Mask:
    if isinstance(rule, Above):
        u = problem.root_weight * problem.preactivation(*frame.coefficients(rule.gamma))
        return np.asarray((u > rule.zero * frame.scale) & problem.positive)
    above = rule.above(problem.root_weight * problem.y, np.arange(problem.n_samples))
    return np.asarray(above & problem.positive)


def _check_start(problem: BlockProblem, start: Any) -> Vector:
    beta, intercept = check_start(start, problem)
    gamma = problem.frame.from_coefficients(beta, intercept - problem.floor)
    if not np.isfinite(gamma).all():
        raise ValueError("start has an objective that is not finite; smaller coefficients are needed")
    return gamma
