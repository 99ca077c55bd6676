import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from browser import LOOK, is_sorted, probe

from rectifit.display import Column, Table
from rectifit.experiments import figures, runner
from rectifit.experiments.figures import (
    COLOURS,
    MIN_EXCESS,
    draw_excess,
    draw_excess_in_time,
    draw_figures,
    draw_measures,
    draw_optimality,
    draw_times,
    save_figure,
)
from rectifit.experiments.grid import (
    LABELS,
    NOISES,
    OURS,
    PAPER_METHODS,
    PROOF,
    SPARSITIES,
    Setting,
    Size,
    Task,
    paper_grid,
)
from rectifit.experiments.realizable import printed_median, printed_values
from rectifit.experiments.report import make_page
from rectifit.experiments.rows import FitRow
from rectifit.experiments.runner import run_task, run_tasks
from rectifit.experiments.statistics import summarise
from rectifit.experiments.tables import make_tables
from rectifit.row_file import RowFile


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """All settings of the smallest size, two instances each."""
    folder = tmp_path_factory.mktemp("run")
    rows = run_tasks(paper_grid(2, [10]), folder, n_jobs=1, verbose=0)
    return folder, rows


def test_the_grid_is_the_papers():
    tasks = paper_grid()
    paper = [task for task in tasks if task.method in PAPER_METHODS and task.setting.is_drawn]
    assert len(paper) == 3 * 5 * 5 * 20 * 5 == 7500
    assert len({task.setting for task in tasks if task.setting.is_tabled}) == 15
    assert sum(task.method == OURS for task in tasks) == 3 * 5 * 5 * 20 + 2 * 5 * 20
    assert len(set(tasks)) == len(tasks)
    assert {setting.noise for setting in {t.setting for t in tasks}} == set(NOISES)
    assert {setting.sparsity for setting in {t.setting for t in tasks}} == set(SPARSITIES)


def test_instances_depend_on_setting_and_number_only():
    setting = Setting(10, 200, 0.5, 0.1, 10.0)
    one, same = Task(setting, 3, "gd").draw(), Task(setting, 3, "auto").draw()
    assert (one.X == same.X).all()
    assert (one.y == same.y).all()
    other = Task(setting, 4, "gd").draw()
    assert not (one.X == other.X).all()


def sample_row(noise=0.1, instance=1, method="gd", **changes):
    task = Task(Setting(10, 200, 0.5, noise, 10.0), instance, method)
    return replace(FitRow(task, 0.1, 1.5, 0.2, 1.9, 0.0, "bound_only", 0.01, 0), **changes)


def test_a_row_that_was_not_finished_is_not_read(tmp_path):
    file = RowFile(tmp_path / "rows.csv", FitRow)
    assert file.read() == []
    file.repair()
    rows = [sample_row(instance=i, objective=1.0 / 3.0 + i) for i in range(1, 4)]
    file.append(rows)
    assert file.read() == rows
    whole = file.path.read_bytes()
    last = whole.rstrip(b"\n").rfind(b"\n") + 1
    for cut in range(last, len(whole)):
        file.path.write_bytes(whole[:cut])
        assert file.read() == rows[:2]
        file.repair()
        file.append([rows[2]])
        assert file.read() == rows
    file.path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="has columns a, b; it must have p, n"):
        file.read()


