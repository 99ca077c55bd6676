import numpy as np
import pytest
from brute import least_objective, random_problem

from rectifit import Problem, certify, routing, solve
from rectifit.certificate.best_first import Control
from rectifit.certificate.cone_kernel import EMPTY, bound_parts
from rectifit.certificate.cones import Cone, ConeSearch
from rectifit.certificate.envelope import CONVEX, FREE, OFF, ON
from rectifit.certificate.presolve import reduce_rows
from rectifit.certificate.records import ConeBounds, ConeHalves, Samples
from rectifit.certificate.relaxation import Start
from rectifit.certificate.tighten import can_shrink


def search_of(Z, y, ridge, cutoff, n_nodes=2000):
    def is_over():
        return search.n_nodes >= n_nodes

    control = Control(lambda: cutoff, lambda _: None, is_over)
    search = ConeSearch(Z, y, ridge, np.ones(Z.shape[1]), control)
    return search


@pytest.mark.parametrize("chunk", range(8))
def test_against_brute_force(chunk):
    closed = 0
    for seed in range(10 * chunk, 10 * chunk + 10):
        problem = random_problem(seed)
        reduced = reduce_rows(problem)
        least = reduced.value(least_objective(problem))
        slack = 1e-8 * (1.0 + float(reduced.y @ reduced.y))
        # What lies just below the least loss is ruled out, mostly soon; what lies above it never is.
        below = search_of(reduced.Z, reduced.y, reduced.ridge, least - 1e-3 * (least + slack), n_nodes=1000)
        closed += below.run()
        assert below.lower_bound <= least + slack
        above = search_of(reduced.Z, reduced.y, reduced.ridge, least + 0.1 + slack, n_nodes=300)
        above.run()
        assert above.lower_bound <= least + slack
    assert closed >= 7


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
def test_bounds_of_random_cones(seed, mix):
    """No direction in a cone, at its best length, has a loss below the bound of the cone."""
    draw = np.random.default_rng(seed)
    Z = np.column_stack([draw.normal(size=(60, 3)), np.ones(60)]) / 8.0
    y = np.maximum(draw.normal(0.5, 1.0, size=60), -0.5)
    search = search_of(Z, y, np.zeros((4, 4)), np.inf)
    Z = search.samples.Z
    for _ in range(20):
        axis, sign = int(draw.integers(4)), float(draw.choice([-1.0, 1.0]))
        low = draw.uniform(-1.0, 1.0, size=4)
        high = np.minimum(low + draw.choice([0.02, 0.2, 1.0]) * draw.random(4), 1.0)
        low[axis] = high[axis] = sign
        kind = np.where(y > 0, FREE, CONVEX).astype(np.int8)
        cone = Cone(0.0, axis, sign, low, high, kind, 0.5 * (low + high), 0)
        bound = search._relax(cone, mix).minimise(Start(cone.b))
        directions = draw.uniform(low, high, size=(2000, 4))
        u = directions @ Z.T
        assert np.all(u[:, cone.kind == ON] >= -1e-12)
        assert np.all(u[:, cone.kind == OFF] <= 1e-12)
        fitted = np.maximum(u, 0.0)
        squares = np.square(fitted).sum(axis=1)
        gain = np.square(np.maximum(fitted @ y, 0.0)) / np.maximum(squares, 1e-300)
        assert bound.value <= float(y @ y) - gain.max() + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_low_signal_with_an_intercept_is_proved_without_a_box(seed):
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(150, 3))
    y = np.maximum(X @ [0.6, -0.6, 0.5] + 0.3 + 1.5 * draw.normal(size=150), 0.0)
    best = solve(X, y)
    certificate = certify(X, y, best, target_gap=1e-2, time_limit=60)
    assert certificate.status == "optimal"
    assert certificate.box is None
    # The search over signs, cut short, agrees.
    certificate.solution.verify()
    tries = solve(X, y, "multistart", n_starts=300)
    assert certificate.lower_bound <= min(tries.objective, best.objective) * (1 + 1e-9)
    blind = certify(X, y, np.zeros(3), target_gap=1e-2, time_limit=60)
    assert blind.objective == pytest.approx(certificate.objective, rel=1.01e-2)


@pytest.mark.parametrize("seed", range(3))
def test_categories_are_faces(seed, monkeypatch):
    """With dummies whole categories can be off: the rest is a problem of less dimension."""
    draw = np.random.default_rng(seed)
    kinds = draw.integers(0, 3, size=120)
    X = np.column_stack([kinds == 1, kinds == 2, draw.normal(size=120)]).astype(float)
    y = np.maximum(X @ [0.5, -1.0, 0.5] + 0.2 + draw.normal(size=120), 0.0)
    gone_into = []
    face_bound = ConeSearch._face_bound

    def watched(self, kind):
        before = len(self._faces)
        value = face_bound(self, kind)
        gone_into.append(len(self._faces) - before)
        return value

    monkeypatch.setattr(ConeSearch, "_face_bound", watched)
    best = solve(X, y)
    certificate = certify(X, y, best, target_gap=1e-2, time_limit=60)
    assert certificate.status == "optimal"
    assert sum(gone_into) > 0
    monkeypatch.setattr(routing, "LOW_SIGNAL_SHARE", 2.0)
    by_signs = certify(X, y, best, target_gap=1e-2, time_limit=1)
    assert by_signs.lower_bound <= certificate.objective * (1 + 1e-9)


