"""A self-contained HTML page from sections of text, tables and figures."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from rectifit.display import Table
from rectifit.plotting import BLUE, INK, LINE, PAPER, style
from rectifit.writing import write_file

__all__ = ["Figure", "Page", "Section"]

# Width of a figure, in inches, up to which it shrinks on narrow screens instead of being scrolled.
MAX_SHRINKING_WIDTH = 7.0
PIXELS_PER_INCH = 96
# What colours of figures become on dark pages; others are distinct there, too.
DARK_COLOURS = {INK: "#e6e9ee", "#000000": "#e6e9ee", LINE: "#36404c", PAPER: "#14181e", BLUE: "#3d9fe0"}
COLOUR = re.compile(r"(?<=: )#[0-9a-f]{6}\b")


@dataclass(frozen=True)
class Figure:
    """A picture inside the page, with a description for readers who cannot see it.

    A wide picture is scrolled on narrow screens, others shrink.

    Attributes
    ----------
    svg : the picture
    alt, caption : the description, and what stands below
    width : in pixels, where there is room
    is_wide : whether it does not shrink much
    """

    svg: str
    alt: str
    caption: str
    width: int
    is_wide: bool

    @classmethod
    def from_matplotlib(cls, figure: Any, alt: str, caption: str = "") -> Figure:
        """The SVG of a matplotlib figure, for light and dark pages; equal figures give equal SVG."""
        text = io.StringIO()
        with style():
            figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
        inches = figure.get_figwidth()
        width, is_wide = round(inches * PIXELS_PER_INCH), inches > MAX_SHRINKING_WIDTH
        return cls(_adapt(text.getvalue()), alt, caption, width, is_wide)

    @property
    def source(self) -> str:
        """The picture as a data URL."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg.encode()).decode()


def _adapt(svg: str) -> str:
    """A picture in which colours follow the reader's preference for light or dark pages."""
    known = {colour.lower(): dark for colour, dark in DARK_COLOURS.items()}
    svg = COLOUR.sub(lambda found: f"var(--c{found[0][1:]})" if found[0] in known else found[0], svg)
    light, dark = (
        " ".join(f"--c{name[1:]}: {colour};" for name, colour in pairs)
        for pairs in ([(name, name) for name in known], known.items())
    )
    # What has no colour is black in an SVG.
    rules = (
        f":root {{ {light} fill: var(--c000000) }} "
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
    )
    return svg.replace("</defs>", f"<style>{rules}</style></defs>", 1)


@dataclass(frozen=True)
class Section:
    """A heading, its paragraphs, then its figures and tables."""

    anchor: str
    title: str
    paragraphs: Sequence[str] = ()
    parts: Sequence[Figure | Table] = ()

    @property
    def groups(self) -> list[tuple[bool, list[Figure | Table]]]:
        """Parts that stand side by side where there is room: whether they are figures, and which."""
        kinds = groupby(self.parts, key=lambda part: isinstance(part, Figure))
        return [(is_figure, list(parts)) for is_figure, parts in kinds]


@dataclass(frozen=True)
class Page:
    """A page; `facts` are pairs of a name and a number at the top, `origin` says below what made the page."""

    title: str
    lead: str
    sections: Sequence[Section]
    facts: Sequence[tuple[str, str]] = ()
    origin: Sequence[tuple[str, str]] = ()

    def render(self) -> str:
        """The HTML."""
        try:
            from jinja2 import Environment, PackageLoader
        except ImportError as error:
            raise ImportError("pages need jinja2; install it with: pip install 'rectifit[cli]'") from error
        environment = Environment(
            loader=PackageLoader("rectifit.web", "."), autoescape=True, trim_blocks=True, lstrip_blocks=True
        )
        return str(environment.get_template("page.html.j2").render(page=self))

    def write(self, path: Path) -> None:
        """Write the page into a folder that exists."""
        write_file(path, self.render())
