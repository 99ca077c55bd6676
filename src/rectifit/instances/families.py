"""Kinds of synthetic data that are hard to fit in different ways, each drawn from a seed.

One function per family. The seed of numpy's generator is a list: size, seed, and a number of the family.
"""

from __future__ import annotations

import numpy as np

from rectifit._typing import Matrix, Vector

__all__ = [
    "Samples",
    "collinear",
    "counts",
    "dummies",
    "few_positive",
    "gaussian",
    "gaussian_with",
    "log_normal",
    "low_signal",
    "low_signal_with",
    "noise",
    "only_dummies",
    "student",
]

Samples = tuple[Matrix, Vector]


def low_signal_with(q: int, seed: int) -> tuple[Matrix, Vector, Vector]:
    """Noise of twice the signal, outcomes clipped at 0; q counts the intercept. Also the coefficients."""
    rng = np.random.default_rng([q, seed])
    X = rng.standard_normal((500, q - 1))
    b = rng.standard_normal(q - 1)
    u = X @ b / np.linalg.norm(b) + 0.3 + 2.0 * rng.standard_normal(500)
    return X, np.maximum(u, 0.0), b


def low_signal(q: int, seed: int) -> Samples:
    """Noise of twice the signal, outcomes clipped at 0; q counts the intercept."""
    return low_signal_with(q, seed)[:2]


def gaussian_with(n: int, p: int, sigma: float, seed: int) -> tuple[Matrix, Vector, Vector]:
    """y = max(0, X b + 0.3) + sigma N with |b| = 1; the same X, b and N for all sigma. Also b."""
    rng = np.random.default_rng([p, seed, 1])
    X = rng.standard_normal((n, p))
    b = rng.standard_normal(p)
    return X, np.maximum(X @ b / np.linalg.norm(b) + 0.3, 0.0) + sigma * rng.standard_normal(n), b


def gaussian(n: int, p: int, sigma: float, seed: int, clipped: bool = False) -> Samples:
    """y = max(0, X b + 0.3) + sigma N with |b| = 1, or the positive part of that."""
    X, y, _ = gaussian_with(n, p, sigma, seed)
    return X, np.maximum(y, 0.0) if clipped else y


def few_positive(n_positive: int, seed: int) -> Samples:
    """Ninety samples of which only so many have a positive outcome."""
    X, y = gaussian(90, 4, 1.0, seed)
    least = np.sort(y)[-n_positive - 1]
    return X, np.maximum(y - least, 0.0)


def _index_of(X: Matrix, rng: np.random.Generator) -> Vector:
    """A linear index with mean 0.3 and variance 1; random effects of the standardised columns."""
    u = X @ (rng.standard_normal(X.shape[1]) / X.std(axis=0))
    index: Vector = (u - u.mean()) / u.std() + 0.3
    return index


def _one_hot(n: int, shares: tuple[float, ...], rng: np.random.Generator) -> Matrix:
    """Columns for all levels but the first."""
    level = rng.choice(len(shares), size=n, p=shares)
    columns: Matrix = (level[:, None] == np.arange(1, len(shares))).astype(float)
    return columns


def dummies(n: int, q: int, sigma: float, seed: int) -> Samples:
    """A group of four levels, two 0/1 columns of which one is rare, the rest Gaussian; clipped at 0."""
    rng = np.random.default_rng([q, seed, 2])
    group, binary = _one_hot(n, (0.4, 0.3, 0.2, 0.1), rng), rng.random((n, 2)) < (0.5, 0.1)
    X = np.column_stack([group, binary, rng.standard_normal((n, q - 6))])
    return X, np.maximum(_index_of(X, rng) + sigma * rng.standard_normal(n), 0.0)


def only_dummies(n: int, sigma: float, seed: int) -> Samples:
    """Groups of four and three levels and three 0/1 columns: few distinct rows; clipped at 0."""
    rng = np.random.default_rng([9, seed, 3])
    groups = _one_hot(n, (0.4, 0.3, 0.2, 0.1), rng), _one_hot(n, (0.5, 0.3, 0.2), rng)
    X = np.column_stack([*groups, rng.random((n, 3)) < (0.5, 0.3, 0.1)])
    return X, np.maximum(_index_of(X, rng) + sigma * rng.standard_normal(n), 0.0)


def log_normal(n: int, q: int, spread: float, seed: int) -> Samples:
    """Clipped outcomes times log-normal factors: a few samples have most of sum y^2."""
    rng = np.random.default_rng([q, seed, 4])
    X = rng.standard_normal((n, q - 1))
    y = np.maximum(_index_of(X, rng) + rng.standard_normal(n), 0.0)
    return X, y * np.exp(spread * rng.standard_normal(n))


def student(n: int, q: int, freedom: float, seed: int) -> Samples:
    """Noise with Student's distribution, outcomes clipped at 0."""
    rng = np.random.default_rng([q, seed, 5])
    X = rng.standard_normal((n, q - 1))
    return X, np.maximum(_index_of(X, rng) + rng.standard_t(freedom, n), 0.0)


def collinear(n: int, q: int, sigma: float, seed: int) -> Samples:
    """Correlations of 0.99, and a column that is almost the sum of two others; clipped at 0."""
    rng = np.random.default_rng([q, seed, 6])
    X = rng.standard_normal((n, 1)) + 0.1 * rng.standard_normal((n, q - 2))
    X = np.column_stack([X, X[:, 0] + X[:, 1] + 0.01 * rng.standard_normal(n)])
    return X, np.maximum(_index_of(X, rng) + sigma * rng.standard_normal(n), 0.0)


def counts(n: int, q: int, spread: float, seed: int) -> Samples:
    """Regressors with four to seven whole numbers, outcomes that are counts; spread: as in `log_normal`."""
    rng = np.random.default_rng([q, seed, 7])
    X = rng.integers(1, 5 + np.arange(q - 1) % 4, size=(n, q - 1)).astype(float)
    y = np.maximum(_index_of(X, rng) + rng.standard_normal(n), 0.0) * np.exp(spread * rng.standard_normal(n))
    return X, np.floor(2.0 * y)


def noise(p: int, seed: int) -> Samples:
    """Outcomes that have nothing to do with the columns."""
    rng = np.random.default_rng([p, seed, 8])
    return rng.standard_normal((20 * p, p)), rng.normal(0.5, 1.0, 20 * p)
