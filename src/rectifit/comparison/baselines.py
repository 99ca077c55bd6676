"""Ordinary alternatives for outcomes that pile up at zero, as scikit-learn estimators. With u = X beta + b,

least squares          u, fitted by ordinary least squares
least squares, clipped max(0, u) with the same u
scipy least_squares    max(0, u) by a general solver, the best of several random starts
one hidden node        a + b max(0, u) by scikit-learn's MLPRegressor
Poisson, Tweedie       exp(u), generalised linear models with variance mu and mu^1.5
Tobit                  the mean of y if y is a normal outcome, censored at 0

With bounds of the coefficients, which scipy's least_squares then keeps, also

bounded least squares  u, by scipy's lsq_linear
positive least squares u, by scikit-learn's LinearRegression(positive=True), where all bounds are signs >= 0
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import least_squares, lsq_linear
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression, PoissonRegressor, TweedieRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rectifit._typing import Matrix, Vector
from rectifit.estimator_tobit import TobitRegressor
from rectifit.formatting import write_number

__all__ = [
    "BASELINES",
    "BoundedLeastSquares",
    "Candidate",
    "ClippedLinearRegression",
    "LeastSquaresStarts",
    "baselines_within",
]

N_STARTS = 20
MAX_ITER_NODE = 2000
MAX_ITER_GLM = 1000
TWEEDIE_POWER = 1.5


class Candidate(NamedTuple):
    """A way to fit: whether it has the form max(0, u), needs y >= 0 with some y > 0, is of this package.

    `ignores_bounds` says whether there are bounds of the coefficients that it does not know.
    """

    name: str
    estimator: Any
    is_relu: bool = False
    needs_non_negative: bool = False
    ours: bool = False
    ignores_bounds: bool = False

    def find_obstacle(self, y: Vector) -> str | None:
        """Why this cannot be fitted to y, if it cannot."""
        if self.needs_non_negative and y.min() < 0.0:
            return f"it needs outcomes of at least 0; the smallest is {write_number(y.min())}"
        if self.needs_non_negative and y.max() <= 0.0:
            return "it needs a positive outcome in every fold"
        return None


class ClippedLinearRegression(LinearRegression):  # type: ignore[misc]
    """Ordinary least squares, with negative predictions set to 0."""

    def predict(self, X: Matrix) -> Vector:
        return np.asarray(np.maximum(super().predict(X), 0.0))


class LeastSquaresStarts(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """max(0, X beta + intercept) by scipy.optimize.least_squares, the best of several random starts.

    It works with columns of mean 0 and variance 1, and outcomes of mean square 1.
    """

    def __init__(self, bounds: Matrix | None = None) -> None:
        self.bounds = bounds

    def fit(self, X: Matrix, y: Vector) -> LeastSquaresStarts:
        columns, outcomes = StandardScaler().fit(X), RootMeanSquareScaler().fit(y)
        unit = outcomes.scale_ / columns.scale_
        bounds = np.tile([-np.inf, np.inf], (unit.size, 1)) if self.bounds is None else self.bounds
        low, high = bounds.T / unit
        free, scaled = low < high, columns.transform(X)
        # A coefficient between equal bounds is known; least_squares needs some room.
        beta = np.where(free, 0.0, low)
        A, rest = _with_ones(scaled[:, free]), scaled @ beta
        ends = np.append(low[free], -np.inf), np.append(high[free], np.inf)
        rng = np.random.default_rng(0)
        found = [
            least_squares(
                lambda b: np.maximum(A @ b + rest, 0.0) - outcomes.transform(y),
                np.clip(rng.standard_normal(A.shape[1]), *ends),
                jac=lambda b: A * (A @ b + rest > 0.0)[:, None],
                bounds=ends,
            )
            for _ in range(N_STARTS)
        ]
        beta[free], intercept = np.split(min(found, key=lambda result: float(result.cost)).x, [-1])
        self.coef_ = np.clip(beta * unit, *bounds.T)
        self.intercept_ = float(intercept[0]) * outcomes.scale_ - columns.mean_ @ self.coef_
        return self

    def predict(self, X: Matrix) -> Vector:
        return np.asarray(np.maximum(X @ self.coef_ + self.intercept_, 0.0))


class BoundedLeastSquares(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """X beta + intercept by scipy.optimize.lsq_linear, with bounds of the coefficients."""

    def __init__(self, bounds: Matrix) -> None:
        self.bounds = bounds

    def fit(self, X: Matrix, y: Vector) -> BoundedLeastSquares:
        low, high = self.bounds.T
        # A coefficient between equal bounds is known; lsq_linear needs some room.
        free = low < high
        self.coef_ = np.where(free, 0.0, low)
        found = lsq_linear(
            _with_ones(X[:, free]),
            y - X @ self.coef_,
            bounds=(np.append(low[free], -np.inf), np.append(high[free], np.inf)),
        )
        self.coef_[free], self.intercept_ = found.x[:-1], float(found.x[-1])
        return self

    def predict(self, X: Matrix) -> Vector:
        return np.asarray(X @ self.coef_ + self.intercept_)


class RootMeanSquareScaler(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Divides outcomes by their root mean square, which keeps zeros and signs."""

    def fit(self, y: Matrix | Vector, _: None = None) -> RootMeanSquareScaler:
        self.scale_ = float(np.sqrt(np.mean(np.square(y)))) or 1.0
        return self

    def transform(self, y: Matrix) -> Matrix:
        return y / self.scale_

    def inverse_transform(self, y: Matrix) -> Matrix:
        return y * self.scale_


