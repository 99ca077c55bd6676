"""Data to fit: the paper's synthetic instances, and its reduction of subset sum."""

from rectifit.datasets.subset_sum import make_subset_sum
from rectifit.datasets.synthetic import Instance, make_relu

__all__ = ["Instance", "make_relu", "make_subset_sum"]
