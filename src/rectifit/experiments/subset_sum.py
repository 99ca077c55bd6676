"""Subset sum decided by fitting: the NP-hardness reduction at work.

With S = sum(a), the least objective of the data of `make_subset_sum` is p + 100 p^2 if some subset of a sums
to a quarter of the total. If no subset does, then every objective exceeds p + 100 p^2 by at least

    1 / (4 (|a|^2 + 5 S^2 + 6 S + 2)).

Proof. Let x be the signs of beta, r_i = |beta_i| + b - 1 the errors of the samples (x_i e_i, 1), t = -b,
A = a'x, d = S/2 - A and z = sum a_i x_i r_i. First assume that (a, S/2), (2a, S) and exactly one sample of
every pair are active. Then (a, S/2) and (2a, S) have errors q - t and 2q - t with q = z + t A - d, and by
Cauchy-Schwarz d^2 is at most sum r_i^2 + (q - t)^2 + (2q - t)^2 times |a|^2 + 5 A^2 - 6 A + 2. If no subset
sums to S/4, then |d| is at least 1/2. Every further inactive sample costs at least 1/4 more. A pair with both
samples active needs b > 0 and costs at most 4b - 1 less, while the last sample costs 20b more for every pair.

So a certificate with half of that excess as its absolute gap always decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rectifit.api import certify
from rectifit.checks import check_count
from rectifit.datasets import make_subset_sum

__all__ = ["SubsetSumRow", "decide", "decisive_value", "has_quarter", "least_excess", "subset_sum_rows"]

# A bound is above the decisive value only if it exceeds it by this share, which covers the rounding of sums.
ROUNDING_TOL = 1e-12
# Seconds for one certificate.
TIME_LIMIT = 60.0
# Draws after which instances with the requested answer count as too rare.
MAX_DRAWS = 20_000


@dataclass(frozen=True)
class SubsetSumRow:
    """One instance, the verdict of the certificate, and the true answer.

    Attributes
    ----------
    numbers : the instance
    p : the number of numbers
    decisive : p + 100 p^2, the least objective if and only if the answer is yes
    objective, lower_bound : of the certificate
    verdict : "yes" (a subset was found), "no" (the bound is above the decisive value) or "open"
    subset : positions of numbers that sum to a quarter of the total, if the verdict is yes
    answer : the true answer, by dynamic programming
    seconds : the time of the certificate
    """

    numbers: tuple[int, ...]
    p: int
    decisive: float
    objective: float
    lower_bound: float
    verdict: str
    subset: tuple[int, ...] | None
    answer: bool
    seconds: float


def decisive_value(p: int) -> float:
    """p + 100 p^2: the least objective of yes-instances."""
    return float(p + 100 * p * p)


def least_excess(numbers: Sequence[int]) -> float:
    """A lower bound of the distance from the decisive value to the least objective of a no-instance."""
    total = sum(numbers)
    return 0.25 / (sum(v * v for v in numbers) + 5 * total * total + 6 * total + 2)


def has_quarter(numbers: Sequence[int]) -> bool:
    """Whether a subset sums to a quarter of the total, by dynamic programming over all sums of subsets."""
    quarter, rest = divmod(sum(numbers), 4)
    # Bit s is set if some subset sums to s.
    sums = 1
    for number in numbers:
        sums |= sums << number
    return rest == 0 and bool(sums >> quarter & 1)


def decide(numbers: Sequence[int]) -> SubsetSumRow:
    """Decide subset sum by a certified fit.

    Parameters
    ----------
    numbers : non-negative whole numbers

    Returns
    -------
    SubsetSumRow

    Examples
    --------
    >>> decide([2, 6]).subset, decide([4, 16]).verdict
    ((0,), 'no')
    """
    X, y = make_subset_sum(numbers)
    # Python integers, so that the sums below are exact.
    a = [int(number) for number in numbers]
    decisive = decisive_value(len(a))
    certificate = certify(X, y, target_gap=0.5 * least_excess(a) / decisive, time_limit=TIME_LIMIT)
    assert certificate.solution is not None
    negative = tuple(np.flatnonzero(certificate.solution.beta < 0.0).tolist())
    found = 4 * sum(a[i] for i in negative) == sum(a)
    above = certificate.lower_bound > decisive * (1.0 + ROUNDING_TOL)
    return SubsetSumRow(
        numbers=tuple(a),
        p=len(a),
        decisive=decisive,
        objective=certificate.objective,
        lower_bound=certificate.lower_bound,
        verdict="yes" if found else "no" if above else "open",
        subset=negative if found else None,
        answer=has_quarter(a),
        seconds=certificate.seconds,
    )


def subset_sum_rows(
    sizes: Sequence[int] = (2, 4, 6, 8),
    *,
    n_each: int = 2,
    largest: int = 20,
    random_state: int = 0,
) -> list[SubsetSumRow]:
    """Decide random instances of every size, equally many with the answers yes and no.

    All totals are divisible by 4; otherwise the answer would be obvious.

    Parameters
    ----------
    sizes : whole numbers p of at least 2
    n_each : int, default=2
        Instances with each answer, for every size.
    largest : int, default=20
        Numbers are drawn from 1 to `largest`.
    random_state : int, default=0

    Returns
    -------
    list of SubsetSumRow

    Examples
    --------
    >>> rows = subset_sum_rows([3], n_each=1)
    >>> [(row.verdict, row.answer) for row in rows]
    [('yes', True), ('no', False)]
    """
    check_count(n_each, "n_each")
    check_count(largest, "largest", least=4)
    instances = []
    for size in sizes:
        rng = np.random.default_rng([random_state, check_count(size, "sizes", least=2)])
        for answer in (True, False):
            instances += [_draw(rng, size, largest, answer) for _ in range(n_each)]
    return [decide(numbers) for numbers in instances]


def _draw(rng: np.random.Generator, size: int, largest: int, answer: bool) -> list[int]:
    for _ in range(MAX_DRAWS):
        numbers: list[int] = rng.integers(1, largest + 1, size).tolist()
        if sum(numbers) % 4 == 0 and has_quarter(numbers) == answer:
            return numbers
    raise ValueError(
        f"largest is {largest}; with {size} numbers this small nearly every instance has the answer "
        f"{'no' if answer else 'yes'}, so larger numbers are needed"
    )
