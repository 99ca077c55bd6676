"""Tobit regression as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from rectifit._typing import Vector
from rectifit.checks import check_number
from rectifit.formatting import write_number, write_objective
from rectifit.inference import Estimates
from rectifit.tobit import check_limits, fit_tobit

__all__ = ["TobitRegressor", "TobitSummary"]

NO_MAXIMUM = "the uncensored outcomes lie on a plane, and the likelihood has no maximum"


class TobitRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Tobit regression by maximum likelihood: y = min(max(X coef + intercept + sigma e, lower), upper).

    e is standard normal. The coefficients are about the latent outcome, which goes on beyond the limits;
    those of `ReLURegressor` are about the mean of y itself. The user guide says when to use which.

    Parameters
    ----------
    lower, upper : float or None, default=0.0 and None
        Where outcomes are censored; None for no limit on that side. Outcomes equal to a limit count as
        censored, and outcomes beyond a limit are an error.
    fit_intercept : bool, default=True

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    sigma_ : float
        Standard deviation of the latent outcome about X coef_ + intercept_.
    loglik_ : float
        Log-likelihood at its maximum, weighted.
    stderr_ : array
        Standard errors of the coefficients, then of the intercept if there is one, then of sigma, from the
        observed information; NaN where the data do not determine them.
    covariance_ : array
        The covariance behind them.
    n_iter_ : int
        Steps of Newton's method.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 2))
    >>> y = np.maximum(X @ [1.0, -2.0] + 0.5 + rng.normal(size=5000), 0.0)
    >>> model = TobitRegressor().fit(X, y)
    >>> model.coef_.round(1).tolist(), round(model.intercept_, 1), round(model.sigma_, 1)
    ([1.0, -2.0], 0.5, 1.0)
    """

    def __init__(
        self, lower: float | None = 0.0, upper: float | None = None, *, fit_intercept: bool = True
    ) -> None:
        self.lower = lower
        self.upper = upper
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TobitRegressor:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 2 counts as two rows, also in standard errors.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        model = fit_tobit(
            X,
            y,
            sample_weight=weight,
            lower=self.lower,
            upper=self.upper,
            fit_intercept=self.fit_intercept,
        )
        if not model.has_maximum:
            warnings.warn(
                f"{NO_MAXIMUM}; sigma_ is 0 up to rounding, and there are no standard errors",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.coef_ = model.beta
        self.intercept_ = model.intercept
        self.sigma_ = model.sigma
        self.loglik_ = model.log_likelihood
        self.covariance_ = model.covariance
        self.stderr_ = np.sqrt(model.covariance.diagonal())
        self.n_iter_ = model.n_iter
        self.model_ = model
        return self

    def predict(self, X: Any, kind: str = "observed") -> Vector:
        """What is expected of new rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        kind : {"observed", "latent", "uncensored", "probability"}, default="observed"
            The mean of y; the mean X coef_ + intercept_ of the latent outcome; the mean of y if it lies
            between the limits; or the probability that it does. The derivative of the mean of y in a column
            is its coefficient times this probability.

        Examples
        --------
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 0.0, 2.0, 1.0, 3.0]
        >>> model = TobitRegressor().fit(X, y)
        >>> [model.predict([[1.0]], kind).round(2).item() for kind in ("observed", "latent", "probability")]
        [0.19, -0.33, 0.34]
        """
        check_is_fitted(self)
        return self.model_.predict(validate_data(self, X, dtype=np.float64, reset=False), kind)

    def summary(self, *, level: float = 0.95) -> TobitSummary:
        """A table with standard errors and intervals of this level; `print` shows it.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 1))
        >>> summary = TobitRegressor().fit(X, np.maximum(X[:, 0] + rng.normal(size=200), 0.0)).summary()
        >>> summary.names, bool(summary.low[0] < 1.0 < summary.high[0])
        (('x0', 'intercept'), True)
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.coef_.size)])
        ends = [self.intercept_] * self.fit_intercept
        q = self.coef_.size + len(ends)
        return TobitSummary(
            names=(*map(str, names), *["intercept"] * self.fit_intercept),
            coefficient=np.append(self.coef_, ends),
            std_error=self.stderr_[:q],
            at_bound=(False,) * q,
            level=check_number(level, "level", above=0.0, below=1.0),
            covariance="observed information",
            notes=(NO_MAXIMUM,) * (not self.model_.has_maximum),
            lower=self.lower,
            upper=self.upper,
            sigma=self.sigma_,
            sigma_std_error=float(self.stderr_[-1]),
            log_likelihood=self.loglik_,
            n_samples=self.model_.n_samples,
            n_low=self.model_.n_low,
            n_high=self.model_.n_high,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Limits are checked when the model is fitted; outcomes below 0 need a limit below them.
        tags.target_tags.positive_only = self.lower is not None and check_limits(self.lower, None).low >= 0.0
        return tags


@dataclass(frozen=True, eq=False, kw_only=True)
class TobitSummary(Estimates):
    """A Tobit model as one would publish it; `print` shows the table.

    Attributes
    ----------
    lower, upper : where outcomes are censored, None where they are not
    sigma, sigma_std_error : standard deviation of the latent outcome about its mean, and its standard error
    log_likelihood : at its maximum
    n_samples, n_low, n_high : rows with weight, and those censored at the lower and at the upper limit

    The other attributes are those of `Estimates`.
    """

    lower: float | None
    upper: float | None
    sigma: float
    sigma_std_error: float
    log_likelihood: float
    n_samples: int
    n_low: int
    n_high: int

    def _formula(self) -> str:
        """The model in words."""
        model = "X coef" + " + intercept" * ("intercept" in self.names) + " + sigma e"
        if self.lower is not None:
            model = f"max({self.lower:g}, {model})"
        if self.upper is not None:
            model = f"min({self.upper:g}, {model})"
        return model

    def _lines(self) -> dict[str, str]:
        """What is known besides the estimates, by name."""
        censored = [
            f"{count:,} at {limit:g}"
            for count, limit in ((self.n_low, self.lower), (self.n_high, self.upper))
            if limit is not None
        ]
        return {
            "Samples:": f"{self.n_samples:,}" + (f"; censored: {', '.join(censored)}" if censored else ""),
            "Sigma:": f"{write_number(self.sigma)} (std. error {write_number(self.sigma_std_error, 3)})",
            "Log-likelihood:": write_objective(self.log_likelihood),
        }

    def _title(self) -> str:
        return f"Tobit regression: {self._formula()}"

    def _facts(self) -> list[str]:
        return [*(f"{name} {fact}." for name, fact in self._lines().items()), *super()._facts()]

    def __str__(self) -> str:
        """The table as text."""
        rows = self._rows("coef")
        width = len(rows[0])
        model = self._formula()
        head = f"{'Tobit regression':<{max(width - len(model), 17)}}{model}"
        facts = (f"{name:<16}{fact}" for name, fact in self._lines().items())
        lines = [head, "=" * width, *facts, "=" * width]
        notes = [f"Note: {note}" for note in self.notes]
        return "\n".join([*lines, rows[0], "-" * width, *rows[1:], "=" * width, *notes])
