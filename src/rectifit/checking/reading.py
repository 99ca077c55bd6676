"""Proof files: how they are laid out, and the claims in their head.

    magic | size of the head | head, JSON, filled up with blanks | records | SHA-256 of all before

Numbers are little-endian. The head says what is proved, for which data.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rectifit._typing import Matrix, Vector

__all__ = ["MAGIC", "Allowed", "Claim", "ProofError", "Reader", "allowed_by", "data_digest", "open_proof"]

MAGIC = b"rectifit proof 2\n"
DIGEST_BYTES = 32
MAX_HEAD = 1 << 24


class ProofError(ValueError):
    """A proof file that does not prove what it states, in one sentence."""


def data_digest(X: Matrix, y: Vector, weight: Vector | None) -> str:
    """SHA-256 of the data as float64, rows one after another; -0.0 counts as 0.0."""
    digest = hashlib.sha256()
    for array in (X, y, np.zeros(0) if weight is None else weight):
        digest.update(np.array(array.shape, "<i8").tobytes())
        digest.update(np.ascontiguousarray(array + 0.0, "<f8").tobytes())
    return digest.hexdigest()


class Allowed(NamedTuple):
    """What coefficients must satisfy: low <= rows b <= high; b has the intercept, if any, at its end."""

    rows: Matrix
    low: Vector
    high: Vector


@dataclass(frozen=True)
class Claim:
    """The head of a proof file: what it states.

    constraints: of each, pairs of a coefficient and its factor, and two ends, None where there is none.
    """

    n_samples: int
    n_features: int
    fit_intercept: bool
    weighted: bool
    alpha: float
    floor: float
    digest: str
    beta: tuple[float, ...]
    intercept: float
    lower_bound: float
    reserve: float
    seconds: float
    setting: dict[str, Any]
    constraints: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        whole = (self.n_samples, self.n_features)
        numbers = (self.alpha, self.floor, self.intercept, self.lower_bound, self.reserve, self.seconds)
        flags = (self.fit_intercept, self.weighted)
        if not (
            all(type(x) is int and x >= 0 for x in whole)
            and all(type(x) is float and math.isfinite(x) for x in (*numbers, *self.beta))
            and all(type(x) is bool for x in flags)
            and type(self.digest) is str
            and type(self.setting) is dict
            and self.alpha >= 0.0
            and self.reserve >= 0.0
            and len(self.beta) == self.n_features
        ):
            raise ProofError("the head of the file has entries of a wrong kind")
        # max(floor, u) is a fit of y - floor with the intercept less the floor, but only if there is one.
        if not (self.fit_intercept or self.floor == self.intercept == 0.0):
            raise ProofError("the file is about a model without an intercept, but has one, or a floor")
        if not all(self._is_constraint(entry) for entry in self.constraints):
            raise ProofError("the head of the file has a constraint that is none")

    def _is_constraint(self, entry: Any) -> bool:
        """Whether an entry is [[[coefficient, factor], ...], low, high]."""
        if not (isinstance(entry, list) and len(entry) == 3 and isinstance(entry[0], list)):
            return False
        return all(end is None or (type(end) is float and math.isfinite(end)) for end in entry[1:]) and all(
            isinstance(pair, list)
            and len(pair) == 2
            and type(pair[0]) is int
            and 0 <= pair[0] < self.n_columns
            and type(pair[1]) is float
            and math.isfinite(pair[1])
            for pair in entry[0]
        )

    @property
    def allowed(self) -> Allowed:
        """The constraints as rows of a matrix."""
        return allowed_by(self.constraints, self.n_columns)

    @property
    def n_columns(self) -> int:
        """Coefficients, the intercept included."""
        return self.n_features + self.fit_intercept


def allowed_by(constraints: Sequence[Any], n_columns: int) -> Allowed:
    """Constraints as they are in the head of a file, as rows of a matrix."""
    rows = np.zeros((len(constraints), n_columns))
    for row, (pairs, _, _) in zip(rows, constraints, strict=True):
        for column, factor in pairs:
            row[column] = factor
    low = [-math.inf if entry[1] is None else entry[1] for entry in constraints]
    high = [math.inf if entry[2] is None else entry[2] for entry in constraints]
    return Allowed(rows, np.array(low, dtype=np.float64), np.array(high, dtype=np.float64))


class Reader:
    """The bytes of the records of a proof, taken one after another, or from a given place."""

    def __init__(self, content: memoryview) -> None:
        self.content, self.at = content, 0

    def take(self, code: str) -> tuple[Any, ...]:
        """Numbers in the notation of `struct`."""
        layout = "<" + code
        try:
            found = struct.unpack_from(layout, self.content, self.at)
        except struct.error:
            raise ProofError("the file ends in the middle of a record") from None
        self.at += struct.calcsize(layout)
        return found

    def skip(self, size: int) -> None:
        """Pass over so many bytes."""
        self.at += size
        if self.at > len(self.content):
            raise ProofError("the file ends in the middle of a record")

    def vector(self, size: int) -> Vector:
        """So many float64 numbers."""
        return np.array(self.array(size, "<f8"), dtype=np.float64)

    def array(self, size: int, code: str) -> Any:
        """So many numbers of some type."""
        end = self.at + size * np.dtype(code).itemsize
        if end > len(self.content):
            raise ProofError("the file ends in the middle of a record")
        found = np.frombuffer(self.content[self.at : end], code)
        self.at = end
        return found


def open_proof(path: str | Path) -> tuple[Claim, Reader]:
    """What a file claims, and its records."""
    with Path(path).open("rb") as file:
        # Mapped, so that a large file takes no memory.
        size = os.fstat(file.fileno()).st_size
        content = memoryview(mmap(file.fileno(), 0, access=ACCESS_READ) if size else b"")
    start, end = len(MAGIC) + 4, len(content) - DIGEST_BYTES
    if bytes(content[: len(MAGIC)]) != MAGIC or end < start:
        raise ProofError("this is not a proof file of rectifit, or one of another version")
    if hashlib.sha256(content[:end]).digest() != content[end:]:
        raise ProofError("the file was changed or cut off: its last 32 bytes are not the digest of the rest")
    (size,) = struct.unpack_from("<I", content, len(MAGIC))
    if size > min(MAX_HEAD, end - start):
        raise ProofError("the head of the file is longer than the file")
    try:
        fields = json.loads(bytes(content[start : start + size]))
        fields["beta"], fields["constraints"] = tuple(fields["beta"]), tuple(fields["constraints"])
        claim = Claim(**fields)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        if isinstance(error, ProofError):
            raise
        raise ProofError("the head of the file is not what the head of a proof looks like") from None
    return claim, Reader(content[start + size : end])
