import numpy as np
import pytest

from rectifit.data import ArrayData, ranks
from rectifit.data.ranks import find_cuts

KINDS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "ties": lambda rng, n: rng.integers(-3, 4, n).astype(float),
    "one value": lambda _, n: np.full(n, 2.5),
    "wide": lambda rng, n: rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-300.0, 300.0, n),
    "ends": lambda rng, n: rng.choice([0.0, 5e-324, 1.2e308, -1.0], n),
}


@pytest.mark.parametrize("max_members", [1, 5, 4096])
@pytest.mark.parametrize("bin_bits", [2, 13])
@pytest.mark.parametrize("kind", KINDS)
def test_cuts_are_those_of_sorted_samples(kind, bin_bits, max_members, monkeypatch):
    monkeypatch.setattr(ranks, "MAX_MEMBERS", max_members)
    monkeypatch.setattr(ranks, "BIN_BITS", bin_bits)
    rng = np.random.default_rng(0)
    n = 500
    y = KINDS[kind](rng, n)
    w = rng.integers(0, 3, n).astype(float)
    for weights in (None, w):
        v = y if weights is None else np.sqrt(weights) * y
        order = np.lexsort((np.arange(n), v))
        order = order[v[order] > 0.0]
        m = order.size
        data = ArrayData(np.ones((n, 1)), y, weights, block_rows=77)
        sought = sorted({0, 1, m // 3, m // 2, m - 2, m - 1})
        # A good sample, one that misleads, and none.
        for sample in (np.sort(v[order[:: m // 50 or 1]]), v[order[:3]], v[order[-3:]], np.empty(0)):
            cuts = find_cuts(lambda task, d=data: d.reduce(task, design=False), sought, n, m, sample)
            for rank, cut in zip(sought, cuts, strict=True):
                active = (v > cut.value) | ((v == cut.value) & (np.arange(n) >= cut.first))
                np.testing.assert_array_equal(np.flatnonzero(active), np.sort(order[rank:]))


def test_a_good_sample_saves_passes():
    rng = np.random.default_rng(1)
    y = rng.standard_normal(200_000)
    data, passes = ArrayData(np.ones((y.size, 1)), y), []

    def reduce(task):
        passes.append(task)
        return data.reduce(task, design=False)

    m = int((y > 0.0).sum())
    some = np.sort(y[:5000][y[:5000] > 0.0])
    cuts = find_cuts(reduce, [m // 10, m // 2], y.size, m, some)
    assert [int((y >= cut.value).sum()) for cut in cuts] == [m - m // 10, m - m // 2]
    assert len(passes) == 2
