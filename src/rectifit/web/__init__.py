"""Pages that need no network: one template, tables that sort, figures inside."""

from rectifit.web.page import Figure, Page, Section, TableView

__all__ = ["Figure", "Page", "Section", "TableView"]
