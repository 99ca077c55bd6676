"""Problems of all kinds that are legal and unpleasant, small enough for brute force, and an attack on one.

The attack runs every method, and proofs of what it finds, with options and time limits that are drawn, and
compares what they state with the optimum. That is known between two numbers: the least dual bound and the
least objective, in rational arithmetic, of the surrogates of all active sets.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from brute import all_active_sets
from exact import exact_objective

from rectifit import Problem, ProofError, SurrogateSolver, certify, check_proof, solve
from rectifit.data import ArrayData
from rectifit.solution import Certificate, Solution

Generator = np.random.Generator


def ternary(rng: Generator, n: int, p: int) -> np.ndarray:
    return rng.integers(-1, 2, size=(n, p)).astype(float)


def gaussian(rng: Generator, n: int, p: int) -> np.ndarray:
    return rng.normal(size=(n, p))


def all_positive(rng: Generator, n: int, p: int) -> np.ndarray:
    return rng.exponential(size=(n, p)) + 0.01


def dummies(rng: Generator, n: int, p: int) -> np.ndarray:
    """Indicators of groups, of which one column may be the sum of others and the intercept."""
    return (rng.integers(0, p, size=n)[:, None] == np.arange(p)).astype(float)


def duplicated(rng: Generator, n: int, p: int) -> np.ndarray:
    """Equal rows and equal columns."""
    X = rng.normal(size=(n, p))[rng.integers(0, n, size=n)]
    X[:, -1] = X[:, 0]
    return X


def collinear(rng: Generator, n: int, p: int) -> np.ndarray:
    """A column that is a combination of others up to 1e-9 to 1e-5."""
    X = rng.normal(size=(n, p))
    X[:, -1] = X[:, : p - 1].sum(axis=1) + 10.0 ** rng.integers(-9, -4) * rng.normal(size=n)
    return X


def scaled(rng: Generator, n: int, p: int) -> np.ndarray:
    """Columns of sizes between 1e-150 and 1e150."""
    return rng.normal(size=(n, p)) * 10.0 ** rng.integers(-150, 151, size=p)


def tied(rng: Generator, n: int, p: int) -> np.ndarray:
    return rng.integers(-2, 3, size=(n, p)) / 2.0


def heavy(rng: Generator, n: int, p: int) -> np.ndarray:
    return rng.standard_cauchy(size=(n, p))


def offset(rng: Generator, n: int, p: int) -> np.ndarray:
    """Columns whose spread is a millionth of their mean, such as years in seconds."""
    return 1.0 + 1e-6 * rng.normal(size=(n, p))


DESIGNS: tuple[Callable[[Generator, int, int], np.ndarray], ...] = (
    ternary,
    gaussian,
    all_positive,
    dummies,
    duplicated,
    collinear,
    scaled,
    tied,
    heavy,
    offset,
)


def outcomes(rng: Generator, X: np.ndarray) -> np.ndarray:
    """Rectified, clipped, heavy, tied, all positive, none positive, or without any relation to X."""
    n, p = X.shape
    kind = rng.integers(8)
    size = np.where(np.abs(X).max(axis=0) > 0.0, np.abs(X).max(axis=0), 1.0)
    signal = (X / size) @ rng.normal(size=p) + rng.normal()
    noise = rng.choice([0.0, 0.1, 1.0]) * rng.normal(size=n)
    if kind == 0:
        y = np.maximum(signal, 0.0) + noise
    elif kind == 1:
        y = np.maximum(signal + noise, 0.0)
    elif kind == 2:
        y = rng.standard_cauchy(size=n)
    elif kind == 3:
        y = rng.integers(-1, 3, size=n).astype(float)
    elif kind == 4:
        y = rng.exponential(size=n)
    elif kind == 5:
        y = -rng.exponential(size=n)
    elif kind == 6:
        y = np.where(rng.random(n) < 0.2, 1e6, 1.0) * rng.normal(size=n)
    else:
        y = np.maximum(signal, 0.0)
    return y


def unpleasant(seed: int) -> tuple[str, Problem]:
    """A problem and its kind; the seed modulo the number of designs chooses the design."""
    design = DESIGNS[seed % len(DESIGNS)]
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(1, 14)), int(rng.integers(2, 5))
    X = design(rng, n, p)
    y = outcomes(rng, X)
    if rng.random() < 0.3:
        # Scales whose squares are still representable.
        room = 0 if design is scaled else 75
        X, y = X * 10.0 ** rng.integers(-room, room + 1), y * 10.0 ** rng.integers(-150, 151)
        # With weights, squares of the largest and smallest would have no digits.
        top = float(np.abs(y).max())
        y = y * (np.clip(top, 1e-145, 1e145) / top) if top > 0.0 else y
    weight = None
    if rng.random() < 0.4:
        weight = 10.0 ** rng.uniform(-6.0, 6.0, size=n) if rng.random() < 0.5 else rng.integers(0, 3, size=n)
        weight = np.asarray(weight, dtype=float)
        weight[0] += 1.0
    alpha = float(rng.choice([0.0, 0.0, 0.1, 2.0]))
    problem = Problem.from_data(X, y, sample_weight=weight, fit_intercept=bool(rng.integers(2)), alpha=alpha)
    return design.__name__, problem


class Optimum(NamedTuple):
    """The optimum of a problem lies between `low` and `high`."""

    low: float
    high: Fraction


def optimum(problem: Problem) -> Optimum:
    """By brute force; points are compared as they are rounded, and the best are evaluated exactly."""
    found = SurrogateSolver(problem).solve_each(all_active_sets(problem))
    best = sorted(found, key=lambda s: problem.objective(s.beta, s.intercept))[:3]
    zero = exact_objective(problem, np.zeros(problem.n_features), 0.0)
    high = min(zero, *(exact_objective(problem, s.beta, s.intercept) for s in best))
    return Optimum(min(s.dual_bound for s in found), high)


# Stages that can begin, and those that can follow.
FIRST = ("auto", "approximation", "sorting", "iterative", "multistart", "gd", "sgd", "exact")
NEXT = ("", "", "+iterative", "+gd", "+sgd", "+exact")


def _check(truth: Optimum, certificate: Certificate, objective: float, what: str) -> None:
    rounding = certificate.rounding + 1e-15 * certificate.null_objective
    assert Fraction(certificate.lower_bound) <= truth.high, f"{what}: a false bound"
    assert objective >= truth.low - rounding, f"{what}: an objective below the optimum"
    assert certificate.lower_bound <= objective, f"{what}: a bound above the objective"


def attack(seed: int, folder: Path | None = None, methods: tuple[str, ...] = FIRST) -> Counter[str]:
    """Whatever the methods and a proof state of one problem is true; counts of what was checked.

    With a folder, proofs are written there, too, and checked.
    """
    kind, problem = unpleasant(seed)
    truth, rng, counts = optimum(problem), np.random.default_rng([seed, 1]), Counter({kind: 1})
    given: dict[str, Any] = {"sample_weight": problem.sample_weight, "fit_intercept": problem.fit_intercept}
    given["alpha"] = problem.alpha

    def limit() -> float | None:
        return None if rng.random() < 0.5 else float(10.0 ** rng.uniform(-4.0, -1.0))

    fits: list[Solution] = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*dead neuron")
        for first in methods:
            options = {
                "k": int(rng.integers(1, problem.n_samples + 1)),
                "n_splits": int(rng.integers(1, problem.n_samples + 1)),
                "n_starts": int(rng.integers(1, 6)),
                "max_iter": int(rng.integers(1, 60)),
                "target_gap": None if rng.random() < 0.7 else float(10.0 ** rng.uniform(-9.0, -1.0)),
                "time_limit": limit(),
                "n_jobs": int(rng.integers(1, 3)),
            }
            method = first + rng.choice(NEXT) if first != "exact" else first
            fit = solve(problem.X, problem.y, method, random_state=seed, **given, **options)
            what = f"seed {seed}, {kind}, {method}, {options}"
            _check(truth, fit.certificate, fit.objective, what)
            if fit.guarantee is not None:
                slack = Fraction(fit.certificate.rounding) + Fraction(1e-12 * fit.objective)
                slack += Fraction(1e-15 * fit.certificate.null_objective)
                assert Fraction(fit.objective) <= Fraction(fit.guarantee) * truth.high + slack, what
                counts["guarantees"] += 1
            fit.verify()
            fits.append(fit)
            counts[first] += 1
        # The same data in passes, whose hashes need the integers of compiled code.
        if not numba.config.DISABLE_JIT:
            data = ArrayData(problem.X, problem.y, problem.sample_weight, block_rows=3, n_threads=1)
            options = {name: given[name] for name in ("fit_intercept", "alpha")}
            fit = solve(data, None, "sorting+iterative", n_splits=problem.n_samples, **options)
            _check(truth, fit.certificate, fit.objective, f"seed {seed}, {kind}, in passes")
            fit.verify()
            counts["in passes"] += 1
        about = fits[int(rng.integers(len(fits)))]
        gap, seconds, memory = 10.0 ** rng.uniform(-9.0, -1.0), limit(), float(10.0 ** rng.uniform(5.0, 9.0))
        proof = None if folder is None else folder / "p.rproof"
        # A gap of the size of rounding may stay open in a search with a proof file, which then does not end.
        seconds = seconds if gap > 1e-6 or seconds is not None else 1.0
        what = f"seed {seed}, {kind}, a proof with target_gap={gap}, time_limit={seconds}"
        options = {"target_gap": gap, "time_limit": seconds, "memory_limit": memory}
        try:
            certificate = certify(problem.X, problem.y, about, proof=proof, **options)
        except ProofError:
            # Sizes that a proof file cannot be about.
            counts["proofs refused: sizes"] += 1
            certificate = certify(problem.X, problem.y, about, **options)
        except ValueError as error:
            if "columns of X are linearly dependent" not in str(error):
                raise
            counts["proofs refused: dependent columns"] += 1
            certificate = certify(problem.X, problem.y, about, **options)
        else:
            if proof is not None:
                checked = check_proof(proof, problem.X, problem.y, sample_weight=problem.sample_weight)
                assert Fraction(checked.lower_bound) <= truth.high, f"{what}: a false proof"
                counts["proofs checked"] += 1
        _check(truth, certificate, certificate.objective, what)
        certificate.solution.verify()
        counts["certificates"] += 1
        counts["optimal"] += certificate.status == "optimal"
    return counts
