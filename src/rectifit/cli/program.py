"""The group of all commands, and what a failure looks like: one sentence, and an exit status."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import click

from rectifit import __version__
from rectifit.cli.comparing import compare_command
from rectifit.cli.examples import demo, make
from rectifit.cli.fitting import certify_command, fit, predict
from rectifit.cli.reproducing import reproduce_command
from rectifit.solution import VerificationError

__all__ = ["program"]

FAILED, BAD_USAGE = 1, 2


class Program(click.Group):
    """Errors of the user end with one sentence on standard error and status 2, without a traceback."""

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run a command and exit."""
        try:
            status = super().main(*args, **extra | {"standalone_mode": False})
        except click.ClickException as error:
            _fail(error.format_message(), BAD_USAGE)
        except click.Abort:
            _fail("interrupted", FAILED)
        except VerificationError as error:
            _fail(f"the solution does not hold what it states: {error}", FAILED)
        except ValueError as error:
            _fail(str(error), BAD_USAGE)
        except OSError as error:
            _fail(f"{error.filename or 'a file'} cannot be written: {error.strerror or error}", FAILED)
        sys.exit(status if isinstance(status, int) else 0)


def _fail(sentence: str, status: int) -> NoReturn:
    click.echo(f"rectifit: {sentence}", err=True)
    sys.exit(status)


@click.group(cls=Program, invoke_without_command=True)
@click.version_option(__version__, prog_name="rectifit", message="%(prog)s %(version)s")
@click.pass_context
def program(context: click.Context) -> None:
    """Fit y ~ max(0, X beta + intercept) by least squares, and prove how good the fit is.

    For outcomes that pile up at zero: hours worked, rainfall, spending, heating above a base load.

    \b
    First steps:
      rectifit demo                                    what it does, on bundled data
      rectifit fit data.csv --target y                 a table of coefficients
      rectifit certify data.csv --target y             proof that no fit is much better
      rectifit compare data.csv --target y             all methods and ordinary alternatives

    DATA is a CSV, TSV, Parquet or NDJSON file, told apart by its extension, or - for CSV on standard input.

    Exit status: 0 done, 1 the job failed, 2 bad usage or bad data. Ctrl-C ends a search early, with the best
    fit so far and what is proved about it.

    \b
    Completion of commands, options and column names by the Tab key:
      bash   eval "$(_RECTIFIT_COMPLETE=bash_source rectifit)"    in ~/.bashrc
      zsh    eval "$(_RECTIFIT_COMPLETE=zsh_source rectifit)"     in ~/.zshrc
      fish   _RECTIFIT_COMPLETE=fish_source rectifit | source     in ~/.config/fish/config.fish
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (fit, predict, certify_command, compare_command, make, reproduce_command, demo):
    program.add_command(command)
