import numpy as np
import pytest
from scipy.sparse import csr_array

from rectifit import ReLURegressor, solve
from rectifit.datasets import make_relu
from rectifit.measures import generalization_error, objective_value, prediction_error, recovery_error


def test_by_hand():
    X = [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]
    beta, true = [2.0, -1.0], [1.0, 1.0]
    # Fitted 2, 0, 0; true 1, 1, 0.
    assert prediction_error(X, beta, true) == 2.0
    assert objective_value(X, [5.0, -1.0, 2.0], beta) == 9.0 + 1.0 + 4.0
    assert recovery_error(beta, true) == pytest.approx(np.sqrt(5.0))
    # With intercepts: fitted 3, 0, 0; true 0, 0, 0.
    assert prediction_error(X, beta, true, 1.0, -1.0) == 9.0
    assert objective_value(X, [3.0, 0.0, 1.0], beta, 1.0) == 1.0
    assert recovery_error(beta, true, 1.0, -1.0) == 3.0


def test_all_vanish_at_the_truth():
    X, y, beta, X_test, y_test = make_relu(60, 4, noise=0.0, random_state=1)
    assert prediction_error(X, beta, beta) == recovery_error(beta, beta) == 0.0
    assert objective_value(X, y, beta) == generalization_error(X_test, y_test, beta) == 0.0


def test_sums_are_not_divided_by_n():
    X, y, beta, *_ = make_relu(60, 4, noise=0.5, random_state=2)
    found, twice = beta + 0.3, (np.tile(X, (2, 1)), np.tile(y, 2))
    assert prediction_error(twice[0], found, beta) == pytest.approx(2.0 * prediction_error(X, found, beta))
    assert objective_value(*twice, found) == pytest.approx(2.0 * objective_value(X, y, found))


def test_prediction_error_is_the_objective_against_the_true_mean():
    X, _, beta, *_ = make_relu(60, 4, random_state=3)
    found = beta[::-1]
    mean = np.maximum(X @ beta, 0.0)
    assert prediction_error(X, found, beta) == pytest.approx(objective_value(X, mean, found))


def test_agrees_with_solution_and_estimator():
    X, y, _, X_test, y_test = make_relu(80, 5, noise=0.4, random_state=4)
    solution = solve(X, y, "sorting")
    assert objective_value(X, y, solution.beta, solution.intercept) == solution.objective
    model = ReLURegressor("sorting").fit(X, y)
    squares = np.square(model.predict(X_test) - y_test).sum()
    found = generalization_error(X_test, y_test, model.coef_, float(model.intercept_))
    assert found == pytest.approx(squares)


def test_sparse_and_single_precision():
    X, y, beta, *_ = make_relu(60, 4, random_state=5)
    found = beta + 0.1
    for table in (csr_array(X), X.astype(np.float32)):
        assert prediction_error(table, found, beta) == pytest.approx(prediction_error(X, found, beta))
        assert objective_value(table, y, found) == pytest.approx(objective_value(X, y, found))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: prediction_error([[1.0]], [1.0, 2.0], [1.0]), "beta has 2 entries; X has 1 columns"),
        (lambda: prediction_error([[1.0]], [1.0], [1.0, 2.0]), "beta_true has 2 entries"),
        (lambda: prediction_error([[1.0]], [1.0], [1.0], np.inf), "intercept is inf; it must be a finite"),
        (lambda: objective_value([[1.0]], [1.0, 2.0], [1.0]), "y has 2 entries"),
        (lambda: objective_value([[1.0]], [1.0], [np.nan]), "beta contains NaN"),
        (lambda: recovery_error([1.0], [1.0, 2.0]), "beta has 1 entries; beta_true has 2"),
        (lambda: recovery_error([1.0], [1.0], 0.0, np.nan), "intercept_true is nan"),
        (lambda: generalization_error([1.0], [1.0], [1.0]), "X has shape"),
    ],
)
def test_bad_arguments(call, words):
    with pytest.raises(ValueError, match=words):
        call()
