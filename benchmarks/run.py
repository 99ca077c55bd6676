"""Benchmarks beside peers in one process: `make bench`, or a part, `make bench BENCH="methods --quick"`."""

from __future__ import annotations

import argparse
import os
import platform
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

import proofs
from common import console
from threadpoolctl import threadpool_limits

from rectifit.experiments.machine import yardstick

PARTS = ("surrogate", "constraints", "methods", "quality", "proofs", "scale", "gpu")
PACKAGES = ("rectifit", "numpy", "scipy", "scikit-learn", "numba", "piqp", "osqp", "clarabel", "torch")


def version_of(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "is not installed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"which of {', '.join(PARTS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="small problems and few seeds only")
    proofs.add_options(parser.add_argument_group("proofs"))
    chosen = parser.parse_args()
    for part in chosen.parts:
        if part not in PARTS:
            parser.error(f"part is {part!r}; it must be one of {', '.join(PARTS)}")
    try:
        of_proofs = proofs.Options.of(chosen)
    except ValueError as error:
        parser.error(str(error))
    with threadpool_limits(1):
        unit = yardstick()
    console.print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores")
    console.print(", ".join(f"{name} {version_of(name)}" for name in PACKAGES))
    console.print(f"yardstick: lstsq on 1000 x 50 takes {1e3 * unit:.2f} ms on one thread\n")
    for part in PARTS:
        if chosen.parts and part not in chosen.parts:
            continue
        if part == "proofs":
            proofs.run(of_proofs)
        else:
            # Imported here: a part needs its peers, and a machine may have none.
            import_module(part).run(chosen.quick)


if __name__ == "__main__":
    main()
