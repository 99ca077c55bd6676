"""The synthetic instances of the paper: y = max(0, X beta) + noise with a random beta."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rectifit._typing import Matrix, Vector
from rectifit.checks import check_count, check_number

__all__ = ["Instance", "make_relu"]


class Instance(NamedTuple):
    """Training data, the true coefficients, and a test set with the same coefficients."""

    X: Matrix
    y: Vector
    beta: Vector
    X_test: Matrix
    y_test: Vector


def make_relu(
    n_samples: int,
    n_features: int,
    *,
    sparsity: float = 0.5,
    noise: float = 0.1,
    beta_mean: float = 0.5,
    beta_variance: float = 10.0,
    realizable: bool | None = None,
    design: str = "ternary",
    random_state: int | np.random.Generator | None = None,
) -> Instance:
    """Draw an instance of ReLU regression without intercept.

    Coefficients are N(beta_mean, beta_variance), and y = max(0, X beta) + eps with eps ~ N(0, (noise s)^2),
    where s is the standard deviation of X beta over the sample.

    Parameters
    ----------
    n_samples, n_features : int
        Size of the training set; the test set has as many rows.
    sparsity : float, default=0.5
        Share of non-zero entries of a ternary X, each +1 or -1 with equal probability.
    noise : float, default=0.1
        Standard deviation of the noise, relative to that of X beta.
    beta_mean, beta_variance : float
    realizable : bool, optional
        Make the first n_features training rows sgn(beta_j) e_j, so that without noise beta is the only
        optimum. Default: when noise is 0.
    design : {"ternary", "gaussian"}, default="ternary"
        A Gaussian X has independent standard normal entries; `sparsity` does not apply to it.
    random_state : int or numpy Generator, optional

    Returns
    -------
    Instance

    Examples
    --------
    >>> X, y, beta, X_test, y_test = make_relu(200, 10, noise=0.0, random_state=0)
    >>> X.shape, float(abs(y - (X @ beta).clip(0)).max())
    ((200, 10), 0.0)
    """
    check_count(n_samples, "n_samples")
    check_count(n_features, "n_features")
    check_number(noise, "noise")
    check_number(beta_variance, "beta_variance")
    if not 0.0 < sparsity <= 1.0:
        raise ValueError(f"sparsity is {sparsity}; it must be above 0 and at most 1")
    if design not in ("ternary", "gaussian"):
        raise ValueError(f"design is {design!r}; it must be 'ternary' or 'gaussian'")
    if realizable is None:
        realizable = noise == 0.0
    if realizable and n_samples < n_features:
        raise ValueError(
            f"n_samples is {n_samples}; a realizable instance needs at least n_features = {n_features} rows"
        )
    rng = np.random.default_rng(random_state)
    beta = rng.normal(beta_mean, np.sqrt(beta_variance), n_features)

    def draw_rows() -> Matrix:
        if design == "gaussian":
            return rng.standard_normal((n_samples, n_features))
        shares = [sparsity / 2.0, sparsity / 2.0, 1.0 - sparsity]
        signs: Matrix = rng.choice([1.0, -1.0, 0.0], size=(n_samples, n_features), p=shares)
        return signs

    def draw_outcomes(X: Matrix) -> Vector:
        u = X @ beta
        y: Vector = np.maximum(u, 0.0) + noise * u.std() * rng.standard_normal(n_samples)
        return y

    X, X_test = draw_rows(), draw_rows()
    if realizable:
        X[:n_features] = np.diag(np.where(beta > 0.0, 1.0, -1.0))
    return Instance(X, draw_outcomes(X), beta, X_test, draw_outcomes(X_test))
