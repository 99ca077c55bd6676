"""What passes keep from look to look, and how rows that are chosen are summed up."""

import math

import numpy as np
import pytest

from rectifit import Problem, solve
from rectifit.active import ALL, Cut, Sign
from rectifit.data import ArrayData, Data
from rectifit.data.blocks import Layout
from rectifit.data.memory import MemoryData
from rectifit.datasets import make_relu
from rectifit.parallel import limit_threads
from rectifit.surrogate import band, passes
from rectifit.surrogate.model import ModelStep, step_from
from rectifit.surrogate.near_far import Question
from rectifit.surrogate.passes import PassReader
from rectifit.surrogate.sample_model import BandTarget

NO_STEP = ModelStep(np.zeros(0), np.zeros(0), 0.0, 0.0, True, np.zeros(0), np.zeros(0), 0, None)


def readers(X, y, w=None, **options):
    """A reader of data that stay in this process, and one that remembers nothing."""
    kept, other = (PassReader(Problem(kind(X, y, w), **options)) for kind in (MemoryData, ArrayData))
    assert kept.data.remembers
    assert not other.data.remembers
    return kept, other


def assert_same_views(ones, others, total):
    for one, other in zip(ones, others, strict=True):
        assert one.at.value == pytest.approx(other.at.value, rel=1e-12)
        assert one.at.fingerprints == other.at.fingerprints
        for name in ("slope", "gram", "right_gram"):
            a, b = getattr(one, name), getattr(other, name)
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11 * max(total, np.abs(b).max()))


@pytest.mark.parametrize("seed", range(8))
def test_moments_that_are_mended_are_those_that_are_made_anew(seed, monkeypatch):
    monkeypatch.setattr(passes, "COLUMNS_PER_REMEMBERED", 0.5 if seed % 2 else 10.0)
    monkeypatch.setattr("rectifit.data.memory.BLOCK_NUMBERS", 900)
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((700, 3)), rng.standard_normal(700) + 0.5
    w = rng.integers(0, 3, 700).astype(float) if seed % 3 == 0 else None
    kept, fresh = readers(X, y, w)
    q, here = kept.coordinates.n_directions, kept.least_squares()
    sign = Sign(*kept.coordinates.coefficients(here), 0.0, here)
    sets = [ALL, Cut(0.3, 0), Cut(1.0, 0), sign]
    last = [None] * len(sets)
    n_mended = 0
    for turn in range(12):
        # From wide moves to small ones, and now and then a wide one again.
        moves = rng.standard_normal((len(sets), q)) * (3.0 if turn % 5 == 0 else 0.1**turn)
        target = BandTarget(float(rng.choice([0.01, 0.3])), 40)
        questions = [
            Question(active, here + move, target, zero=0.0) for active, move in zip(sets, moves, strict=True)
        ]
        with_last = [
            question._replace(last=None if view is None else (view, NO_STEP))
            for question, view in zip(questions, last, strict=True)
        ]
        views = kept.look(with_last)
        assert_same_views(views, fresh.look(questions), kept.total)
        n_mended += sum(block.n_mended > 0 for view in views for block in view.sides.blocks.values())
        assert all(block.n_mended <= 300 for view in views for block in view.sides.blocks.values())
        last = views
    assert n_mended > 25
    # Another surrogate at the same point begins with what is known of its neighbour.
    question = Question(Cut(0.1, 0), last[0].at.gamma, BandTarget(0.1, 40))
    (beside,), (alone,) = kept.look([question._replace(beside=last[0])]), fresh.look([question])
    assert_same_views([beside], [alone], kept.total)


def one_large_row():
    """Data one row of which carries nearly all of every moment, and points with that row on and off."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 2)), np.abs(rng.standard_normal(300)) + 0.1
    X[7], y[7] = [1e9, -1e9], 1.0
    kept, fresh = readers(X, y, fit_intercept=False)
    # All other rows hardly move between them.
    points = [np.linalg.solve(kept.coordinates.T, [1.0 + move, 1.0]) for move in (1e-3, -1e-3)]
    return kept, fresh, *points


def test_moments_are_made_anew_where_a_large_row_has_left():
    kept, fresh, inside, outside = one_large_row()
    none, target = Cut(math.inf, 0), BandTarget(1e-9, 40)
    (view,) = kept.look([Question(none, inside, target)])
    (mended,) = kept.look([Question(none, outside, target, last=(view, NO_STEP))])
    (anew,) = fresh.look([Question(none, outside, target)])
    assert (view.right_gram.diagonal() / anew.right_gram.diagonal()).max() > 1e12
    np.testing.assert_allclose(mended.right_gram, anew.right_gram, rtol=1e-10)
    # What is left has been smaller than what it once was: a second change of a few rows does not hide that.
    assert mended.sides.blocks[0].n_mended == 0


def test_lines_that_begin_with_one_that_is_made_anew_are_made_anew_too():
    kept, fresh, inside, outside = one_large_row()
    none, target = Cut(math.inf, 0), BandTarget(1e-9, 40)
    high = Cut(float(np.sort(kept.problem.loaded().y)[-4]), 0)
    (view,) = kept.look([Question(none, inside, target)])
    # The first line differs from the second in a few rows, and that from what is known in the large one.
    questions = [Question(high, outside, target), Question(none, outside, target, last=(view, NO_STEP))]
    for one, other in zip(kept.look(questions), fresh.look(questions), strict=True):
        np.testing.assert_allclose(one.right_gram, other.right_gram, rtol=1e-10)


def test_the_largest_moments_are_not_forgotten_on_the_way():
    """The large row leaves while many others come, which hides the loss of digits, and then these leave."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((400, 2)), np.abs(rng.standard_normal(400)) + 0.1
    X[:40] *= 1e4
    X[7], y[7] = [1e7, -1e7], 1.0
    kept, fresh = readers(X, y, fit_intercept=False)
    none, target, last = Cut(math.inf, 0), BandTarget(1e-9, 40), None
    for b in ([1.001, 1.0], [0.999, 1.0], [0.998, 1.0], [0.9, 1.0], [0.2, 0.3], [0.21, 0.3]):
        question = Question(none, np.linalg.solve(kept.coordinates.T, b), target)
        (view,) = kept.look([question._replace(last=None if last is None else (last, NO_STEP))])
        (anew,) = fresh.look([question])
        scale = np.sqrt(np.outer(*[anew.right_gram.diagonal()] * 2))
        assert (np.abs(view.right_gram - anew.right_gram) / scale).max() < 1e-9
        last = view


