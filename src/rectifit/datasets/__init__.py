"""Data to fit: the paper's synthetic instances."""

from rectifit.datasets.synthetic import Instance, make_relu

__all__ = ["Instance", "make_relu"]
