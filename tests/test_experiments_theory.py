import numpy as np
import pytest

from rectifit.experiments.asymptotics import asymptotic_rows, draw_erratum
from rectifit.experiments.limits import least_surrogate, simulated_surrogate, surrogate_limit


def test_quadrature_is_the_mean_over_a_large_sample():
    rng = np.random.default_rng(0)
    x, noise = rng.standard_normal((2, 400_000))
    for beta, gamma, delta, t, b, b_true in (
        (1.0, 0.3, 1.0, 0.5, 0.0, 0.0),
        (0.4, 1.0, 2.0, 0.0, -0.3, 0.5),
        (-1.0, 0.1, 0.7, 0.2, 0.6, -0.2),
        (3.0, 0.5, 1.0, 2.0, 0.0, 0.0),
    ):
        y = np.maximum(delta * x + b_true, 0.0) + gamma * noise
        u = beta * x + b
        inactive = np.where(u > 2.0 * y, (u - y) ** 2, y**2)
        terms = np.where(y > t, (u - y) ** 2, np.where(y > 0.0, inactive, (np.maximum(u, 0.0) - y) ** 2))
        found = surrogate_limit(beta, gamma, delta, t, intercept=b, true_intercept=b_true)
        # Five standard errors.
        assert found == pytest.approx(terms.mean(), abs=5.0 * terms.std() / np.sqrt(terms.size))


@pytest.mark.parametrize(("gamma", "ratio"), [(0.01, 0.0), (0.1, 1.0), (0.5, 2.0)])
def test_large_samples_have_the_limit(gamma, ratio):
    limit = least_surrogate(gamma, 1.0, ratio * gamma)
    for n_features in (1, 3):
        found = [
            simulated_surrogate(gamma, 1.0, ratio * gamma, 50_000, n_features, seed) for seed in range(8)
        ]
        assert np.mean(found) == pytest.approx(limit, abs=5.0 * np.std(found) / np.sqrt(7.0))


def test_rows():
    rows = asymptotic_rows((0.01, 0.5), (0.0, 3.0), n_samples=200_000)
    assert [(row.gamma, row.threshold_ratio) for row in rows] == [
        (0.01, 0.0),
        (0.01, 3.0),
        (0.5, 0.0),
        (0.5, 3.0),
    ]
    for row in rows:
        assert row.gamma**2 <= row.surrogate <= row.corrected
        assert row.simulated == pytest.approx(row.surrogate, rel=0.1)
    # The printed bound is wrong where the noise is small and the threshold 0.
    assert [row.surrogate <= row.printed for row in rows] == [False, True, True, True]


def test_picture_of_the_erratum(tmp_path):
    figure = draw_erratum(n_samples=2_000)
    left, right = figure.axes
    curves = {line.get_label(): np.asarray(line.get_ydata()) for line in left.lines}
    surrogate = curves["least surrogate, quadrature"]
    assert (surrogate <= curves["corrected bound"]).all()
    assert surrogate[0] > curves["bound as printed"][0] > surrogate[-1]
    curves = {line.get_label(): np.asarray(line.get_ydata()) for line in right.lines}
    assert (curves["least surrogate, threshold 0"] > curves["bound as printed"])[0]
    assert (curves["least surrogate, the corrected bound's threshold"] <= curves["bound as printed"]).all()
    for axes in (left, right):
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        assert len(axes.get_legend().get_texts()) == 5
    figure.savefig(tmp_path / "erratum.png", dpi=80)
    assert (tmp_path / "erratum.png").stat().st_size > 10_000
