"""Mutations of lines on which a bound, a proof or a skip rests, and the tests that have to notice each.

Each makes something unsound: a bound too high, a region too small, a check of a proof file that is left out.
They are applied one at a time to a copy of the sources, and the tests that aim at the line are run there. A
mutation that no test notices survives, and the command fails. Compiled code is compiled again for each.

    make mutate                                    # all of them
    python benchmarks/mutations.py neighbours      # those whose file or name has this word
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
# What tests need beside the sources.
COPIED = ("src", "tests", "benchmarks", "pyproject.toml")
# Seconds after which a mutation that makes tests hang counts as noticed.
LIMIT = 900.0


@dataclass(frozen=True)
class Mutation:
    """A text that occurs once in a file of src/rectifit, what takes its place, and the tests aimed at it."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def apply(self, root: Path) -> None:
        """Change the file below root."""
        path = root / "src" / "rectifit" / self.file
        text = path.read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.file} has {text.count(self.old)} times {self.old!r}, not 1")
        path.write_text(text.replace(self.old, self.new))


PIECES = ("tests/test_pieces.py",)
BOUNDS = ("tests/test_surrogate.py", "-k", "bound")
EXACT = ("tests/test_verify.py", "-k", "exactly")
EDGES = ("tests/test_certificate.py", "-k", "edge or costs_all or tightening or better_point")
LOSS = ("tests/test_certificate.py", "-k", "relaxation or envelopes or against_brute_force")
HAIR = ("tests/test_approximation.py", "-k", "neighbour")
FACES = ("tests/test_cells.py", "-k", "face")
RAYS = ("tests/test_cells.py", "-k", "better_ray or larger_scales or table_of_prices or ellipsoid")
CELLS = ("tests/test_cells.py", "-k", "better_ray or larger_scales or against or steep or limits")
SCALE = ("tests/test_scale_search.py",)
SLABS = ("tests/test_slabs.py",)
CHECKER = ("tests/test_checker.py", "tests/test_proof_files.py", "-k", "not command_line and not accepted")

