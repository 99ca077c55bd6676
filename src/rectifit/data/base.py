"""What is given: rows of X, outcomes and weights, wherever they are."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from rectifit._typing import Vector
from rectifit.active import ActiveSet
from rectifit.data.blocks import Block, S
from rectifit.data.sums import LossTask, OutcomeSums, OutcomeTask, SizeTask

if TYPE_CHECKING:
    from rectifit.data.memory import MemoryData

__all__ = ["Data", "ShiftedData"]


class Data(ABC):
    """Rows of X, outcomes and weights.

    Every kind of data can be read in passes, by `reduce`. Some operations need all rows in memory: they call
    `load`, which data in memory answers with itself and any other data refuses in one sentence.

    Attributes
    ----------
    n_samples, n_features : the shape of X
    is_weighted : whether rows have weights
    feature_names : names of the columns, where they have any
    n_threads : threads of this process that read; None: as many as BLAS may use
    near_factor, sample_factor : rows per coefficient that a pass should bring back, and those in the sample;
        more of them save passes, but take time between passes
    max_solved_sample : numbers in a sample whose surrogates are minimised; a larger one only tells how dense
        the rows lie around their kinks
    remembers : whether blocks stay in this process, so that what a pass finds can be kept beside them
    in_memory : whether all rows are in the memory of this process
    is_sparse : whether X is a sparse matrix
    """

    n_samples: int
    n_features: int
    is_weighted: bool
    feature_names: tuple[str, ...] | None = None
    n_threads: int | None = None
    near_factor: int = 100
    sample_factor: int = 200
    max_solved_sample: int = 1 << 23
    remembers: bool = False
    in_memory: bool = False
    is_sparse: bool = False

    @abstractmethod
    def reduce(self, task: Callable[[Block], S], *, design: bool = True) -> S:
        """One pass: the merged summaries of all blocks. With design=False blocks come without X."""

    @property
    def n_entries(self) -> int:
        """Numbers that a pass over X reads."""
        return self.n_samples * self.n_features

    def for_passes(self) -> Data:
        """The same data in the form in which many passes over it are fastest."""
        return self

    def with_threads(self, n_threads: int) -> Self:
        """The same data, read by so many threads."""
        other = copy(self)
        other.n_threads = n_threads
        return other

    def shifted(self, floor: float) -> Data:
        """The same data with y - floor for y."""
        return self if floor == 0.0 else ShiftedData(self, floor)

    def load(self, purpose: str) -> MemoryData:
        """The data in memory; `purpose` is the beginning of the sentence that refuses it."""
        raise ValueError(f"{purpose}, which needs all rows in memory; this data is read in passes")

    @cached_property
    def outcomes(self) -> OutcomeSums:
        """Sums over outcomes and weights, which are checked on the way."""
        found = self.reduce(OutcomeTask(), design=False)
        if found.n_weighted == 0:
            raise ValueError("sample_weight is zero everywhere; at least one weight must be positive")
        return found.checked()

    def loss(self, beta: Vector, intercept: float) -> float:
        """sum w (max(0, u) - y)^2."""
        return self._pass(LossTask(beta, intercept, self.outcomes.scale))

    def surrogate_loss(self, active: ActiveSet, beta: Vector, intercept: float) -> float:
        """The convex surrogate F_I without the ridge."""
        return self._pass(LossTask(beta, intercept, self.outcomes.scale, active))

    def size_of_terms(self, beta: Vector, intercept: float, reach: float = math.inf) -> float:
        """The norm of sqrt(w) (|X||beta| + |intercept|): what rounding errors of u are relative to.

        Rows with sqrt(w) u below -reach are left out.
        """
        scale = self.outcomes.scale
        return math.sqrt(float(self.reduce(SizeTask(beta, intercept, scale, reach / scale)).value)) * scale

    def _pass(self, task: LossTask) -> float:
        return float(self.reduce(task).value) * task.scale * task.scale


class ShiftedData(Data):
    """Data read in passes, with y - floor for y."""

    def __init__(self, data: Data, floor: float) -> None:
        self.data, self.floor = data, floor
        self.n_samples, self.n_features = data.n_samples, data.n_features
        self.is_weighted, self.feature_names = data.is_weighted, data.feature_names
        self.n_threads = data.n_threads
        self.near_factor, self.sample_factor = data.near_factor, data.sample_factor
        self.max_solved_sample = data.max_solved_sample
        self.remembers = data.remembers

    def reduce(self, task: Callable[[Block], S], *, design: bool = True) -> S:
        """One pass over the data."""
        shifted: Callable[[Block], S] = _ShiftedTask(self.floor, task)
        return self.data.reduce(shifted, design=design)

    def with_threads(self, n_threads: int) -> Self:
        """The same data, read by so many threads."""
        other = super().with_threads(n_threads)
        other.data = self.data.with_threads(n_threads)
        return other


@dataclass(frozen=True)
class _ShiftedTask:
    """A task for blocks from whose outcomes a floor is subtracted."""

    floor: float
    task: Callable[[Block], Any]

    def __call__(self, block: Block) -> Any:
        return self.task(replace(block, y=block.to_float64(block.y) - self.floor))
