"""The names of all instances, and how each of them is made.

Synthetic data are rounded to multiples of 2^-20: the last digits of sums and of elementary functions differ
between processors and libraries, and without rounding so would the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import nan
from typing import Any

import numpy as np

from rectifit.datasets import load_drug_spending, make_subset_sum
from rectifit.experiments.grid import Setting, Task
from rectifit.experiments.ratio import make_decoys
from rectifit.instances import families
from rectifit.instances.families import Samples
from rectifit.instances.real import FAIR, LARGE_SETS, MROZ, SETS, RealSet, load

__all__ = ["CATALOGUE", "FAMILIES", "Entry"]

# Synthetic data are whole multiples of this.
GRAIN = 2.0**-20

FAMILIES = {
    "paper": "the grid of Dey, Wang and Xie: sparse ternary X, no intercept, y = max(0, X beta) + noise",
    "realizable": "the same without noise: the least objective is 0",
    "low signal": "noise of twice the signal, outcomes clipped at 0",
    "gaussian": "y = max(0, X beta + 0.3) + noise with Gaussian X; outcomes may be negative",
    "clipped": "the same with outcomes clipped at 0; a series over p, one over the noise, one over n",
    "heavy tails": "log-normal factors, or Student's noise: a few outcomes have most of sum y^2",
    "dummies": "groups and rare 0/1 columns",
    "collinear": "correlations of 0.99, and a column that is almost the sum of two others",
    "counts": "regressors with few distinct whole numbers, outcomes that are counts",
    "few positive": "hardly any positive outcome",
    "noise": "outcomes that have nothing to do with X",
    "decoys": "constructed so that the approximation algorithm reaches its worst ratio, (n - 1)/k",
    "subset sum": "the paper's reduction: the least objective is p + 100 p^2 if and only if a subset exists",
    "real": "surveys with outcomes that pile up at 0",
}
# The numbers of the subset-sum instances by their answer: whether some of them sum to a quarter of the total.
SUBSET_SUMS = {
    "yes": (
        (59, 53, 59, 41),
        (16, 31, 52, 3, 58, 48),
        (8, 9, 34, 50, 38, 14, 30, 25),
        (127, 173, 77, 57, 11, 2, 103, 44, 91, 87),
        (59, 69, 46, 187, 47, 132, 67, 93, 82, 141, 97, 48),
    ),
    "no": (
        (13, 29, 38, 52),
        (59, 53, 5, 21, 58, 4),
        (29, 42, 48, 45, 45, 12, 3, 56),
        (153, 196, 86, 116, 160, 148, 48, 167, 58, 152),
        (55, 79, 146, 156, 45, 167, 164, 152, 160, 65, 36, 107),
    ),
}


@dataclass(frozen=True)
class Entry:
    """How an instance is made.

    Attributes
    ----------
    name, family : `FAMILIES` describes the family
    draw : makes X and y
    fit_intercept : whether the regression has an intercept
    seed : of synthetic data; None for real and constructed data
    noise : its standard deviation as the family defines it; not a number where there is none to state
    package : of real data, what must be installed; "" for what rectifit has itself
    """

    name: str
    family: str
    draw: Callable[[], Samples]
    fit_intercept: bool = True
    seed: int | None = None
    noise: float = nan
    package: str = ""


def _draw_synthetic(function: Callable[..., Samples], *parameters: float, seed: int, **more: bool) -> Samples:
    X, y = function(*parameters, seed=seed, **more)
    return _round(X), _round(y)


def _draw_paper(task: Task) -> Samples:
    X, y, beta, *_ = task.draw()
    # Without noise the outcomes are those of rounded coefficients, and exact: sums of a few multiples.
    return X, _round(y) if task.setting.noise else np.maximum(X @ _round(beta), 0.0)


def _draw_spending() -> Samples:
    data = load_drug_spending()
    return data.X, data.y


def _round(values: Any) -> Any:
    rounded = np.round(values / GRAIN) * GRAIN
    # No negative zeros: they are other bytes.
    return rounded + 0.0


def _entries() -> Iterator[Entry]:
    yield from _paper()
    yield from _synthetic()
    yield from _constructed()
    yield from _real()


def _paper() -> Iterator[Entry]:
    for p in (10, 20, 50, 100):
        for noise, sparsity in product((0.0, 0.1, 0.32, 0.5), (0.1, 0.5, 0.9)):
            if sparsity != 0.5 and (noise == 0.0 or p == 100):
                continue
            family = "paper" if noise else "realizable"
            name = f"{family}-p{p}-density{100 * sparsity:.0f}" + f"-noise{100 * noise:.0f}" * bool(noise)
            task = Task(Setting(p, 20 * p, sparsity, noise, float(p)), instance=1, method="")
            yield Entry(name, family, partial(_draw_paper, task), False, seed=1, noise=noise)


def _synthetic() -> Iterator[Entry]:
    for q in (*range(5, 15), 16, 20):
        yield _drawn(f"low-signal-q{q}", "low signal", families.low_signal, q, noise=2.0)
    for q in (6, 8, 10):
        yield _drawn(f"low-signal-q{q}-second", "low signal", families.low_signal, q, seed=1, noise=2.0)
    for p, sigmas in {7: (0.5, 1.0, 2.0), 9: (0.5, 1.0), 12: (0.35, 0.5, 1.0), 20: (0.2, 0.35, 0.5)}.items():
        for sigma in sigmas:
            name = f"gaussian-p{p}-noise{100 * sigma:.0f}"
            yield _drawn(name, "gaussian", families.gaussian, 500, p, sigma, noise=sigma)
    sizes = {
        *((500, p, 0.5) for p in (2, 4, 6, 8, 10, 12, 15, 20, 30)),
        *((500, 6, sigma) for sigma in (0.1, 0.25, 1.0, 2.0, 4.0)),
        *((n, 6, 1.0) for n in (100, 250, 1000, 2500, 5000)),
    }
    for n, p, sigma in sorted(sizes):
        name = f"clipped-p{p}-n{n}-noise{100 * sigma:.0f}"
        yield _drawn(name, "clipped", families.gaussian, n, p, sigma, noise=sigma, clipped=True)
    for q, spread in ((5, 1.0), (7, 1.0), (7, 1.5), (7, 2.0), (10, 1.0)):
        name = f"log-normal-q{q}-spread{100 * spread:.0f}"
        yield _drawn(name, "heavy tails", families.log_normal, 1000, q, spread)
    for q, freedom in ((5, 2.0), (7, 2.0), (7, 1.0), (10, 2.0)):
        yield _drawn(f"student-q{q}-df{freedom:g}", "heavy tails", families.student, 1000, q, freedom)
    for q, sigma in ((8, 1.0), (9, 2.0), (12, 0.5), (15, 1.0)):
        name = f"dummies-q{q}-noise{100 * sigma:.0f}"
        yield _drawn(name, "dummies", families.dummies, 1000, q, sigma, noise=sigma)
    for sigma in (1.0, 2.0):
        name = f"only-dummies-noise{100 * sigma:.0f}"
        yield _drawn(name, "dummies", families.only_dummies, 1000, sigma, noise=sigma)
    for q, sigma in ((6, 1.0), (8, 1.0), (8, 2.0), (12, 1.0)):
        name = f"collinear-q{q}-noise{100 * sigma:.0f}"
        yield _drawn(name, "collinear", families.collinear, 1000, q, sigma, noise=sigma)
    for q, spread in ((6, 1.0), (9, 0.0), (9, 1.0), (12, 0.0)):
        yield _drawn(f"counts-q{q}-spread{100 * spread:.0f}", "counts", families.counts, 2000, q, spread)
    for n_positive in (10, 29):
        yield _drawn(f"few-positive-{n_positive}", "few positive", families.few_positive, n_positive)
    for p in (2, 4, 6, 8, 10, 15):
        yield _drawn(f"noise-p{p}", "noise", families.noise, p)


def _drawn(
    name: str,
    family: str,
    function: Callable[..., Samples],
    *parameters: float,
    seed: int = 0,
    noise: float = nan,
    **more: bool,
) -> Entry:
    draw = partial(_draw_synthetic, function, *parameters, seed=seed, **more)
    return Entry(name, family, draw, seed=seed, noise=noise)


def _constructed() -> Iterator[Entry]:
    for n, k in ((8, 1), (16, 2), (32, 3), (64, 2)):
        yield Entry(f"decoys-n{n}-k{k}", "decoys", partial(make_decoys, n, k), fit_intercept=False)
    for answer, sets in SUBSET_SUMS.items():
        for numbers in sets:
            draw = partial(make_subset_sum, numbers)
            yield Entry(f"subset-sum-p{len(numbers)}-{answer}", "subset sum", draw)


def _real() -> Iterator[Entry]:
    yield Entry("real-drug-spending", "real", _draw_spending)
    for chosen in (MROZ, FAIR, *SETS, *LARGE_SETS):
        yield Entry(_name_of(chosen), "real", partial(load, chosen), package=chosen.package)


def _name_of(chosen: RealSet) -> str:
    return f"real-{chosen.table}-{chosen.outcome}"


CATALOGUE = {entry.name: entry for entry in _entries()}
