import numpy as np
import pytest

from rectifit.datasets import make_relu


def test_shapes_and_reproducibility():
    first, second = (make_relu(50, 4, random_state=3) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
    assert first.X.shape == first.X_test.shape == (50, 4)
    assert first.y.shape == first.y_test.shape == (50,)
    assert not np.array_equal(first.X, make_relu(50, 4, random_state=4).X)


@pytest.mark.parametrize("sparsity", [0.1, 0.5, 0.9])
def test_ternary_entries(sparsity):
    X = make_relu(2000, 10, sparsity=sparsity, random_state=0).X
    assert set(np.unique(X)) == {-1.0, 0.0, 1.0}
    # Five standard errors of a share among 20,000 entries.
    assert abs((X != 0).mean() - sparsity) < 5 * 0.5 / np.sqrt(20_000)
    assert abs(X.mean()) < 5 / np.sqrt(20_000)


def test_noise_is_relative_to_the_signal():
    X, y, beta, *_ = make_relu(20_000, 5, noise=0.3, random_state=0)
    noise = y - np.maximum(X @ beta, 0.0)
    assert noise.std() == pytest.approx(0.3 * (X @ beta).std(), rel=0.03)


def test_coefficients_have_the_stated_distribution():
    beta = np.concatenate([make_relu(1, 100, noise=1.0, random_state=s).beta for s in range(100)])
    assert beta.mean() == pytest.approx(0.5, abs=5 * np.sqrt(10.0 / beta.size))
    assert beta.var() == pytest.approx(10.0, rel=0.1)


def test_realizable_rows_are_signed_unit_vectors():
    X, y, beta, *_ = make_relu(30, 6, noise=0.0, random_state=0)
    np.testing.assert_array_equal(X[:6], np.diag(np.sign(beta)))
    np.testing.assert_array_equal(y, np.maximum(X @ beta, 0.0))
    assert not np.array_equal(make_relu(30, 6, noise=0.0, realizable=False, random_state=0).X[:6], X[:6])


def test_gaussian_design():
    X = make_relu(5000, 4, design="gaussian", random_state=0).X
    assert X.std() == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n_samples": 0}, "n_samples is 0"),
        ({"n_features": 0}, "n_features is 0"),
        ({"sparsity": 0.0}, "sparsity is 0.0"),
        ({"sparsity": 1.5}, "sparsity is 1.5"),
        ({"noise": -0.1}, "noise is -0.1"),
        ({"beta_variance": -1.0}, "beta_variance is -1.0"),
        ({"design": "cauchy"}, "design is 'cauchy'"),
        ({"n_samples": 2, "noise": 0.0}, "n_samples is 2"),
    ],
)
def test_bad_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        make_relu(**{"n_samples": 10, "n_features": 3} | arguments)
