"""The objective of the approximation algorithm relative to the optimum, against its guarantee of n/k.

Random data of several kinds show the usual case. A climb changes data step by step to make the ratio larger.
`make_decoys` is the worst case: n - k samples with x = 1, y = 1, and k decoys with slightly larger outcomes
at x = -M, -M^2, ..., -M^k for a large M, without intercept. The least objective is about k, at beta = 1 with
all decoys inactive. But the algorithm can make all decoys inactive only together with all other samples;
otherwise an active decoy keeps beta at about 0 or below. So all samples but one are lost, and the ratio is
(n - 1)/k, up to terms of order 1/M.

No ratio is larger, for n > k and without ridge. Let J be the samples with y > 0 that are inactive at the
optimum. If J has fewer than k samples, the optimum is among the candidates. Otherwise let T be the sum of y^2
over the k largest outcomes in J, and j the rank of the smallest of these k. Making ranks 1..j and the others
of the k inactive costs at most (j - 1) T/k more than the optimum, whose objective is at least T, so the ratio
is at most (j - 1 + k)/k. This is (n - 1)/k or less, unless all n outcomes are positive and the k largest of
them are in J; any further sample in J lowers it by 1/k. If J consists of just these k, then -s beta makes all
other samples inactive, and at the s at which the first sample of J is fitted every sample but that one is
lost: (n - k) T/k + T - T/k at most.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.api import certify, solve
from rectifit.checks import check_count
from rectifit.datasets import make_relu
from rectifit.theory import approximation_ratio

__all__ = ["RatioRow", "make_decoys", "measure_ratios", "ratio_rows"]

# Gap of the certified optimum.
TARGET_GAP = 1e-6
# The outcomes of decoys exceed the other outcomes by this share.
DECOY_EXCESS = 1e-6
# The factor M between the positions of successive decoys, divided by n.
DECOY_DISTANCE = 100.0
# Features of the random families; decoys have one.
N_FEATURES = 2

Samples = tuple[Matrix, Vector]


def _draw_paper(rng: np.random.Generator, n: int) -> Samples:
    """Instances of the paper with much noise."""
    return make_relu(n, N_FEATURES, noise=0.5, random_state=rng)[:2]


def _draw_unrelated(rng: np.random.Generator, n: int) -> Samples:
    """Positive outcomes that do not depend on x."""
    return rng.standard_normal((n, N_FEATURES)), np.abs(rng.standard_normal(n)) + 0.5


def _draw_heavy(rng: np.random.Generator, n: int) -> Samples:
    """Rows of very different norms with nearly equal outcomes."""
    return rng.standard_cauchy((n, N_FEATURES)), 1.0 + 0.1 * rng.random(n)


FAMILIES = {"paper": _draw_paper, "unrelated": _draw_unrelated, "heavy": _draw_heavy}


@dataclass(frozen=True)
class RatioRow:
    """The ratios in a family of instances.

    Attributes
    ----------
    family : the origin of the instances
    n, p, k : samples, features and the algorithm's k
    n_instances : the number of instances; of a climb, of its steps
    median : the median of their ratios
    worst : the largest ratio
    objective, optimum : of the worst instance, from the algorithm and from the certificate
    guarantee : n/k
    """

    family: str
    n: int
    p: int
    k: int
    n_instances: int
    median: float
    worst: float
    objective: float
    optimum: float
    guarantee: float


@dataclass(frozen=True)
class Ratio:
    """The objective of the approximation algorithm and the certified optimum of one instance."""

    objective: float
    optimum: float

    @property
    def value(self) -> float:
        """objective / optimum; 1 where the optimum is 0."""
        return max(1.0, self.objective / self.optimum) if self.optimum > 0.0 else 1.0


def measure_ratios(X: Matrix, y: Vector, ks: Sequence[int]) -> list[Ratio]:
    """Measure the ratio for every k, without intercept; the optimum is certified once.

    Parameters
    ----------
    X, y : the data
    ks : whole numbers

    Returns
    -------
    list of Ratio, one for every k

    Raises
    ------
    RuntimeError
        If the optimum could not be certified.

    Examples
    --------
    >>> X, y = make_decoys(10, 2)
    >>> [round(ratio.value, 2) for ratio in measure_ratios(X, y, [1, 2, 3])]
    [4.5, 4.5, 1.0]
    """
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        # The zero function is a valid result here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = [solve(X, y, "approximation", k=k, fit_intercept=False) for k in ks]
        best = min(found, key=lambda solution: solution.objective)
        certificate = certify(X, y, best, fit_intercept=False, target_gap=TARGET_GAP, time_limit=60.0)
    if certificate.status != "optimal":
        raise RuntimeError(f"the optimum of {y.size} samples was not certified: {certificate}")
    return [Ratio(solution.objective, certificate.objective) for solution in found]


def make_decoys(n_samples: int, k: int) -> Samples:
    """Construct the worst instance for the approximation algorithm with this k: its ratio is (n - 1)/k.

    Parameters
    ----------
    n_samples : int
        More than k.
    k : int

    Returns
    -------
    X : array of shape (n_samples, 1)
    y : array of shape (n_samples,)
    """
    n = check_count(n_samples, "n_samples", least=check_count(k, "k") + 1)
    distance = (DECOY_DISTANCE * n) ** np.arange(1.0, k + 1.0)
    X = np.concatenate([np.ones(n - k), -distance])[:, None]
    return X, np.concatenate([np.ones(n - k), np.full(k, 1.0 + DECOY_EXCESS)])


def _climb(start: Samples, k: int, n_steps: int, rng: np.random.Generator) -> Iterator[Ratio]:
    """Change one sample per step, keep changes that increase the ratio, and yield the ratio of each step."""
    X, y = start
    (best,) = measure_ratios(X, y, [k])
    for _ in range(n_steps):
        X_new, y_new, i = X.copy(), y.copy(), rng.integers(y.size)
        # Factors over several orders of magnitude, large and small alike, and some changes of sign.
        X_new[i] *= np.exp(rng.standard_normal(X.shape[1])) * rng.choice([1.0, 1.0, -1.0], X.shape[1])
        y_new[i] *= np.exp(0.5 * rng.standard_normal())
        (ratio,) = measure_ratios(X_new, y_new, [k])
        if ratio.value > best.value:
            X, y, best = X_new, y_new, ratio
        yield best


def ratio_rows(
    n_samples: Sequence[int] = (8, 16),
    ks: Sequence[int] = (1, 2, 3),
    *,
    n_instances: int = 50,
    n_steps: int = 100,
) -> list[RatioRow]:
    """Measure the ratios of every family, for every size and k.

    Parameters
    ----------
    n_samples : whole numbers, larger than every k
    ks : whole numbers
    n_instances : int, default=50
        Of every random family and size.
    n_steps : int, default=100
        Of every climb.

    Returns
    -------
    list of RatioRow

    Examples
    --------
    >>> rows = ratio_rows([8], [1], n_instances=3, n_steps=3)
    >>> [(row.family, round(row.worst)) for row in rows if row.family == "decoys"]
    [('decoys', 7)]
    """
    rows = []
    for n in n_samples:
        for family, draw in FAMILIES.items():
            rng = np.random.default_rng([0, n])
            table = [measure_ratios(*draw(rng, n), ks) for _ in range(n_instances)]
            by_k = zip(ks, zip(*table, strict=True), strict=True)
            rows += [_row(family, n, N_FEATURES, k, ratios) for k, ratios in by_k]
        for k in ks:
            rng = np.random.default_rng([0, n, k])
            rows.append(_row("climb", n, N_FEATURES, k, list(_climb(_draw_heavy(rng, n), k, n_steps, rng))))
            rows.append(_row("decoys", n, 1, k, measure_ratios(*make_decoys(n, k), [k])))
    return rows


def _row(family: str, n: int, p: int, k: int, ratios: Sequence[Ratio]) -> RatioRow:
    worst = max(ratios, key=lambda ratio: ratio.value)
    return RatioRow(
        family=family,
        n=n,
        p=p,
        k=k,
        n_instances=len(ratios),
        median=float(np.median([ratio.value for ratio in ratios])),
        worst=worst.value,
        objective=worst.objective,
        optimum=worst.optimum,
        guarantee=approximation_ratio(n, k),
    )