def test_the_columns_of_the_file_stay_readable(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(
        "p,n,sparsity,noise,beta_variance,instance,method,prediction_error,objective,recovery_error,"
        "generalization_error,lower_bound,status,seconds,machine\n"
        "10,200,0.5,0.1,10.0,3,sgd,0.1,1.5,0.2,1.9,0.0,bound_only,0.01,0\n"
    )
    before = path.read_bytes()
    rows = RowFile(path, FitRow).read()
    assert rows == [sample_row(instance=3, method="sgd")]
    path.unlink()
    RowFile(path, FitRow).repair()
    RowFile(path, FitRow).append(rows)
    assert path.read_bytes() == before


def test_finished_rows_are_not_computed_twice(tmp_path, monkeypatch):
    tasks = [task for task in paper_grid(1, [10], proofs=False) if task.setting.noise == 0.0][:12]
    computed = []

    def counted(task, machine=0):
        computed.append(task)
        if len(computed) == 8:
            raise KeyboardInterrupt
        return run_task(task, machine)

    monkeypatch.setattr(runner, "run_task", counted)
    with pytest.raises(KeyboardInterrupt):
        run_tasks(tasks, tmp_path, verbose=0)
    kept = RowFile(tmp_path / "rows.csv", FitRow).read()
    # Six methods on one instance are written together.
    assert len(kept) == 6
    computed.clear()
    computed.extend([None] * 8)
    rows = run_tasks(tasks, tmp_path, verbose=0)
    assert [row.task for row in rows] == tasks
    assert {row.task for row in kept}.isdisjoint(computed[8:])
    assert len(computed[8:]) == 6
    assert [row for row in rows if row in kept] == kept
    before = (tmp_path / "rows.csv").read_bytes()
    run_tasks(tasks, tmp_path, verbose=0)
    assert (tmp_path / "rows.csv").read_bytes() == before


def test_rows_are_the_same_whatever_the_number_of_processes(tmp_path):
    tasks = [task for task in paper_grid(1, [10]) if task.setting.sparsity == 0.5]
    # From a script of its own, as processes are started anew.
    script = (
        "import sys; from pathlib import Path\n"
        "from rectifit.experiments.grid import paper_grid\n"
        "from rectifit.experiments.runner import run_tasks\n"
        "if __name__ == '__main__':\n"
        "    tasks = [t for t in paper_grid(1, [10]) if t.setting.sparsity == 0.5]\n"
        "    run_tasks(tasks, Path(sys.argv[1]), n_jobs=2, verbose=0)\n"
    )
    path = tmp_path / "script.py"
    path.write_text(script)
    subprocess.run([sys.executable, str(path), str(tmp_path / "two")], check=True, timeout=300)
    alone = run_tasks(tasks, tmp_path / "one", n_jobs=1, verbose=0)
    together = {row.task: row for row in RowFile(tmp_path / "two" / "rows.csv", FitRow).read()}
    for row in alone:
        other = together[row.task]
        assert replace(other, seconds=0.0, machine=0, lower_bound=0.0) == replace(
            row, seconds=0.0, machine=0, lower_bound=0.0
        )
        # A bound depends on the time that it was given.
        assert other.lower_bound <= row.objective


def test_the_paper_prints_what_was_copied():
    assert len(printed_values(10, 0.1, "gd", "prediction")) == 20
    assert printed_values(10, 0.1, "gd", "prediction")[0] == 0.373
    assert printed_median(50, 0.9, "sorting", "recovery") == 0.0


def test_tables(run):
    tables = {table.key: table for table in make_tables(summarise(run[1]))}
    assert sum(key.startswith("realizable-") for key in tables) == 5
    one = tables["realizable-p10-sparsity0.1"]
    assert [row[0] for row in one.rows] == [1, 2, "median", "median in the paper"]
    column = [c.name for c in one.columns].index("GD, prediction")
    assert one.rows[-1][column] == printed_median(10, 0.1, "gd", "prediction")
    first, second = one.rows[0][column], one.rows[1][column]
    assert one.rows[2][column] == pytest.approx((first + second) / 2)
    zeros = tables["sorting-zeros"]
    assert all(row[1] == row[2] == 20 for row in zeros.rows)
    for row in tables["gradient-medians"].rows:
        assert row[6] == pytest.approx(row[4] / row[5])
    optimality = tables["optimality"]
    names = [c.name for c in optimality.columns]
    for row in optimality.rows:
        assert row[names.index("proved")] == row[names.index("instances")] == 10
        assert row[names.index(LABELS[OURS])] == 1.0
    excess = tables["excess"]
    # No method is below the proved optimum by more than the gap.
    assert all(cell >= 1.0 - 1e-4 for row in excess.rows for cell in row[2:])


def test_no_row_is_below_the_certified_bound(run):
    bounds = {
        (row.task.setting, row.task.instance): row.lower_bound for row in run[1] if row.task.method == PROOF
    }
    assert len(bounds) == 50
    for row in run[1]:
        bound = bounds[row.task.setting, row.task.instance]
        assert row.objective >= bound * (1 - 1e-9) - 1e-12
        assert row.lower_bound <= row.objective


def test_claims_are_counted():
    rows = []
    for noise in (0.032, 0.1, 0.32, 0.5):
        for rank, method in enumerate(("sorting+iterative", "sorting+gd", "sorting", "gd", "sgd", OURS)):
            # GD beats sorting at the last noise level.
            value = 2.5 if method == "gd" and noise == 0.5 else 2.0 + rank
            changes = {"noise": noise, "method": method, "objective": value, "recovery_error": value}
            rows.append(sample_row(**changes))
    tables = {table.key: table for table in make_tables(summarise(rows))}
    found = {row[0]: row[1:] for row in tables["claims"].rows}
    assert found["objective: sorting + GD ≤ sorting"] == (4, 4, 1.0, "holds")
    assert found["objective: sorting ≤ GD"] == (3, 4, 0.75, "mostly holds")
    assert found["recovery error: GD best at large noise"] == (0, 2, 0.0, "does not hold")


def test_forms_of_a_table():
    columns = (Column("name"), Column("share", ".0%"), Column("x_1", ".2f"))
    table = Table("key", "A & B", columns, (("a", 0.5, 1.0), ("mean", 0.25, None)), "Note.", n_foot=1)
    assert table.to_text().splitlines()[2].split() == ["name", "share", "x_1"]
    assert "50%" in table.to_text()
    assert list(csv.reader(io.StringIO(table.to_csv()))) == [
        ["name", "share", "x_1"],
        ["a", "0.5", "1.0"],
        ["mean", "0.25", ""],
    ]
    latex = table.to_latex()
    assert r"\caption{A \& B}" in latex
    assert r"a & 50\% & 1.00 \\" in latex
    assert r"x\_1" in latex
    assert latex.count(r"\midrule") == 2
    with pytest.raises(ValueError, match="has 1 cells; it must have 3"):
        Table("key", "", columns, (("a",),))


def test_figures(run, tmp_path):
    statistics = summarise(run[1])
    figure = draw_measures(statistics, Size(10, 200))
    assert len(figure.axes) == 20
    assert len(figure.legends) == 1
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [LABELS[method] for method in (*PAPER_METHODS, OURS)]
    for axis in figure.axes:
        assert axis.get_yscale() == "log"
        assert {line.get_label(): line.get_color() for line in axis.lines} == {
            LABELS[method]: COLOURS[method] for method in (*PAPER_METHODS, OURS)
        }
        assert len(axis.collections) == 6
    paths = save_figure(figure, tmp_path, "measures")
    assert [path.suffix for path in paths] == [".png", ".svg", ".pdf"]
    assert all(path.stat().st_size > 10_000 for path in paths)
    again = save_figure(draw_measures(statistics, Size(10, 200)), tmp_path, "again")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]
    assert len(draw_times(statistics).axes) == len(draw_optimality(statistics).axes) == 1


