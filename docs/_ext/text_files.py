"""The directive `text-files`: text files that a program has written, whole, one literal block each.

Its argument is a pattern beside the page. Where no file matches, its content is shown instead.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class TextFiles(SphinxDirective):
    """All files that match a pattern, in the order of their names."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"captions": directives.flag}

    def run(self) -> list[nodes.Node]:
        """One literal block per file, or the content."""
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
            blocks.append(nodes.literal_block(text, text, language="none", classes=["text-file"]))
        return blocks


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directive known."""
    app.add_directive("text-files", TextFiles)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
