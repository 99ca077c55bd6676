"""Problems of all kinds that are legal and unpleasant, small enough for brute force."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rectifit import Problem

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
    """Columns of sizes between 1e-70 and 1e70."""
    return rng.normal(size=(n, p)) * 10.0 ** rng.integers(-70, 71, size=p)


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
        X, y = X * 10.0 ** rng.integers(-75, 76), y * 10.0 ** rng.integers(-150, 151)
    weight = None
    if rng.random() < 0.4:
        weight = 10.0 ** rng.uniform(-6.0, 6.0, size=n) if rng.random() < 0.5 else rng.integers(0, 3, size=n)
        weight = np.asarray(weight, dtype=float)
        weight[0] += 1.0
    alpha = float(rng.choice([0.0, 0.0, 0.1, 2.0]))
    problem = Problem.from_data(X, y, sample_weight=weight, fit_intercept=bool(rng.integers(2)), alpha=alpha)
    return design.__name__, problem
