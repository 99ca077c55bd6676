"""Proofs over signs: what they state is true, whatever a file says, and every field of them counts."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from brute import least_objective
from constrained import constrained_problem
from scipy.optimize import LinearConstraint
from test_proof_files import assert_no_more, changed, head_of, sealed, with_head

from rectifit import Problem, ProofError, certify, check_proof, solve
from rectifit.checking.reading import DIGEST_BYTES, allowed_by, open_proof
from rectifit.checking.rows import distinct_rows
from rectifit.checking.sign_tree import (
    BOX,
    CUTOFF,
    NODE,
    POINT,
    SHARES,
    SIGNS,
    TILTS,
    UNSPLIT,
    WITHOUT_SHARES,
)
from rectifit.checking.signs import Point, SignRules, Tilt, least_on
from rectifit.datasets import make_relu


def make_data(seed, n=11, p=3):
    """Few samples without an intercept, of several kinds, with weights or a ridge."""
    draw = np.random.default_rng([seed, n, p])
    X = draw.normal(size=(n, p))
    if seed % 3 == 1:
        X = draw.integers(-1, 2, size=(n, p)).astype(float)
    y = np.maximum(X @ draw.normal(size=p), 0.0) + draw.choice([0.1, 1.0]) * draw.normal(size=n)
    if seed % 4 == 2:
        y = draw.standard_t(1.5, size=n)
    options = {"fit_intercept": False, "alpha": float(draw.choice([0.0, 0.0, 0.5]))}
    if seed % 5 == 3:
        options["sample_weight"] = 10.0 ** draw.uniform(-3, 3, size=n)
    return X, y, options


def weights_of(options):
    return {"sample_weight": options.get("sample_weight")}


def fields_of(path, n, q):
    """Where each step of each node begins in the file, with its code; and nodes, with where they end."""
    _, reader = open_proof(path)
    offset = path.stat().st_size - DIGEST_BYTES - len(reader.content)
    found = []
    while tag := reader.take("B")[0]:
        found.append((offset + reader.at, {SIGNS: "tree", NODE: "node"}[tag]))
        if tag == SIGNS:
            reader.skip(5 + 8 * q * q)
            continue
        _, n_steps = reader.take("II")
        for _ in range(n_steps):
            found.append((offset + reader.at, reader.take("B")[0]))
            code = found[-1][1]
            reader.skip({CUTOFF: 8, SHARES: 4 * n, WITHOUT_SHARES: 0, BOX: 16 * q * q}.get(code, 0))
            for _ in range({POINT: 1, TILTS: 0}.get(code) or (reader.take("I")[0] if code == TILTS else 0)):
                reader.skip(8 * q + 4 * (code == TILTS))
                reader.skip(12 * reader.take("I")[0])
        found.append((offset + reader.at, "split"))
        reader.skip(4)
    return found


@pytest.fixture(scope="module")
def proof(tmp_path_factory):
    """A proof with all kinds of steps and some nodes, its data and its bytes."""
    path = tmp_path_factory.mktemp("proof") / "p.rproof"
    X, y, *_ = make_relu(40, 6, noise=5.0, sparsity=0.3, design="gaussian", random_state=2)
    certify(X, y, proof=path, time_limit=None, fit_intercept=False, target_gap=1e-5)
    return path, X, y, path.read_bytes()


@pytest.mark.parametrize("seed", range(20))
def test_what_is_proved_is_true(seed, tmp_path):
    X, y, options = make_data(seed)
    path = tmp_path / "p.rproof"
    certificate = certify(X, y, proof=path, time_limit=None, **options)
    least = least_objective(Problem.from_data(X, y, **options))
    checked = check_proof(path, X, y, **weights_of(options))
    assert checked.lower_bound <= least <= checked.objective * (1.0 + 1e-9)
    assert checked.gap <= certificate.target_gap * (1.0 + 1e-5) or least <= 1e-9 * float(y @ y)
    assert_no_more(path, least, X, y, **weights_of(options))


@pytest.mark.parametrize("p", [20, 30])
def test_proofs_of_many_coefficients(p, tmp_path):
    X, y, *_ = make_relu(20 * p, p, noise=0.05, random_state=0)
    certificate = certify(X, y, proof=tmp_path / "p.rproof", fit_intercept=False, time_limit=None)
    checked = check_proof(tmp_path / "p.rproof", X, y)
    assert certificate.status == "optimal"
    assert checked.gap <= 1e-4 * (1.0 + 1e-5)


def test_an_interrupted_search_has_a_proof_of_its_bound(tmp_path):
    X, y, *_ = make_relu(80, 8, noise=3.0, sparsity=0.3, random_state=1)
    fit = solve(X, y, fit_intercept=False)
    for time_limit in (1.0, 4.0, 16.0, 64.0):
        certificate = fit.certify(proof=tmp_path / "p.rproof", time_limit=time_limit, target_gap=1e-6)
        checked = check_proof(tmp_path / "p.rproof", X, y)
        assert certificate.status == "time_limit"
        assert checked.lower_bound <= certificate.lower_bound
        if checked.lower_bound > float(np.square(np.minimum(y, 0.0)).sum()) * (1.0 + 1e-9):
            break
    assert checked.lower_bound == pytest.approx(certificate.lower_bound, rel=1e-4)


@pytest.mark.parametrize("seed", [2, 3])
def test_a_proof_without_a_limit_reaches_its_target(seed, tmp_path):
    """The search knows no more signs than the checker will: its leaves would be open in the file."""
    X, y, *_ = make_relu(30, 5, noise=5.0, sparsity=0.3, design="gaussian", random_state=seed)
    certificate = certify(
        X, y, proof=tmp_path / "p.rproof", time_limit=None, fit_intercept=False, target_gap=1e-5
    )
    assert certificate.status == "optimal"
    assert check_proof(tmp_path / "p.rproof", X, y).gap <= 1e-5 * (1.0 + 1e-5)


def test_the_same_proof_for_any_number_of_threads(tmp_path):
    X, y, *_ = make_relu(40, 6, noise=5.0, sparsity=0.3, design="gaussian", random_state=2)
    files = [tmp_path / f"{n_jobs}.rproof" for n_jobs in (1, 2)]
    for n_jobs, path in zip((1, 2), files, strict=True):
        certify(X, y, proof=path, time_limit=None, n_jobs=n_jobs, fit_intercept=False, target_gap=1e-5)
    ends = [path.read_bytes()[head_of(path.read_bytes())[2] :] for path in files]
    assert ends[0][:-DIGEST_BYTES] == ends[1][:-DIGEST_BYTES]


# ---- files that were changed ----


def test_every_kind_of_field_is_checked(proof, tmp_path):
    """Of every kind of step some are changed in every field: at least one change is noticed."""
    path, X, y, content = proof
    n, q = X.shape
    places = fields_of(path, n, q)
    kinds = {kind for _, kind in places}
    assert {"tree", "node", "split", CUTOFF, SHARES, BOX, POINT, TILTS} <= kinds
    stated, past_point = head_of(content)[0]["lower_bound"], 1 + 8 * q
    unnoticed = []
    changes = {
        "tree": [(0, "I", q - 1), (0, "I", 0), (4, "d", np.nan), (4, "d", 1e120), (12, "d", 1e9)],
        "node": [(0, "I", 10**6), (4, "I", 10**6), (4, "I", 2**32 - 1)],
        "split": [(0, "I", 0), (0, "I", n), (0, "I", UNSPLIT)],
        CUTOFF: [(0, "B", 99), (1, "d", 0.5 * stated), (1, "d", np.inf), (1, "d", np.nan), (1, "d", 1e6)],
        SHARES: [(1, "f", np.nan), (1, "f", np.inf), (1, "f", 1e30)],
        BOX: [(1, "d", np.nan), (1, "d", np.inf), (1, "d", 1e30)],
        POINT: [(1, "d", np.nan), (1, "d", np.inf), (1, "d", 1e9), (past_point, "I", 2**32 - 1)],
        TILTS: [(1, "I", 2**32 - 1), (5, "I", 2**31 - 1), (9, "d", np.nan), (9 + 8 * q, "I", 2**31)],
    }
    for kind, fields in changes.items():
        found = [at for at, code in places if code == kind]
        for where, code, value in fields:
            rejected = 0
            # What the first steps say, later ones of the same node may say again.
            for at in {*found[:3], *found[-3:]}:
                (tmp_path / "p").write_bytes(changed(content, at + where, code, value))
                try:
                    checked = check_proof(tmp_path / "p", X, y)
                except ProofError:
                    rejected += 1
                else:
                    # The same statement, which is true whatever the steps are.
                    assert checked.lower_bound == stated
            unnoticed += [(kind, where, code, value)] * (rejected == 0)
    assert not unnoticed


def test_a_missing_or_repeated_node_is_rejected(proof, tmp_path):
    path, X, y, content = proof
    starts = [at - 1 for at, kind in fields_of(path, *X.shape) if kind == "node"]
    assert len(starts) > 2
    end = len(content) - DIGEST_BYTES - 1
    first, last = starts[0], starts[-1]
    for other in (
        content[:first] + content[end:-DIGEST_BYTES],
        content[: starts[1]] + content[end:-DIGEST_BYTES],
        content[:last] + content[end:-DIGEST_BYTES],
        content[:end] + content[last:end] + content[end:-DIGEST_BYTES],
        content[:first] + content[first : starts[1]] + content[first:-DIGEST_BYTES],
        content[: first + 40],
        content[:end],
        content[:-DIGEST_BYTES] + b"\0",
    ):
        (tmp_path / "p").write_bytes(sealed(other))
        with pytest.raises(ProofError):
            check_proof(tmp_path / "p", X, y)


def test_flipped_bytes_are_rejected_or_leave_the_same_statement(proof, tmp_path):
    _, X, y, content = proof
    draw, stated = np.random.default_rng(1), head_of(content)[0]["lower_bound"]
    begin, n_rejected = sum(head_of(content)[1:]), 0
    for _ in range(30):
        other = bytearray(content[:-DIGEST_BYTES])
        for at in draw.integers(begin, len(other), size=draw.integers(1, 4)):
            other[at] ^= 1 << draw.integers(8)
        (tmp_path / "p").write_bytes(sealed(bytes(other)))
        try:
            assert check_proof(tmp_path / "p", X, y).lower_bound == stated
        except ProofError:
            n_rejected += 1
    assert n_rejected > 5


# ---- the lemmas ----


def test_the_least_of_a_parabola_is_never_too_high():
    """Against rationals, at ends, at vertices, and without ends."""
    draw = np.random.default_rng(0)
    slope, curve = draw.normal(size=(2, 4000)) * 10.0 ** draw.integers(-8, 9, size=(2, 4000))
    curve[::7], slope[::11] = 0.0, 0.0
    low = draw.normal(size=4000) * 10.0 ** draw.integers(-8, 9, size=4000)
    high = low + np.abs(draw.normal(size=4000)) * 10.0 ** draw.integers(-8, 9, size=4000)
    # Vertices in the interval, or at an end of it but for rounding.
    bent = np.flatnonzero(curve > 0.0)
    vertex = -slope[bent] / (2.0 * curve[bent])
    low[bent[::2]] = (vertex * (1.0 + 2e-16 * draw.integers(-2, 3, size=bent.size)))[::2]
    low[bent[1::2]] = np.minimum(low[bent], vertex)[1::2]
    high = np.maximum(low, high)
    least, error = least_on(slope, curve, low, high)
    for a, b, left, right, found, doubt in zip(slope, curve, low, high, least, error, strict=True):
        at = [Fraction(left), Fraction(right)]
        if b > 0.0 and at[0] <= -Fraction(a) / (2 * Fraction(b)) <= at[1]:
            at.append(-Fraction(a) / (2 * Fraction(b)))
        truth = min(Fraction(a) * x + Fraction(b) * x * x for x in at)
        assert Fraction(found) - Fraction(doubt) <= truth
    far = np.array([np.inf])
    assert least_on(np.array([-1.0]), np.zeros(1), -far, np.zeros(1))[0] == 0.0
    assert least_on(np.array([1.0]), np.zeros(1), -far, np.zeros(1))[0] == -np.inf
    assert least_on(np.array([1.0]), np.array([-1.0]), np.zeros(1), far)[0] == -np.inf


def rules_of(X, y, options, cutoff, draw, constraints=(), n_more=1):
    """The rules of the checker in some coordinates, for an objective to be reached, and these coordinates."""
    data = distinct_rows(False, options["alpha"], X, y, options.get("sample_weight"), 0.0, cutoff)
    T = np.linalg.qr(draw.normal(size=(X.shape[1],) * 2))[0] * draw.uniform(0.5, 2.0, size=X.shape[1])
    walls = data.walls(T, T[:, :0], allowed_by(constraints, len(T)))
    walls = walls.and_rows(draw.normal(size=(n_more, len(T))))
    return SignRules(data.inside(np.ones(len(data.y), dtype=bool), T, T[:, :0]), walls), T


def constraints_around(beta, draw):
    """A few that hold for some coefficients: equations, half-spaces, bounds on both sides."""
    found = []
    for _ in range(int(draw.integers(4))):
        row = draw.integers(-2, 3, size=beta.size).astype(float)
        value, size = float(row @ beta), float(np.abs(row) @ np.abs(beta))
        away = size * draw.choice([1e-9, 1e-3, 1.0, np.inf], size=2)
        low, high = value - away[0], value + away[1]
        pairs = [[j, float(row[j])] for j in np.flatnonzero(row).tolist()]
        found.append([pairs, *(end if np.isfinite(end) else None for end in (low, high))])
    return found


@pytest.mark.parametrize("seed", range(60))
def test_no_step_whatsoever_cuts_off_the_best_solution(seed):
    """Points, curvatures and slopes at random and near the best fit: what is better than the cutoff stays.

    A far node holds the point on its wall from which the best fit is a multiple.
    """
    X, y, options = make_data(seed)
    draw = np.random.default_rng(seed)
    fit = solve(X, y, "exact", target_gap=1e-9, **options)
    cutoff = fit.objective * (1.0 + 1e-7) + 1e-9 * float(y @ y)
    constraints = constraints_around(fit.beta, draw) if seed % 2 else ()
    rules, T = rules_of(X, y, options, cutoff, draw, constraints)
    # The coefficients of the best fit in coordinates of the checker; its mean is negative.
    best = whole = np.linalg.solve(T, fit.beta)
    mean = rules.rows.Z[-1]
    if mean @ best > 0.0:
        rules.rows.Z[-1] *= -1.0
    node = rules.below(rules.root(), rules.cutoff)
    n_steps = 0
    for turn in range(60):
        u = rules.rows.Z @ best
        room = 1e-9 * (np.abs(rules.rows.Z) @ np.abs(best)) + 1e-300
        # A chain of steps, each from a wild choice of numbers.
        kind = draw.integers(10)
        size = 10.0 ** draw.integers(-6, 3)
        rows = draw.permutation(rules.n)[: draw.integers(0, rules.n + 1) * draw.integers(2)]
        slopes = draw.normal(size=rows.size) * 10.0 ** draw.integers(-3, 3)
        x = best + size * draw.normal(size=rules.q) if draw.random() < 0.8 else np.zeros(rules.q)
        point = Point(x, rows, slopes)
        if kind == 0:
            shares = draw.normal(size=rules.n) * 10.0 ** draw.integers(-4, 2)
            node = replace(node, shares=shares)
        elif kind == 1:
            eyes = np.vstack([np.eye(rules.q), -np.eye(rules.q)])
            points = eyes * 10.0 ** draw.integers(-2, 3) + 0.3 * draw.normal(size=eyes.shape)
            node = rules.boxed(node, points)
        elif kind == 2:
            lines = draw.integers(0, rules.n + rules.q, size=5).tolist()
            node = rules.tilted(node, [Tilt(line, draw.choice([-1.0, 1.0]), point) for line in lines])
        elif kind == 3 and (np.abs(u) > room).all():
            # The side of a row on which the best fit is.
            row = int(draw.integers(rules.n_samples))
            node = rules.part(node, row, bool(u[row] > 0.0))
        elif kind == 6 and not node.is_far:
            # A slab that holds it.
            at = u[-1] * draw.choice([0.1, 0.999, 1.001, 10.0])
            node = rules.part(node, rules.n - 1, bool(u[-1] > at), at)
        elif kind == 7 and not node.is_far and node.high[-1] < 0.0:
            node = rules.far(node, rules.n - 1)
            best = whole * (node.high[-1] / u[-1])
            assert node.is_far
        elif kind == 9:
            node = rules.below(node, rules.cutoff)
        elif kind == 8 and node.is_far and draw.random() < 0.3:
            node, best = rules.near(node), whole
            assert not node.is_far
        elif kind == 4:
            # Better slopes, by a few steps towards the least point of the quadratic.
            curves = rules.curves(node)
            if curves.known:
                line = rules.support(node, curves, Point(x, np.zeros(0, np.int64), np.zeros(0)))
                x = -0.5 * np.linalg.solve(curves.known[0].K, line.G)
                if np.isfinite(x).all():
                    node = rules.bounded(node, Point(x, np.zeros(0, np.int64), np.zeros(0)))
        else:
            node = rules.bounded(node, point)
        n_steps += 1
        u = rules.rows.Z @ best
        room = 1e-9 * (np.abs(rules.rows.Z) @ np.abs(best)) + 1e-300
        assert not node.is_closed, turn
        assert (node.low <= u + room).all()
        assert (node.high >= u - room).all()
        assert (node.box[0] <= best + 1e-9 * (1.0 + np.abs(best))).all()
        assert (node.box[1] >= best - 1e-9 * (1.0 + np.abs(best))).all()
        assert node.value < rules.cutoff
    assert n_steps == 60


def loss_of(value, weight, outcome, is_far):
    """What a row costs, or over all larger scales, in rationals."""
    if is_far and outcome > 0:
        over = max(value - outcome, Fraction(0)) if value > 0 else outcome
        return weight * over**2
    return weight * (max(value, Fraction(0)) - outcome) ** 2


@pytest.mark.parametrize("is_far", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_quadratics_are_below_the_loss_in_their_node(seed, is_far):
    """Lemmas 5 and 9, at points of the node, in rationals."""
    X, y, options = make_data(seed)
    draw = np.random.default_rng(seed)
    rules, _ = rules_of(X, y, options, float(y @ y), draw)
    rows, node = rules.rows, rules.below(rules.root(), rules.cutoff)
    ends = np.abs(draw.normal(size=(2, rules.n)))
    node = replace(node, low=-ends[0], high=np.minimum(node.high, ends[1]))
    node = replace(node, far_wall=rules.n - 1) if is_far else node
    for _ in range(4):
        shares = draw.uniform(-0.9, 1.0, size=rules.n)
        node = replace(node, shares=shares)
        curves = rules.curves(node)
        slopes = draw.normal(size=3)
        point = Point(draw.normal(size=rules.q), draw.permutation(rules.n)[:3], slopes)
        line = rules.support(node, curves, point)
        for _ in range(60):
            g = draw.normal(size=rules.q) * 10.0 ** draw.integers(-3, 1)
            u = rows.Z @ g
            if not ((node.low <= u) & (u <= node.high)).all():
                continue
            exact = [Fraction(x) for x in g.tolist()]
            quadratic = Fraction(line.A) - Fraction(line.G_error) * max(abs(x) for x in exact)
            quadratic += sum(Fraction(a) * x for a, x in zip(line.G.tolist(), exact, strict=True))
            loss = Fraction(0)
            for j, row in enumerate(curves.K.tolist()):
                quadratic += sum(Fraction(k) * exact[j] * x for k, x in zip(row, exact, strict=True))
                loss += sum(
                    Fraction(b) * exact[j] * x for b, x in zip(rows.B[j].tolist(), exact, strict=True)
                )
            for z, w, target in zip(rows.Z.tolist(), rows.w.tolist(), rows.y.tolist(), strict=True):
                value = sum(Fraction(a) * x for a, x in zip(z, exact, strict=True))
                loss += loss_of(value, Fraction(w), Fraction(target), is_far)
            # Errors of K and of rows are far below this.
            assert quadratic <= loss + Fraction(1, 10**10)


def one_row(y, constraints=()):
    """The rules for the sample (1, y) and coefficients as they are."""
    data = distinct_rows(False, 0.0, np.ones((1, 1)), np.array([y]), None, 0.0, 0.25 * y * y)
    T = np.ones((1, 1))
    walls = data.walls(T, T[:, :0], allowed_by(constraints, 1)).and_rows(T)
    return SignRules(data.inside(np.ones(1, dtype=bool), T, T[:, :0]), walls)


@pytest.mark.parametrize("is_far", [False, True])
def test_the_least_of_a_loss_less_a_quadratic_is_just_that(is_far):
    """No more than at any point of the interval, and nearly as much as at one of them."""
    draw = np.random.default_rng(0)
    for y in (0.75, -0.75, 0.5):
        rules = one_row(y)
        w, outcome = float(rules.rows.w[0]), float(rules.rows.y[0])
        for _ in range(150):
            low, high = np.sort(draw.choice([-1.5, -0.3, 0.0, 0.4, 0.6, 1.5], size=2, replace=False))
            lam, kappa = 2.0 * draw.normal(size=2)
            node = replace(rules.root(), low=np.array([low, -1.0]), high=np.array([high, 1.0]))
            node = replace(node, far_wall=1) if is_far else node
            least = rules._least(node, np.array([lam, 0.0]), np.array([kappa, 0.0]))
            u = np.append(np.linspace(low, high, 3001), np.clip([1e-9, outcome], low, high))
            values = [float(loss_of(x, w, outcome, is_far)) for x in u] - lam * u - kappa * u * u
            assert least <= values.min() + 1e-12
            # At 0 a loss over all scales falls at once.
            end = min(values.min(), 0.0) if is_far and low == 0.0 and outcome > 0 else values.min()
            assert least >= end - 1e-5


def test_ends_of_walls_count_in_full_where_they_hold_coefficients():
    """With b >= -5, better solutions reach -5, where the sample is off."""
    rules = one_row(2.0, [[[[0, 1.0]], -5.0, None]])
    node = rules.boxed(rules.root(), np.array([[1.0], [-1.0]]))
    (low,), (high,) = node.box
    assert -5.0 * (1.0 + 1e-6) <= low <= -5.0
    assert high >= 2.0


CONSTRAINED = {
    "signs": {"positive": True},
    "bounds": {"bounds": (-0.5, 1.0)},
    "one side": {"bounds": {"x0": (-0.25, np.inf), "x2": (-np.inf, 0.0)}},
    "sums": {
        "constraints": LinearConstraint([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0]], [-np.inf, 0.0], [0.7, np.inf])
    },
    "equation": {"constraints": LinearConstraint([[1.0, 1.0, 0.0]], 0.3, 0.3)},
}


@pytest.mark.filterwarnings("ignore:the fit is the zero function")
@pytest.mark.parametrize("name", CONSTRAINED)
@pytest.mark.parametrize("seed", [0, 1, 4, 5, 8])
def test_what_is_proved_under_constraints_is_true(name, seed, tmp_path):
    X, y, options = make_data(seed)
    given, path = CONSTRAINED[name], tmp_path / "p.rproof"
    problem = constrained_problem(Problem.from_data(X, y, **options), **given)
    certificate = certify(X, y, proof=path, time_limit=None, target_gap=1e-3, **options, **given)
    least, checked = least_objective(problem), check_proof(path, X, y, **weights_of(options))
    assert checked.lower_bound <= least <= checked.objective * (1.0 + 1e-7)
    assert checked.gap <= certificate.target_gap * (1.0 + 1e-5) or least <= 1e-9 * float(y @ y)
    assert_no_more(path, least, X, y, **weights_of(options))


def test_constraints_are_part_of_what_is_stated(tmp_path):
    """Other constraints are rejected unless the same bound follows, and coefficients must satisfy them."""
    X, y, options = make_data(1)
    path = tmp_path / "p.rproof"
    certify(X, y, proof=path, positive=True, time_limit=None, **options)
    free = solve(X, y, "exact", **options).objective
    assert check_proof(path, X, y).lower_bound > free * (1.0 + 1e-3)
    stated = head_of(path.read_bytes())[0]["constraints"]
    assert sorted(pairs[0][0] for pairs, _, _ in stated) == [0, 1, 2]
    for other, sentence in [
        ([], "."),
        (stated[1:], "."),
        ([*stated, [[[0, 1.0]], 1e9, None]], "do not satisfy"),
        ([[[[7, 1.0]], None, 0.0]], "a constraint that is none"),
        ([[[[0, "1"]], None, 0.0]], "a constraint that is none"),
        ([[[[0, 1.0]], None, float("nan")]], "a constraint that is none"),
        ([7], "a constraint that is none"),
        (7, "not what the head"),
    ]:
        (tmp_path / "p").write_bytes(with_head(path.read_bytes(), constraints=other))
        with pytest.raises(ProofError, match=sentence):
            check_proof(tmp_path / "p", X, y)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_proof_in_a_box(fit_intercept, tmp_path):
    """The box is written as bounds of coefficients and of the mean of u, which hold all of it."""
    X, y, *_ = make_relu(60, 3, noise=0.3, random_state=0)
    fit, path = solve(X, y, fit_intercept=fit_intercept), tmp_path / "p.rproof"
    certificate = fit.certify(proof=path, box=5.0, time_limit=None, target_gap=1e-3)
    checked = check_proof(path, X, y)
    assert certificate.status == "optimal"
    assert certificate.box == 5.0
    assert len(checked.constraints) == 3 + fit_intercept
    assert checked.lower_bound <= certificate.objective * (1.0 - 0.9e-3)
    spread = X.std(axis=0) if fit_intercept else np.sqrt(np.square(X).mean(axis=0))
    for (pairs, low, high), sd in zip(checked.constraints[:3], spread, strict=True):
        assert pairs[0][1] == 1.0
        assert -low == high >= 5.0 * np.sqrt(np.square(y).mean()) / sd


@pytest.mark.parametrize(("noise", "kind"), [(0.3, "gaussian"), (0.1, "ternary")])
def test_proofs_of_many_coefficients_with_an_intercept(noise, kind, tmp_path):
    """Slabs and a far region, where nothing holds the coefficients."""
    X, y, *_ = make_relu(300, 14, noise=noise, design=kind, random_state=0)
    y = y - np.quantile(y, 0.5)
    path = tmp_path / "p.rproof"
    certificate = solve(X, y).certify(proof=path, time_limit=120.0, target_gap=1e-2)
    checked = check_proof(path, X, y)
    assert certificate.status == "optimal"
    assert checked.lower_bound <= certificate.lower_bound <= certificate.objective
    assert checked.gap <= 1e-2 * (1.0 + 1e-5)


def test_a_file_in_a_box_names_a_fit_within_it(tmp_path):
    """Also where the search meets better ones outside."""
    for seed in range(4):
        X, y, *_ = make_relu(40, 4, noise=0.8, random_state=seed)
        poor = solve(X, y, "iterative", start=0.1 * np.ones(4), fit_intercept=False, max_iter=1)
        size = float(np.abs(poor.beta * np.sqrt(np.square(X).mean(axis=0))).max())
        size *= 1.001 / np.sqrt(np.square(y).mean())
        certificate = poor.certify(proof=tmp_path / "p.rproof", box=size, time_limit=None, target_gap=0.05)
        checked = check_proof(tmp_path / "p.rproof", X, y)
        assert checked.objective <= poor.objective * (1.0 + 1e-9)
        assert checked.lower_bound <= certificate.lower_bound
