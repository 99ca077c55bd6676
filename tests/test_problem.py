import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime

from rectifit import Problem

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
y = rng.normal(size=30)
beta = rng.normal(size=3)


def broken(values, where, what):
    values = values.copy()
    values[where] = what
    return values


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"X": broken(X, (0, 0), np.nan)}, ValueError, ["X", "NaN", "finite"]),
        ({"X": broken(X, (0, 0), np.inf)}, ValueError, ["X", "infinite", "finite"]),
        ({"y": broken(y, 3, np.nan)}, ValueError, ["y", "NaN"]),
        ({"y": broken(y, 3, -np.inf)}, ValueError, ["y", "infinite"]),
        ({"X": np.empty((0, 3))}, ValueError, ["X", "(0, 3)", "empty"]),
        ({"X": np.empty((30, 0))}, ValueError, ["X", "(30, 0)", "empty"]),
        ({"y": []}, ValueError, ["y", "(0,)", "empty"]),
        ({"X": X[:, 0]}, ValueError, ["X", "(30,)", "(n_samples, n_features)"]),
        ({"X": X[None]}, ValueError, ["X", "(1, 30, 3)"]),
        ({"y": y[:, None]}, ValueError, ["y", "(30, 1)", "one-dimensional"]),
        ({"y": y[:-1]}, ValueError, ["y", "29", "30"]),
        ({"X": X + 1j}, TypeError, ["X", "complex", "real"]),
        ({"y": ["a"] * 30}, TypeError, ["y", "real numbers"]),
        ({"X": np.array([["a", 1.0]] * 30, dtype=object)}, TypeError, ["X", "not numbers"]),
        ({"X": sparse.csr_matrix(broken(X, (0, 0), np.inf))}, ValueError, ["X", "infinite", "finite"]),
        ({"X": sparse.csr_matrix(X + 1j)}, TypeError, ["X", "complex", "real"]),
        ({"X": sparse.csr_matrix((0, 3))}, ValueError, ["X", "(0, 3)", "at least one row"]),
        ({"y": sparse.csr_matrix(X)}, TypeError, ["y", "sparse", "dense"]),
        ({"X": X.astype(str)}, TypeError, ["X", "text"]),
        ({"y": y.astype(str).astype(object)}, TypeError, ["y", "text"]),
        ({"X": [[1.0, 2.0], [3.0]]}, ValueError, ["X", "ragged"]),
        ({"y": np.ma.array(y, mask=y > 1)}, ValueError, ["y", "masked"]),
        ({"sample_weight": np.ones(29)}, ValueError, ["sample_weight", "29", "30"]),
        (
            {"sample_weight": broken(np.ones(30), 0, -1.0)},
            ValueError,
            ["sample_weight", "-1", "non-negative"],
        ),
        ({"sample_weight": np.zeros(30)}, ValueError, ["sample_weight", "zero", "positive"]),
        ({"sample_weight": broken(np.ones(30), 0, np.nan)}, ValueError, ["sample_weight", "NaN"]),
        ({"alpha": -1.0}, ValueError, ["alpha", "-1.0", "at least 0"]),
        ({"alpha": np.nan}, ValueError, ["alpha", "nan"]),
        ({"alpha": np.inf}, ValueError, ["alpha", "inf", "finite"]),
        ({"alpha": "1"}, TypeError, ["alpha", "'1'", "number"]),
        ({"fit_intercept": "yes"}, TypeError, ["fit_intercept", "'yes'", "True or False"]),
    ],
)
def test_bad_data_is_refused_in_one_sentence(arguments, error, words):
    with pytest.raises(error) as caught:
        Problem.from_data(**{"X": X, "y": y} | arguments)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_objective_is_the_plain_weighted_sum_of_squares_plus_ridge():
    w = rng.uniform(size=30)
    problem = Problem.from_data(X, y, sample_weight=w, alpha=0.7)
    by_hand = sum(w[i] * (max(0.0, float(X[i] @ beta) + 0.3) - y[i]) ** 2 for i in range(30)) + 0.7 * sum(
        b * b for b in beta
    )
    assert problem.objective(beta, 0.3) == pytest.approx(by_hand, rel=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_gradient_agrees_with_differences(dtype):
    w = rng.uniform(size=30)
    problem = Problem.from_data(X.astype(dtype), y, sample_weight=w, alpha=0.7)
    at = np.append(beta, 0.3)
    gradient, slope = problem.gradient(beta, 0.3)
    differences = approx_fprime(at, lambda b: problem.objective(b[:-1], b[-1]), 1e-7)
    np.testing.assert_allclose(np.append(gradient, slope), differences, rtol=1e-5, atol=1e-5)


def test_gradient_ignores_samples_that_are_off():
    problem = Problem.from_data([[1.0], [-1.0]], [1.0, 1.0])
    gradient, slope = problem.gradient([0.5])
    assert gradient.tolist() == [-1.0]
    assert slope == -1.0


def test_float_arrays_are_not_copied_and_integers_become_float64():
    assert Problem.from_data(X, y).X is X
    single = X.astype(np.float32)
    assert Problem.from_data(single, y).X is single
    assert Problem.from_data([[1], [2]], [True, False]).X.dtype == np.float64


def test_float32_is_computed_in_float64():
    wide = rng.normal(size=(3000, 200))
    narrow = wide.astype(np.float32)
    outcome = rng.normal(size=3000)
    b = rng.normal(size=200)
    expected = Problem.from_data(narrow.astype(np.float64), outcome).objective(b)
    assert Problem.from_data(narrow, outcome).objective(b) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_extreme_scales_stay_representable(size):
    problem = Problem.from_data(X * size, y / size)
    scaled = Problem.from_data(X, y)
    value = problem.objective(beta / size / size)
    assert value == pytest.approx(scaled.objective(beta) / size / size, rel=1e-12)


def test_weights_enter_before_squaring():
    # y^2 overflows, w y^2 does not.
    problem = Problem.from_data([[0.0]], [1e160], sample_weight=[1e-100])
    assert problem.objective([0.0]) == pytest.approx(1e220)


def test_positive_samples():
    assert Problem.from_data([[1.0]] * 3, [0.0, 2.0, -1.0]).positive.tolist() == [False, True, False]
