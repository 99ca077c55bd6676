"""A self-contained HTML page from sections of text, tables and figures."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rectifit.display import Table
from rectifit.plotting import style
from rectifit.writing import write_file

__all__ = ["Figure", "Page", "Section"]

# Width of a figure, in inches, up to which it shrinks on narrow screens instead of being scrolled.
MAX_SHRINKING_WIDTH = 7.0


@dataclass(frozen=True)
class Figure:
    """A picture inside the page, with a description for readers who cannot see it.

    A wide picture is scrolled on narrow screens, others shrink.
    """

    svg: str
    alt: str
    caption: str = ""
    is_wide: bool = True

    @classmethod
    def from_matplotlib(cls, figure: Any, alt: str, caption: str = "") -> Figure:
        """The SVG of a matplotlib figure, which is closed; equal figures give equal SVG."""
        text = io.StringIO()
        with style() as plt:
            figure.savefig(text, format="svg", metadata={"Date": None})
            plt.close(figure)
        return cls(text.getvalue(), alt, caption, figure.get_figwidth() > MAX_SHRINKING_WIDTH)

    @property
    def source(self) -> str:
        """The picture as a data URL."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg.encode()).decode()


@dataclass(frozen=True)
class Section:
    """A heading, its paragraphs, then its figures and tables."""

    anchor: str
    title: str
    paragraphs: Sequence[str] = ()
    parts: Sequence[Figure | Table] = ()


@dataclass(frozen=True)
class Page:
    """A page; `facts` are pairs of a name and a number, shown at the top."""

    title: str
    lead: str
    sections: Sequence[Section]
    facts: Sequence[tuple[str, str]] = ()

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
        """Write the page into a folder that exists."""
        write_file(path, self.render())