def _with_ones(X: Matrix) -> Matrix:
    return np.column_stack([X, np.ones(len(X))])


def _standardised(model: Any) -> Any:
    """The model on columns of mean 0 and variance 1, with outcomes of mean square 1."""
    return TransformedTargetRegressor(
        make_pipeline(StandardScaler(), model), transformer=RootMeanSquareScaler(), check_inverse=False
    )


BASELINES = (
    Candidate("least squares (OLS)", LinearRegression()),
    Candidate("OLS clipped at 0", ClippedLinearRegression(), is_relu=True),
    Candidate(f"scipy least_squares, {N_STARTS} starts", LeastSquaresStarts(), is_relu=True),
    Candidate(
        "MLPRegressor, one node",
        _standardised(
            MLPRegressor(
                hidden_layer_sizes=(1,), solver="lbfgs", alpha=0.0, max_iter=MAX_ITER_NODE, random_state=0
            )
        ),
    ),
    Candidate(
        "Poisson GLM",
        _standardised(PoissonRegressor(alpha=0.0, max_iter=MAX_ITER_GLM)),
        needs_non_negative=True,
    ),
    Candidate(
        f"Tweedie GLM, power {TWEEDIE_POWER}",
        _standardised(TweedieRegressor(power=TWEEDIE_POWER, alpha=0.0, link="log", max_iter=MAX_ITER_GLM)),
        needs_non_negative=True,
    ),
    Candidate("Tobit", TobitRegressor(), needs_non_negative=True),
)


def baselines_within(bounds: Matrix) -> list[Candidate]:
    """The alternatives beside fits with bounds; those that ignore them are not measured against the proof."""
    starts = Candidate(f"scipy least_squares, {N_STARTS} starts", LeastSquaresStarts(bounds), is_relu=True)
    found = [starts, Candidate("scipy lsq_linear, bounded", BoundedLeastSquares(bounds))]
    if (bounds[:, 0] == 0.0).all() and np.isinf(bounds[:, 1]).all():
        found.append(Candidate("LinearRegression(positive=True)", LinearRegression(positive=True)))
    others = (candidate for candidate in BASELINES if candidate.name != starts.name)
    return [*found, *(candidate._replace(is_relu=False, ignores_bounds=True) for candidate in others)]
