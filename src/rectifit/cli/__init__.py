"""The command line: `rectifit`."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["main"]

NEEDED = ("click", "polars", "pydantic", "rich")


def main() -> None:
    """Run the command line, or name the package to install."""
    try:
        from importlib.util import find_spec

        for name in NEEDED:
            if find_spec(name) is None:
                sys.exit(
                    f"rectifit: the command line needs {name}; install it with: pip install 'rectifit[cli]'"
                )
        import signal

        from rectifit.interrupts import holding_interrupts

        with holding_interrupts():
            from rectifit.cli.program import program

        try:
            program(prog_name="rectifit")
        except SystemExit:
            # All is done and said: an interrupt would only change the exit status.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            raise
    except KeyboardInterrupt:
        # Before a command has begun, while it had nothing to keep, or after it has ended.
        _stop_interrupted()


def _stop_interrupted() -> NoReturn:
    """Exit status 1. After some interrupts that were handled, `sys.exit` would end in a death by signal."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.write("rectifit: interrupted\n")
        sys.stderr.flush()
    os._exit(1)
