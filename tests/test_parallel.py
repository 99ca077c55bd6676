from threading import Event, get_ident

import joblib
import numpy as np
import pytest
from joblib.parallel import ThreadingBackend

from rectifit.certificate.best_first import BestFirst, Control, Node, first_kinds
from rectifit.parallel import count_threads, map_ordered, uses_cluster


class Elsewhere(ThreadingBackend):
    """A cluster with many processors, none of them here."""

    sent = 0

    def effective_n_jobs(self, n_jobs):
        return 64 if n_jobs == -1 else n_jobs

    def submit(self, func, callback=None):
        type(self).sent += 1
        return super().submit(func, callback)


joblib.register_parallel_backend("elsewhere", Elsewhere)


def test_a_cluster_does_not_multiply_the_threads_of_this_machine():
    here = [count_threads(n_jobs) for n_jobs in (None, 3, -1)]
    assert here[:2] == [1, 3]
    with joblib.parallel_config("elsewhere", n_jobs=-1):
        assert uses_cluster()
        assert [count_threads(n_jobs) for n_jobs in (None, 3, -1)] == here
    assert not uses_cluster()


@pytest.mark.parametrize("n_threads", [1, 3])
def test_results_come_in_order(n_threads):
    items = list(range(40))
    assert list(map_ordered(lambda e: e * e, items, n_threads)) == [e * e for e in items]


def test_work_goes_to_the_cluster_if_there_is_one():
    before = Elsewhere.sent
    with joblib.parallel_config("elsewhere", n_jobs=2):
        assert list(map_ordered(lambda e: e + 1, range(5), 1)) == [1, 2, 3, 4, 5]
    assert Elsewhere.sent > before


def test_work_that_fails_abandons_the_rest():
    abandoned = Event()

    def work(item):
        if item == 2:
            raise ArithmeticError
        return get_ident()

    with pytest.raises(ArithmeticError):
        list(map_ordered(work, range(50), 2, abandoned.set))
    assert abandoned.is_set()


@pytest.mark.parametrize(("n_jobs", "error"), [(0, ValueError), (1.5, TypeError), (True, TypeError)])
def test_bad_numbers_of_jobs_are_named(n_jobs, error):
    with pytest.raises(error, match=r"n_jobs is .*; it must be None, a positive number"):
        count_threads(n_jobs)


class Steps(BestFirst[Node]):
    """Nodes without parts, each of which offers a point and notes the cutoff."""

    kind = first_kinds(np.ones(1))
    node_bytes = 1

    def __init__(self, control, n_nodes):
        super().__init__(np.ones(1), control)
        self.cutoffs = []
        self._push([Node(0.0) for _ in range(n_nodes)])

    def _expand(self, _):
        self.cutoffs.append(self.cutoff)
        self.offer(np.zeros(1))
        return []


def test_a_better_solution_does_not_lower_the_cutoff_within_a_round():
    cutoffs = [4.0, 3.0, 2.0, 1.0]
    search = Steps(Control(lambda: cutoffs[0], lambda _: cutoffs.pop(0)), 3)
    search.advance(map, 2)
    search.advance(map, 2)
    assert search.cutoffs == [4.0, 4.0, 2.0]
