"""The whole paper in one call: run what is missing, then write tables, figures and the report."""

from __future__ import annotations

import json
from pathlib import Path

from rectifit.display import Table
from rectifit.experiments.figures import draw_measures, draw_optimality, draw_times, save_figure
from rectifit.experiments.grid import paper_grid
from rectifit.experiments.report import make_page
from rectifit.experiments.results import Results
from rectifit.experiments.runner import run_tasks
from rectifit.experiments.theory_sections import theory_sections

__all__ = ["reproduce"]


def reproduce(
    folder: Path,
    *,
    tables: bool = True,
    figures: bool = True,
    report: bool = True,
    n_instances: int = 20,
    sizes: tuple[int, ...] = (10, 20, 50),
    n_jobs: int = 1,
    verbose: int = 1,
) -> list[Path]:
    """Run the grid in a folder, or what of it is not there yet, and write what is asked for.

    Returns
    -------
    list of Path
        What was written: rows.csv, tables/, figures/, report.html.
    """
    rows = run_tasks(paper_grid(n_instances, sizes), folder, n_jobs, verbose)
    results, written = Results(rows), [folder / "rows.csv"]
    if tables:
        for table in results.tables():
            _write_table(table, folder / "tables")
        written.append(folder / "tables")
    if figures:
        for p in sizes:
            save_figure(draw_measures(results, p), folder / "figures", f"measures-p{p}")
        save_figure(draw_times(results), folder / "figures", "times")
        save_figure(draw_optimality(results), folder / "figures", "optimality")
        written.append(folder / "figures")
    if report:
        machines = json.loads((folder / "machine.json").read_text())
        make_page(results, machines, theory_sections()).write(folder / "report.html")
        written.append(folder / "report.html")
    return written


def _write_table(table: Table, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, text in ((".txt", table.to_text()), (".csv", table.to_csv()), (".tex", table.to_latex())):
        (folder / f"{table.key}{suffix}").write_text(text, encoding="utf-8")
