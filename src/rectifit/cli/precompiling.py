"""`rectifit precompile`: compile ahead."""

from __future__ import annotations

import click

__all__ = ["precompile_command"]


@click.command("precompile")
def precompile_command() -> None:
    """Compile all code for this machine now, as in the build of a container.

    Otherwise the first fit and the first proof on a machine wait some seconds for the compiler. Compiled code
    is kept beside the package, or in the folder that the environment variable NUMBA_CACHE_DIR names.
    """
    from rectifit.precompile import precompile

    precompile(click.echo)
