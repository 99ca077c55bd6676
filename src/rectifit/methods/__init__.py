"""The algorithms, one per file; chains of them, joined by +."""
