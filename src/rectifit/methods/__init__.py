"""The algorithms, one per file; chains of them, joined by +."""

from rectifit.methods.solve import STAGES, solve

__all__ = ["STAGES", "solve"]
