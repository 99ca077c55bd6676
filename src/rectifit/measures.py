"""The four error measures of the paper. All are plain sums or norms; none is divided by n.

With f(X; beta, b) = max(0, X beta + b) and the true parameters (beta*, b*):

    prediction error        |f(X; beta, b) - f(X; beta*, b*)|^2
    objective               |f(X; beta, b) - y|^2
    recovery error          |(beta, b) - (beta*, b*)|
    generalisation error    |f(X_test; beta, b) - y_test|^2
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rectifit._typing import Vector
from rectifit.checks import check_array, check_design, check_number
from rectifit.data.prediction import relu
from rectifit.data.problem import Problem

__all__ = ["generalization_error", "objective_value", "prediction_error", "recovery_error"]


def prediction_error(
    X: Any,
    beta: npt.ArrayLike,
    beta_true: npt.ArrayLike,
    intercept: float = 0.0,
    intercept_true: float = 0.0,
) -> float:
    """Squared difference between the fitted and the true mean, summed over the rows of X, not divided by n.

    Parameters
    ----------
    X : array-like or SciPy sparse matrix of shape (n_samples, n_features)
    beta, beta_true : array-like of shape (n_features,)
    intercept, intercept_true : float, default=0.0

    Examples
    --------
    The second row is inactive under both parameters and adds nothing:

    >>> prediction_error([[1.0], [-1.0]], [2.0], [3.0])
    1.0
    """
    table = check_design(X)
    fitted = relu(table, _check_beta(beta, "beta", table.shape[1]), _check_intercept(intercept, "intercept"))
    true = relu(
        table,
        _check_beta(beta_true, "beta_true", table.shape[1]),
        _check_intercept(intercept_true, "intercept_true"),
    )
    return float(np.sum(np.square(fitted - true, dtype=np.float64)))


def objective_value(X: Any, y: npt.ArrayLike, beta: npt.ArrayLike, intercept: float = 0.0) -> float:
    """Squared error of the fit, summed over the rows of X, not divided by n; all methods minimise it.

    Parameters
    ----------
    X : array-like or SciPy sparse matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    beta : array-like of shape (n_features,)
    intercept : float, default=0.0

    Examples
    --------
    >>> objective_value([[1.0], [-1.0]], [2.5, 0.5], [2.0])
    0.5
    """
    problem = Problem.from_data(X, y)
    coefficients = _check_beta(beta, "beta", problem.n_features)
    return problem.objective(coefficients, _check_intercept(intercept, "intercept"))


def recovery_error(
    beta: npt.ArrayLike, beta_true: npt.ArrayLike, intercept: float = 0.0, intercept_true: float = 0.0
) -> float:
    """Euclidean distance from the true coefficients, with the intercept as a further one; not squared.

    Parameters
    ----------
    beta, beta_true : array-like of shape (n_features,)
    intercept, intercept_true : float, default=0.0

    Examples
    --------
    >>> recovery_error([3.0, 1.0], [0.0, 5.0])
    5.0
    """
    true = check_array(beta_true, "beta_true", dimensions=1).astype(np.float64)
    found = check_array(beta, "beta", dimensions=1).astype(np.float64)
    if found.size != true.size:
        raise ValueError(f"beta has {found.size} entries; beta_true has {true.size} and it needs as many")
    shift = _check_intercept(intercept, "intercept") - _check_intercept(intercept_true, "intercept_true")
    return float(np.linalg.norm(np.append(found - true, shift)))


def generalization_error(X: Any, y: npt.ArrayLike, beta: npt.ArrayLike, intercept: float = 0.0) -> float:
    """Squared error of the fit on a test set, summed over its rows, not divided by their number.

    Parameters
    ----------
    X : array-like or SciPy sparse matrix of shape (n_samples, n_features)
        Rows that were not used in the fit.
    y : array-like of shape (n_samples,)
        Their outcomes, with noise.
    beta : array-like of shape (n_features,)
    intercept : float, default=0.0

    Examples
    --------
    >>> from rectifit.datasets import make_relu
    >>> X, y, beta, X_test, y_test = make_relu(100, 5, noise=0.0, random_state=0)
    >>> generalization_error(X_test, y_test, beta)
    0.0
    """
    return objective_value(X, y, beta, intercept)


def _check_beta(beta: npt.ArrayLike, name: str, n_features: int) -> Vector:
    coefficients = check_array(beta, name, dimensions=1).astype(np.float64)
    if coefficients.size != n_features:
        raise ValueError(
            f"{name} has {coefficients.size} entries; X has {n_features} columns and needs as many"
        )
    return coefficients


def _check_intercept(intercept: object, name: str) -> float:
    return check_number(intercept, name, above=-np.inf)
