"""check: derive a proof again from the data, independently of the search."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from rectifit.checking import check_proof
from rectifit.cli import options
from rectifit.cli.loading import load_table
from rectifit.cli.show import print_json, print_notes
from rectifit.tables import TextFormat

__all__ = ["check_command"]


@click.command("check")
@click.argument("proof", metavar="PROOF", type=click.Path(exists=True, dir_okay=False))
@options.DATA
@options.columns()
@options.text_format
@options.JSON
def check_command(
    proof: str,
    data: str,
    form: TextFormat,
    target: str | None,
    weights: str | None,
    as_json: bool,
    **columns: Any,
) -> None:
    """Check PROOF, a file written by `rectifit certify --proof`, against DATA.

    Every step is derived again from the data, in rigorous arithmetic, by code that shares nothing with the
    search. The last sentence says which bound is proved, and for which data. The exit status is 1 if
    anything in the file does not follow.

    \b
    Example:
      rectifit certify rain.csv --target mm --proof rain.rproof
      rectifit check rain.rproof rain.csv --target mm
    """
    table = load_table(data, form, target, weights=weights, **columns)
    checked = check_proof(proof, table.X, table.y, sample_weight=table.weights)
    if as_json:
        stated = asdict(checked) | {"gap": checked.gap, "statement": str(checked)}
        print_json({"target": table.target} | stated | {"notes": table.notes})
        return
    print_notes(table.notes)
    click.echo(str(checked))
