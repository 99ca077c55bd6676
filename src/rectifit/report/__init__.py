"""A fit as one page that anyone can read: its numbers are computed first (`contents`), then shown."""

from rectifit.report.contents import ReportData, collect
from rectifit.report.page import write_report

__all__ = ["ReportData", "collect", "write_report"]
