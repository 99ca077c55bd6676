import numpy as np
import pytest
from brute import least_objective, random_problem

from rectifit import Problem
from rectifit.experiments.asymptotics import asymptotic_rows, compute_erratum
from rectifit.experiments.figures import draw_erratum
from rectifit.experiments.limits import least_surrogate, simulated_surrogate, surrogate_limit
from rectifit.experiments.ratio import make_decoys, measure_ratios, ratio_rows


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
    figure = draw_erratum(compute_erratum(n_samples=2_000))
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


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("n", [6, 20, 50])
def test_decoys_have_the_largest_ratio(n, k):
    X, y = make_decoys(n, k)
    larger_k = min(k + 1, n)
    ratio, settled = (ratio.value for ratio in measure_ratios(X, y, [k, larger_k]))
    assert 0.995 * (n - 1) / k < ratio <= (n - 1) / k
    # One more sample to leave out, and all decoys can be off.
    assert settled == pytest.approx(1.0, abs=1e-6)


def test_no_ratio_is_above_the_largest():
    worst, ks = 0.0, (1, 2, 3)
    for seed in range(60):
        drawn = random_problem(seed, n_samples=8)
        # All outcomes positive in every other one, where the bound is hardest to keep.
        y = drawn.y if seed % 2 else np.abs(drawn.y)
        problem = Problem.from_data(drawn.X, y, fit_intercept=False)
        optimum = least_objective(problem)
        for k, ratio in zip(ks, measure_ratios(problem.X, problem.y, ks), strict=True):
            assert ratio.optimum == pytest.approx(optimum, rel=1e-5, abs=1e-9 * problem.null_objective)
            assert ratio.objective <= 7 / k * optimum * (1.0 + 1e-6) + 1e-9 * problem.null_objective
            worst = max(worst, ratio.value)
    # There were cases that are not trivial.
    assert worst > 1.1


def test_ratio_rows():
    rows = ratio_rows([6], [1, 2], n_instances=8, n_steps=8)
    assert [(row.family, row.k) for row in rows] == [
        *((family, k) for family in ("paper", "unrelated", "heavy") for k in (1, 2)),
        *((family, k) for k in (1, 2) for family in ("climb", "decoys")),
    ]
    for row in rows:
        assert row.guarantee == 6 / row.k
        assert 1.0 <= row.median <= row.worst <= (row.n - 1) / row.k + 1e-9
        assert row.worst == pytest.approx(max(1.0, row.objective / row.optimum))
    assert rows == ratio_rows([6], [1, 2], n_instances=8, n_steps=8)


def test_decoys_need_more_samples_than_k():
    with pytest.raises(ValueError, match="n_samples is 3"):
        make_decoys(3, 3)
