"""Objectives in rational arithmetic: what an answer is worth, whatever the rounding of its evaluation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from rectifit import Problem


def _rows(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows with the column of the intercept, outcomes and weights, as fractions."""
    exact = np.frompyfunc(Fraction, 1, 1)
    n = problem.n_samples
    A = np.column_stack([problem.X, np.ones(n)]) if problem.fit_intercept else problem.X
    w = np.ones(n) if problem.sample_weight is None else problem.sample_weight
    return exact(A.astype(float)), exact(problem.y), exact(w.astype(float))


def _coefficients(problem: Problem, beta: np.ndarray, intercept: float) -> tuple[np.ndarray, Fraction]:
    b = np.append(beta, intercept) if problem.fit_intercept else np.asarray(beta)
    b = np.frompyfunc(Fraction, 1, 1)(b.astype(float))
    ridge = Fraction(problem.alpha) * sum((value * value for value in b[: problem.n_features]), Fraction(0))
    return b, ridge


def exact_objective(problem: Problem, beta: np.ndarray, intercept: float) -> Fraction:
    """L at coefficients."""
    (A, y, w), (b, total) = _rows(problem), _coefficients(problem, beta, intercept)
    for row, outcome, weight in zip(A, y, w, strict=True):
        total += weight * (max(row @ b, Fraction(0)) - outcome) ** 2
    return total


def exact_surrogate(problem: Problem, active: np.ndarray, beta: np.ndarray, intercept: float) -> Fraction:
    """F_I at coefficients."""
    (A, y, w), (b, total) = _rows(problem), _coefficients(problem, beta, intercept)
    for row, outcome, weight, is_active in zip(A, y, w, active & problem.positive, strict=True):
        u = row @ b
        kink = 2 * max(outcome, Fraction(0))
        total += weight * ((u - outcome) ** 2 if is_active or u > kink else outcome * outcome)
    return total
