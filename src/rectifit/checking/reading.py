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
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np

from rectifit._typing import Matrix, Vector

__all__ = ["MAGIC", "Claim", "ProofError", "Reader", "data_digest", "open_proof"]

MAGIC = b"rectifit proof 1\n"
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


@dataclass(frozen=True)
class Claim:
    """The head of a proof file: what it states."""

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

    @property
    def n_columns(self) -> int:
        """Coefficients, the intercept included."""
        return self.n_features + self.fit_intercept


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
        fields["beta"] = tuple(fields["beta"])
        claim = Claim(**fields)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        if isinstance(error, ProofError):
            raise
        raise ProofError("the head of the file is not what the head of a proof looks like") from None
    return claim, Reader(content[start + size : end])
