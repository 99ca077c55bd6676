"""Which engine for which data: every threshold that routes, in one place.

data                                                                   how it is read, and by which engine
NumPy, lists, frames, sparse; mapped files below MAPPED_BYTES;          in memory
tensors on the host, and small ones on an accelerator
  with at most SMALL_ENTRIES numbers                                     all rows in the compiled kernel
  more, or sparse                                                        near/far, rows resident
  dense, with MANY_ROWS or more, for stages that can read in passes      near/far, in passes
mapped files, Parquet, dask, large tensors on an accelerator            near/far, in passes

"auto" searches as long as `search_effort` says, wherever the data is. The bound that a fit carries, and the
search that a proof uses, depend on the sizes below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rectifit.checks import is_tensor
from rectifit.data.arrays import ArrayData
from rectifit.data.base import Data
from rectifit.data.dask import DaskData, is_dask
from rectifit.data.memory import MemoryData
from rectifit.data.problem import Problem
from rectifit.data.tensors import TensorData

__all__ = [
    "Effort",
    "accelerator_of",
    "can_bound_cheaply",
    "is_bounded",
    "is_held_elsewhere",
    "is_planar",
    "is_small",
    "open_data",
    "reads_in_passes",
    "runs_in_passes",
    "search_effort",
    "takes_long_to_compare",
]

# Entries of X up to which all rows go through the compiled kernel at every step.
SMALL_ENTRIES = 250_000
# Bytes of a mapped file from which on it is read in passes; a smaller one is an array like any other.
MAPPED_BYTES = 1 << 28
# Bytes of a Parquet file above which the command line reads it in passes.
FILE_BYTES = 1 << 30
# Entries of a tensor on an accelerator above which it stays there; the host solves smaller ones faster.
TENSOR_ENTRIES = 1 << 22
# Rows of a dense array in memory from which on passes are faster, and so many more per column.
MANY_ROWS = 30_000
MANY_ROWS_PER_COLUMN = 3_000
# Stages that can be run in passes by themselves; "auto" is faster with resident rows up to LARGE_ENTRIES.
PASS_STAGES = ("sorting", "iterative", "auto")
LARGE_ENTRIES = 12_000_000

# "auto": entries of X in the starts of one batch, the largest number of these, and batches of starts close to
# the best solutions.
BATCH_ENTRIES = 2_000_000
MAX_BATCH = 32
MAX_BATCHES = 19
# "auto" with LARGE_ENTRIES or more: starts from sorting, and as many random ones.
LARGE_STARTS = 3
# "auto": positive samples up to which all of their active sets are tried.
FEW_POSITIVE = 9
# "auto": entries of X times positive samples up to which all splits, and all neighbours of the best fit, are.
EXHAUSTIVE_WORK = 100_000

# The bound of a fit by "auto" is made up to so many entries of X, and without an intercept up to so large a
# share of sum w y^2 left.
BOUNDED_ENTRIES = 200_000
BOUNDED_SHARE = 0.3
# Coefficients, the intercept included, and samples up to which a proof goes through the whole arrangement.
PLANE_COLUMNS = 2
PLANE_SAMPLES = 1000
# n p min(n, p) above which a comparison with other models takes long.
COMPARISON_WORK = 1_000_000


def open_data(X: Any, y: Any, sample_weight: Any = None) -> Data:
    """What was given, as data in memory or read in passes."""
    if isinstance(X, Data):
        if y is not None or sample_weight is not None:
            raise ValueError("y or sample_weight is given beside data that has its own; both must be None")
        return X
    return (_reader_of(X) or MemoryData.from_arrays)(X, y, sample_weight)


def is_held_elsewhere(X: Any) -> bool:
    """Whether X is data that `open_data` takes as it is or reads in passes; nothing is validated."""
    return isinstance(X, Data) or _reader_of(X) is not None


def _reader_of(X: Any) -> Callable[[Any, Any, Any], Data] | None:
    """What reads X in passes; None for X that is, or soon will be, in memory."""
    if accelerator_of(X) is not None and X.numel() > TENSOR_ENTRIES:
        return TensorData
    if isinstance(X, np.memmap) and X.nbytes >= MAPPED_BYTES:
        return ArrayData
    return DaskData if is_dask(X) else None


def accelerator_of(X: Any) -> Any:
    """The device of a tensor that is on an accelerator, else None."""
    return X.device if is_tensor(X) and X.device.type != "cpu" else None


def is_small(n_samples: int, n_features: int) -> bool:
    """Whether all rows go through the compiled kernel."""
    return n_samples * n_features <= SMALL_ENTRIES


def reads_in_passes(problem: Problem, stages: list[str]) -> bool:
    """Whether the near/far engine reads the data in passes."""
    data = problem.data
    if not data.in_memory:
        return True
    n, p = data.n_samples, data.n_features
    if data.is_sparse or n < MANY_ROWS + MANY_ROWS_PER_COLUMN * p:
        return False
    return runs_in_passes(stages) and ("auto" not in stages or n * p >= LARGE_ENTRIES)


@dataclass(frozen=True)
class Effort:
    """How long "auto" searches.

    Attributes
    ----------
    n_sorted, n_random : starts at solutions of the sorting method, and in random directions
    n_perturbed : starts close to the best solutions, at most
    n_first, n_batch : starts that are followed first, and at most at a time
    is_exhaustive : whether all splits, and all neighbours of the best fit, are tried
    is_enumerable : whether all active sets are tried
    is_screened : whether starts are followed on a sample first, where there is one
    """

    n_sorted: int
    n_random: int
    n_perturbed: int
    n_first: int
    n_batch: int
    is_exhaustive: bool
    is_enumerable: bool
    is_screened: bool


def runs_in_passes(stages: list[str]) -> bool:
    """Whether all stages can be run in passes."""
    return all(name in PASS_STAGES for name in stages)


def search_effort(problem: Problem) -> Effort:
    """The effort of "auto" for a problem, from its size alone."""
    entries, n_positive = problem.data.n_entries, problem.data.outcomes.n_positive
    is_enumerable = n_positive <= FEW_POSITIVE
    if entries >= LARGE_ENTRIES:
        # All at once, in the same passes.
        n_first = 2 * LARGE_STARTS + 1
        return Effort(LARGE_STARTS, LARGE_STARTS, 0, n_first, n_first, False, is_enumerable, True)
    size = int(np.clip(BATCH_ENTRIES // entries, 1, MAX_BATCH)) if entries else MAX_BATCH
    work = n_positive * problem.n_samples * problem.n_features
    return Effort(size, size, MAX_BATCHES * size, 1, size, work <= EXHAUSTIVE_WORK, is_enumerable, False)


def can_bound_cheaply(problem: Problem, objective: float) -> bool:
    """Whether a fit by "auto" gets a bound from a search.

    With an intercept a short search says something only if samples are known to be on at once, because off
    they would cost more than the whole fit.
    """
    if not is_bounded(problem):
        return False
    if not problem.fit_intercept:
        return objective <= BOUNDED_SHARE * problem.null_objective
    largest = float(problem.loaded().weighted_y.max(initial=0.0))
    return is_planar(problem.n_samples, problem.n_features + 1) or largest * largest > objective


def is_bounded(problem: Problem) -> bool:
    """Whether data are small enough for that."""
    return problem.n_samples * problem.n_features <= BOUNDED_ENTRIES


def is_planar(n_samples: int, n_columns: int) -> bool:
    """Whether a proof goes through the arrangement of all active sets."""
    return 0 < n_columns <= PLANE_COLUMNS and n_samples <= PLANE_SAMPLES


def takes_long_to_compare(n_samples: int, n_features: int) -> bool:
    """Whether a comparison with other models is not made in passing."""
    return n_samples * n_features * min(n_samples, n_features) > COMPARISON_WORK
