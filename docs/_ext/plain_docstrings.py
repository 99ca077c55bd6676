"""Docstrings as they are written, for readers at a terminal.

There |x| is a length, coef_ a name, an indented line a formula, and "name : description" may go on in the
next line. In reStructuredText all this means something else, so it is marked up before numpydoc sees it.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx

TRAILING_UNDERSCORE = re.compile(r"(?<=\w)_(?!\w)")
NAMED = re.compile(r"^(\w[\w, ]* : )(.*)$")
# A line "name : text" of at least this length is a description that goes on in the next line, and no type.
LONG = 76


def mark_up(lines: list[str]) -> list[str]:
    """Bars and trailing underscores escaped, formulas as literal blocks; examples stay as they are."""
    done: list[str] = []
    in_example = in_section = False
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        in_section = in_section or (following.startswith("---") and bool(line.strip()))
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        in_formula = not in_section and line.startswith("    ")
        if in_formula and not in_example:
            if not done or not done[-1].strip():
                done += [] if _ends_in_formula(done) else [".. code-block:: none", ""]
            done.append(line)
        elif in_example:
            done.append(line)
        else:
            named = NAMED.match(line)
            head, tail = named.groups() if named else ("", line)
            done.append(head + TRAILING_UNDERSCORE.sub(r"\\_", tail.replace("|", r"\|")))
    return done


def join_descriptions(lines: list[str]) -> list[str]:
    """Lines "name : description" with those that continue them."""
    done: list[str] = []
    is_long = False
    for line in lines:
        if is_long and line.startswith(" "):
            done[-1] += " " + line.strip()
        else:
            is_long = NAMED.match(line) is not None and len(line) >= LONG
            done.append(line)
    return done


def _ends_in_formula(done: list[str]) -> bool:
    """Whether the last line with anything on it belongs to a formula."""
    return next((line for line in reversed(done) if line.strip()), "").startswith("    ")


def process_docstring(_: Sphinx, __: str, ___: str, ____: object, _____: object, lines: list[str]) -> None:
    """Mark up a docstring in place."""
    lines[:] = mark_up(join_descriptions(lines))


def skip_member(_: Sphinx, __: str, ___: str, member: object, skip: bool, ____: object) -> bool:
    """Fields of named tuples are described in their class."""
    return skip or (getattr(member, "__doc__", None) or "").startswith("Alias for field number")


def setup(app: Sphinx) -> dict[str, bool]:
    """Come before numpydoc."""
    app.connect("autodoc-process-docstring", process_docstring, priority=400)
    app.connect("autodoc-skip-member", skip_member)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
