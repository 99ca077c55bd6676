"""`rectifit reproduce`: every table and figure of the paper."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["reproduce_command"]


@click.command("reproduce")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="Folder for rows, tables, figures and the report.",
)
@click.option("--tables", is_flag=True, help="Write only the tables.")
@click.option("--figures", is_flag=True, help="Write only the figures.")
@click.option(
    "--instances",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="Instances per setting; the paper has 20.",
)
@click.option(
    "--jobs",
    type=int,
    default=1,
    show_default=True,
    metavar="J",
    help="Number of processes; -1 uses one per core.",
)
def reproduce_command(out: Path, tables: bool, figures: bool, instances: int, jobs: int) -> None:
    """Reproduce the paper: its 15 tables, its figures, its claims, its theory, and a report.

    Runs the paper's five methods and two methods of rectifit on all instances of the paper: some 11,000 fits,
    which take some minutes on two cores. Every finished instance is stored in DIR/rows.csv: interrupt the
    command at any time, and run it again to resume. Without --tables or --figures, everything is written,
    including DIR/report.html.

    \b
    Examples:
      rectifit reproduce --out paper --jobs -1
      rectifit reproduce --out quick --instances 2
    """
    from rectifit.experiments.reproduce import reproduce
    from rectifit.parallel import count_threads

    if jobs == 0:
        raise click.BadParameter("jobs is 0; it must be a positive number of processes, or -1 for all cores")
    everything = not (tables or figures)
    try:
        written = reproduce(
            out,
            tables=tables or everything,
            figures=figures or everything,
            report=everything,
            n_instances=instances,
            n_jobs=count_threads(jobs),
        )
    except KeyboardInterrupt:
        click.echo(
            f"interrupted; finished rows are kept in {out / 'rows.csv'}; run the same command to resume",
            err=True,
        )
        raise click.exceptions.Exit(1) from None
    for path in written:
        click.echo(path)
