"""What the paper ran: sizes, sparsities, noise levels, instances and methods, and a few methods more.

The tables of the realizable case have coefficients of variance 10 at every size, the figures of variance p.
At p = 10 the two agree, so the grid has 25 settings per size, and five more at p = 20 and 50.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np

from rectifit.datasets import make_relu
from rectifit.datasets.synthetic import Instance

__all__ = [
    "LABELS",
    "NOISES",
    "OURS",
    "PAPER_METHODS",
    "PROOF",
    "SIZES",
    "SPARSITIES",
    "TABLE_VARIANCE",
    "Setting",
    "Task",
    "paper_grid",
]

SIZES = ((10, 200), (20, 400), (50, 1000))
SPARSITIES = (0.1, 0.25, 0.5, 0.75, 0.9)
NOISES = (0.0, 0.032, 0.1, 0.32, 0.5)
TABLE_VARIANCE = 10.0
PAPER_METHODS = ("sorting", "sorting+iterative", "sorting+gd", "gd", "sgd")
# Ours: the best fit, and the one with a proof.
OURS, PROOF = "auto", "auto+exact"
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
    """One kind of instance."""

    p: int
    n: int
    sparsity: float
    noise: float
    beta_variance: float

    @property
    def is_tabled(self) -> bool:
        """Whether the paper has a table of it."""
        return self.noise == 0.0 and self.beta_variance == TABLE_VARIANCE

    @property
    def is_drawn(self) -> bool:
        """Whether the paper's figures show it."""
        return self.beta_variance == self.p

    @property
    def is_provable(self) -> bool:
        """Whether its instances are settled in a few seconds each; large ones with much noise take longer."""
        return self.p < 50 or self.noise < 0.5


@dataclass(frozen=True, order=True)
class Task:
    """One method on one instance of a setting, numbered from 1 as in the paper."""

    setting: Setting
    instance: int
    method: str

    def draw(self) -> Instance:
        """The instance, which depends on setting and number only."""
        s = self.setting
        return make_relu(
            s.n,
            s.p,
            sparsity=s.sparsity,
            noise=s.noise,
            beta_variance=s.beta_variance,
            random_state=np.random.default_rng(self.seed),
        )

    @property
    def seed(self) -> list[int]:
        s = self.setting
        return [s.p, round(1000 * s.sparsity), round(1000 * s.noise), round(s.beta_variance), self.instance]


def settings() -> list[Setting]:
    """All settings of tables and figures, those of one size together."""
    found = []
    for (p, n), sparsity, noise in product(SIZES, SPARSITIES, NOISES):
        variances = {float(p), TABLE_VARIANCE} if noise == 0.0 else {float(p)}
        found += [Setting(p, n, sparsity, noise, variance) for variance in sorted(variances)]
    return found


def paper_grid(n_instances: int = 20, sizes: Iterable[int] = (10, 20, 50), proofs: bool = True) -> list[Task]:
    """All tasks: the paper's methods and ours on every instance, and a proof where one is within reach."""
    chosen, tasks = set(sizes), []
    for setting in settings():
        if setting.p not in chosen:
            continue
        methods = [*PAPER_METHODS, OURS]
        if proofs and setting.is_provable:
            methods.append(PROOF)
        tasks += [
            Task(setting, instance, method) for instance in range(1, n_instances + 1) for method in methods
        ]
    return tasks
