"""ReLU regression with a ridge penalty that cross-validation chooses."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import indexable
from sklearn.utils.sparsefuncs import mean_variance_axis

from rectifit._typing import Matrix, Vector
from rectifit.checks import check_array, check_count, check_number, to_numpy
from rectifit.constraints import without_names
from rectifit.estimator import CONSTRAINTS, ReLURegressor
from rectifit.methods.stages import split_method
from rectifit.parallel import count_threads, map_ordered
from rectifit.routing import is_held_elsewhere

__all__ = ["ReLURegressorCV", "grid_of"]

# Ends of the grid, as shares of the mean sum of squares of a column about its mean. The least one leaves a
# fit as it is in all digits that matter; the greatest one shrinks all slopes to about a hundredth.
LEAST, GREATEST = 1e-4, 1e2
# Parameters that are not those of a `ReLURegressor`.
OWN = ("alphas", "cv", "scoring")


class ReLURegressorCV(ReLURegressor):
    """ReLU regression with the ridge penalty chosen by cross-validation, as `RidgeCV` does for a line.

    In every fold, the penalties are followed from the greatest to the least, each fit starting from the one
    before it. The model with the best mean score is then fitted to all rows: it is
    ``ReLURegressor(alpha=alpha_)`` with the other parameters, and everything that works there works here.

    Parameters
    ----------
    alphas : int or array-like, default=10
        Penalties to compare, or how many: a geometric grid that adapts to the scale of the columns, from
        hardly any penalty to one that shrinks all slopes to about a hundredth.
    cv : int, cross-validation splitter or iterable of (train, test), optional
        Default: five folds of consecutive rows, as everywhere in scikit-learn. Rows that are sorted need a
        splitter that shuffles.
    scoring : str or callable, optional
        Default: R^2.
    method, n_splits, k, fit_intercept, bounds, positive, monotonic_cst, constraints, floor, max_iter, tol
        As for `ReLURegressor`. Fits to folds leave out the stage "exact": they need no proof.
    target_gap, time_limit, random_state, verbose
        As for `ReLURegressor`; the time limit holds for each fit.
    n_jobs : int, optional
        Threads, on which folds are fitted side by side; -1: all processors. The result does not depend on it.

    Attributes
    ----------
    alpha_ : float
        The chosen penalty.
    best_score_ : float
        Its mean score.
    alphas_ : array of shape (n_alphas,)
        The penalties, from the greatest to the least.
    scores_ : array of shape (n_alphas, n_folds)
        Of each penalty, the scores on the rows that the fits have not seen.
    coef_, intercept_, floor_, objective_, lower_bound_, gap_, status_, n_iter_, active_, solution_
        As for `ReLURegressor`.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 30))
    >>> y = np.maximum(X[:, 0] + 0.5, 0.0) + 0.5 * rng.normal(size=60)
    >>> model = ReLURegressorCV(cv=5).fit(X, y)
    >>> bool(model.alpha_ > 1.0), model.scores_.shape, bool(model.best_score_ > model.scores_[-1].mean())
    (True, (10, 5), True)
    """

    def __init__(
        self,
        alphas: Any = 10,
        *,
        cv: Any = None,
        scoring: Any = None,
        method: str = "auto",
        n_splits: int = 10,
        k: int = 1,
        fit_intercept: bool = True,
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
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.method = method
        self.n_splits = n_splits
        self.k = k
        self.fit_intercept = fit_intercept
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

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, start: Any = None, groups: Any = None
    ) -> ReLURegressorCV:
        """Choose the penalty and fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Used in fits and in scores; folds count alike.
        start : solution, pair (coef, intercept) or coefficients, optional
            Where the final fit begins.
        groups : array-like of shape (n_samples,), optional
            For a splitter such as `GroupKFold`.
        """
        if is_held_elsewhere(X):
            raise TypeError(f"X is of type {type(X).__name__} and read in passes; folds need rows in memory")
        options = {name: value for name, value in self.get_params(deep=False).items() if name not in OWN}
        model = ReLURegressor(**options)
        table, outcomes, weights = model._validate(*map(to_numpy, (X, y, sample_weight)))
        *_, groups = indexable(table, outcomes, groups)
        scores = self._follow(model, table, outcomes, weights, groups)
        means = scores.mean(axis=1)
        if not np.isfinite(means).all():
            raise ValueError("a score is not finite; every fold needs at least two rows that have weight")
        best = int(np.argmax(means))
        model.set_params(alpha=float(self.alphas_[best])).fit(X, y, sample_weight, start=start)
        for name, value in vars(model).items():
            if name.endswith("_"):
                setattr(self, name, value)
        self.alpha_ = model.alpha
        self.best_score_ = float(means[best])
        self.scores_ = scores
        return self

    def _follow(self, model: ReLURegressor, X: Any, y: Vector, w: Vector | None, groups: Any) -> Matrix:
        """Scores of all penalties on all folds."""
        self.alphas_ = self._read_alphas(X, w)
        names = getattr(model, "feature_names_in_", np.arange(X.shape[1]).astype(str)).tolist()
        known = without_names(names, **{name: getattr(self, name) for name in CONSTRAINTS})
        stages = [name for name in split_method(self.method) if name != "exact"] or ["auto"]
        fold_model = clone(model).set_params(n_jobs=None, target_gap=None, method="+".join(stages), **known)
        scorer = check_scoring(model, self.scoring)

        def follow(fold: tuple[Any, Any]) -> list[float]:
            train, test = fold
            given = {} if w is None else {"sample_weight": w[test]}
            start, scores = None, []
            for alpha in self.alphas_.tolist():
                fitted = clone(fold_model).set_params(alpha=alpha)
                fitted.fit(X[train], y[train], None if w is None else w[train], start=start)
                scores.append(float(scorer(fitted, X[test], y[test], **given)))
                start = fitted.solution_
            return scores

        folds = check_cv(self.cv, y).split(X, y, groups)
        return np.array(list(map_ordered(follow, folds, count_threads(self.n_jobs)))).T

    def _read_alphas(self, X: Any, w: Vector | None) -> Vector:
        """The penalties from the greatest to the least."""
        if np.ndim(self.alphas) == 0:
            return grid_of(X, w, check_count(self.alphas, "alphas"), self.fit_intercept)
        alphas = check_array(self.alphas, "alphas", dimensions=1).astype(np.float64)
        for alpha in alphas.tolist():
            check_number(alpha, "alphas")
        return np.unique(alphas)[::-1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Folds are fitted in host memory.
        tags.array_api_support = False
        return tags


def grid_of(X: Any, w: Vector | None, n_alphas: int, fit_intercept: bool = True) -> Vector:
    """Penalties for columns of this size, from the greatest to the least.

    Examples
    --------
    >>> grid_of(np.array([[-1.0], [1.0]]), None, 4).tolist()
    [200.0, 2.0, 0.02, 0.0002]
    """
    weights = np.ones(X.shape[0]) if w is None else w
    mean, variance = (
        mean_variance_axis(X, axis=0, weights=weights)
        if hasattr(X, "tocsr")
        else (np.average(X, axis=0, weights=weights), None)
    )
    if variance is None:
        variance = np.average(np.square(X - mean), axis=0, weights=weights)
    squares = variance if fit_intercept else variance + np.square(mean)
    size = float(weights.sum() * np.mean(squares, dtype=np.float64)) or 1.0
    return size * np.geomspace(GREATEST, LEAST, n_alphas)