def test_which_data_have_intervals():
    draw = np.random.default_rng(0)
    X = draw.normal(size=(50, 3))
    assert can_shrink(X)
    assert not can_shrink(np.abs(X))
    assert not can_shrink(np.column_stack([X, np.ones(50)]))


def test_a_ridge_is_part_of_the_bound():
    problem = Problem.from_data([[1.0], [2.0], [-1.0]], [1.0, 2.0, 0.5], fit_intercept=False, alpha=3.0)
    reduced = reduce_rows(problem)
    least = reduced.value(least_objective(problem))
    search = search_of(reduced.Z, reduced.y, reduced.ridge, least * (1 - 1e-4))
    assert search.run()


def tighten_checked(seed):
    """Tighten cones around the least-squares fit; how often edges were drawn in and samples settled."""
    draw = np.random.default_rng(seed)
    Z = np.column_stack([draw.normal(size=(60, 2)), np.ones(60)]) / 8.0
    y = np.maximum(Z @ [4.0, -4.0, 2.0] + draw.normal(0.0, 0.5, size=60), -0.3)
    search = search_of(Z, y, np.zeros((3, 3)), np.inf)
    Z, narrowed, settled = search.samples.Z, 0, 0
    best = np.linalg.solve(search._turn, np.linalg.lstsq(Z @ search._turn.T, y, rcond=None)[0])
    axis = int(np.argmax(np.abs(best)))
    sign = float(np.sign(best[axis]))
    for width in (0.1, 0.3, 1.0):
        ratio = best / (sign * best[axis])
        low, high = np.maximum(ratio - width, -1.0), np.minimum(ratio + width, 1.0)
        low[axis] = high[axis] = sign
        kind = np.where(y > 0, FREE, CONVEX).astype(np.int8)
        split, other = (axis + 1) % 3, (axis + 2) % 3
        middle = 0.5 * (low[split] + high[split])
        directions = draw.uniform(low, high, size=(4000, 3))
        u = directions @ Z.T
        fitted = np.maximum(u, 0.0)
        squares = np.maximum(np.square(fitted).sum(axis=1), 1e-300)
        losses = float(y @ y) - np.square(np.maximum(fitted @ y, 0.0)) / squares
        cutoff = float(np.quantile(losses, 0.03))
        halves = ConeHalves.of(axis, sign, split, low, high, kind, best)
        _, _, _, lows, highs, kinds, _ = halves
        found = ConeBounds(np.empty(2), np.empty(2, np.int64), np.empty(2, np.int64))
        samples = Samples.from_rows(Z, y, np.zeros((3, 3)))
        bound_parts(tuple(samples), tuple(halves), cutoff, tuple(found))
        for e, side in enumerate((directions[:, split] <= middle, directions[:, split] >= middle)):
            better = side & (losses < cutoff)
            assert found.bounds[e] <= losses[side].min() + 1e-9
            if found.states[e] == EMPTY:
                assert not better.any()
                continue
            assert np.all(directions[better] >= lows[e] - 1e-12)
            assert np.all(directions[better] <= highs[e] + 1e-12)
            assert np.all(u[better][:, kinds[e] == ON] >= -1e-12)
            assert np.all(u[better][:, kinds[e] == OFF] <= 1e-12)
            narrowed += bool((highs[e] - lows[e])[other] < (high - low)[other] - 1e-6)
            settled += int(np.count_nonzero(kinds[e] >= ON))
    return narrowed, settled


def test_tightening_keeps_every_better_direction():
    narrowed, settled = np.sum([tighten_checked(seed) for seed in range(30)], axis=0)
    assert narrowed > 30
    assert settled > 300


def test_several_threads_prove_the_same():
    draw = np.random.default_rng(3)
    X = draw.normal(size=(150, 4))
    y = np.maximum(X @ [0.6, -0.6, 0.5, 0.2] + 0.3 + 1.5 * draw.normal(size=150), 0.0)
    best = solve(X, y)
    alone, together = (certify(X, y, best, target_gap=1e-2, n_jobs=n, time_limit=60) for n in (1, 3))
    assert alone.status == together.status == "optimal"
    assert together.objective == pytest.approx(alone.objective, rel=1e-2)
    assert together.lower_bound <= alone.objective * (1 + 1e-12)
