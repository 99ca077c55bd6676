"""The cross-validated ridge penalty, against a grid search over the same folds."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from rectifit import ReLURegressor, ReLURegressorCV
from rectifit.data import ArrayData
from rectifit.estimator_cv import grid_of
from rectifit.fit import TARGET_SLACK

rng = np.random.default_rng(0)
X = rng.normal(size=(90, 12))
y = np.maximum(X @ np.r_[1.0, -0.7, 0.4, np.zeros(9)] + 0.3, 0.0) + rng.normal(size=90)
ALPHAS = [0.1, 1.0, 10.0, 100.0]


# Old versions check with ten samples, and with one positive outcome in a fold.
@pytest.mark.filterwarnings("ignore:the fit is the zero function:sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([ReLURegressorCV(), ReLURegressorCV([0.1, 1.0], cv=3, method="sorting+iterative")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
def test_it_is_a_grid_search(scoring):
    folds = KFold(4, shuffle=True, random_state=1)
    model = ReLURegressorCV(ALPHAS, cv=folds, scoring=scoring).fit(X, y)
    search = GridSearchCV(ReLURegressor(), {"alpha": ALPHAS[::-1]}, cv=folds, scoring=scoring).fit(X, y)
    assert model.alpha_ == search.best_params_["alpha"] > 0.1
    assert model.best_score_ == pytest.approx(search.best_score_, rel=1e-6)
    assert model.alphas_.tolist() == ALPHAS[::-1]
    np.testing.assert_allclose(model.scores_.mean(axis=1), search.cv_results_["mean_test_score"], rtol=1e-6)
    assert model.scores_.shape == (4, 4)


def test_the_final_fit_is_an_ordinary_one():
    names = list("abcdefghijkl")
    frame, target = pd.DataFrame(X, columns=names), pd.Series(y, name="hours")
    limits = {"a": (0.0, 0.8), "b": (None, -0.1)}
    model = ReLURegressorCV(ALPHAS, cv=3, bounds=limits).fit(frame, target)
    plain = ReLURegressor(alpha=model.alpha_, bounds=limits).fit(frame, target)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    np.testing.assert_array_equal(model.predict(frame), plain.predict(frame))
    assert 0.0 <= model.coef_[0] <= 0.8
    assert model.summary().names == (*names, "intercept")
    assert str(model.summary()).splitlines()[0] == str(plain.summary()).splitlines()[0]
    certificate = model.certify()
    assert certificate.is_within(1e-4)
    assert certificate.objective <= plain.objective_


def test_following_the_path_loses_nothing():
    model = ReLURegressorCV(ALPHAS, cv=KFold(3), method="iterative").fit(X, y)
    cold = GridSearchCV(ReLURegressor("auto"), {"alpha": ALPHAS[::-1]}, cv=KFold(3)).fit(X, y)
    np.testing.assert_allclose(model.scores_.mean(axis=1), cold.cv_results_["mean_test_score"], atol=0.1)


def test_weights_are_repetitions():
    # Folds by group, so that copies of a row stay together.
    w, groups = rng.integers(1, 4, size=90), np.arange(90) % 5
    options = {"alphas": ALPHAS, "cv": GroupKFold(5)}
    weighted = ReLURegressorCV(**options).fit(X, y, w, groups=groups)
    repeated = ReLURegressorCV(**options).fit(X.repeat(w, axis=0), y.repeat(w), groups=groups.repeat(w))
    np.testing.assert_allclose(
        np.sort(weighted.scores_, axis=1), np.sort(repeated.scores_, axis=1), rtol=1e-6, atol=1e-8
    )
    assert weighted.alpha_ == repeated.alpha_
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-9)


def test_the_default_grid_follows_the_units():
    plain, scaled = ReLURegressorCV().fit(X, y), ReLURegressorCV().fit(1e4 * X, 1e-3 * y)
    np.testing.assert_allclose(scaled.alphas_, 1e8 * plain.alphas_, rtol=1e-9)
    np.testing.assert_allclose(scaled.scores_, plain.scores_, rtol=1e-5, atol=1e-8)
    # Its ends are hardly any penalty, and hardly anything but the penalty.
    free = ReLURegressor().fit(X, y)
    least, greatest = (ReLURegressor(alpha=plain.alphas_[end]).fit(X, y) for end in (-1, 0))
    np.testing.assert_allclose(least.coef_, free.coef_, rtol=2e-3, atol=1e-3)
    assert np.linalg.norm(greatest.coef_) < 0.02 * np.linalg.norm(free.coef_)


def test_the_grid_of_sparse_and_weighted_columns():
    thin, w = X * (rng.random(X.shape) < 0.3), rng.exponential(size=90)
    for fit_intercept in (True, False):
        dense = grid_of(thin, w, 5, fit_intercept)
        np.testing.assert_allclose(grid_of(sparse.csr_array(thin), w, 5, fit_intercept), dense, rtol=1e-9)
    assert (grid_of(np.ones((3, 1)), None, 2) > 0.0).all()
    dense, thin = ReLURegressorCV(3).fit(thin, y), ReLURegressorCV(3).fit(sparse.coo_array(thin), y)
    assert thin.alpha_ == pytest.approx(dense.alpha_, rel=1e-9)
    np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-6, atol=1e-9)


def test_threads_change_nothing():
    one, three = ReLURegressorCV(ALPHAS).fit(X, y), ReLURegressorCV(ALPHAS, n_jobs=3).fit(X, y)
    np.testing.assert_array_equal(one.scores_, three.scores_)
    np.testing.assert_array_equal(one.coef_, three.coef_)


def test_folds_are_not_proved(monkeypatch):
    proofs = []
    fit = ReLURegressor.fit

    def watch(self, *arguments, **options):
        proofs.append("exact" in self.method)
        return fit(self, *arguments, **options)

    monkeypatch.setattr(ReLURegressor, "fit", watch)
    model = ReLURegressorCV([1.0, 10.0], cv=2, method="auto+exact", target_gap=0.01).fit(X[:30, :2], y[:30])
    assert proofs == [False] * 4 + [True]
    assert model.solution_.certificate.is_closed
    assert model.gap_ <= 0.01 * (1.0 + TARGET_SLACK)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alphas": [-1.0, 1.0]}, "alphas is -1.0; it must be a finite number, at least 0"),
        ({"alphas": 0}, "alphas is 0; it must be a whole number of at least 1"),
        ({"alphas": []}, "alphas has shape .* and is empty"),
        ({"cv": 91}, "n_splits=91"),
        ({"method": "nonsense"}, "unknown stage 'nonsense'"),
        ({"alphas": [1.0], "cv": KFold(90)}, "a score is not finite; every fold needs at least two rows"),
    ],
)
@pytest.mark.filterwarnings("ignore:R.2 score is not well-defined")
def test_it_refuses(options, words):
    with pytest.raises(ValueError, match=words):
        ReLURegressorCV(**options).fit(X, y)


def test_data_read_in_passes_is_refused():
    with pytest.raises(
        TypeError, match="X is of type ArrayData and read in passes; folds need rows in memory"
    ):
        ReLURegressorCV().fit(ArrayData(X, y), None)
