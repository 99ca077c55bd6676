"""The algorithms, one per file; chains of them, joined by +."""

from rectifit.methods.chain import STAGES, solve

__all__ = ["STAGES", "solve"]
