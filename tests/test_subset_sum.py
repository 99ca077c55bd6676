from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from rectifit import Problem, certify, solve
from rectifit.datasets import make_subset_sum
from rectifit.experiments.subset_sum import (
    decide,
    decisive_value,
    has_quarter,
    least_excess,
    subset_sum_rows,
)

YES = [(1, 3), (2, 7, 3), (6, 13, 18, 15), (2, 8, 10, 7, 14, 19), (19, 3, 15, 9, 9, 8, 16, 5)]
NO = [(4, 16), (9, 19, 16), (2, 9, 9, 6), (4, 3, 8, 14, 6, 16), (13, 10, 16, 9, 17, 1, 7, 4)]


def quarter_subsets(a):
    for signs in product([1.0, -1.0], repeat=len(a)):
        if 2 * np.dot(a, signs) == sum(a):
            yield np.array(signs)


def test_samples():
    X, y = make_subset_sum([3, 5])
    np.testing.assert_array_equal(X, [[3, 5], [6, 10], [1, 0], [0, 1], [-1, 0], [0, -1], [0, 0]])
    np.testing.assert_array_equal(y, [4, 8, 1, 1, 1, 1, -20])


@pytest.mark.parametrize("a", YES)
def test_known_subsets_have_the_decisive_objective(a):
    problem = Problem.from_data(*make_subset_sum(a))
    signs = list(quarter_subsets(a))
    assert signs
    for x in signs:
        assert problem.objective(x) == decisive_value(len(a)) == len(a) + 100 * len(a) ** 2


@pytest.mark.parametrize("a", YES)
def test_yes_instances_are_solved_and_give_a_subset(a):
    p = len(a)
    solution = solve(*make_subset_sum(a), "exact", target_gap=0.5 * least_excess(a) / decisive_value(p))
    assert solution.certificate.status == "optimal"
    assert solution.objective == pytest.approx(p + 100 * p * p, rel=1e-13)
    np.testing.assert_allclose(np.abs(solution.beta), 1.0, atol=1e-6)
    assert solution.intercept == pytest.approx(0.0, abs=1e-6)
    subset = [value for value, b in zip(a, solution.beta, strict=True) if b < 0.0]
    assert 4 * sum(subset) == sum(a)


@pytest.mark.parametrize("a", NO)
def test_no_instances_lie_above_it(a):
    assert not list(quarter_subsets(a))
    target_gap = 0.5 * least_excess(a) / decisive_value(len(a))
    certificate = certify(*make_subset_sum(a), target_gap=target_gap, time_limit=120)
    assert certificate.status == "optimal"
    assert certificate.lower_bound > decisive_value(len(a)) + 0.4 * least_excess(a)


def test_every_small_instance():
    for p, largest in ((1, 6), (2, 7), (3, 5)):
        for a in combinations_with_replacement(range(largest + 1), p):
            row = decide(a)
            assert row.answer == any(True for _ in quarter_subsets(a))
            assert row.verdict == ("yes" if row.answer else "no")
            assert row.answer or row.objective >= row.decisive + least_excess(a)


def test_enumeration_of_all_active_sets_agrees():
    for a in ((6, 13, 18, 15), (2, 9, 9, 6)):
        X, y = make_subset_sum(a)
        complete = solve(X, y, "approximation", k=2 * len(a) + 2)
        assert complete.guarantee == 1.0
        assert complete.objective == pytest.approx(decide(a).objective, rel=1e-12)


def test_halves_by_appending_the_total():
    for numbers, answer in (((5, 3, 2), True), ((5, 3, 4), False), ((7, 3, 2, 2), True)):
        halves = any(2 * sum(c) == sum(numbers) for c in subsets(numbers))
        assert halves == answer
        row = decide([*numbers, sum(numbers)])
        assert row.verdict == ("yes" if halves else "no")
        if row.subset is not None:
            assert 2 * sum(numbers[i] for i in row.subset) == sum(numbers)


def subsets(numbers):
    for mask in product([0, 1], repeat=len(numbers)):
        yield [v for v, chosen in zip(numbers, mask, strict=True) if chosen]


def test_dynamic_programming_agrees_with_enumeration():
    rng = np.random.default_rng(0)
    for _ in range(300):
        a = rng.integers(0, 15, size=int(rng.integers(1, 8))).tolist()
        assert has_quarter(a) == any(4 * sum(s) == sum(a) for s in subsets(a))


def test_rows():
    rows = subset_sum_rows((2, 5), n_each=2, random_state=1)
    assert [row.p for row in rows] == [2] * 4 + [5] * 4
    assert [row.verdict for row in rows] == ["yes", "yes", "no", "no"] * 2
    for row in rows:
        assert row.answer == (row.verdict == "yes")
        assert sum(row.numbers) % 4 == 0
        assert row.lower_bound <= row.objective
    assert [row.numbers for row in rows] == [
        row.numbers for row in subset_sum_rows((2, 5), n_each=2, random_state=1)
    ]


@pytest.mark.parametrize(
    ("a", "words"),
    [
        ([], "a has shape"),
        ([1.5, 2.0], "non-negative whole numbers"),
        ([-1, 2], "non-negative whole numbers"),
        ([[1, 2]], "one-dimensional"),
        ([2**52, 1], "at most 2\\^52"),
    ],
)
def test_bad_numbers(a, words):
    with pytest.raises(ValueError, match=words):
        make_subset_sum(a)


def test_too_few_instances():
    with pytest.raises(ValueError, match="largest is 4"):
        subset_sum_rows((20,), n_each=1, largest=4)
