"""Data sets: the paper's synthetic instances, its reduction of subset sum, and real data."""

from rectifit.datasets.real import RealData, load_drug_spending
from rectifit.datasets.subset_sum import make_subset_sum
from rectifit.datasets.synthetic import Instance, make_relu

__all__ = ["Instance", "RealData", "load_drug_spending", "make_relu", "make_subset_sum"]
