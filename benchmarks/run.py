"""Benchmarks beside peers in one process: `make bench`, or a part, `make bench BENCH="methods --quick"`."""

from __future__ import annotations

import argparse
import os
import platform
from importlib.metadata import version

import certificates
import gpu
import methods
import scale
import surrogate
from common import console
from threadpoolctl import threadpool_limits

from rectifit.experiments.machine import yardstick

PARTS = {
    "surrogate": surrogate.run,
    "methods": methods.run,
    "certificates": certificates.run,
    "scale": scale.run,
    "gpu": gpu.run,
}
PACKAGES = ("rectifit", "numpy", "scipy", "scikit-learn", "numba", "piqp", "osqp", "clarabel", "torch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"which of {', '.join(PARTS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="small problems and few seeds only")
    chosen = parser.parse_args()
    for part in chosen.parts:
        if part not in PARTS:
            parser.error(f"part is {part!r}; it must be one of {', '.join(PARTS)}")
    with threadpool_limits(1):
        unit = yardstick()
    console.print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores")
    console.print(", ".join(f"{name} {version(name)}" for name in PACKAGES))
    console.print(f"yardstick: lstsq on 1000 x 50 takes {1e3 * unit:.2f} ms on one thread\n")
    for name, run in PARTS.items():
        if not chosen.parts or name in chosen.parts:
            run(chosen.quick)


if __name__ == "__main__":
    main()
