"""The package's methods and ordinary alternatives, fitted to the same data."""

from rectifit.comparison.side_by_side import (
    METHODS,
    ComparedFit,
    Comparison,
    compare,
    compare_fit,
    find_obstacle,
)

__all__ = ["METHODS", "ComparedFit", "Comparison", "compare", "compare_fit", "find_obstacle"]
