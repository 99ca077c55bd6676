"""Self-contained pages: one template, sortable tables, embedded figures."""

from rectifit.web.page import Figure, Page, Section

__all__ = ["Figure", "Page", "Section"]
