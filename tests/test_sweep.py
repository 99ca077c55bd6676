import numpy as np
import pytest

from rectifit import Problem, pieces
from rectifit.active import ALL, Cut, Sign
from rectifit.data import ArrayData
from rectifit.data.sampling import hash_rows
from rectifit.surrogate.band import NearSums, sum_near
from rectifit.surrogate.passes import PassReader
from rectifit.surrogate.sweep import Probe


def of_all(swept, line):
    """Sums over all near rows of a line, those that are brought back as well."""
    sums = NearSums(*(part[line : line + 1] for part in swept.band))
    for rows in swept.near[line] or ():
        # Their moments are there.
        smoothed = sum_near(rows, swept.widths[line])
        sums = sums.add(smoothed._replace(moments=np.zeros_like(smoothed.moments)))
    return sums


@pytest.mark.parametrize("share", [1, 4, 10_000])
@pytest.mark.parametrize("seed", range(6))
def test_a_pass_is_the_sums_that_it_stands_for(seed, share, monkeypatch):
    # However many rows are multiplied at a time, however large the pieces are.
    rng = np.random.default_rng(seed)
    n, p = 400, 4
    X = rng.standard_normal((n, p)) * ([1.0, 1e3, 1e-3, 1.0] if seed != 4 else 1e120)
    X[rng.random(n) < 0.05] = 0.0
    y = rng.standard_normal(n) * 3.0
    w = rng.integers(0, 3, n).astype(float) if seed % 2 else None
    intercept = seed % 3 != 0
    monkeypatch.setattr("rectifit.surrogate.piece_rows.CHOSEN_SHARE", share)
    monkeypatch.setattr("rectifit.data.blocks.PIECE_NUMBERS", 600)
    reader = PassReader(Problem(ArrayData(X, y, w, block_rows=300), fit_intercept=intercept))
    coordinates, q = reader.coordinates, reader.coordinates.n_directions
    assert coordinates.is_tame == (seed != 4)
    here = reader.least_squares()
    points = [here, here + 0.3 * rng.standard_normal(q), rng.standard_normal(q)]
    sign = Sign(*coordinates.coefficients(here), 0.0, here)
    sets = [Cut(float(np.median(y)), 0), ALL, sign]
    widths = [0.2, 0.05, 1.0]
    probes = [Probe(g, active, h, 50, zero=0.0) for g, active, h in zip(points, sets, widths, strict=True)]
    swept = reader.sweep(probes)
    root = np.ones(n) if w is None else np.sqrt(w)
    columns = np.column_stack([X, np.ones(n)]) if intercept else X
    Z, v = (root[:, None] * columns) @ coordinates.T, root * y / coordinates.scale
    kink, numbers = 2.0 * np.maximum(v, 0.0), hash_rows(np.arange(n))
    actives = [(root * y > np.median(y)), v > 0.0, Z @ points[0] > 0.0]
    for e, (probe, active, far) in enumerate(zip(probes, actives, swept.far(), strict=True)):
        u, on = Z @ probe.gamma, active & (v > 0.0)
        near = ~on & (np.abs(u - kink) <= probe.width)
        right = on | (u > kink)
        assert swept.values[e] == pytest.approx(np.square(np.where(right, u, 0.0) - v).sum(), rel=1e-12)
        assert swept.objectives[e] == pytest.approx(np.square(np.maximum(u, 0.0) - v).sum(), rel=1e-12)
        fingerprints = [numbers[chosen].sum() for chosen in (on, (u > 0.0) & (v > 0.0))]
        np.testing.assert_array_equal(swept.fingerprints[e], fingerprints)
        C = np.column_stack([Z, v])[right & ~near]
        np.testing.assert_allclose(far, C.T @ C, rtol=1e-9, atol=1e-11 * np.trace(far))
        moving = near & (Z != 0.0).any(axis=1)
        assert swept.n_near[e] == moving.sum()
        rows = swept.near_rows(e, q)
        assert (rows is None) == (moving.sum() > 50)
        if rows is not None:
            order = np.lexsort(rows.Z.T), np.lexsort(Z[moving].T)
            np.testing.assert_allclose(rows.Z[order[0]], Z[moving][order[1]], rtol=1e-12)
            np.testing.assert_allclose(rows.u[order[0]], u[moving][order[1]], rtol=1e-9, atol=1e-12)
        # Smoothed: the slope rises linearly over the width on both sides of the kink.
        h, k, t = probe.width, kink[moving], v[moving]
        rise = (k + h - t) / h
        half = 0.5 * rise * (u[moving] - k + h)
        sums = of_all(swept, e)
        np.testing.assert_allclose(sums.slopes[0], half @ Z[moving], rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(
            sums.grams[0], (Z[moving].T * rise * 0.5) @ Z[moving], rtol=1e-9, atol=1e-11
        )
        gaps = [
            pieces.value(u[moving], t, k),
            pieces.conjugate(2.0 * half, t, k),
            -2.0 * half * u[moving],
        ]
        assert sums.gaps[0] == pytest.approx(float(np.sum(gaps)), rel=1e-9, abs=1e-11)
