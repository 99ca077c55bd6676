"""What the checker makes of data, heads and trees of cells, with errors that go the wrong way.

Numbers are compared with rational arithmetic, without any slack.
"""

import struct
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from test_proof_files import sealed
from test_sign_rules import CLAIM, as_head, fractions, written

from rectifit import ProofError, check_proof
from rectifit.checking.cells import BOUND, OFF, OPEN, Cell
from rectifit.checking.reading import Allowed, Claim, Reader
from rectifit.checking.rows import Distinct, distinct_rows, objective_above
from rectifit.checking.trees import CLOSED, EXPAND, TREE, CellTree


def distinct(A, w=None, y=None, penalty=None, **more):
    """Rows as they are, on a scale of 1."""
    n, d = A.shape
    w, y = (np.ones(n) if values is None else values for values in (w, y))
    penalty = np.zeros(d) if penalty is None else penalty
    about = {"constant": 0.0, "shift": np.zeros(d, np.int64), "exponent": 0, "target": 1.0} | more
    return Distinct(A, w, y, penalty, **about)


def all_rows(data, T):
    return data.inside(np.ones(len(data.y), np.bool_), T, T[:, :0])


# ---- coordinates ----


@pytest.mark.parametrize("seed", range(10))
def test_rows_and_curvatures_err_by_no_more_than_is_said(seed):
    """Coordinates in which rows are what large terms leave."""
    draw = np.random.default_rng(seed)
    n, d = 6, 3
    A, T = draw.normal(size=(n, d)), draw.normal(size=(d, d))
    # The last coordinate is along the one in which all rows are nearly 0.
    A[:, 2] = -(A[:, 0] * T[0, 2] + A[:, 1] * T[1, 2]) / T[2, 2] * (1.0 + 1e-9 * draw.normal(size=n))
    penalty = np.where(seed % 2, 0.0, draw.random(d))
    rows = all_rows(distinct(A, draw.random(n), draw.normal(size=n), penalty), T)
    Z, w = fractions(A) @ fractions(T), fractions(rows.w)
    for _ in range(20):
        v = draw.choice([-1.0, 1.0], size=d) * draw.choice([1.0, draw.random()], size=d)
        v[:2] *= draw.integers(2)
        away = np.abs(fractions(rows.Z @ v) - Z @ fractions(v))
        assert (away <= fractions(rows.doubt)).all()
    B = fractions(T).T @ (fractions(penalty)[:, None] * fractions(T))
    assert (np.abs(fractions(rows.B) - B) <= fractions(rows.B_error)).all()
    for inside in (np.arange(n) < 0, np.arange(n) < n, draw.random(n) < 0.5):
        some = rows.Z[inside]
        K = rows.B + some.T @ (rows.w[inside][:, None] * some)
        exact = B + Z[inside].T @ (w[inside][:, None] * Z[inside])
        assert (np.abs(fractions(K) - exact) <= fractions(rows.K_error)).all()


def test_curvatures_of_many_rows_pay_for_the_rounding_of_their_sum():
    """Thousands of equal rows, so that rounding errors add up, with those that err most among many."""
    draw, n = np.random.default_rng(0), 1 << 15

    def curvature(z, w):
        Z = np.full((n, 1), z)
        return float((Z.T @ (np.full(n, w)[:, None] * Z))[0, 0])

    def error(case):
        truth = n * Fraction(case[1]) * Fraction(case[0]) ** 2
        return abs(Fraction(curvature(*case)) - truth) / truth

    z, w = max(draw.random((100, 2)).tolist(), key=error)
    rows = all_rows(distinct(np.full((n, 1), z), np.full(n, w), np.ones(n)), np.ones((1, 1)))
    away = abs(Fraction(curvature(z, w)) - n * Fraction(w) * Fraction(z) ** 2)
    assert away <= Fraction(rows.K_error[0, 0])


def test_matrices_without_an_inverse_are_rejected():
    data = distinct(np.eye(3))
    for T in (
        np.arange(1.0, 10.0).reshape(3, 3),
        np.array([[0.1, 0.3, 0.0], [0.7, 2.1, 0.0], [0.0, 0.0, 1.0]]),
    ):
        with pytest.raises(ProofError, match="do not reach all coefficients"):
            all_rows(data, T)
    all_rows(data, np.diag([1.0, 1e-6, 1e6]))


