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
    help="Where rows, tables, figures and the report go.",
)
@click.option("--tables", is_flag=True, help="Write the tables only.")
@click.option("--figures", is_flag=True, help="Write the figures only.")
@click.option(
    "--instances",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="Instances of every setting; the paper has 20.",
)
@click.option(
    "--jobs", type=int, default=1, show_default=True, metavar="J", help="Processes; -1: one per core."
)
def reproduce_command(out: Path, tables: bool, figures: bool, instances: int, jobs: int) -> None:
    """Reproduce the paper: its 15 tables, its figures, its claims, its theory, and a report.

    Runs the paper's five methods and two of ours on all of its instances: some 11,000 fits, some minutes on
    two cores. Every finished fit is kept in DIR/rows.csv: stop it when you like, and start it again to go on.
    Without --tables or --figures everything is written, DIR/report.html included.

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
            f"interrupted; what is finished is kept in {out / 'rows.csv'}, start again to go on", err=True
        )
        raise click.exceptions.Exit(1) from None
    for path in written:
        click.echo(path)
