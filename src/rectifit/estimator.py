"""The scikit-learn face: validate, call a method, copy attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from rectifit.checks import is_tensor, refuse_text, to_numpy
from rectifit.interchange import like
from rectifit.methods import solve
from rectifit.scale.solve import as_blocks

if TYPE_CHECKING:
    from rectifit.inference import Summary

__all__ = ["ReLURegressor"]


class ReLURegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """ReLU regression: y ~ max(0, X coef + intercept) by least squares, with a lower bound for every fit.

    Parameters
    ----------
    method : str, default="auto"
        Stages joined by +: "approximation", "sorting", "iterative", "gd", "sgd", "multistart", "auto". See
        `rectifit.solve`.
    n_splits : int, default=10
        Splits of the sorting method.
    k : int, default=1
        k of the approximation algorithm, whose fit is at most n/k times the least possible objective.
    fit_intercept : bool, default=True
    alpha : float, default=0.0
        Ridge penalty alpha |coef|^2 on the user's scale; the intercept is free.
    floor : float or "estimate", default=0.0
        The model is max(floor, X coef + intercept). A base load, say, can be estimated together with the
        coefficients; lower_bound_ and gap_ then hold for the estimated floor, not for all others.
    max_iter : int, optional
        Steps of the iterative and gradient methods; each has its own default.
    tol : float, default=1e-8
        The iterative method stops when the objective falls by no more than this share.
    target_gap : float, optional
        Stop as soon as the certified gap is at most this.
    time_limit : float, optional
        Seconds after which the best fit so far is kept.
    random_state : int, numpy Generator or RandomState, optional
        Of random starts and batches; without it, always the same.
    n_jobs : int, optional
        Threads of "approximation" and "multistart"; -1: all processors.
    verbose : int, default=0
        1 shows progress on a terminal.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    floor_ : float
        As given, or estimated.
    objective_ : float
        Weighted sum of squares plus alpha |coef|^2, not divided by anything.
    lower_bound_, gap_, status_ : no coefficients have an objective below lower_bound_;
        gap_ = (objective_ - lower_bound_) / objective_; "optimal" or "bound_only"
    n_iter_ : int
    active_ : boolean array of shape (n_samples,)
        Training samples with X coef_ + intercept_ > floor_; None where the data was read in blocks.
    solution_ : Solution
        Everything known about the fit, `verify()` included.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> y = np.maximum(X @ [1.0, -2.0, 0.5] + 0.3, 0.0)
    >>> model = ReLURegressor().fit(X, y)
    >>> model.coef_.round(6).tolist(), round(model.intercept_, 6), model.status_
    ([1.0, -2.0, 0.5], 0.3, 'optimal')
    """

    def __init__(
        self,
        method: str = "auto",
        *,
        n_splits: int = 10,
        k: int = 1,
        fit_intercept: bool = True,
        alpha: float = 0.0,
        floor: float | str = 0.0,
        max_iter: int | None = None,
        tol: float = 1e-8,
        target_gap: float | None = None,
        time_limit: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.n_splits = n_splits
        self.k = k
        self.fit_intercept = fit_intercept
        self.alpha = alpha
        self.floor = floor
        self.max_iter = max_iter
        self.tol = tol
        self.target_gap = target_gap
        self.time_limit = time_limit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, start: Any = None) -> ReLURegressor:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            With scikit-learn's array API dispatch, coef_, intercept_ and active_ of a torch tensor live where
            it lives. Or data that is read in blocks, as for `rectifit.solve`.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        start : solution, pair (coef, intercept) or coefficients, optional
            Where to begin; the fit is never worse.
        """
        home = X if is_tensor(X) and get_config()["array_api_dispatch"] else None
        if home is not None:
            X = validate_data(self, X, dtype="numeric")
        blocks = as_blocks(X, y, sample_weight)
        if blocks is not None:
            X, y, sample_weight = blocks, None, None
            self.n_features_in_ = blocks.n_features
            if blocks.feature_names is not None:
                self.feature_names_in_ = np.array(blocks.feature_names, dtype=object)
        elif home is None:
            X, y, sample_weight = self._validate(*map(to_numpy, (X, y, sample_weight)))
        solution = solve(X, y, sample_weight=sample_weight, start=start, **self.get_params(deep=False))
        assert solution.problem is not None
        self.coef_ = solution.beta.copy()
        self.intercept_ = solution.intercept
        self.floor_ = solution.floor
        self.objective_ = solution.objective
        self.lower_bound_ = solution.certificate.lower_bound
        self.gap_ = solution.certificate.gap
        self.status_ = solution.certificate.status
        self.n_iter_ = solution.n_iter
        self.active_ = None
        if blocks is None:
            self.active_ = solution.problem.preactivation(solution.beta, solution.intercept) > solution.floor
        self.solution_ = solution
        if home is not None:
            self.coef_, self.intercept_ = like(self.coef_, home), like(self.intercept_, home)
            self.active_ = home.detach().to(self.coef_.dtype) @ self.coef_ + self.intercept_ > self.floor_
        return self

    def _validate(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
        for name, values in (("X", X), ("y", y)):
            if isinstance(values, list | np.ndarray):
                refuse_text(np.asarray(values), name)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], y_numeric=True)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64)
        return X, y, sample_weight

    def predict(self, X: Any) -> Any:
        """max(floor_, X coef_ + intercept_); with array API dispatch, of a tensor a tensor where it lives."""
        check_is_fitted(self)
        if is_tensor(X) and get_config()["array_api_dispatch"]:
            X = validate_data(self, X, dtype="numeric", reset=False)
            coef = like(self.coef_, X)
            return (X.to(coef.dtype) @ coef + like(self.intercept_, X)).clamp(min=self.floor_)
        X, coef, intercept = map(to_numpy, (X, self.coef_, self.intercept_))
        if type(X).__module__.startswith("dask.array"):
            # Lazy, chunk by chunk.
            return np.maximum(X @ coef + intercept, self.floor_)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return np.asarray(np.maximum(X @ coef + intercept, self.floor_))

    def summary(self, **options: Any) -> Summary:
        """A table with standard errors and intervals; the options are those of `inference.summarise`.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 2))
        >>> y = np.maximum(X @ [1.0, -2.0] + 0.3, 0.0) + rng.normal(size=200)
        >>> summary = ReLURegressor().fit(X, y).summary(covariance="HC3")
        >>> summary.names, (summary.p_value[:2] < 0.001).tolist()
        (('x0', 'x1', 'intercept'), [True, True])
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        return self.solution_.summary(**{"names": names} | options)

    def __getstate__(self) -> dict[str, Any]:
        # A stored model does not carry its training data.
        state: dict[str, Any] = super().__getstate__()
        if "solution_" in state:
            state = state | {"solution_": state["solution_"].without_data()}
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # Outcomes centred at 0, as scikit-learn's checks have them, are half negative: no ReLU fits those.
        tags.regressor_tags.poor_score = True
        return tags
