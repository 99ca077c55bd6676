"""All commands; a failure is one sentence and an exit status."""

from __future__ import annotations

import errno
import shlex
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from rectifit import __version__
from rectifit.checking import ProofError
from rectifit.cli.certifying import certify_command
from rectifit.cli.checking import check_command
from rectifit.cli.comparing import compare_command
from rectifit.cli.examples import demo, make
from rectifit.cli.fitting import fit, predict
from rectifit.cli.library import instances
from rectifit.cli.precompiling import precompile_command
from rectifit.cli.reproducing import reproduce_command
from rectifit.solution import VerificationError

__all__ = ["program"]

FAILED = 1
BAD_USAGE = 2
# What goes wrong with a stream: a full disk, or a broken one.
OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Program(click.Group):
    """Errors of the user end with one sentence on standard error and status 2, without a traceback.

    The context's object is the command as it was typed, with names of files instead of paths.
    """

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Keep the command."""
        command = shlex.join(["rectifit", *map(_strip_folder, args)])
        return super().make_context(info_name, args, parent, obj=command, **extra)

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run a command and exit."""
        try:
            status = super().main(*args, **extra | {"standalone_mode": False})
        except click.ClickException as error:
            _fail(error.format_message(), BAD_USAGE)
        except click.Abort:
            # `cli.main` knows how to end.
            raise KeyboardInterrupt from None
        except VerificationError as error:
            _fail(f"the solution failed its verification: {error}", FAILED)
        except ProofError as error:
            _fail(f"the proof is rejected: {error}", FAILED)
        except (ImportError, ValueError) as error:
            # An import fails where an extra is not installed, and the error says which.
            _fail(str(error), BAD_USAGE)
        except OSError as error:
            _fail(_describe(error), FAILED)
        sys.exit(status if isinstance(status, int) else 0)


def _strip_folder(argument: str) -> str:
    """The name of a file without its folder: a report is for readers who have other folders."""
    option, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
    path = Path(value)
    return f"{option}{equals}{path.name}" if path.name and path.parent.is_dir() else argument


def _describe(error: OSError) -> str:
    """What could not be written, and why."""
    name = error.filename
    if name is None and error.errno in OUTPUT_ERRORS:
        # Files are named; what is printed is not.
        name = "standard output"
    return f"{name or 'a file'} cannot be written: {error.strerror or error}"


def _fail(sentence: str, status: int) -> NoReturn:
    click.echo(f"rectifit: {sentence}", err=True)
    sys.exit(status)


@click.group(cls=Program, invoke_without_command=True, context_settings={"show_default": True})
@click.version_option(__version__, prog_name="rectifit", message="%(prog)s %(version)s")
@click.pass_context
def program(context: click.Context) -> None:
    """Fit y ~ max(0, X beta + intercept) by least squares, and prove how good the fit is.

    For outcomes that pile up at zero: hours worked, rainfall, spending, heating above a base load.

    \b
    First steps:
      rectifit demo                                    a demonstration on bundled data
      rectifit fit data.csv --target y                 a table of coefficients
      rectifit certify data.csv --target y             a proof that no fit is much better
      rectifit check proof data.csv --target y         the same proof, checked independently
      rectifit compare data.csv --target y             all methods and ordinary alternatives

    DATA is a CSV, TSV, TXT, NDJSON, JSONL, Parquet or Excel file, recognised by its extension, or - for CSV
    on standard input. Text may be compressed (.gz, .zst).

    Exit status: 0 done, 1 the job failed, 2 bad usage or bad data. Ctrl-C ends a search early and keeps
    the best fit so far, with its certificate.

    \b
    Tab completion of commands, options and column names:
      bash   eval "$(_RECTIFIT_COMPLETE=bash_source rectifit)"    in ~/.bashrc
      zsh    eval "$(_RECTIFIT_COMPLETE=zsh_source rectifit)"     in ~/.zshrc
      fish   _RECTIFIT_COMPLETE=fish_source rectifit | source     in ~/.config/fish/config.fish
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


COMMANDS = (
    fit,
    predict,
    certify_command,
    check_command,
    compare_command,
    make,
    reproduce_command,
    instances,
    demo,
    precompile_command,
)
for command in COMMANDS:
    program.add_command(command)