def test_excess_is_that_of_the_rows(run):
    """Recomputed from the rows; every mean and both quartiles are drawn where they belong."""
    statistics = summarise(run[1])
    proofs = {row.task.instance_key: row for row in run[1] if row.task.method == PROOF and row.is_proved}
    assert {setting.noise for setting in statistics.excesses} == set(NOISES) - {0.0}
    for setting, excess in statistics.excesses.items():
        assert set(excess) == {*PAPER_METHODS, OURS}
        for method, spread in excess.items():
            own = [
                row.objective / proofs[row.task.instance_key].objective - 1.0
                for row in run[1]
                if (row.task.setting, row.task.method) == (setting, method)
            ]
            assert len(own) == 2
            assert spread.mean == pytest.approx(sum(own) / 2, abs=1e-12)
            # A proof leaves a gap of 1e-4, below which nobody can be.
            assert min(own) >= -1e-4
    figure = draw_excess(statistics)
    assert len(figure.axes) == len(SPARSITIES)
    for axes, sparsity in zip(figure.axes, SPARSITIES, strict=True):
        shown = [one for one in statistics.excesses if one.sparsity == sparsity]
        lines = {line.get_label(): line for line in axes.lines}
        for method in (*PAPER_METHODS, OURS):
            means = [statistics.excesses[one][method].mean for one in shown]
            drawn = lines[LABELS[method]]
            assert list(drawn.get_xdata()) == [0, 1, 2, 3]
            np.testing.assert_allclose(drawn.get_ydata(), np.maximum(means, MIN_EXCESS))
    (axes,) = draw_excess_in_time(statistics).axes
    small = {line.get_color(): line for line in axes.lines if line.get_label().startswith("_")}
    assert set(small) == set(COLOURS.values())
    for method in LABELS:
        times = [statistics.spreads[one][method, "seconds"].median for one in statistics.excesses]
        np.testing.assert_allclose(small[COLOURS[method]].get_xdata(), times)
    assert set(small[COLOURS[PROOF]].get_ydata()) == {MIN_EXCESS}