def test_rows_of_a_face_are_0_on_its_null_space_not_only_nearly():
    A, T = np.array([[0.1, 0.3], [0.2, 0.6]]), np.array([[1.0], [0.0]])
    inside = np.ones(2, np.bool_)
    distinct(np.array([[1.0, 3.0]])).inside(inside[:1], T, np.array([[3.0], [-1.0]]))
    with pytest.raises(ProofError, match="do not lie in its subspace"):
        distinct(A).inside(inside, T, np.array([[3.0], [-1.0]]))


def test_a_face_has_no_ridge_and_its_reserve_and_what_is_outside_count():
    A, y = np.array([[1.0, 1.0], [1.0, 0.0]]), np.array([1.0, 3.0])
    data = distinct(A, y=y, penalty=np.ones(2), target=20.0)
    T, N = np.array([[1.0], [0.0]]), np.array([[1.0], [-1.0]])
    face = data.inside(np.array([True, False]), T, N, 0.5)
    # With h = -g/2, the coefficients g + h and -h are g/2 each: the ridge is half of what it is without h.
    assert float(face.B[0, 0]) <= 0.5
    assert 11.5 <= face.cutoff <= 11.5 * (1.0 + 1e-12)
    assert 11.0 <= data.inside(np.array([True, False]), T, N).cutoff <= 11.0 * (1.0 + 1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_walls_are_constraints_up_to_their_doubt(seed):
    """In coordinates that are nearly parallel, in which they are what large terms leave."""
    draw = np.random.default_rng(seed)
    d = 3
    C, T = draw.normal(size=(4, d)), 1.0 + 1e-7 * draw.normal(size=(d, d))
    C[:, 2] = -C[:, 0] - C[:, 1]
    C *= 10.0 ** draw.integers(-3, 4, size=(4, 1))
    low, high = -draw.random(4), draw.random(4)
    walls = distinct(np.eye(d)).walls(T, T[:, :0], Allowed(C, low, high))
    factor = fractions(walls.high) / fractions(high)
    assert (fractions(walls.low) == factor * fractions(low)).all()
    Z = factor[:, None] * (fractions(C) @ fractions(T))
    for _ in range(20):
        v = draw.choice([-1.0, 1.0], size=d)
        v[:2] *= draw.integers(2)
        away = np.abs(fractions(walls.Z @ v) - Z @ fractions(v))
        assert (away <= fractions(walls.doubt)).all()


@pytest.mark.parametrize("size", [1.0, 1e-250])
def test_constraints_on_what_is_left_out_are_left_out(size):
    """Whatever h is, in g + size h <= 1 it allows all g."""
    data = distinct(np.array([[1.0, 0.0]]))
    T, N = np.array([[1.0], [0.0]]), np.array([[0.0], [1e-90]])
    allowed = Allowed(np.array([[1.0, size], [1.0, 0.0]]), np.full(2, -np.inf), np.array([1.0, 2.0]))
    walls = data.walls(T, N, allowed)
    assert (walls.high / np.abs(walls.Z[:, 0])).tolist() == [2.0]


@pytest.mark.parametrize("seed", range(20))
def test_a_cutoff_is_rounded_up(seed):
    draw = np.random.default_rng(seed)
    data = distinct(np.eye(2), exponent=3)
    for _ in range(20):
        objective, constant = 8.0 * draw.random(), float(draw.normal() * 10.0 ** draw.integers(-2, 2))
        rows = replace(all_rows(data, np.eye(2)), constant=constant)
        assert Fraction(rows.above(objective)) >= Fraction(objective) / 8 - Fraction(constant)


# ---- samples with the same row ----


def test_samples_of_one_row_cost_no_more_than_they_do():
    """Near their mean, where nothing is left but the rounding of outcomes, means and floors."""
    draw, n_tight = np.random.default_rng(0), 0
    for turn in range(300):
        n, floor = int(draw.integers(1, 5)), float(draw.choice([0.0, 0.3]))
        y, w = draw.random(n), draw.random(n) if turn % 2 else np.ones(n)
        y = y[0] + (y - y[0]) * 10.0 ** -draw.integers(0, 9)
        data = distinct_rows(True, 0.0, np.full((n, 1), 3.0), y, w, floor)
        (mean,), (kept,), unit = data.y, data.w, Fraction(2) ** data.exponent
        scale = Fraction(2) ** ((data.exponent - (int(np.frexp(w.max())[1]))) // 2)
        for step in (0.0, *(10.0 ** -draw.uniform(0, 6, size=6) * draw.choice([-1, 1], size=6))):
            r = max(Fraction(mean) + Fraction(step), Fraction(0))
            loss = sum(
                weight * (r * scale + Fraction(floor) - target) ** 2
                for weight, target in zip(fractions(w), fractions(y), strict=True)
            )
            below = unit * (Fraction(data.constant) + Fraction(kept) * (r - Fraction(mean)) ** 2)
            assert below <= loss
            n_tight += below >= loss * (1 - Fraction(1, 10**9))
    assert n_tight > 300


def test_what_is_settled_reaches_the_target():
    y = -np.array([0.1, 0.2, 0.3])
    exact = sum(Fraction(value) ** 2 for value in y.tolist())
    for share, is_settled in ((1.0 - 1e-9, True), (1.0 + 1e-15, False), (1.01, False)):
        data = distinct_rows(False, 0.0, np.eye(3), y, None, 0.0, float(exact) * share)
        assert data.is_settled == is_settled


# ---- objectives ----


@pytest.mark.parametrize("seed", range(20))
def test_an_objective_is_rounded_up(seed):
    """Fits that are perfect but for rounding, whose residuals are errors of sums and differences."""
    draw = np.random.default_rng(seed)
    n, p = 3, int(draw.integers(2, 5))
    X, beta, floor = draw.random((n, p)), draw.normal(size=p), float(draw.choice([0.0, 0.3]))
    # Of two columns that are nearly equal, little is left.
    beta[:2] = 1e3, -1e3
    X[0, 1], X[1] = X[0, 0] * (1.0 + 1e-6), 0.0
    y = np.maximum(X @ beta + 0.7, floor)
    y += draw.choice([0.0, 1e-16, 1e-3]) * draw.normal(size=n)
    alpha, w = float(draw.choice([0.0, 1e-30])), draw.random(n)
    about = {"n_samples": n, "n_features": p, "fit_intercept": True, "weighted": True, "floor": floor}
    about |= {"alpha": alpha, "beta": tuple(beta.tolist()), "intercept": 0.7}
    claim = Claim(**CLAIM | about)
    loss = Fraction(alpha) * sum(Fraction(b) ** 2 for b in beta.tolist())
    u = fractions(X) @ fractions(beta) + Fraction(0.7)
    loss += fractions(w) @ np.square(np.maximum(u, Fraction(floor)) - fractions(y))
    found = Fraction(objective_above(claim, X, y, w))
    assert found >= loss
    assert found <= loss * (1 + Fraction(1, 10**6)) + Fraction(1, 10**20)


# ---- heads ----


def test_weights_are_part_of_the_data(tmp_path):
    X, y, w = np.eye(2), np.array([-1.0, 1.0]), np.array([1.0, 2.0])
    path = written(tmp_path / "p", X, y, {}, weight=w, lower_bound=0.9)
    assert check_proof(path, X, y, sample_weight=w).is_weighted
    with pytest.raises(ProofError, match="SHA-256"):
        check_proof(path, X, y, sample_weight=w[::-1])
    with pytest.raises(ProofError, match="negative"):
        check_proof(path, X, y, sample_weight=-w)
    with pytest.raises(ProofError, match="with weights"):
        check_proof(path, X, y)


# ---- trees of cells ----


def cell_proof(path, bound, without=None):
    """A proof over cells for u = g_1, -g_1, g_2, -g_2 with y = 1 each: the least loss is 2, at (1, 1).

    Each of the four pyramids is split at 0, and each half has its corner as the minimum.
    """
    X, y = np.vstack([np.eye(2), -np.eye(2)]), np.ones(4)
    content = as_head(X, y, lower_bound=bound)
    content += struct.pack("<BB", TREE, 2) + np.packbits(np.ones(4, np.bool_)).tobytes()
    content += np.eye(2).astype("<f8").tobytes() + bytes([1, 1, 0, 0])
    for parent in range(4):
        halves = b""
        for is_high in (False, True):
            corner = (1 << (0 if parent > 1 else 1)) * is_high
            step = struct.pack("<BBId", BOUND, 1, corner, 1.0)
            is_left_out = without == 2 * parent + is_high
            halves += (b"\0" if is_left_out else b"\1" + step) + bytes([CLOSED])
        content += struct.pack("<BII", EXPAND, 0, parent) + halves
    path.write_bytes(sealed(content + b"\0"))
    return path, X, y


def test_a_tree_of_cells_proves_the_least_loss_and_no_more(tmp_path):
    for bound in (1.0, 1.9, 2.0 * (1.0 - 1e-9)):
        assert check_proof(*cell_proof(tmp_path / "p", bound)).lower_bound == bound
    for bound in (2.0, 2.0 * (1.0 + 1e-9), 2.02):
        with pytest.raises(ProofError, match="neither closed nor split"):
            check_proof(*cell_proof(tmp_path / "p", bound))
    for cell in range(8):
        with pytest.raises(ProofError, match="neither closed nor split"):
            check_proof(*cell_proof(tmp_path / "p", 1.9, without=cell))


def tree_of(members, reserve=0.0):
    """A tree of cells for rows of which all have y = 1."""
    members = np.asarray(members, dtype=np.bool_)
    content = struct.pack("<B", 2) + np.packbits(members).tobytes() + np.eye(2).astype("<f8").tobytes()
    claim = Claim(**CLAIM | {"n_features": 2, "beta": (0.0, 0.0), "reserve": reserve})
    data = distinct(np.ones((members.size, 2)))
    return CellTree(Reader(memoryview(content + bytes(4))), data, claim)


def face_of(inside, members, kind, slack=0.0, limit=1.0, reserve=0.0):
    """Rest a cell of one tree on another."""
    ends = np.ones(2)
    cell = Cell(0, 1.0, -ends, ends, np.array(kind, np.int8), limit=limit, slack=slack)
    return tree_of(inside, reserve)._face(cell, slack * limit, 0, [tree_of(members)])


def test_a_face_is_about_some_of_the_rows_and_all_others_are_off():
    assert face_of([1, 1, 1], [1, 1, 0], [OPEN, OPEN, OFF]) == 0
    for inside, members, kind in [
        ([1, 1, 1], [1, 1, 0], [OFF, OFF, OPEN]),
        ([1, 1, 1], [1, 1, 1], [OFF, OFF, OFF]),
        # A row that the tree itself takes as off, and the face does not.
        ([1, 1, 0], [0, 0, 1], [OFF, OFF]),
    ]:
        with pytest.raises(ProofError, match="not known to be off"):
            face_of(inside, members, kind)


def test_rows_that_are_nearly_off_take_no_more_than_the_reserve():
    kind = [OPEN, OPEN, OFF]
    assert face_of([1, 1, 1], [1, 1, 0], kind, 1e-9, 99.0, reserve=1e-7) == 0
    for slack, limit in ((1e-9, 101.0), (1e-9, np.inf), (2e-9, 99.0)):
        with pytest.raises(ProofError, match="reserve is too small"):
            face_of([1, 1, 1], [1, 1, 0], kind, slack, limit, reserve=1e-7)
    # All trees but the first prove so much more.
    for members, reserve in (([1, 1, 1], 0.0), ([1, 1, 0], 1e-7)):
        tree, asked = tree_of(members, 1e-7), []

        def inside(*about, asked=asked):
            asked.append(about[-1])
            raise ProofError("that is all")

        tree._data = SimpleNamespace(inside=inside)
        with pytest.raises(ProofError, match="that is all"):
            tree.walk([])
        assert asked == [reserve]
