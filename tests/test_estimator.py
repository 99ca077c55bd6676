import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.exceptions import ConvergenceWarning, NotFittedError, UndefinedMetricWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from rectifit import ReLURegressor, solve
from rectifit.data import ArrayData, open_parquet

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 4))
y = np.maximum(X @ [1.0, -2.0, 0.0, 0.5] + 0.4, 0.0) + 0.3 * rng.normal(size=150)


def test_it_is_solve_with_another_face():
    w = rng.exponential(size=150)
    model = ReLURegressor("sorting+iterative", alpha=0.5, n_splits=7).fit(X, y, sample_weight=w)
    solution = solve(X, y, "sorting+iterative", alpha=0.5, n_splits=7, sample_weight=w)
    np.testing.assert_array_equal(model.coef_, solution.beta)
    assert model.intercept_ == solution.intercept
    assert model.objective_ == solution.objective
    assert model.lower_bound_ == solution.certificate.lower_bound
    assert model.gap_ == solution.certificate.gap
    assert model.status_ == "bound_only"
    assert model.n_iter_ == solution.n_iter
    np.testing.assert_array_equal(model.active_, X @ model.coef_ + model.intercept_ > 0)
    model.solution_.verify()


def test_predict_is_about_the_attributes():
    model = ReLURegressor().fit(X, y)
    model.coef_, model.intercept_ = np.zeros(4), 1.0
    assert model.predict(X[:2]).tolist() == [1.0, 1.0]


