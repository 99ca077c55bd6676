"""A self-contained HTML page from sections of text, tables and figures."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rectifit.plotting import style

__all__ = ["Figure", "Page", "Section", "TableView"]

# Inches.
WIDE = 7.0


@dataclass(frozen=True)
class Figure:
    """A picture inside the page, with words for those who cannot see it.

    A wide one is scrolled on narrow screens, others shrink.
    """

    svg: str
    alt: str
    caption: str = ""
    is_wide: bool = True

    @classmethod
    def from_matplotlib(cls, figure: Any, alt: str, caption: str = "") -> Figure:
        """Take over a figure of matplotlib and close it; the same figure gives the same text."""
        text = io.StringIO()
        with style() as plt:
            figure.savefig(text, format="svg", metadata={"Date": None})
            plt.close(figure)
        return cls(text.getvalue(), alt, caption, figure.get_figwidth() > WIDE)

    @property
    def source(self) -> str:
        """The picture as an address that holds it."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg.encode()).decode()


@dataclass(frozen=True)
class TableView:
    """Cells as people read them, with what they sort by; the last n_foot rows stay at the foot."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    keys: Sequence[Sequence[float | str | None]]
    note: str = ""
    n_foot: int = 0
    folded: bool = False

    @property
    def body(self) -> list[list[tuple[str, Any]]]:
        return self._cells(0, len(self.rows) - self.n_foot)

    @property
    def foot(self) -> list[list[tuple[str, Any]]]:
        return self._cells(len(self.rows) - self.n_foot, len(self.rows))

    def _cells(self, first: int, last: int) -> list[list[tuple[str, Any]]]:
        return [list(zip(self.rows[i], self.keys[i], strict=True)) for i in range(first, last)]


@dataclass(frozen=True)
class Section:
    """A heading, paragraphs, and what belongs to them, in this order."""

    anchor: str
    title: str
    paragraphs: Sequence[str] = ()
    parts: Sequence[Figure | TableView] = ()


@dataclass(frozen=True)
class Page:
    """A page; `facts` are pairs of a word and a number at its top."""

    title: str
    lead: str
    sections: Sequence[Section]
    facts: Sequence[tuple[str, str]] = field(default=())

    def render(self) -> str:
        """The HTML."""
        try:
            from jinja2 import Environment, PackageLoader
        except ImportError as error:
            raise ImportError("pages need jinja2; install it with: pip install 'rectifit[cli]'") from error
        environment = Environment(
            loader=PackageLoader("rectifit.web", "."), autoescape=True, trim_blocks=True, lstrip_blocks=True
        )
        environment.tests["figure"] = lambda part: isinstance(part, Figure)
        return str(environment.get_template("page.html.j2").render(page=self))

    def write(self, path: Path) -> None:
        """Write it beside and move it into place, so that it is never half there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(path.suffix + ".tmp")
        beside.write_text(self.render(), encoding="utf-8")
        beside.replace(path)
