"""Lower bounds of the true objective."""

from rectifit.certificate.floor import floor_bound, guarantee_bound

__all__ = ["floor_bound", "guarantee_bound"]