def test_the_page_names_the_mean_excess(run):
    statistics = summarise(run[1])
    sections = {s.anchor: s for s in make_page(statistics, draw_figures(statistics), []).sections}
    (text,) = sections["excess"].paragraphs
    assert f"{LABELS[OURS]} less than 0.0001 %" in text
    mean = np.mean([excess["sorting"].mean for excess in statistics.excesses.values()])
    assert f"sorting {100 * mean:.3g} %" in text


def test_without_proofs_nothing_is_said_of_excess(run):
    statistics = summarise(row for row in run[1] if row.task.method != PROOF)
    drawn = draw_figures(statistics)
    assert "excess" not in drawn
    assert "excess" not in [section.anchor for section in make_page(statistics, drawn, []).sections]


@pytest.mark.parametrize("width", [400, 1600])
def test_the_report_in_a_browser(run, tmp_path, width):
    folder, rows = run
    statistics, machines = summarise(rows), json.loads((folder / "machine.json").read_text())
    page = make_page(statistics, draw_figures(statistics), machines)
    path = tmp_path / "report.html"
    page.write(path)
    seen, errors = probe(path, LOOK, tmp_path, width)
    assert errors == ""
    assert seen["images"] == 5
    assert seen["broken"] == seen["external"] == 0
    assert seen["overflow"] <= 0
    assert len(seen["sorted"]) == 6 + 5 + 1
    for up, down in seen["sorted"]:
        assert is_sorted(up)
        assert sorted(up) == sorted(down)
        there = [key for key in down if key != ""]
        assert is_sorted(there[::-1])


def test_the_page_says_only_what_the_run_shows(run):
    statistics = summarise(run[1])
    sentence = "Without noise, all sorting methods find it in every proved instance."
    drawn = draw_figures(statistics)
    assert sentence in make_page(statistics, drawn, []).sections[0].paragraphs[1]
    worse = replace(statistics, solved_without_noise=statistics.solved_without_noise | {"sorting": 0.9})
    assert sentence not in make_page(worse, drawn, []).sections[0].paragraphs[1]
    none = replace(statistics, solved_with_noise={}, solved_without_noise={})
    assert make_page(none, drawn, []).sections[0].paragraphs[1].startswith("No instance with noise")


def test_the_command(run, tmp_path, monkeypatch):
    """Everything from finished rows of one size, and a run that is asked for tables only."""
    from rectifit.experiments.reproduce import reproduce

    folder, _ = run
    drawn, make_panels = [], figures._make_panels

    def counted(*arguments, **options):
        drawn.append(arguments)
        return make_panels(*arguments, **options)

    monkeypatch.setattr(figures, "_make_panels", counted)
    written = reproduce(folder, n_instances=2, sizes=(10,), verbose=0)
    assert [path.name for path in written] == ["rows.csv", "tables", "figures", "report.html"]
    names = {path.name for path in (folder / "tables").iterdir()}
    assert {f"claims{suffix}" for suffix in (".txt", ".csv", ".tex")} <= names
    assert {path.name for path in (folder / "figures").glob("*.png")} == {
        "excess.png",
        "excess-in-time.png",
        "measures-p10.png",
        "optimality.png",
        "times.png",
    }
    text = (folder / "report.html").read_text(encoding="utf-8")
    for heading in ("NP-hardness at work", "How large does n/k get?", "An erratum", "What it was run on"):
        assert heading in text
    seen, errors = probe(folder / "report.html", LOOK, tmp_path)
    assert errors == ""
    assert seen["images"] == 6
    assert seen["broken"] == 0
    # Five figures for the files and the page, and the erratum for the page.
    assert len(drawn) == 6


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_command_line_is_interrupted_without_loss(tmp_path, n_jobs):
    folder = tmp_path / "out"
    command = [sys.executable, "-m", "rectifit", "reproduce", "--out", str(folder), "--jobs", str(n_jobs)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    rows = folder / "rows.csv"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (rows.exists() and rows.stat().st_size > 3000):
        time.sleep(0.1)
    # As Ctrl-C in a terminal, which interrupts the workers, too.
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "run the same command to resume" in errors
    assert "Traceback" not in errors
    assert len(RowFile(rows, FitRow).read()) >= 7
