"""Data to fit: the paper's synthetic instances, and real data."""

from rectifit.datasets.real import RealData, load_drug_spending
from rectifit.datasets.synthetic import Instance, make_relu

__all__ = ["Instance", "RealData", "load_drug_spending", "make_relu"]