MUTATIONS = (
    # One sample, and the dual bound.
    Mutation(
        "conjugate at the kink too low",
        "pieces.py",
        "at_kink = slope * (y + abs(y)) - y * y",
        "at_kink = slope * (y + abs(y)) - 1.01 * y * y",
        PIECES,
    ),
    Mutation(
        "conjugate on the quadratic too low", "pieces.py", "(0.25 * slope + y)", "(0.24 * slope + y)", PIECES
    ),
    Mutation("kink too far right", "pieces.py", "return y + abs(y)", "return 1.02 * (y + abs(y))", PIECES),
    Mutation("decrement too small", "bounds.py", "return 0.25 * product", "return 0.2 * product", BOUNDS),
    Mutation(
        "slopes below their limit are kept",
        "bounds.py",
        "infeasible = sloped & (slopes < Z @ v)",
        "infeasible = sloped & (slopes < 0.2 * (Z @ v))",
        BOUNDS,
    ),
    Mutation(
        "infeasible rows keep their curvature",
        "bounds.py",
        "        gram -= rows.T @ rows\n",
        "",
        BOUNDS,
    ),
    Mutation(
        "no allowance for rounding",
        "bounds.py",
        "(n_directions + 4) * extent * total_slope",
        "0.0 * extent * total_slope",
        EXACT,
    ),
    Mutation(
        "a remainder counts as balanced",
        "bounds.py",
        "return remainder <= REMAINDER_TOL",
        "return remainder <= 1e9 * REMAINDER_TOL",
        ("tests/test_surrogate.py", "tests/test_certificate.py", "-k", "bound or relaxation or balanced"),
    ),
    # Intervals of u.
    Mutation(
        "room of an ellipsoid 5 % too small",
        "certificate/tighten.py",
        "room, W = max(cutoff - bound.value, 0.0), np",
        "room, W = 0.95 * max(cutoff - bound.value, 0.0), np",
        EDGES,
    ),
    Mutation(
        "radius of an ellipsoid 5 % too small",
        "certificate/ascent_kernel.py",
        "radius = math.sqrt(max(room, 0.0) * length)",
        "radius = 0.95 * math.sqrt(max(room, 0.0) * length)",
        EDGES,
    ),
    Mutation(
        "room of single costs too small",
        "certificate/tighten.py",
        "room = max(cutoff - float(negative @ negative), 0.0)",
        "room = 0.95 * max(cutoff - float(negative @ negative), 0.0)",
        EDGES,
    ),
    Mutation(
        "tilts reach too far",
        "certificate/tighten.py",
        "(values - cutoff) / tau[part]",
        "(values - 0.98 * cutoff) / tau[part]",
        EDGES,
    ),
    Mutation(
        "box too small",
        "certificate/tighten.py",
        "0.5 * np.abs(Z) @ (high - low)",
        "0.45 * np.abs(Z) @ (high - low)",
        ("tests/test_certificate.py", "-k", "box"),
    ),
    # Relaxations.
    Mutation(
        "chord too high",
        "certificate/kernel.py",
        "slope = c * low if c < 0.0 else 0.0",
        "slope = 0.9 * c * low if c < 0.0 else 0.0",
        LOSS,
    ),
    Mutation(
        "touching line too high",
        "certificate/kernel.py",
        "slope, constant = 2.0 * one * t - 2.0 * y, square - one * t * t",
        "slope, constant = 2.0 * one * t - 2.0 * y, square - 0.98 * one * t * t",
        LOSS,
    ),
    Mutation(
        "line of a far sample too high",
        "certificate/kernel.py",
        "slope, constant = c * (a + t), -c * a * t",
        "slope, constant = c * (a + t), -0.95 * c * a * t",
        SLABS,
    ),
    Mutation(
        "decrement of a relaxation too small",
        "certificate/relaxation.py",
        "supports - 0.25 * np.einsum",
        "supports - 0.2 * np.einsum",
        ("tests/test_certificate.py", "tests/test_slabs.py", "-k", "relaxation or tilt or tightening"),
    ),
    Mutation(
        "centre of an ellipsoid moved",
        "certificate/relaxation.py",
        "centre = b - 0.5 * step",
        "centre = b - 0.5 * step + 1e-3",
        EDGES,
    ),
    # Neighbours of a surrogate that are skipped.
    Mutation(
        "0.3 g for g", "surrogate/neighbours.py", "self._change[e] - g\n", "self._change[e] - 0.3 * g\n", HAIR
    ),
    Mutation(
        "0.2 of the crossings",
        "surrogate/neighbours.py",
        "pull + _crossings(",
        "pull + 0.2 * _crossings(",
        HAIR,
    ),
    Mutation(
        "half of the pull",
        "surrogate/neighbours.py",
        "np.sqrt(self._reaches) * pull",
        "np.sqrt(self._reaches) * 0.5 * pull",
        HAIR,
    ),
    Mutation(
        "q without what the removed rows held",
        "surrogate/neighbours.py",
        "g / np.where(left > 0.0, left, 1.0), np.inf)\n        safe",
        "g, np.inf)\n        safe",
        HAIR,
    ),
    Mutation(
        "samples removed before balance nothing less",
        "surrogate/neighbours.py",
        "left = 1.0 - removal.h - self._h[e]",
        "left = 1.0 - self._h[e]",
        HAIR,
    ),
    Mutation(
        "half of the cost of a kept slope",
        "surrogate/neighbours.py",
        "2.0 * r * (y - r), np.inf)",
        "1.0 * r * (y - r), np.inf)",
        HAIR,
    ),
    Mutation(
        "samples that enter cost nothing",
        "surrogate/neighbours.py",
        "return np.asarray((leaving + entering)",
        "return np.asarray((leaving + 0.0 * entering)",
        HAIR,
    ),
    # Cells of directions.
    Mutation(
        "room of drawn-in edges too small",
        "certificate/cell_kernel.py",
        "M[k, j] = w[k] * room",
        "M[k, j] = 0.95 * w[k] * room",
        RAYS,
    ),
    Mutation(
        "radius of a cell's ellipsoid 5 % too small",
        "certificate/cell_kernel.py",
        "radius = math.sqrt(room * length) + INTERVAL_ATOL",
        "radius = 0.95 * math.sqrt(room * length) + INTERVAL_ATOL",
        RAYS,
    ),
    Mutation(
        "prices too high",
        "certificate/cell_kernel.py",
        "prices[(e << n_first) + d] -= s",
        "prices[(e << n_first) + d] -= 0.98 * s",
        RAYS,
    ),
    Mutation(
        "slopes cost too little",
        "certificate/cell_kernel.py",
        "t = free.mu[i] * (free.y[i] - 0.25 * free.mu[i])",
        "t = free.mu[i] * (free.y[i] - 0.23 * free.mu[i])",
        CELLS,
    ),
    Mutation(
        "negative prices count too little",
        "certificate/cell_kernel.py",
        "value = S + lowest * most if is_limit",
        "value = S + 0.5 * lowest * most if is_limit",
        CELLS,
    ),
    Mutation(
        "curvature counts too much",
        "certificate/cell_kernel.py",
        "value = max(value, S + lowest * s - 0.25 * lowest * lowest * inverse)",
        "value = max(value, S + lowest * s - 0.1 * lowest * lowest * inverse)",
        CELLS,
    ),
    Mutation(
        "least length too large",
        "certificate/cell_kernel.py",
        "return best * (1.0 - SUM_TOL * n)",
        "return 1.3 * best * (1.0 - SUM_TOL * n)",
        CELLS,
    ),
    Mutation(
        "samples settled too early",
        "certificate/cell_kernel.py",
        "            elif centre[i] + radius[i] <= 0.0:",
        "            elif centre[i] + 0.9 * radius[i] <= 0.0:",
        RAYS,
    ),
    Mutation(
        "the least scale too large",
        "certificate/cell_kernel.py",
        "least = needed / (math.sqrt(longest)",
        "least = 1.3 * needed / (math.sqrt(longest)",
        CELLS,
    ),
    Mutation(
        "coordinates that are not listed cost half",
        "certificate/cell_kernel.py",
        "base -= 0.5 * s\n        size += s",
        "base -= 0.25 * s\n        size += s",
        ("tests/test_cells.py", "-k", "enumerated or better_ray"),
    ),
    Mutation(
        "hinges too steep",
        "certificate/cell_kernel.py",
        "cap[i] = y * y / (h * s * factor)",
        "cap[i] = 1.3 * y * y / (h * s * factor)",
        RAYS,
    ),
    Mutation(
        "scales ended too early by constraints",
        "certificate/cell_kernel.py",
        "limit = min(limit, end / lowest * (1.0 + INTERVAL_RTOL))",
        "limit = min(limit, 0.7 * end / lowest * (1.0 + INTERVAL_RTOL))",
        ("tests/test_constrained_proofs.py",),
    ),
    # Faces.
    Mutation(
        "a face remembered although it was not closed",
        "certificate/cells.py",
        "        if self.search.run(mapped):\n            self._proved = self._target()",
        "        self.search.run(mapped)\n        self._proved = self._target()",
        FACES,
    ),
    Mutation(
        "more noted of a face than was proved",
        "certificate/cells.py",
        "self._faces.note(self._inside, self.bound)",
        "self._faces.note(self._inside, self._target())",
        FACES,
    ),
    Mutation(
        "samples outside of a face count as off",
        "certificate/cells.py",
        "missing, nodes, work = self.faces.mass_outside(self._members), face",
        "missing, nodes, work = 0.0, face",
        FACES,
    ),
    Mutation(
        "bounds of faces keep what is outside",
        "certificate/cells.py",
        "bound[within] - self.mass_outside(members)",
        "bound[within]",
        FACES,
    ),
    Mutation(
        "samples that are on cost a face too little",
        "certificate/cell_kernel.py",
        "best = max(best, faces.bound[e] - total)",
        "best = max(best, faces.bound[e] - 0.9 * total)",
        FACES,
    ),
    Mutation(
        "u explained too small",
        "certificate/cells.py",
        "return math.sqrt(max(self._squares - self._proved, 0.0)) * (1.0 + SUM_TOL)",
        "return 0.8 * math.sqrt(max(self._squares - self._proved, 0.0)) * (1.0 + SUM_TOL)",
        CELLS,
    ),
    # The scale.
    Mutation(
        "a demand of a face that was not closed",
        "certificate/scale.py",
        "        bound = self._bound_face(kind)\n",
        "        bound = max(self._bound_face(kind), self.cutoff * (1.0 + 1e-9))\n",
        SCALE,
    ),
    Mutation(
        "demands too large",
        "certificate/scale.py",
        "return np.asarray(self._bounds - self.cutoff -",
        "return np.asarray(1.05 * self._bounds - self.cutoff -",
        SCALE,
    ),
    Mutation(
        "sets of directions called empty",
        "certificate/scale_kernel.py",
        "if total - slope * far - SUM_TOL",
        "if 1.1 * total - 0.9 * slope * far - SUM_TOL",
        SCALE,
    ),
    Mutation(
        "scale proved at another level",
        "certificate/scale.py",
        "self.proved, self._is_open = LEVELS[self._level], False",
        "self.proved, self._is_open = 1.5 * LEVELS[self._level], False",
        SCALE,
    ),
    Mutation(
        "the least mean too high",
        "certificate/scale.py",
        "return -length * explained / self._ratio",
        "return -0.7 * length * explained / self._ratio",
        (*SCALE, *SLABS),
    ),
    # The checker.
    Mutation(
        "sums do not err",
        "checking/rounding.py",
        "return n * UNIT * (1.0 + SLACK)",
        "return 0.0 * n",
        CHECKER,
    ),
    Mutation("inverses are exact", "checking/rounding.py", "up(1.0 / (1.0 - eps))", "1.0", CHECKER),
    Mutation(
        "sums are not rounded down",
        "checking/rounding.py",
        "return sum(terms) - float(",
        "return sum(terms) - 0.0 * float(",
        CHECKER,
    ),
    Mutation(
        "the data may be others",
        "checking/proof.py",
        "if data_digest(X, y, weight) != claim.digest:",
        "if claim.digest is None:",
        CHECKER,
    ),
    Mutation(
        "the file may be changed",
        "checking/reading.py",
        "if hashlib.sha256(content[:end]).digest() != content[end:]:",
        "if not content:",
        CHECKER,
    ),
    Mutation(
        "cells that are open count as closed",
        "checking/trees.py",
        "            if cell.is_closed:\n                continue\n            if number",
        "            if cell.is_closed or (cell.face is None and number not in self._parts):\n"
        "                continue\n            if number",
        CHECKER,
    ),
    Mutation(
        "trees that are needed are not checked",
        "checking/trees.py",
        "                needed.add(cell.face)\n",
        "",
        CHECKER,
    ),
    Mutation(
        "a face of samples that may be on",
        "checking/trees.py",
        "if not (is_smaller and (off | (self._data.y <= 0.0))[outside].all()):",
        "if not is_smaller:",
        CHECKER,
    ),
    Mutation(
        "a face of as many samples",
        "checking/trees.py",
        "if not (is_smaller and (off",
        "if not ((off",
        CHECKER,
    ),
    Mutation(
        "the first tree is about some samples",
        "checking/trees.py",
        "if not trees[0].members.all():",
        "if not trees:",
        CHECKER,
    ),
    Mutation(
        "settled samples are believed",
        "checking/cells.py",
        "if not (np.abs(u) >= spread).all():",
        "if not (np.abs(u) >= 0.9 * spread).all():",
        CHECKER,
    ),
    Mutation(
        "edges are believed",
        "checking/cells.py",
        "if not float(v @ centre) >= reach(v):",
        "if not float(v @ centre) >= 0.9 * reach(v):",
        CHECKER,
    ),
    Mutation(
        "the ellipsoid is too small",
        "checking/cells.py",
        "room = -lower_sum(-cutoff, rest) + pull * pull",
        "room = 0.9 * (-lower_sum(-cutoff, rest) + pull * pull)",
        CHECKER,
    ),
    Mutation(
        "another cutoff for edges",
        "checking/cells.py",
        "if not cutoff >= self.cutoff:",
        "if not cutoff >= 0.0:",
        CHECKER,
    ),
    Mutation(
        "slopes cost the checker too little",
        "checking/cells.py",
        "terms += [mu * yF, -mu * mu / (4.0 * wF)]",
        "terms += [mu * yF, -mu * mu / (4.2 * wF)]",
        CHECKER,
    ),
    Mutation(
        "curvature counts too much for the checker",
        "checking/cells.py",
        "-0.25 * price * price * curve",
        "-0.2 * price * price * curve",
        CHECKER,
    ),
    Mutation(
        "prices of the checker too high",
        "checking/cells.py",
        "prices = V @ g - np.maximum(V @ Z.T, -floor) @ mu",
        "prices = V @ g - 0.98 * np.maximum(V @ Z.T, -floor) @ mu",
        CHECKER,
    ),
    Mutation(
        "the checker settles too early",
        "checking/cells.py",
        "off = (kind == OPEN) & (centre + radius <=",
        "off = (kind == OPEN) & (centre + 0.95 * radius <=",
        CHECKER,
    ),
    Mutation(
        "a largest scale too small",
        "checking/cells.py",
        "limit = up(up(self.explained * length) / (lowest * (1.0 - SLACK)))",
        "limit = 0.9 * up(up(self.explained * length) / (lowest * (1.0 - SLACK)))",
        CHECKER,
    ),
    Mutation(
        "all larger scales closed by less",
        "checking/cells.py",
        "found.price * scale) >= self.cutoff:",
        "found.price * scale) >= 0.98 * self.cutoff:",
        CHECKER,
    ),
    Mutation(
        "hinges of the checker too steep",
        "checking/cells.py",
        "most = w * y * y / (safe * scale) * (1.0 - SLACK)",
        "most = 1.1 * w * y * y / (safe * scale) * (1.0 - SLACK)",
        CHECKER,
    ),
    Mutation(
        "coordinates need no inverse",
        "checking/rows.py",
        "        _check_inverse(np.column_stack([T, N]))\n",
        "",
        CHECKER,
    ),
    Mutation("faces need no null space", "checking/rows.py", "        _check_null(A, N)\n", "", CHECKER),
    Mutation(
        "samples of one row cost too much",
        "checking/rows.py",
        "kept = np.maximum((total * (1.0 - gamma(most + 2)) - e) * (1.0 - 4.0 * UNIT), 0.0)",
        "kept = 1.001 * total",
        CHECKER,
    ),
)


