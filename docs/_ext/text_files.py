"""The directive `text-files`: what a program has printed, file by file; tables of box characters as tables.

Its argument is a pattern beside the page. Where no file matches, its content is shown instead.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from box_tables import BoxTable, split_text
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class TextFiles(SphinxDirective):
    """All files that match a pattern, in the order of their names, with those as captions if wanted."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"captions": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Literal blocks and tables, or the content."""
        folder = Path(self.env.doc2path(self.env.docname)).parent
        found = sorted(folder.glob(self.arguments[0]))
        if not found:
            return self.parse_content_to_nodes()
        blocks: list[nodes.Node] = []
        for path in found:
            self.env.note_dependency(str(path))
            if "captions" in self.options:
                blocks.append(nodes.rubric(text=path.stem.replace("-", " ").replace("_", " ")))
            text = path.read_text(encoding="utf-8")
            parts = list(split_text(text))
            if any(isinstance(part, BoxTable) for part in parts):
                blocks += [
                    make_table(part) if isinstance(part, BoxTable) else make_literal(part) for part in parts
                ]
            else:
                blocks.append(make_literal(text))
        return blocks


def make_literal(text: str) -> nodes.Node:
    """Text as it was printed."""
    return nodes.literal_block(text, text, language="none", classes=["text-file"])


def make_table(table: BoxTable) -> nodes.Node:
    """A table with its title; all columns but the first are numbers and end on the right."""
    made = nodes.table(classes=["printed-table"])
    made += nodes.title(text=table.title)
    group = nodes.tgroup(cols=len(table.columns))
    group += [nodes.colspec(colwidth=1) for _ in table.columns]
    group += nodes.thead("", _make_row(table.columns))
    group += nodes.tbody("", *map(_make_row, table.rows))
    made += group
    return made


def _make_row(cells: list[str]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph(text=cell)) for cell in cells))


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directive known."""
    app.add_directive("text-files", TextFiles)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