def test_no_more_looks_are_remembered_than_memory_allows():
    rng = np.random.default_rng(0)
    kept, _ = readers(rng.standard_normal((200, 8)), rng.standard_normal(200))
    views = [kept.look([Question(ALL, rng.standard_normal(9), BandTarget(0.1, 40))])[0] for _ in range(9)]
    assert [bool(view.sides.blocks) for view in views] == [False] * 5 + [True] * 4


@pytest.mark.parametrize("is_rough", [True, False])
def test_a_part_of_very_many_near_rows_stands_for_all_in_rough_looks_alone(is_rough, monkeypatch):
    monkeypatch.setattr(band, "SUMMED_FACTOR", 200)
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((40_000, 2)), rng.standard_normal(40_000)
    kept, _ = readers(X, y)
    gamma = kept.least_squares()
    # To where a bound is to be had.
    for _ in range(8):
        (whole,) = kept.look([Question(ALL, gamma, BandTarget(0.2, 100))])
        gamma = gamma + step_from(whole).delta
    (whole,) = kept.look([Question(ALL, gamma, BandTarget(0.2, 100))])
    (view,) = kept.look([Question(ALL, gamma, BandTarget(0.2, 100, is_rough))])
    assert view.near is None
    assert view.band.is_complete is not is_rough
    assert whole.band.is_complete
    error = np.abs(view.band.gram - whole.band.gram).max() / np.abs(whole.band.gram).max()
    assert error < 0.2
    assert (error > 0.0) == is_rough
    # Steps are alike, but sums over a part prove nothing.
    step, exact = step_from(view), step_from(whole)
    curvature = whole.gram + whole.band.gram
    assert (step.delta - exact.delta) @ curvature @ (step.delta - exact.delta) < 1e-3 * kept.total
    assert math.isinf(step.loss) == is_rough
    assert math.isfinite(exact.loss)


def test_lines_in_padded_parts_have_the_products_of_lines(monkeypatch):
    torch = pytest.importorskip("torch")
    from rectifit.data import tensors

    rng = np.random.default_rng(2)
    monkeypatch.setattr(tensors, "PART_ROWS", 7)
    for _ in range(50):
        counts = rng.integers(0, 20, int(rng.integers(1, 6))) * rng.integers(0, 2)
        n = int(counts.sum())
        left, right = rng.standard_normal((n, 3)), rng.standard_normal((n, 2))
        plain, padded = Layout(counts), tensors.PaddedLayout(counts, torch.device("cpu"))
        if n == 0:
            continue
        is_row = padded.is_row[:, None]
        found = padded.products(
            padded.arrange(torch.from_numpy(left)) * is_row, padded.arrange(torch.from_numpy(right))
        )
        np.testing.assert_allclose(found.numpy(), plain.products(left, right), rtol=1e-12, atol=1e-12)
        on = is_row[:, 0].numpy() > 0
        assert on.sum() == n
        np.testing.assert_array_equal(padded.lines.numpy()[on], plain.lines)


@pytest.mark.parametrize("method", ["sorting+iterative", "auto"])
def test_fits_do_not_depend_on_whether_the_sample_is_solved(method, monkeypatch):
    X, y, *_ = make_relu(4000, 6, noise=0.4, design="gaussian", random_state=3)
    found = solve(ArrayData(X, y), None, method, random_state=0)
    monkeypatch.setattr(Data, "max_solved_sample", 0)
    other = solve(ArrayData(X, y), None, method, random_state=0)
    assert other.objective == pytest.approx(found.objective, rel=1e-9)
    assert other.certificate.lower_bound == pytest.approx(found.certificate.lower_bound, rel=1e-9)


def test_matrix_products_have_one_thread_inside_and_as_many_as_before_outside():
    from rectifit.data.blocks import blas_threads

    before = blas_threads()
    with limit_threads("blas"):
        assert blas_threads() == 1
        with limit_threads():
            assert blas_threads() == 1
        assert blas_threads() == 1
    assert blas_threads() == before