def run_tests(root: Path, tests: tuple[str, ...], cache: Path) -> tuple[bool, str]:
    """Whether tests pass in a copy, and the last line of what they say."""
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return False, f"no end within {LIMIT:g} s"
    lines = (done.stdout + done.stderr).strip().splitlines()
    # 0: passed; 1: failed. Anything else, such as no tests at all, is a mistake in the table.
    if done.returncode not in (0, 1):
        raise RuntimeError(f"the tests could not be run: {lines[-1] if lines else done.returncode}")
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return done.returncode == 0, (failed or lines or [""])[-1]


def main() -> int:
    """Apply the mutations one at a time; the status is 1 if one survives."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="words of the file or the name of a mutation")
    chosen = parser.parse_args().words
    table = [m for m in MUTATIONS if not chosen or any(word in f"{m.file} {m.name}" for word in chosen)]
    survivors, began = [], time.perf_counter()
    with TemporaryDirectory() as folder:
        root, cache = Path(folder) / "copy", Path(folder) / "cache"
        for name in COPIED:
            source, target = ROOT / name, root / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                root.mkdir(exist_ok=True)
                shutil.copy(source, target)
        for tests in dict.fromkeys(mutation.tests for mutation in table):
            passed, line = run_tests(root, tests, cache)
            if not passed:
                raise RuntimeError(f"tests fail before anything is changed: {line}")
        for number, mutation in enumerate(table, start=1):
            path = root / "src" / "rectifit" / mutation.file
            before = path.read_text()
            mutation.apply(root)
            survived, line = run_tests(root, mutation.tests, cache)
            path.write_text(before)
            if survived:
                survivors.append(mutation)
            state = "SURVIVED" if survived else "killed"
            print(
                f"{number:3d}/{len(table)}  {state:8s}  {mutation.file}: {mutation.name}  ({line})",
                flush=True,
            )
    minutes = (time.perf_counter() - began) / 60.0
    print(f"{len(table) - len(survivors)} of {len(table)} mutations are noticed; {minutes:.1f} minutes")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