def test_objective_is_the_plain_weighted_sum():
    w = rng.exponential(size=150)
    model = ReLURegressor(alpha=0.5).fit(X, y, sample_weight=w)
    expected = w @ (model.predict(X) - y) ** 2 + 0.5 * model.coef_ @ model.coef_
    assert model.objective_ == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames(frame):
    names = ["a", "b", "c", "d"]
    table = frame(dict(zip(names, X.T, strict=True)))
    target = pd.Series(y) if frame is pd.DataFrame else pl.Series(y)
    model = ReLURegressor().fit(table, target)
    assert model.feature_names_in_.tolist() == names
    assert model.n_features_in_ == 4
    expected = ReLURegressor().fit(X, y).predict(X)
    # A sample may lie at the kink, where its prediction is 0 but for rounding.
    np.testing.assert_allclose(model.predict(table), expected, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(table[["b", "a", "c", "d"]])


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_sparse_data(container):
    thin = X * (rng.random(X.shape) < 0.4)
    dense, model = ReLURegressor().fit(thin, y), ReLURegressor().fit(container(thin), y)
    assert model.objective_ == pytest.approx(dense.objective_, rel=1e-10)
    np.testing.assert_allclose(model.predict(container(thin)), dense.predict(thin), rtol=1e-8, atol=1e-10)


def test_float32_is_kept_and_computed_in_float64():
    model = ReLURegressor().fit(X.astype(np.float32), y.astype(np.float32))
    assert model.solution_.problem.X.dtype == np.float32
    assert model.coef_.dtype == np.float64
    assert model.predict(X.astype(np.float32)).dtype == np.float32
    assert model.objective_ == pytest.approx(ReLURegressor().fit(X, y).objective_, rel=1e-5)


def test_data_read_in_passes_is_scored_in_a_pass(tmp_path):
    w = rng.exponential(size=150)
    model = ReLURegressor("iterative").fit(ArrayData(X, y, w, block_rows=40), None)
    data = ArrayData(X, y, w, block_rows=70)
    assert model.score(data, None) == pytest.approx(model.score(X, y, sample_weight=w), rel=1e-12)
    pl.DataFrame(X, schema=list("abcd")).with_columns(y=y).write_parquet(tmp_path / "rows.parquet")
    parquet = open_parquet(tmp_path / "rows.parquet", target="y")
    assert model.score(parquet, None) == pytest.approx(model.score(X, y), rel=1e-12)
    model.fit(parquet, None)
    assert model.feature_names_in_.tolist() == list("abcd")
    turned = open_parquet(tmp_path / "rows.parquet", target="y", features=list("bacd"))
    with pytest.raises(ValueError, match="X has the columns b, a, c, d; the fit has a, b, c, d"):
        model.score(turned, None)
    with pytest.raises(ValueError, match="X has 2 columns; the fit has 4"):
        model.score(ArrayData(X[:, :2], y), None)
    # Names of an earlier fit do not stay.
    assert not hasattr(model.fit(data, None), "feature_names_in_")
    with pytest.warns(UndefinedMetricWarning, match="less than two samples"):
        assert np.isnan(model.score(ArrayData(X[:1], y[:1]), None))


def test_pipelines_and_searches():
    frame = pd.DataFrame(X, columns=list("abcd")).assign(kind=np.where(rng.random(150) < 0.5, "u", "v"))
    columns = make_column_transformer(
        (StandardScaler(), list("abcd")), (OneHotEncoder(sparse_output=False), ["kind"])
    )
    pipeline = make_pipeline(columns, ReLURegressor()).set_output(transform="pandas")
    pipeline.fit(frame, y)
    assert "onehotencoder__kind_u" in pipeline[-1].feature_names_in_
    search = GridSearchCV(pipeline, {"reluregressor__alpha": [0.0, 100.0]}, cv=3).fit(frame, y)
    assert search.best_params_ == {"reluregressor__alpha": 0.0}
    assert cross_val_score(ReLURegressor(), X, y, cv=5).mean() > 0.8
    model = TransformedTargetRegressor(ReLURegressor(), transformer=StandardScaler(with_mean=False))
    expected = ReLURegressor().fit(X, y).predict(X)
    np.testing.assert_allclose(model.fit(X, y).predict(X), expected, rtol=1e-8, atol=1e-9)


def test_clone_and_pickle():
    model = ReLURegressor("sorting", n_splits=5, alpha=0.1, random_state=3).fit(X, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "coef_")
    stored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(stored.predict(X), model.predict(X))
    # The training data stay behind in a stored model, and stay with the one in hand.
    assert stored.solution_.problem is None
    assert model.solution_.problem is not None
    assert len(pickle.dumps(model)) < X.nbytes


def test_fit_changes_no_parameter():
    model = ReLURegressor(random_state=np.random.RandomState(0), n_jobs=1, max_iter=7)
    before = dict(model.get_params())
    model.fit(X, y)
    assert all(model.get_params()[name] is value for name, value in before.items())


def test_start_warms():
    cold = ReLURegressor("iterative").fit(X, y)
    for start in (cold.solution_, (cold.coef_, cold.intercept_)):
        warm = ReLURegressor("iterative").fit(X, y, start=start)
        assert warm.solution_.n_surrogates == 1
        assert warm.objective_ == pytest.approx(cold.objective_, rel=1e-12)


def test_weights_are_routed():
    with sklearn.config_context(enable_metadata_routing=True):
        model = ReLURegressor().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        w = rng.exponential(size=150)
        search = GridSearchCV(model, {"alpha": [0.0, 1.0]}, cv=3).fit(X, y, sample_weight=w)
        expected = ReLURegressor(**search.best_params_).fit(X, y, sample_weight=w)
        np.testing.assert_allclose(search.best_estimator_.coef_, expected.coef_, rtol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_weights_are_repetitions(seed):
    w = np.random.default_rng(seed).integers(0, 4, size=150)
    weighted = ReLURegressor().fit(X, y, sample_weight=w)
    repeated = ReLURegressor().fit(X.repeat(w, axis=0), y.repeat(w))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-10)


def test_columns_may_be_in_any_unit():
    units = np.array([1e-8, 1.0, 1e5, 1e9])
    plain, scaled = ReLURegressor().fit(X, y), ReLURegressor().fit(X * units, y)
    np.testing.assert_allclose(scaled.coef_ * units, plain.coef_, rtol=1e-6)
    assert scaled.objective_ == pytest.approx(plain.objective_, rel=1e-10)


def test_dead_neurons_are_warned_about():
    with pytest.warns(ConvergenceWarning, match="dead neuron"):
        model = ReLURegressor().fit(X, -np.abs(y) - 1.0)
    assert model.predict(X).tolist() == [0.0] * 150
    assert model.status_ == "optimal"


def test_errors_come_through():
    with pytest.raises(ValueError, match="k is 0"):
        ReLURegressor(k=0).fit(X, y)
    with pytest.raises(ValueError, match="sample_weight has a negative entry"):
        ReLURegressor().fit(X, y, sample_weight=-np.ones(150))
    with pytest.raises(ValueError, match="method is 'nonsense'"):
        ReLURegressor("nonsense").fit(X, y)
    with pytest.raises(TypeError, match="X has entries that are not numbers but text"):
        ReLURegressor().fit(X.astype(str), y)
    with pytest.raises(NotFittedError):
        ReLURegressor().predict(X)
