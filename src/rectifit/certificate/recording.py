"""Proof files: what a search does is written down while it runs, so that anyone can check it.

The layout is that of `rectifit.checking`, which reads such files and shares nothing else with the search. A
file is written under a temporary name, and gets its own only after it was checked.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

import numpy as np

from rectifit._typing import Index, Mask, Matrix
from rectifit.certificate.recording_signs import Checked, SignRecorder
from rectifit.certificate.records import LOG_BOUND, LOG_DRAW, LOG_FAR, LOG_LENGTH, CellLog, Samples
from rectifit.checking.cells import BOUND, DRAW, FACE, FAR, LENGTH
from rectifit.checking.reading import MAGIC, Claim, allowed_by
from rectifit.checking.rows import is_zero_on
from rectifit.checking.trees import CLOSED, END, EXPAND, TREE
from rectifit.tolerances import GRAM_RANK_TOL
from rectifit.writing import naming, temporary_beside

__all__ = [
    "CLOSED",
    "SIGN_CLAIM_SHARE",
    "TOO_NARROW",
    "CellRecorder",
    "ProofFile",
    "Recorder",
    "exact_null_space",
]

# The end of a cell that is too narrow to be split.
TOO_NARROW = 254
# Share of the distance from bound to objective by which a file states less than the search has proved: over
# cells, whose bounds the checker derives alike, and over signs.
CLAIM_SHARE = 5e-7
SIGN_CLAIM_SHARE = 1e-3
# Null spaces of rows are spanned by fractions up to this denominator, or are not written.
MAX_DENOMINATOR = 1000
# Bytes of the head beyond those of a head with zeros: numbers get longer.
HEAD_ROOM = 512
NUMBER_ROOM = 32
COPY_BYTES = 1 << 20


class ProofFile:
    """A proof file while it is written.

    Attributes
    ----------
    bound : what the search has proved, on the scale of the data
    margin : share of the gap that is proved on top, for bounds that the checker derives in another way
    """

    def __init__(self, path: str | Path) -> None:
        self._name, self.path = path, Path(path).resolve()
        self.beside = temporary_beside(self.path)
        self._file: IO[bytes] | None = None
        self.bound, self.margin = -np.inf, CLAIM_SHARE
        self.setting: dict[str, float] = {}
        # Of each constraint pairs of a coefficient and its factor, and two ends.
        self.constraints: list[list[Any]] = []

    @property
    def has_begun(self) -> bool:
        return self._file is not None

    def begin(self, setting: dict[str, float], n_columns: int) -> None:
        """Open the file, with room for the head."""
        self.setting = setting
        self._room = len(json.dumps([setting, self.constraints])) + HEAD_ROOM + NUMBER_ROOM * (n_columns + 12)
        with naming(self._name):
            self._file = self.beside.open("wb+")
        self.write(MAGIC + struct.pack("<I", self._room) + b" " * self._room)

    def restart(self) -> None:
        """Forget all records."""
        if self._file is not None:
            self._file.seek(len(MAGIC) + 4 + self._room)
            self._file.truncate()

    def write(self, record: bytes) -> None:
        """Add bytes."""
        assert self._file is not None
        with naming(self._name):
            self._file.write(record)

    def finish(self, claim: Claim) -> Path:
        """Write the end, the head and the digest; returns where the file is until it is kept."""
        assert self._file is not None
        with naming(self._name):
            self.write(struct.pack("<B", END))
            head = json.dumps(asdict(claim)).encode()
            self._file.seek(len(MAGIC) + 4)
            self._file.write(head.ljust(self._room))
            digest = hashlib.sha256()
            self._file.seek(0)
            while part := self._file.read(COPY_BYTES):
                digest.update(part)
            self._file.write(digest.digest())
            self._file.close()
        return self.beside

    def keep(self) -> None:
        """Give the finished file its name."""
        with naming(self._name):
            self.beside.replace(self.path)

    def discard(self) -> None:
        """Remove what was written, if the file was not kept."""
        if self._file is not None:
            # On a full disk, what is not written yet cannot be written now.
            with suppress(OSError):
                self._file.close()
            self.beside.unlink(missing_ok=True)


class Recorder:
    """Writes trees of cells to a proof file: that of the whole search, and those of faces.

    Parameters
    ----------
    file : ProofFile
    rows : the distinct rows of the data, with a 1 for an intercept
    to_objective : from losses of the search to objectives
    checked : the data as the checker has them, in the coordinates of the search
    """

    def __init__(
        self, file: ProofFile, rows: Matrix, to_objective: Callable[[float], float], checked: Checked
    ) -> None:
        self.file, self.to_objective, self._checked = file, to_objective, checked
        self._rows, self._n_trees = rows, 0
        self._nulls: dict[bytes, Matrix | None] = {}

    def restart(self) -> None:
        """Forget all that was written."""
        self.file.restart()
        self._n_trees = 0

    def signs(self, samples: Samples) -> SignRecorder:
        """What writes down a search over signs."""
        return SignRecorder(self._write, self._checked, samples, self.to_objective)

    def _write(self, record: bytes) -> None:
        """Write a record, behind the head."""
        if not self.file.has_begun:
            unit = self.to_objective(1.0) - self.to_objective(0.0)
            self.file.begin({"unit": unit}, len(self._checked.T))
        self.file.write(record)

    def null_space(self, inside: Mask) -> Matrix | None:
        """Columns that span all coefficients for which these rows have exactly u = 0; None if unknown."""
        key = np.packbits(inside).tobytes()
        if key not in self._nulls:
            self._nulls[key] = exact_null_space(self._rows[inside])
        return self._nulls[key]

    def limits_in(self, inside: Mask) -> Mask:
        """Which ends of constraints, first all upper and then all lower ones, are known in a face."""
        null = self.null_space(inside)
        assert null is not None
        rows, low, high = allowed_by(self.file.constraints, len(self._checked.T))
        kept = np.array([is_zero_on(row[None], null) for row in rows], dtype=np.bool_)
        return np.append(kept[np.isfinite(high)], kept[np.isfinite(low)])

    def tree(
        self, inside: Mask | None = None, within: Matrix | None = None, outside: float = 0.0
    ) -> CellRecorder:
        """The tree of the whole search, or that of a face.

        Of a face: its samples, the map from its coordinates to those of the search, and what samples outside
        cost.
        """
        if inside is None or within is None:
            inside, T, null = np.ones(len(self._rows), np.bool_), self._checked.T, self._checked.null
        else:
            known, T = self.null_space(inside), self._checked.T @ within
            assert known is not None
            null = known
        return CellRecorder(self, inside, T, null, outside)

    def begin(self, inside: Mask, T: Matrix, null: Matrix, splits: Any) -> int:
        """Begin a tree; returns its number."""
        self._write(
            struct.pack("<BB", TREE, T.shape[1])
            + np.packbits(inside).tobytes()
            + np.ascontiguousarray(T, "<f8").tobytes()
            + np.ascontiguousarray(null, "<f8").tobytes()
            + bytes(int(k) for k in splits)
        )
        self._n_trees += 1
        return self._n_trees - 1


class CellRecorder:
    """Writes down one tree of cells: which were split, and why parts were closed."""

    def __init__(self, recorder: Recorder, inside: Mask, T: Matrix, null: Matrix, outside: float) -> None:
        self.recorder = recorder
        self._inside, self._T, self._null, self._outside = inside, T, null, outside
        self.number, self._n_cells, self._numbers = 0, 0, np.zeros(0, dtype=np.int64)

    def begin(self, turn: Matrix, splits: Any, lines: Any) -> None:
        """Begin with the pyramids, in these lines of the pool, and where each is to be split."""
        self.number = self.recorder.begin(self._inside, self._T @ turn, self._null, splits)
        self._note(np.asarray(lines), np.arange(len(lines)))
        self._n_cells = len(lines)

    def _note(self, lines: Index, numbers: Index) -> None:
        """The cells in these lines have these numbers."""
        size = int(lines.max(initial=0)) + 1
        if size > self._numbers.size:
            self._numbers = np.append(self._numbers, np.zeros(2 * size - self._numbers.size, np.int64))
        self._numbers[lines] = numbers

    def record(
        self, lines: Index, others: Index, log: CellLog, ends: list[int], faces: dict[int, int]
    ) -> None:
        """Write down a round: cells in `lines` were split into parts there and in `others`.

        ends: of each part where it is split next, CLOSED or TOO_NARROW; faces: of some parts the tree of a
        face that bounds them.
        """
        records = []
        for e, parent in enumerate(self._numbers[lines]):
            records.append(struct.pack("<BII", EXPAND, self.number, parent))
            records += [self._body(log, part, ends[part], faces.get(part)) for part in (2 * e, 2 * e + 1)]
        self.recorder.file.write(b"".join(records))
        numbers = self._n_cells + 2 * np.arange(len(lines))
        self._note(lines, numbers)
        self._note(others, numbers + 1)
        self._n_cells += 2 * len(lines)

    def _body(self, log: CellLog, line: int, end: int, face: int | None) -> bytes:
        """The steps of a cell, and how it ends."""
        x, at, q, steps = log.numbers[line], 0, self._T.shape[1], []
        while at < log.counts[line]:
            code = int(x[at])
            at += 1
            if code == LOG_LENGTH:
                steps.append(struct.pack("<B", LENGTH) + x[at : at + q].tobytes())
                at += q
                continue
            step = struct.pack("<B", {LOG_BOUND: BOUND, LOG_DRAW: DRAW, LOG_FAR: FAR}[code])
            if code == LOG_FAR:
                step += x[at : at + 1].tobytes()
                at += 1
            n_corners, rate = int(x[at]), x[at + 1]
            corners = x[at + 2 : at + 2 + 2 * n_corners]
            at += 2 + 2 * n_corners
            step += struct.pack("<B", n_corners)
            step += corners[::2].astype("<u4").tobytes() + corners[1::2].astype("<f8").tobytes()
            if code == LOG_DRAW:
                ends, (cutoff, size) = x[at : at + 2 * q], x[at + 2 * q : at + 2 * q + 2]
                at += 2 * q + 2
                step += struct.pack("<dd", rate, self.recorder.to_objective(cutoff + self._outside))
                step += ends.astype("<f8").tobytes()
                step += struct.pack("<I", int(size)) + x[at : at + int(size)].astype("<u4").tobytes()
                at += int(size)
            steps.append(step)
        if face is not None:
            steps.append(struct.pack("<BI", FACE, face))
        return struct.pack("<B", len(steps)) + b"".join(steps) + struct.pack("<B", end)


def exact_null_space(rows: Matrix) -> Matrix | None:
    """Columns N of small fractions with rows N = 0, exactly, as many as the rank of the rows allows.

    None if there are none of these: those found in floating point are rounded to fractions, and tried.
    """
    length = np.linalg.norm(rows, axis=0)
    scaled = rows / np.where(length > 0.0, length, 1.0)
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    null = vectors[:, values <= GRAM_RANK_TOL * max(values[-1], GRAM_RANK_TOL)].T / np.where(
        length > 0.0, length, 1.0
    )
    # The reduced echelon form, by columns with the largest pivots.
    for i in range(len(null)):
        j = int(np.argmax(np.abs(null[i]) * np.where(length > 0.0, length, 1.0)))
        null[i] /= null[i, j]
        for k in range(len(null)):
            if k != i:
                null[k] -= null[k, j] * null[i]
    for i, row in enumerate(null):
        parts = [Fraction(x).limit_denominator(MAX_DENOMINATOR) for x in row.tolist()]
        whole = math.lcm(*(part.denominator for part in parts))
        null[i] = [float(part * whole) for part in parts]
    return null.T if is_zero_on(rows, null.T) else None
