"""The data that proofs are measured on: kinds of synthetic data, each with a stream of seeds, and real sets.

Everything is tuned on the seeds 0 to 4 and reported on the seeds 100 to 104. Targets of kinds that stand for
one family are those of the family: clipping the outcomes at 0 does not change them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from rectifit.datasets import make_relu
from rectifit.instances.families import (
    Samples,
    collinear,
    counts,
    dummies,
    few_positive,
    gaussian,
    log_normal,
    low_signal,
    only_dummies,
    student,
)
from rectifit.instances.real import FAIR, LARGE_SETS, MROZ, SETS, load

SEEDS = {"tune": range(5), "report": range(100, 105)}
# What --quick runs: targets up to so many seconds, one seed.
QUICK_TARGET = 1.0


@dataclass(frozen=True)
class Kind:
    """Data of one kind, and what is to be proved about it.

    Attributes
    ----------
    name, group : its row, and the table with that row
    draws : functions of a seed
    gap, target : the gap to be proved, within so many seconds
    fit_intercept : bool
    n_seeds : how many seeds it is measured on; real data has none, and one stands for it
    """

    name: str
    group: str
    draws: tuple[Callable[[int], Samples], ...]
    gap: float
    target: float
    fit_intercept: bool = True
    n_seeds: int = 5


@dataclass(frozen=True, eq=False)
class Instance:
    """One data set of a kind; `number` is its seed, with the position of the draw if the kind has several."""

    kind: str
    group: str
    number: str
    gap: float
    target: float
    fit_intercept: bool
    X: np.ndarray
    y: np.ndarray

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.number

    @property
    def seed(self) -> str:
        return self.number.split(".")[0]

    @property
    def n_coefficients(self) -> int:
        return self.X.shape[1] + self.fit_intercept

    @property
    def digest(self) -> str:
        """Of the data, so that results are compared on the same data only."""
        content = np.ascontiguousarray(np.column_stack([self.X, self.y]))
        return hashlib.sha256(content.tobytes()).hexdigest()[:12]


def real(chosen, seed: int) -> Samples:  # noqa: ARG001 - there is one of it
    return load(chosen)


def paper(n: int, p: int, noise: float, seed: int, **design: float | str) -> Samples:
    return make_relu(n, p, noise=noise, random_state=seed, **design)[:2]


def kinds() -> Iterator[Kind]:
    """All kinds, in the order of the tables."""
    yield from ordinary()
    yield from unfriendly()
    yield from both_sides()
    yield from real_sets()
    yield from without_intercept()


def one(
    name: str, group: str, draw: Callable[[int], Samples], gap: float, target: float, **more: int
) -> Kind:
    return Kind(name, group, (draw,), gap, target, **more)


def ordinary() -> Iterator[Kind]:
    group = "with intercept"
    targets = {5: 0.1, 7: 0.15, 9: 1.5, 10: 5.0, 11: 15.0, 12: 45.0}
    for q, target in targets.items():
        yield one(f"low signal, q={q}", group, partial(low_signal, q), 1e-2, target)
    families = {
        7: {0.5: 0.2, 1.0: 0.5, 2.0: 4.0},
        9: {0.5: 2.0, 1.0: 6.0, 2.0: 25.0},
        12: {0.35: 2.0, 0.5: 60.0},
        20: {0.2: 1.0, 0.35: 60.0},
    }
    for clipped in (False, True):
        for p, targets in families.items():
            for sigma, target in targets.items():
                name = f"{'clipped' if clipped else 'unclipped'}, p={p}, sigma={sigma:g}"
                draw = partial(gaussian, 500, p, sigma, clipped=clipped)
                yield one(name, group, draw, 1e-2, target)
    designs = {0.1: 1.0, 0.5: 10.0}
    for noise, target in designs.items():
        yield one(f"paper's, p=10, n=200, rho={noise:g}", group, partial(paper, 200, 10, noise), 1e-3, target)


def unfriendly() -> Iterator[Kind]:
    group = "with intercept, dummies, heavy tails, collinear columns, grids"
    yield one("dummies, q=8", group, partial(dummies, 1000, 8, 1.0), 1e-2, 10.0)
    yield one("dummies, q=9, low signal", group, partial(dummies, 1000, 9, 2.0), 1e-2, 10.0)
    yield one("only dummies, q=9", group, partial(only_dummies, 1000, 1.0), 1e-2, 10.0)
    yield one("log-normal, q=7, spread 1", group, partial(log_normal, 1000, 7, 1.0), 1e-2, 10.0)
    yield one("log-normal, q=7, spread 1.5", group, partial(log_normal, 1000, 7, 1.5), 1e-2, 10.0)
    yield one("Student, q=7, 2 degrees", group, partial(student, 1000, 7, 2.0), 1e-2, 10.0)
    yield one("collinear, q=8", group, partial(collinear, 1000, 8, 1.0), 1e-2, 10.0)
    yield one("grid, q=9", group, partial(counts, 2000, 9, 0.0), 1e-2, 10.0)
    yield one("grid, q=9, log-normal", group, partial(counts, 2000, 9, 1.0), 1e-2, 60.0)


def both_sides() -> Iterator[Kind]:
    """Sizes just below and above the thresholds of `rectifit.routing`."""
    group = "with intercept, both sides of thresholds"
    for n in (1000, 1001):
        yield one(f"n={n:,}, q=2", group, partial(gaussian, n, 1, 1.0), 1e-2, 1.0)
    for n_positive in (29, 30):
        name = f"n=90, q=5, {n_positive} positive"
        yield one(name, group, partial(few_positive, n_positive), 1e-2, 1.0)
    for p, sigma, target in ((5, 1.0, 1.0), (6, 1.0, 1.0), (9, 0.3, 10.0), (10, 0.3, 10.0)):
        yield one(f"n=300, q={p + 1}, sigma={sigma:g}", group, partial(gaussian, 300, p, sigma), 1e-2, target)
    # Corners of cells are enumerated up to 12 coordinates.
    for p in (12, 13):
        yield one(f"n=500, q={p + 1}, sigma=0.3", group, partial(gaussian, 500, p, 0.3), 1e-2, 10.0)
    # The fit leaves 28 and 33 % of sum y^2.
    for sigma in (0.55, 0.62):
        yield one(f"n=500, q=8, sigma={sigma:g}", group, partial(gaussian, 500, 7, sigma), 1e-2, 0.5)
    for n in (25_000, 25_001, 31_250, 31_251):
        name = f"n={n:,}, q=9, sigma=0.3"
        yield one(name, group, partial(gaussian, n, 8, 0.3), 1e-2, 60.0, n_seeds=1)


def real_sets() -> Iterator[Kind]:
    group = "real data, with intercept"
    yield one(MROZ.name, group, partial(real, MROZ), 1e-3, 2.0, n_seeds=1)
    yield one(FAIR.name, group, partial(real, FAIR), 1e-2, 60.0, n_seeds=1)
    for chosen in SETS:
        yield one(chosen.name, group, partial(real, chosen), 1e-3, 10.0, n_seeds=1)
    for chosen in LARGE_SETS:
        yield one(chosen.name, group, partial(real, chosen), 1e-2, 60.0, n_seeds=1)


def without_intercept() -> Iterator[Kind]:
    group = "without intercept"
    designs = [{"sparsity": 0.1}, {"sparsity": 0.5}, {"sparsity": 0.9}, {"design": "gaussian"}]
    for p in (5, 10, 20):
        for noise in (0.032, 0.1, 0.32, 0.5):
            draws = tuple(partial(paper, 20 * p, p, noise, **design) for design in designs)
            yield Kind(f"p={p}, n={20 * p}, rho={noise:g}", group, draws, 1e-4, 0.5, fit_intercept=False)
    for noise, target in ((0.1, 3.0), (0.32, 8.0), (0.5, 30.0)):
        draws = (partial(paper, 1000, 50, noise),)
        yield Kind(f"p=50, n=1000, rho={noise:g}", group, draws, 1e-4, target, fit_intercept=False, n_seeds=1)


def draw_all(chosen: Iterable[Kind], seeds: Iterable[int]) -> Iterator[Instance]:
    """The instances of some kinds."""
    for kind in chosen:
        for seed in list(seeds)[: kind.n_seeds]:
            for position, draw in enumerate(kind.draws):
                number = f"{seed}.{position}" if len(kind.draws) > 1 else str(seed)
                X, y = draw(seed)
                yield Instance(kind.name, kind.group, number, kind.gap, kind.target, kind.fit_intercept, X, y)


def export(instances: Iterable[Instance], folder: Path) -> int:
    """Write one file per instance, in order; returns how many."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for instance in instances:
        np.savez_compressed(folder / f"{count:04d}.npz", **vars(instance))
        count += 1
    return count


def read(folder: Path) -> Iterator[Instance]:
    """What `export` wrote."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as saved:
            values = {name: saved[name] if name in ("X", "y") else saved[name].item() for name in saved}
        yield Instance(**values)
