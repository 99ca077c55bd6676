"""The command line: `rectifit`."""

from __future__ import annotations

import sys
from importlib.util import find_spec

__all__ = ["main"]

NEEDED = ("click", "polars", "pydantic", "rich")


def main() -> None:
    """Run the command line, or name the package to install."""
    try:
        for name in NEEDED:
            if find_spec(name) is None:
                sys.exit(
                    f"rectifit: the command line needs {name}; install it with: pip install 'rectifit[cli]'"
                )
        from rectifit.cli.program import program

        program(prog_name="rectifit")
    except KeyboardInterrupt:
        # Before a command has begun, or after it has ended.
        sys.exit("rectifit: interrupted")
