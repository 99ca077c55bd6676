import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from rectifit import solve
from rectifit.comparison import METHODS, compare
from rectifit.comparison.baselines import BASELINES, ClippedLinearRegression, baselines_within
from rectifit.datasets import make_relu


def test_general_solver_reaches_realizable_data():
    X, y, *_ = make_relu(100, 3, noise=0.0, random_state=0)
    starts = next(baseline.estimator for baseline in BASELINES if "starts" in baseline.name)
    np.testing.assert_allclose(clone(starts).fit(X, y).predict(X), y, atol=1e-5)
    line = LinearRegression().fit(X, y).predict(X)
    np.testing.assert_array_equal(ClippedLinearRegression().fit(X, y).predict(X), np.maximum(line, 0.0))


@pytest.fixture(scope="module")
def comparison():
    X, y, *_ = make_relu(120, 3, noise=0.4, random_state=1)
    y = np.maximum(y, 0.0)
    return X, y, compare(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_way_has_its_errors(comparison):
    X, y, found = comparison
    assert [row.name for row in found.rows] == [*(baseline.name for baseline in BASELINES), *METHODS]
    by_name = {row.name: row for row in found.rows}
    for row in found.rows:
        assert row.skipped is None
        assert row.cross_validated > 0.0
    for baseline in BASELINES:
        errors = clone(baseline.estimator).fit(X, y).predict(X) - y
        assert by_name[baseline.name].in_sample == pytest.approx(np.mean(errors**2), rel=1e-9)
        assert (by_name[baseline.name].gap is None) == (not baseline.is_relu)


def test_gaps_rest_on_one_proof(comparison):
    _, y, found = comparison
    for row in found.rows:
        if row.gap is not None:
            least = found.certificate.lower_bound / y.size
            assert row.in_sample >= least * (1 - 1e-9)
            assert row.gap == pytest.approx(1.0 - least / row.in_sample, abs=1e-12)
    assert found.rows[-1].gap <= 1.1e-4


def test_cross_validation_is_by_the_same_seeded_folds(comparison):
    X, y, found = comparison
    again = {row.name: row.cross_validated for row in compare(X, y).rows}
    other = {row.name: row.cross_validated for row in compare(X, y, seed=1).rows}
    for row in found.rows:
        assert row.cross_validated == again[row.name]
    assert other["auto"] != again["auto"]


@pytest.mark.parametrize(
    "bounds",
    [
        [(0, np.inf)] * 3,
        [(-np.inf, 0.1), (-0.2, 0.2), (-np.inf, np.inf)],
        [(0.5, 0.5), (0, np.inf), (-1, 0)],
        [(1, 1), (0, 0), (-2, -2)],
    ],
)
def test_within_bounds(bounds):
    bounds = np.array(bounds, dtype=float)
    X, y, *_ = make_relu(120, 3, noise=0.4, random_state=1)
    X = X * [1.0, 50.0, 1.0] + [0.0, 3.0, 1e-3]
    y = np.maximum(y, 0.0)
    found = compare(X, y, bounds=bounds)
    rows = {row.name: row for row in found.rows}
    keeping = {"scipy least_squares, 20 starts", "scipy lsq_linear, bounded", *METHODS}
    is_signs = (bounds == [0, np.inf]).all()
    keeping |= {"LinearRegression(positive=True)"} if is_signs else set()
    assert {name for name, row in rows.items() if not row.ignores_bounds} == keeping
    # Bounds hold for the alternatives that say so, and their errors are those of least squares there.
    for candidate in baselines_within(bounds):
        fitted = clone(candidate.estimator).fit(X, y)
        if not candidate.ignores_bounds:
            assert ((bounds[:, 0] <= fitted.coef_) & (fitted.coef_ <= bounds[:, 1])).all()
    best = rows["auto"].in_sample
    assert rows["scipy least_squares, 20 starts"].in_sample >= best * (1 - 1e-6)
    assert rows["scipy least_squares, 20 starts"].in_sample <= best * (1 + 1e-3)
    if is_signs:
        line = rows["LinearRegression(positive=True)"].in_sample
        assert rows["scipy lsq_linear, bounded"].in_sample == pytest.approx(line, rel=1e-6)
    with_gap = {name for name, row in rows.items() if row.gap is not None}
    assert with_gap == {"scipy least_squares, 20 starts", *METHODS}
    for row in found.rows:
        assert row.gap is None or row.in_sample >= found.certificate.lower_bound / y.size * (1 - 1e-9)
    assert found.remarks() == ["* ignores the bounds of the coefficients."]
    names = [name for name, *_ in found.table().rows]
    assert sum(name.endswith(" *") for name in names) == len(rows) - len(keeping)


def test_what_cannot_be_fitted_says_why():
    X, y, *_ = make_relu(40, 2, noise=0.4, random_state=1)
    skipped = {row.name: row.skipped for row in compare(X, y).rows if row.skipped}
    assert set(skipped) == {"Poisson GLM", "Tweedie GLM, power 1.5", "Tobit"}
    assert f"{y.min():.4g}" in skipped["Tobit"]
    rows = compare(X, np.where(np.arange(40) == 7, 1.0, 0.0)).rows
    assert {row.name for row in rows if row.skipped} == set(skipped)


def test_too_few_rows_to_leave_any_out():
    rows = compare(np.eye(3), np.array([0.0, 1.0, 2.0])).rows
    assert all(row.cross_validated is None for row in rows)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_without_a_proof_the_table_has_no_gaps(comparison):
    X, y, proved = comparison
    fit = solve(X, y)
    assert not fit.certificate.says_anything
    headings = [
        [column.name for column in found.table().columns]
        for found in (proved, compare(X, y, certificate=fit.certificate))
    ]
    assert headings[0] == [*headings[1], "gap"]
