"""A fit as one page that anyone can read."""

from rectifit.report.page import make_report, write_report

__all__ = ["make_report", "write_report"]
