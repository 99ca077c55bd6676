"""The whole paper in one call: run the missing tasks, then write tables, figures and the report."""

from __future__ import annotations

import json
from pathlib import Path

from rectifit.experiments.asymptotics import asymptotic_rows, compute_erratum
from rectifit.experiments.figures import draw_figures, save_figure
from rectifit.experiments.grid import paper_grid
from rectifit.experiments.ratio import ratio_rows
from rectifit.experiments.report import make_page
from rectifit.experiments.runner import run_tasks
from rectifit.experiments.statistics import summarise
from rectifit.experiments.subset_sum import subset_sum_rows
from rectifit.experiments.tables import make_tables
from rectifit.experiments.theory_sections import theory_sections
from rectifit.parallel import limit_threads
from rectifit.writing import write_file

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
    """Run all tasks of the grid that have no row in the folder, and write the requested output.

    Returns
    -------
    list of Path
        The files and folders written: rows.csv, tables/, figures/, report.html.
    """
    rows = run_tasks(paper_grid(n_instances, sizes), folder, n_jobs, verbose)
    statistics = summarise(rows)
    written = [folder / "rows.csv"]
    if tables:
        (folder / "tables").mkdir(exist_ok=True)
        for table in make_tables(statistics):
            forms = {"txt": table.to_text(), "csv": table.to_csv(), "tex": table.to_latex()}
            for suffix, text in forms.items():
                write_file(folder / "tables" / f"{table.key}.{suffix}", text)
        written.append(folder / "tables")
    drawn = draw_figures(statistics) if figures or report else {}
    if figures:
        for name, figure in drawn.items():
            save_figure(figure, folder / "figures", name)
        written.append(folder / "figures")
    if report:
        machines = json.loads((folder / "machine.json").read_text())
        # The matrices are small, and BLAS threads would only slow the work down.
        with limit_threads():
            theory = (subset_sum_rows(), ratio_rows(), asymptotic_rows(), compute_erratum())
        page = make_page(statistics, drawn, machines, theory_sections(*theory))
        page.write(folder / "report.html")
        written.append(folder / "report.html")
    return written
