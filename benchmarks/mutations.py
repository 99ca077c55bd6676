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
SIGNS = ("tests/test_sign_rules.py",)
ALMOST = ("tests/test_checker.py", "-k", "almost")
LIMITED = ("tests/test_checker.py", "-k", "wall or constraint or limit")
ROWS = ("tests/test_checked_rows.py",)
LEAST = (
    "tests/test_sign_rules.py",
    "tests/test_sign_proofs.py",
    "-k",
    "row_costs or scales_costs or many_rows or parabola",
)
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
        ("tests/test_certificate.py", "-k", "without_limit"),
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
        "-self.loss_of_almost(cell)) >= self.cutoff:",
        "-self.loss_of_almost(cell)) >= 0.98 * self.cutoff:",
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
    # The checker of searches over signs.
    Mutation(
        "what rows at 0 cost is not rounded",
        "checking/signs.py",
        "room = up(-lower_sum(-cutoff, float(fixed.sum()) * (1.0 - gamma(len(fixed) + 4))))",
        "room = up(cutoff - float(fixed.sum()))",
        SIGNS,
    ),
    Mutation(
        "nothing is left below the cutoff",
        "checking/signs.py",
        "if not room > 0.0:",
        "if not room > 1e-3 * cutoff:",
        SIGNS,
    ),
    Mutation(
        "single samples reach 5 % too little",
        "checking/signs.py",
        "radius = up(np.sqrt(up(room / w",
        "radius = 0.95 * up(np.sqrt(up(room / w",
        SIGNS,
    ),
    Mutation(
        "rows with y <= 0 cost nothing yet",
        "checking/signs.py",
        "+ np.square(np.minimum(y, 0.0)))))",
        "+ 0.0 * np.square(np.minimum(y, 0.0)))))",
        SIGNS,
    ),
    Mutation(
        "ends beside outcomes are not rounded",
        "checking/signs.py",
        "radius = up(radius + 4.0 * UNIT * (np.abs(y) + radius))",
        "radius = up(radius)",
        SIGNS,
    ),
    Mutation(
        "low ends below 0",
        "checking/signs.py",
        "np.where(y - radius > 0.0, 0.0",
        "np.where(y - radius > -np.inf, 0.0",
        SIGNS,
    ),
    Mutation(
        "intervals of one point are empty",
        "checking/signs.py",
        "is_closed = node.is_closed or bool((low > high).any())\n        return replace(node, low=low",
        "is_closed = node.is_closed or bool((low >= high).any())\n        return replace(node, low=low",
        SIGNS,
    ),
    Mutation(
        "boxes of one point are empty",
        "checking/signs.py",
        "is_closed=node.is_closed or bool((low > high).any()))",
        "is_closed=node.is_closed or bool((low >= high).any()))",
        SIGNS,
    ),
    Mutation(
        "rows in a box reach 5 % too little",
        "checking/signs.py",
        "@ up(0.5 * (high - low))",
        "@ up(0.475 * (high - low))",
        SIGNS,
    ),
    Mutation(
        "rows in a box have no doubt",
        "checking/signs.py",
        "half = up(half + 2.0 * size *",
        "half = up(half + 0.0 * size *",
        SIGNS,
    ),
    Mutation(
        "parts on begin above 0",
        "checking/signs.py",
        "low[row] = max(low[row], at)",
        "low[row] = max(low[row], at + 1e-3)",
        SIGNS,
    ),
    Mutation(
        "parts off end below 0",
        "checking/signs.py",
        "high[row] = min(high[row], at)",
        "high[row] = min(high[row], at - 1e-3)",
        SIGNS,
    ),
    Mutation(
        "no explained length beyond the outcomes",
        "checking/signs.py",
        "+ up(math.sqrt(max(node.cutoff, 0.0)))",
        "+ 0.9 * up(math.sqrt(max(node.cutoff, 0.0)))",
        SIGNS,
    ),
    Mutation(
        "explained length without outcomes",
        "checking/signs.py",
        "most = up(math.sqrt(up(float(rows.squares.sum())))) +",
        "most = 0.9 * up(math.sqrt(up(float(rows.squares.sum())))) +",
        SIGNS,
    ),
    Mutation(
        "sums of rows are exact",
        "checking/signs.py",
        "error = up(size @ (rows.doubt + gamma(self.n + 4) * rows.size))",
        "error = 0.0 * up(size @ rows.doubt)",
        SIGNS,
    ),
    Mutation(
        "sums across a coordinate are exact",
        "checking/signs.py",
        "share = up((up(rest) + error) / along)",
        "share = up(up(rest) / along)",
        SIGNS,
    ),
    Mutation(
        "sums that fall bound a coordinate",
        "checking/signs.py",
        "if not (along > 0.0).all():",
        "if not (along != 0.0).all():",
        SIGNS,
    ),
    Mutation(
        "other coordinates are not added",
        "checking/signs.py",
        "ends = up(reach + share * largest)",
        "ends = up(reach)",
        SIGNS,
    ),
    Mutation(
        "the largest coordinate is that of one sum",
        "checking/signs.py",
        "largest = up(float(reach.max()) / (1.0 - float(share.max())))",
        "largest = up(float(reach.max()))",
        SIGNS,
    ),
    Mutation(
        "shares above 1",
        "checking/signs.py",
        "if not float(share.max()) < 0.5:",
        "if not float(share.max()) < 5.0:",
        SIGNS,
    ),
    Mutation(
        "ends of a box in the wrong order",
        "checking/signs.py",
        "np.array([-ends[q:], ends[:q]])",
        "np.array([-ends[:q], ends[q:]])",
        SIGNS,
    ),
    Mutation(
        "lengths of sums 5 % too small",
        "checking/signs.py",
        "reach = up(most * np.sqrt(",
        "reach = up(0.95 * most * np.sqrt(",
        SIGNS,
    ),
    Mutation(
        "large curvatures err as others",
        "checking/signs.py",
        "K_error = up(times * rows.K_error)",
        "K_error = up(rows.K_error)",
        SIGNS,
    ),
    Mutation(
        "curvatures are exact",
        "checking/signs.py",
        "inverse = inverse_factor(K, K_error) if np",
        "inverse = inverse_factor(K, 1e-6 * K_error) if np",
        SIGNS,
    ),
    Mutation(
        "ridges are not paid for",
        "checking/signs.py",
        "paid = up(ridge * float(",
        "paid = up(1e-6 * ridge * float(",
        SIGNS,
    ),
    Mutation(
        "ridges are paid for at the near end",
        "checking/signs.py",
        "np.square(node.box).max(axis=0)",
        "np.square(node.box).min(axis=0)",
        SIGNS,
    ),
    Mutation(
        "slopes have no doubt",
        "checking/signs.py",
        "G_error = up(float(np.abs(lam) @ (rows.doubt + gamma(self.n + 4) * rows.size)))",
        "G_error = up(float(np.abs(lam) @ (gamma(self.n + 4) * rows.size)))",
        SIGNS,
    ),
    Mutation(
        "sums of slopes are exact",
        "checking/signs.py",
        "np.abs(lam) @ (rows.doubt + gamma(self.n + 4) * rows.size)",
        "np.abs(lam) @ (rows.doubt + 0.0 * rows.size)",
        SIGNS,
    ),
    Mutation(
        "left of 0 rows do not count",
        "checking/signs.py",
        "np.where((low < 0.0) | (high <= 0.0), found, np.inf)",
        "np.where(high <= 0.0, found, np.inf)",
        LEAST,
    ),
    Mutation(
        "right of 0 rows do not count",
        "checking/signs.py",
        "is_right = (high > 0.0) | (low >= 0.0)",
        "is_right = low >= 0.0",
        LEAST,
    ),
    Mutation(
        "curvature that is lent costs nothing",
        "checking/signs.py",
        "least_on(-lam, -kappa, low,",
        "least_on(-lam, 0.98 * -kappa, low,",
        LEAST,
    ),
    Mutation(
        "slopes of rows that are on too high",
        "checking/signs.py",
        "least_on(-(lam + 2.0 * w * y), w - kappa,",
        "least_on(-(0.98 * lam + 2.0 * w * y), w - kappa,",
        LEAST,
    ),
    Mutation(
        "curvature of rows that are on too high",
        "checking/signs.py",
        "least_on(-(lam + 2.0 * w * y), w - kappa,",
        "least_on(-(lam + 2.0 * w * y), 1.02 * w - kappa,",
        LEAST,
    ),
    Mutation(
        "left of 0 values are exact",
        "checking/signs.py",
        "error = np.where(np.isfinite(best), left_error, 0.0)",
        "error = np.where(np.isfinite(best), 0.0 * left_error, 0.0)",
        LEAST,
    ),
    Mutation(
        "right of 0 slopes are exact",
        "checking/signs.py",
        "np.where(is_right, right_error + doubt, 0.0)",
        "np.where(is_right, right_error, 0.0)",
        LEAST,
    ),
    Mutation(
        "sums of costs are exact",
        "checking/signs.py",
        "rounding = gamma(self.n + 12) * float(",
        "rounding = 0.0 * float(",
        LEAST,
    ),
    Mutation(
        "ends of parabolas are exact",
        "checking/signs.py",
        "errors.append(np.where(np.isinf(x), 0.0, 8.0 * UNIT * size))",
        "errors.append(0.0 * size)",
        LEAST,
    ),
    Mutation(
        "vertices too high",
        "checking/signs.py",
        "vertex = -(slope * slope) / (4.0 * curve)",
        "vertex = -(slope * slope) / (4.1 * curve)",
        LEAST,
    ),
    Mutation(
        "vertices are exact",
        "checking/signs.py",
        "error = np.where(counts, 8.0 * UNIT * np.abs(vertex), error)",
        "error = np.where(counts, 0.0, error)",
        LEAST,
    ),
    Mutation(
        "vertices near an end do not count",
        "checking/signs.py",
        "leads = (slope + 2.0 * curve * low >= margin)",
        "leads = (slope + 2.0 * curve * low >= -0.05 * np.abs(slope))",
        LEAST,
    ),
    Mutation(
        "vertices near the other end do not count",
        "checking/signs.py",
        "(slope + 2.0 * curve * high <= -margin)",
        "(slope + 2.0 * curve * high <= 0.05 * np.abs(slope))",
        LEAST,
    ),
    Mutation(
        "parabolas rise without an end",
        "checking/signs.py",
        "np.where(rises, np.inf, -np.inf), value)",
        "np.inf, value)",
        LEAST,
    ),
    Mutation(
        "rows that are off only almost cost y^2 at all larger scales",
        "checking/cells.py",
        "found.price * scale, -self.loss_of_almost(cell))",
        "found.price * scale)",
        ALMOST,
    ),
    Mutation(
        "a limit of the statement is not said",
        "checking/cells.py",
        "self.is_limited |= cell.limit > self._farthest",
        "self.is_limited |= False",
        ALMOST,
    ),
    Mutation(
        "constraints at all larger scales end where they do",
        "checking/cells.py",
        "ends = np.maximum(ends, 0.0) if is_far else ends",
        "ends = 1.0 * ends",
        LIMITED,
    ),
    Mutation(
        "ray minima satisfy all constraints",
        "checking/cells.py",
        "        if self.limits.are_cone:",
        "        if self.q > 0:",
        LIMITED,
    ),
    Mutation(
        "constraints begin at too large scales",
        "checking/cells.py",
        "(ends[is_far] / lowest[is_far]).max(initial=0.0)) * (1.0 - SLACK)",
        "(ends[is_far] / lowest[is_far]).max(initial=0.0)) * 1.05",
        LIMITED,
    ),
    Mutation(
        "constraints end at too small scales",
        "checking/cells.py",
        "(ends[is_near] / lowest[is_near]).min(initial=math.inf))",
        "0.95 * (ends[is_near] / lowest[is_near]).min(initial=math.inf))",
        LIMITED,
    ),
    Mutation(
        "multipliers of constraints cost nothing",
        "checking/cells.py",
        "* size))), -m * ends",
        "* size))), -0.5 * m * ends",
        LIMITED,
    ),
    Mutation(
        "a quadratic falls nowhere in a box",
        "checking/signs.py",
        "falls, -blur, -lost)",
        "-blur, -lost)",
        SIGNS,
    ),
    Mutation(
        "a box reaches to one side of a point",
        "checking/signs.py",
        "np.minimum(r * away[0], r * away[1]).sum()",
        "np.minimum(r * away[0], 0.0).sum()",
        SIGNS,
    ),
    Mutation(
        "a gradient in a box is exact",
        "checking/signs.py",
        "falls, -blur, -lost)",
        "falls, -blur)",
        SIGNS,
    ),
    Mutation(
        "any quadratic is bounded in its box",
        "checking/signs.py",
        " and (curves.kappa >= 0.0).all()):",
        "):",
        SIGNS,
    ),
    Mutation(
        "errors of K do not count in a box",
        "checking/signs.py",
        "float(size @ curves.K_error @ size)\n        blur = up(blur + G_error",
        "0.0\n        blur = up(blur + G_error",
        SIGNS,
    ),
    Mutation(
        "a ridge is not taken from the bound",
        "checking/signs.py",
        "rest = lower_sum(A, -paid,",
        "rest = lower_sum(A, 0.0 * paid,",
        SIGNS,
    ),
    Mutation(
        "the value at the centre is exact",
        "checking/signs.py",
        "float(centre @ K @ centre), -blur)",
        "float(centre @ K @ centre), 0.0 * -blur)",
        SIGNS,
    ),
    Mutation(
        "products with the centre are exact",
        "checking/signs.py",
        "blur = gamma(2 * q + 8) * float(",
        "blur = 0.0 * float(",
        SIGNS,
    ),
    Mutation(
        "curvature at the centre is exact",
        "checking/signs.py",
        "blur + float(size @ K_error @ size)",
        "blur + 0.0 * float(size @ K_error @ size)",
        SIGNS,
    ),
    Mutation(
        "slopes at the centre are exact",
        "checking/signs.py",
        "@ size) + G_error * float(size.max(initial=0.0)))",
        "@ size) + 0.0 * G_error)",
        SIGNS,
    ),
    Mutation(
        "the slope at the centre has no error of slopes",
        "checking/signs.py",
        "r_error = up(float(r_error.sum()) + G_error)",
        "r_error = up(float(r_error.sum()))",
        SIGNS,
    ),
    Mutation(
        "the slope at the centre has no error of curvature",
        "checking/signs.py",
        "r_error = 2.0 * K_error @ size +",
        "r_error = 0.0 * K_error @ size +",
        SIGNS,
    ),
    Mutation(
        "the error of the slope at the centre does not count",
        "checking/signs.py",
        "pull = norm_up(W @ r) + reach * (r_error +",
        "pull = norm_up(W @ r) + 0.0 * (r_error +",
        SIGNS,
    ),
    Mutation(
        "the slope at the centre counts for half",
        "checking/signs.py",
        "pull = 0.5 * up(root * up(pull))",
        "pull = 0.25 * up(root * up(pull))",
        SIGNS,
    ),
    Mutation(
        "the bound does not pay for its centre",
        "checking/signs.py",
        "value = lower_sum(rest, -up(pull * pull))",
        "value = lower_sum(rest, -0.9 * up(pull * pull))",
        SIGNS,
    ),
    Mutation(
        "an ellipsoid without what its centre costs",
        "checking/signs.py",
        "room = -lower_sum(-cutoff, rest) + up(pull * pull)",
        "room = -lower_sum(-cutoff, rest)",
        SIGNS,
    ),
    Mutation(
        "an ellipsoid around another centre",
        "checking/signs.py",
        "radius = up((pull + up(math.sqrt(",
        "radius = up((0.9 * pull + up(math.sqrt(",
        SIGNS,
    ),
    Mutation(
        "the ellipsoid of a node 5 % too small",
        "checking/signs.py",
        "up(math.sqrt(up(max(room, 0.0))))) * root)",
        "0.95 * up(math.sqrt(up(max(room, 0.0))))) * root)",
        SIGNS,
    ),
    Mutation(
        "the ellipsoid of an exact inverse",
        "checking/signs.py",
        "up(math.sqrt(up(max(room, 0.0))))) * root)",
        "up(math.sqrt(up(max(room, 0.0))))))",
        SIGNS,
    ),
    Mutation(
        "a node closed by less than the cutoff",
        "checking/signs.py",
        "is_closed=node.is_closed or value >= self.cutoff)",
        "is_closed=node.is_closed or value >= 0.995 * self.cutoff)",
        SIGNS,
    ),
    Mutation(
        "rows across the ellipsoid have no doubt",
        "checking/signs.py",
        "+ size * rows.doubt\n",
        "\n",
        SIGNS,
    ),
    Mutation(
        "rows at the centre have no doubt",
        "checking/signs.py",
        "spread = up(found.radius * up(spread) + 2.0 * far *",
        "spread = up(found.radius * up(spread) + 0.0 * far *",
        SIGNS,
    ),
    Mutation(
        "low ends of rows in an ellipsoid",
        "checking/signs.py",
        "return self._narrowed(node, u - spread, u + spread)",
        "return self._narrowed(node, u - 0.97 * spread, u + spread)",
        SIGNS,
    ),
    Mutation(
        "high ends of rows in an ellipsoid",
        "checking/signs.py",
        "return self._narrowed(node, u - spread, u + spread)",
        "return self._narrowed(node, u - spread, u + 0.97 * spread)",
        SIGNS,
    ),
    Mutation(
        "boxes of ellipsoids too small",
        "checking/signs.py",
        "np.array([found.centre - far, found.centre + far])",
        "np.array([found.centre - far, found.centre + 0.97 * far])",
        SIGNS,
    ),
    Mutation(
        "tilted rows have no doubt",
        "checking/signs.py",
        "least -= float(up(self.rows.doubt[line] * far + 4.0 * UNIT * abs(least)))",
        "least -= float(up(4.0 * UNIT * abs(least)))",
        SIGNS,
    ),
    Mutation(
        "tilts of the other end",
        "checking/signs.py",
        "ends = low if sign > 0.0 else high",
        "ends = high if sign > 0.0 else low",
        SIGNS,
    ),
    Mutation(
        "tilts of the other end of a box",
        "checking/signs.py",
        "side = line - self.n, int(sign < 0.0)",
        "side = line - self.n, int(sign > 0.0)",
        SIGNS,
    ),
    Mutation(
        "tilted rows reach too far",
        "checking/signs.py",
        "end = lower_sum(found.value, -cutoff) / tau",
        "end = lower_sum(found.value, -0.999 * cutoff) / tau",
        SIGNS,
    ),
    Mutation(
        "tilted slopes are exact",
        "checking/signs.py",
        "error = up(line.G_error + 4.0 * UNIT *",
        "error = up(0.0 * line.G_error + 4.0 * UNIT *",
        SIGNS,
    ),
    Mutation(
        "leaves that are open count as closed",
        "checking/sign_tree.py",
        "            if split == UNSPLIT:\n                raise",
        "            if split == UNSPLIT and node.value > -np.inf:\n                continue\n"
        "            if split == UNSPLIT:\n                raise",
        SIGNS,
    ),
    Mutation(
        "leaves without a step count as closed",
        "checking/sign_tree.py",
        "if node.is_closed or (split == UNSPLIT and node.value >= rules.cutoff):",
        "if node.is_closed or number not in self._places or node.value >= rules.cutoff:",
        SIGNS,
    ),
    Mutation(
        "leaves closed by less than the cutoff",
        "checking/sign_tree.py",
        "split == UNSPLIT and node.value >= rules.cutoff",
        "split == UNSPLIT and node.value >= 0.99 * rules.cutoff",
        SIGNS,
    ),
    Mutation(
        "only the part that is on is checked",
        "checking/sign_tree.py",
        "for part in (0, 1)]",
        "for part in (0,)]",
        SIGNS,
    ),
    Mutation(
        "only the part that is off is checked",
        "checking/sign_tree.py",
        "for part in (0, 1)]",
        "for part in (1,)]",
        SIGNS,
    ),
    Mutation(
        "both parts are the same",
        "checking/sign_tree.py",
        "rules.part(node, split, part == 0, at)) for",
        "rules.part(node, split, True, at)) for",
        SIGNS,
    ),
    Mutation(
        "a step about a lower cutoff",
        "checking/sign_tree.py",
        "if not rules.cutoff <= cutoff < np.inf:",
        "if not 0.0 < cutoff < np.inf:",
        SIGNS,
    ),
    Mutation(
        "a tree of signs is not walked",
        "checking/trees.py",
        "        signs.walk()\n",
        "",
        SIGNS,
    ),
    Mutation(
        "a floor without an intercept",
        "checking/reading.py",
        "if not (self.fit_intercept or self.floor == self.intercept == 0.0):",
        "if not (self.fit_intercept or self.intercept == 0.0):",
        SIGNS,
    ),
    Mutation(
        "ridges that are negative",
        "checking/reading.py",
        "            and self.alpha >= 0.0\n",
        "",
        SIGNS,
    ),
    Mutation(
        "reserves that are negative",
        "checking/reading.py",
        "            and self.reserve >= 0.0\n",
        "",
        SIGNS,
    ),
    Mutation(
        "curves of another node",
        "checking/signs.py",
        "if last is None or last[0] is not node:",
        "if last is None:",
        SIGNS,
    ),
    # Walls, and nodes that stand for all larger scales.
    Mutation(
        "far nodes keep the low ends of larger scales",
        "checking/signs.py",
        "low, high = np.minimum(node.low, 0.0), np.maximum(node.high, 0.0)",
        "low, high = node.low.copy(), np.maximum(node.high, 0.0)",
        SIGNS,
    ),
    Mutation(
        "far nodes keep the high ends of larger scales",
        "checking/signs.py",
        "low, high = np.minimum(node.low, 0.0), np.maximum(node.high, 0.0)",
        "low, high = np.minimum(node.low, 0.0), node.high.copy()",
        SIGNS,
    ),
    Mutation(
        "far nodes keep their box",
        "checking/signs.py",
        "np.array([np.minimum(node.box[0], 0.0), np.maximum(node.box[1], 0.0)])",
        "node.box",
        SIGNS,
    ),
    Mutation(
        "far nodes lie farther away",
        "checking/signs.py",
        "low[wall] = high[wall] = at\n",
        "low[wall] = high[wall] = 1.05 * at\n",
        SIGNS,
    ),
    Mutation(
        "nodes are far before their wall",
        "checking/signs.py",
        "if not -np.inf < at < 0.0 or node.is_far:",
        "if node.is_far:",
        SIGNS,
    ),
    Mutation(
        "all scales have the low ends of one",
        "checking/signs.py",
        "np.where(node.low >= 0.0, 0.0, -np.inf)",
        "node.low",
        SIGNS,
    ),
    Mutation(
        "all scales have the high ends of one",
        "checking/signs.py",
        "np.where(node.high <= 0.0, 0.0, np.inf)",
        "node.high",
        SIGNS,
    ),
    Mutation(
        "all scales have the box of one",
        "checking/signs.py",
        "box=root.box, shares=root.shares",
        "shares=root.shares",
        SIGNS,
    ),
    Mutation(
        "far rows are as far on as nearer ones",
        "checking/signs.py",
        "0.0 if node.is_far else y - radius",
        "y - radius",
        SIGNS,
    ),
    Mutation(
        "far rows cost what others do",
        "checking/signs.py",
        "if node.is_far:\n            above",
        "if False:\n            above",
        LEAST,
    ),
    Mutation(
        "far rows cost y^2 until they reach y",
        "checking/signs.py",
        "np.minimum(best, found - squares)",
        "np.minimum(best, found)",
        LEAST,
    ),
    Mutation(
        "far rows cost something before they reach y",
        "checking/signs.py",
        "positive, np.minimum(high, y))",
        "positive, np.minimum(high, 0.9 * y))",
        LEAST,
    ),
    Mutation(
        "far rows are exact",
        "checking/signs.py",
        "free_error + 8.0 * UNIT * (np.abs(found) + squares), 0.0)",
        "0.0 * free_error, 0.0)",
        LEAST,
    ),
    Mutation(
        "far rows that are on may cost less than y",
        "checking/signs.py",
        "is_right = np.where(above, high > y, is_right)",
        "is_right = np.where(above, high > 2.0 * y, is_right)",
        LEAST,
    ),
    Mutation(
        "walls push the other way",
        "checking/signs.py",
        "np.where(V > 0.0, node.high, node.low)",
        "np.where(V > 0.0, node.low, node.high)",
        SIGNS,
    ),
    Mutation(
        "walls push nothing",
        "checking/signs.py",
        "reach = reach + against + 4.0",
        "reach = reach + 0.0 * against + 4.0",
        SIGNS,
    ),
    Mutation(
        "curvatures of walls are exact",
        "checking/rows.py",
        "self.K_error + up(np.add.outer(long, long) * off + off * off)",
        "self.K_error",
        SIGNS,
    ),
    Mutation(
        "walls are exact",
        "checking/rows.py",
        "return Walls.of(Z, up(error), *ends)",
        "return Walls.of(Z, 0.0 * error, *ends)",
        ROWS,
    ),
    Mutation(
        "walls that depend on what is left out",
        "checking/rows.py",
        "kept = np.array([is_zero_on(row[None], N) for row in C], dtype=np.bool_)",
        "kept = np.ones(len(C), np.bool_)",
        ROWS,
    ),
    Mutation(
        "ends of walls on another scale",
        "checking/rows.py",
        "np.ldexp(error, scale[:, None]), np.ldexp(ends, scale)",
        "np.ldexp(error, scale[:, None]), ends",
        ROWS,
    ),
    Mutation(
        "constraints are tighter than they say",
        "checking/sign_tree.py",
        "data.walls(T, self._N, claim.allowed)",
        "data.walls(T, self._N, claim.allowed._replace(high=0.9 * claim.allowed.high))",
        SIGNS,
    ),
    Mutation(
        "coefficients that break constraints",
        "checking/proof.py",
        "if not ((value >= low - room) & (value <= high + room)).all():",
        "if not (value >= low - room).all():",
        SIGNS,
    ),
    # What the checker makes of data, heads and trees.
    Mutation(
        "products of rows are exact",
        "checking/rows.py",
        "doubt = up(error.sum(axis=1) + gamma(2 * q + 10) * size)",
        "doubt = up(1e-6 * error.sum(axis=1))",
        ROWS,
    ),
    Mutation(
        "rows are exact",
        "checking/rows.py",
        "error = A @ T, up(gamma(d + 2) *",
        "error = A @ T, up(0.0 *",
        ROWS,
    ),
    Mutation(
        "curvatures do not err with rows",
        "checking/rows.py",
        "K_error = np.outer(long, off) + np.outer(off, long) + np.outer(off, off) + B_error",
        "K_error = B_error",
        ROWS,
    ),
    Mutation(
        "curvatures do not err with sums",
        "checking/rows.py",
        "K_error = up(K_error + gamma(len(A) + 4) *",
        "K_error = up(K_error + 0.0 *",
        ROWS,
    ),
    Mutation(
        "ridges are exact",
        "checking/rows.py",
        "B_error = up(gamma(d + 4) *",
        "B_error = up(0.0 *",
        ROWS,
    ),
    Mutation(
        "cutoffs are not rounded up",
        "checking/rows.py",
        "return target - constant + 4.0 * UNIT * (abs(target) + abs(constant)) + TINY",
        "return target - constant",
        ROWS,
    ),
    Mutation(
        "a face without its reserve",
        "checking/rows.py",
        "rows.above(self.target + reserve * (1.0 + 4.0 * UNIT))",
        "rows.above(self.target)",
        ROWS,
    ),
    Mutation(
        "a face with a ridge",
        "checking/rows.py",
        "(0.0 if N.size else 1.0)",
        "1.0",
        ROWS,
    ),
    Mutation(
        "samples outside of a face cost too much",
        "checking/rows.py",
        "constant = lower_sum(self.constant, float(outside.sum()) *",
        "constant = lower_sum(self.constant, 1.1 * float(outside.sum()) *",
        ROWS,
    ),
    Mutation(
        "inverses that are far from one",
        "checking/rows.py",
        "if not up(float(gap.sum(axis=1).max(initial=0.0))) < 1.0:",
        "if not up(float(gap.sum(axis=1).max(initial=0.0))) < 1e3:",
        ROWS,
    ),
    Mutation(
        "null spaces up to rounding",
        "checking/rows.py",
        "for x, value in zip(weights, row, strict=True)) != 0:",
        "for x, value in zip(weights, row, strict=True)) > 1e-9:",
        ROWS,
    ),
    Mutation(
        "outcomes less a floor are exact",
        "checking/rows.py",
        "+ sums(w * left)",
        "",
        ROWS,
    ),
    Mutation(
        "means are exact",
        "checking/rows.py",
        "e = np.abs(sums(w * (mean[group] - s))) +",
        "e = 0.0 * np.abs(sums(w * (mean[group] - s))) +",
        ROWS,
    ),
    Mutation(
        "what rounding of means costs is not taken off",
        "checking/rows.py",
        "@ left + e.sum()))",
        "@ left))",
        ROWS,
    ),
    Mutation(
        "what is settled is less than the target",
        "checking/rows.py",
        "(1.0 - gamma(len(fixed) + 4)) >= target",
        "(1.0 - gamma(len(fixed) + 4)) >= 0.995 * target",
        ROWS,
    ),
    Mutation(
        "objectives with exact sums",
        "checking/rows.py",
        "residual = np.ldexp(residual + error + 4.0",
        "residual = np.ldexp(residual + 4.0",
        ROWS,
    ),
    Mutation(
        "weights may be others",
        "checking/reading.py",
        "for array in (X, y, np.zeros(0) if weight is None else weight):",
        "for array in (X, y):",
        ROWS,
    ),
    Mutation(
        "weights that are negative",
        "checking/proof.py",
        " or (weight is not None and (weight < 0.0).any())",
        "",
        ROWS,
    ),
    Mutation(
        "cells closed by less than the cutoff",
        "checking/trees.py",
        "rules.bound(where, self._take_corners()) >= rules.cutoff)",
        "rules.bound(where, self._take_corners()) >= 0.995 * rules.cutoff)",
        ROWS,
    ),
    Mutation(
        "cells without steps count as closed",
        "checking/trees.py",
        "if cell.face is None:",
        "if cell.face is None and cell.bound is not None:",
        ROWS,
    ),
    Mutation(
        "a face of other samples",
        "checking/trees.py",
        "is_smaller = bool((members <= self.members).all()) and int",
        "is_smaller = int",
        ROWS,
    ),
    Mutation(
        "trees of faces without a reserve",
        "checking/trees.py",
        "self._reserve = 0.0 if self.members.all() else claim.reserve",
        "self._reserve = 0.0",
        ROWS,
    ),
    Mutation(
        "rows that are nearly off take more than the reserve",
        "checking/trees.py",
        "        if not loss <= self._spare:",
        "        if not 1e-3 * loss <= self._spare:",
        ROWS,
    ),
    Mutation(
        "errors of a matrix do not count in its inverse",
        "checking/rounding.py",
        "doubt = size @ (error + 2.0",
        "doubt = size @ (0.0 * error + 2.0",
        ("tests/test_sign_rules.py", "tests/test_proof_files.py", "-k", "inverse_factors or doubt"),
    ),
    Mutation(
        "products for an inverse are exact",
        "checking/rounding.py",
        "2.0 * gamma(q + 2) * np.abs(K)) @ size.T",
        "0.0 * np.abs(K)) @ size.T",
        ("tests/test_sign_rules.py", "-k", "terms_cancel"),
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
