"""What people use otherwise for outcomes that pile up at zero, each as a function (X, y) -> predict.

least squares          u, fitted by ordinary least squares
least squares, clipped max(0, u) of the same u
scipy least_squares    max(0, u) by a general solver from several starts
one hidden node        a + b max(0, u) by scikit-learn's MLPRegressor
Poisson, Tweedie       exp(u), generalised linear models with variance mu and mu^1.5
Tobit                  the mean of y under censoring of a normal outcome
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.tobit import fit_tobit

__all__ = ["RIVALS", "Predict", "Rival", "fit_clipped_line", "fit_line", "fit_node", "fit_starts"]

Predict = Callable[[Matrix], Vector]
N_STARTS = 20
TWEEDIE_POWER = 1.5


class Rival(NamedTuple):
    """A way to fit: whether it is of the form max(0, u), and whether it needs y >= 0, not all of them 0."""

    name: str
    fit: Callable[[Matrix, Vector], Predict]
    is_relu: bool = False
    needs_non_negative: bool = False

    def refuses(self, y: Vector) -> str | None:
        """Why this cannot be fitted to y, if so."""
        if self.needs_non_negative and y.min() < 0.0:
            return f"needs outcomes of at least 0; the least here is {y.min():.4g}"
        if self.needs_non_negative and y.max() <= 0.0:
            return "needs a positive outcome in every fold"
        return None


def fit_line(X: Matrix, y: Vector) -> Predict:
    """Ordinary least squares with intercept."""
    centre = X.mean(axis=0)
    beta = np.linalg.lstsq(X - centre, y - y.mean(), rcond=None)[0]
    intercept = float(y.mean() - centre @ beta)
    return lambda rows: rows @ beta + intercept


def fit_clipped_line(X: Matrix, y: Vector) -> Predict:
    """Ordinary least squares, with negative predictions set to 0."""
    predict = fit_line(X, y)
    return lambda rows: np.maximum(predict(rows), 0.0)


def fit_starts(X: Matrix, y: Vector) -> Predict:
    """max(0, X beta + intercept) by scipy.optimize.least_squares, the best of several random starts."""
    from scipy.optimize import least_squares

    standardise, size = _standardiser(X), _size(y)
    A, scaled = standardise(X), y / size
    rng = np.random.default_rng(0)
    found = [
        least_squares(
            lambda b: np.maximum(A @ b, 0.0) - scaled,
            rng.standard_normal(A.shape[1]),
            jac=lambda b: A * (A @ b > 0.0)[:, None],
        )
        for _ in range(N_STARTS)
    ]
    b = min(found, key=lambda result: float(result.cost)).x
    return lambda rows: size * np.maximum(standardise(rows) @ b, 0.0)


def fit_node(X: Matrix, y: Vector) -> Predict:
    """scikit-learn's MLPRegressor with one hidden ReLU node, on standardised columns."""
    from sklearn.neural_network import MLPRegressor

    node = MLPRegressor(hidden_layer_sizes=(1,), solver="lbfgs", alpha=0.0, max_iter=2000, random_state=0)
    return _fit_standardised(node, X, y)


def fit_poisson(X: Matrix, y: Vector) -> Predict:
    """Poisson regression with log link."""
    from sklearn.linear_model import PoissonRegressor

    return _fit_standardised(PoissonRegressor(alpha=0.0, max_iter=1000), X, y)


def fit_tweedie(X: Matrix, y: Vector) -> Predict:
    """Tweedie regression with log link: a compound of a Poisson number of gamma amounts."""
    from sklearn.linear_model import TweedieRegressor

    return _fit_standardised(
        TweedieRegressor(power=TWEEDIE_POWER, alpha=0.0, link="log", max_iter=1000), X, y
    )


def _fit_standardised(model: Any, X: Matrix, y: Vector) -> Predict:
    from sklearn.exceptions import ConvergenceWarning

    standardise, size = _standardiser(X), _size(y)
    with warnings.catch_warnings():
        # A comparison reports what a method reached, converged or not.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(standardise(X)[:, :-1], y / size)
    return lambda rows: size * np.asarray(model.predict(standardise(rows)[:, :-1]))


def _standardiser(X: Matrix) -> Callable[[Matrix], Matrix]:
    """Rows to columns of mean 0 and variance 1 over X, and a column of ones."""
    centre, spread = X.mean(axis=0), X.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    return lambda rows: np.column_stack([(rows - centre) / spread, np.ones(len(rows))])


def _size(y: Vector) -> float:
    return float(np.sqrt(np.mean(np.square(y)))) or 1.0


RIVALS = (
    Rival("least squares (OLS)", fit_line),
    Rival("OLS clipped at 0", fit_clipped_line, is_relu=True),
    Rival("scipy least_squares, 20 starts", fit_starts, is_relu=True),
    Rival("MLPRegressor, one node", fit_node),
    Rival("Poisson GLM", fit_poisson, needs_non_negative=True),
    Rival("Tweedie GLM, power 1.5", fit_tweedie, needs_non_negative=True),
    Rival("Tobit", lambda X, y: fit_tobit(X, y).predict, needs_non_negative=True),
)
