"""The scikit-learn face: validate, call a method, copy attributes."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from rectifit.api import certify, solve
from rectifit.checks import check_tensor, refuse_text, to_numpy
from rectifit.constraints import without_names
from rectifit.data.kinds import header_of, is_lazy, name_of, predict
from rectifit.data.prediction import rectify, relu
from rectifit.data.sums import ScoreTask
from rectifit.dispatch import home_of, readable, to_host
from rectifit.inference import Summary
from rectifit.routing import is_held_elsewhere, open_data
from rectifit.solution import Certificate, Solution

__all__ = ["ReLURegressor"]

# Parameters that restrict coefficients.
CONSTRAINTS = ("bounds", "positive", "monotonic_cst", "constraints")


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
    bounds : pair, array of shape (n_features, 2) or dict, optional
        What is known about coefficients: low <= coefficient <= high, for all of them, for each, or by the
        name of its column. None and infinities stand for no bound. The intercept is free.
    positive : bool, default=False
        Whether all coefficients are at least 0.
    monotonic_cst : array of shape (n_features,) or dict, optional
        1: at least 0; -1: at most 0; 0: of any sign.
    constraints : scipy.optimize.LinearConstraint or a sequence of these, optional
        lb <= A coef <= ub.
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
        In float64 also where X is float32.
    intercept_ : float
    floor_ : float
        As given, or estimated.
    objective_ : float
        Weighted sum of squares plus alpha |coef|^2, not divided by anything.
    lower_bound_, gap_, status_ : no coefficients have an objective below lower_bound_;
        gap_ = (objective_ - lower_bound_) / objective_; "optimal" or "bound_only"
    n_iter_ : int
    active_ : boolean array of shape (n_samples,)
        Training samples with X coef_ + intercept_ > floor_; None for data that is read in passes.
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
        bounds: Any = None,
        positive: bool = False,
        monotonic_cst: Any = None,
        constraints: Any = None,
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
        self.bounds = bounds
        self.positive = positive
        self.monotonic_cst = monotonic_cst
        self.constraints = constraints
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
            With scikit-learn's array API dispatch, coef_, intercept_ and active_ of a torch tensor, or an
            array of another such library, are on its device. Or data that is read in passes, as for
            `rectifit.solve`.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        start : solution, pair (coef, intercept) or coefficients, optional
            Where to begin; the fit is never worse.
        """
        target = name_of(y)
        X, y, sample_weight = _check_tensors(X, y, sample_weight)
        home, table = home_of(X), X
        if home is not None:
            table, y, sample_weight = self._validate(X, home.asarray(y), home.asarray(sample_weight), home.xp)
            X, y, sample_weight = map(readable, (table, y, sample_weight))
        if is_held_elsewhere(X):
            self._check_columns(X, reset=True)
        elif home is None:
            X, y, sample_weight = self._validate(*map(to_numpy, (X, y, sample_weight)))
        options = self.get_params(deep=False)
        if hasattr(self, "feature_names_in_"):
            # Validated rows have lost the names of their columns.
            given = {name: options[name] for name in CONSTRAINTS}
            options |= without_names(self.feature_names_in_.tolist(), **given)
        solution = solve(X, y, sample_weight=sample_weight, start=start, **options)
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
        if solution.problem.data.in_memory:
            self.active_ = solution.problem.preactivation(solution.beta, solution.intercept) > solution.floor
        if home is not None:
            # In float64 even if X is not: columns that are nearly the same have large coefficients that
            # cancel, and rounding them would spoil the fit.
            self.coef_, self.intercept_ = map(home.asarray, (solution.beta, np.array(solution.intercept)))
            self.active_ = (
                home.product(table, self.coef_) + self.intercept_ > self.floor_
                if self.active_ is None
                else home.asarray(self.active_)
            )
        self.solution_ = Solution.of(solution, getattr(self, "feature_names_in_", None), target)
        return self

    def _validate(self, X: Any, y: Any, sample_weight: Any, xp: Any = np) -> tuple[Any, Any, Any]:
        for name, values in (("X", X), ("y", y)):
            if isinstance(values, list | np.ndarray):
                refuse_text(np.asarray(values), name)
        dtypes = [xp.float64, xp.float32]
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=dtypes, y_numeric=True)
        # Arrays of other libraries are checked where they are used.
        if sample_weight is not None and (xp is np or isinstance(sample_weight, Real)):
            sample_weight = _check_sample_weight(sample_weight, np.empty(X.shape[0]), dtype=np.float64)
        return X, y, sample_weight

    def _check_columns(self, X: Any, *, reset: bool) -> None:
        """Names and number of the columns of data into which scikit-learn does not look."""
        header = header_of(X)
        if header is not None:
            validate_data(self, header, reset=reset, skip_check_array=True)
            return
        names = None if X.feature_names is None else np.array(X.feature_names, dtype=object)
        if reset:
            self.n_features_in_ = X.n_features
            self.__dict__.pop("feature_names_in_", None)
            if names is not None:
                self.feature_names_in_ = names
        known = getattr(self, "feature_names_in_", None)
        if X.n_features != self.n_features_in_:
            raise ValueError(f"X has {X.n_features} columns; the fit has {self.n_features_in_}")
        if names is not None and known is not None and (names != known).any():
            raise ValueError(f"X has the columns {', '.join(names)}; the fit has {', '.join(known)}")

    def predict(self, X: Any) -> Any:
        """max(floor_, X coef_ + intercept_), computed in float64; in float32 if X is.

        The prediction for a dask array or data frame is a dask array, computed chunk by chunk on demand. With
        array API dispatch, it is an array of the library and on the device of X, which must be those of the
        fit.
        """
        check_is_fitted(self)
        X = check_tensor(X, "X")
        if is_lazy(X):
            self._check_columns(X, reset=False)
            return predict(X, np.asarray(to_host(self.coef_)), float(self.intercept_), self.floor_)
        home, fitted = home_of(X), home_of(self.coef_)
        if home != fitted:
            raise ValueError(
                f"X passed to {type(self).__name__}.predict() is of {home or 'NumPy'}; it must use the same "
                f"namespace and device as the X of fit, {fitted or 'NumPy'}"
            )
        if home is not None:
            X = validate_data(self, X, dtype=[home.xp.float64, home.xp.float32], reset=False)
            u = home.product(X, self.coef_) + self.intercept_
            return home.xp.astype(rectify(u, self.floor_, home.xp), X.dtype, copy=False)
        X, coef, intercept = map(to_numpy, (X, self.coef_, self.intercept_))
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return np.asarray(relu(X, coef, intercept, self.floor_), dtype=X.dtype)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 of the predictions; data that is read in passes is read once.

        Parameters
        ----------
        X, y, sample_weight : as for `fit`
        """
        check_is_fitted(self)
        X, y, sample_weight = _check_tensors(X, y, sample_weight)
        home = home_of(X)
        if home is not None:
            return float(super().score(X, home.asarray(y), home.asarray(sample_weight)))
        if not is_held_elsewhere(X):
            return float(super().score(X, *map(to_numpy, (y, sample_weight))))
        self._check_columns(X, reset=False)
        beta = np.asarray(to_host(self.coef_), dtype=np.float64)
        data = open_data(X, y, sample_weight)
        return data.reduce(ScoreTask(beta, float(self.intercept_), self.floor_)).r2()

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

    def certify(self, X: Any = None, y: Any = None, sample_weight: Any = None, **options: Any) -> Certificate:
        """Prove how good the fit is, with its weights, ridge, floor and constraints.

        Parameters
        ----------
        X, y, sample_weight : the data of `fit`. They may be left out unless the model was stored in between.
        **options : as for `rectifit.certify`

        Examples
        --------
        >>> from rectifit.datasets import make_relu
        >>> X, y, *_ = make_relu(100, 5, noise=0.3, random_state=0)
        >>> print(ReLURegressor(alpha=1.0, fit_intercept=False).fit(X, y).certify())
        no fit can be more than 0.01 % better
        """
        check_is_fitted(self)
        if X is None and y is None and sample_weight is None:
            if self.solution_.problem is None:
                raise ValueError("X is None, but this model was stored without its data; pass X and y")
            return self.solution_.certify(**options)
        return certify(X, y, self.solution_, sample_weight=sample_weight, **options)

    def __getstate__(self) -> dict[str, Any]:
        # A stored model does not carry its training data.
        state: dict[str, Any] = super().__getstate__()
        if "solution_" in state:
            state = state | {"solution_": state["solution_"].without_data()}
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        tags.input_tags.sparse = True
        # Outcomes centred at 0, as scikit-learn's checks have them, are half negative: no ReLU fits those.
        tags.regressor_tags.poor_score = True
        return tags


def _check_tensors(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    return check_tensor(X, "X"), check_tensor(y, "y"), check_tensor(sample_weight, "sample_weight")
