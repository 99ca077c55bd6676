"""The experiments of the paper: sizes, sparsities, noise levels, instances and methods, and two more methods.

The coefficients have variance 10 in the tables of the realizable case at every size, and variance p in the
figures. The two agree at p = 10, so the grid has 25 settings per size, and five more at p = 20 and p = 50.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from rectifit.datasets import Instance, make_relu

__all__ = [
    "COMPARED_METHODS",
    "GRADIENT_METHODS",
    "LABELS",
    "NOISES",
    "OURS",
    "PAPER_METHODS",
    "PROOF",
    "SIZES",
    "SORTING_METHODS",
    "SPARSITIES",
    "TABLE_VARIANCE",
    "Setting",
    "Size",
    "Task",
    "paper_grid",
]


class Size(NamedTuple):
    """Numbers of features and samples."""

    p: int
    n: int

    def __str__(self) -> str:
        return f"p = {self.p}, n = {self.n}"


SIZES = (Size(10, 200), Size(20, 400), Size(50, 1000))
SPARSITIES = (0.1, 0.25, 0.5, 0.75, 0.9)
NOISES = (0.0, 0.032, 0.1, 0.32, 0.5)
TABLE_VARIANCE = 10.0

SORTING_METHODS = ("sorting", "sorting+iterative", "sorting+gd")
GRADIENT_METHODS = ("gd", "sgd")
PAPER_METHODS = (*SORTING_METHODS, *GRADIENT_METHODS)
# The default method of this package, and the same followed by a proof of optimality.
OURS = "auto"
PROOF = "auto+exact"
COMPARED_METHODS = (*PAPER_METHODS, OURS)
LABELS = {
    "sorting": "sorting",
    "sorting+iterative": "sorting + iterative",
    "sorting+gd": "sorting + GD",
    "gd": "GD",
    "sgd": "SGD",
    OURS: "rectifit auto",
    PROOF: "rectifit exact",
}


@dataclass(frozen=True, order=True)
class Setting:
    """The distribution of an instance."""

    p: int
    n: int
    sparsity: float
    noise: float
    beta_variance: float

    @property
    def size(self) -> Size:
        return Size(self.p, self.n)

    @property
    def is_tabled(self) -> bool:
        """Whether the paper has a table for this setting."""
        return self.noise == 0.0 and self.beta_variance == TABLE_VARIANCE

    @property
    def is_drawn(self) -> bool:
        """Whether the paper's figures show this setting."""
        return self.beta_variance == self.p

    @property
    def is_provable(self) -> bool:
        """Whether a proof takes a few seconds per instance; large instances with much noise take longer."""
        return self.p < 50 or self.noise < 0.5


@dataclass(frozen=True, order=True)
class Task:
    """One method on one instance of a setting; instances are numbered from 1, as in the paper."""

    setting: Setting
    instance: int
    method: str

    def __str__(self) -> str:
        s = self.setting
        return f"p={s.p}, sparsity {s.sparsity:g}, noise {s.noise:g}, instance {self.instance}"

    @property
    def instance_key(self) -> tuple[Setting, int]:
        """What determines the instance, whatever the method."""
        return self.setting, self.instance

    def draw(self) -> Instance:
        """Draw the instance, which depends only on the setting and the number of the instance."""
        s = self.setting
        seed = [s.p, round(1000 * s.sparsity), round(1000 * s.noise), round(s.beta_variance), self.instance]
        rng = np.random.default_rng(seed)
        return make_relu(
            s.n, s.p, sparsity=s.sparsity, noise=s.noise, beta_variance=s.beta_variance, random_state=rng
        )


def paper_grid(
    n_instances: int = 20, sizes: Collection[int] = (10, 20, 50), proofs: bool = True
) -> list[Task]:
    """List all tasks: every compared method on every instance, and a proof where one takes only seconds."""
    chosen = [size for size in SIZES if size.p in sizes]
    tasks = []
    for (p, n), sparsity, noise in product(chosen, SPARSITIES, NOISES):
        variances = {float(p), TABLE_VARIANCE} if noise == 0.0 else {float(p)}
        for variance in sorted(variances):
            setting = Setting(p, n, sparsity, noise, variance)
            methods = (*COMPARED_METHODS, PROOF) if proofs and setting.is_provable else COMPARED_METHODS
            tasks += [Task(setting, instance, m) for instance in range(1, n_instances + 1) for m in methods]
    return tasks
