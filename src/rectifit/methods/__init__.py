"""The algorithms, one per file; chains of them, joined by +."""

from rectifit.methods.chain import STAGES, certify, solve

__all__ = ["STAGES", "certify", "solve"]
