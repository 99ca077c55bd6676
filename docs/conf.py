"""The documentation site: sphinx-build -W --keep-going -b html docs build/docs. Nothing is downloaded."""

from __future__ import annotations

import os
import sys
from importlib.metadata import distribution
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
# Pictures and times of the gallery are those of one core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from rectifit import __version__  # noqa: E402
from rectifit.experiments.figures import save_figure  # noqa: E402
from rectifit.instances import list_instances, read_results  # noqa: E402
from rectifit.instances.figures import draw_hardness, draw_profile  # noqa: E402
from rectifit.instances.page import make_page  # noqa: E402
from rectifit.instances.profile import compute_profile  # noqa: E402
from rectifit.instances.results import shipped_results  # noqa: E402

project = "rectifit"
author = "The rectifit developers"
copyright = author  # noqa: A001 - Sphinx calls it so
version = release = __version__

extensions = [
    "myst_parser",
    "numpydoc",
    "plain_docstrings",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "text_files",
]
exclude_patterns = ["_templates", "sg_execution_times.rst", "**/sg_execution_times.rst"]
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]
# Names in single backquotes are objects, and links where they are documented.
default_role = "py:obj"

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"plot_",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e6,
    "write_computation_times": False,
    "reset_modules": ("matplotlib",),
    "within_subsection_order": "FileNameSortKey",
    "thumbnail_size": (640, 320),
}

# The whole of MathJax in one file, fonts included, so that formulas show without a network.
_mathjax = distribution("sphinx-mathjax-offline").locate_file(
    "sphinx-mathjax-offline/static/mathjax/tex-svg.js"
)
mathjax_path = "tex-svg.js"

html_theme = "pydata_sphinx_theme"
html_title = f"rectifit {release}"
html_static_path = ["_static", str(_mathjax)]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "rectifit"},
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    # Not in the gallery and the reference, whose code needs the width.
    "secondary_sidebar_items": {
        page: ["page-toc"]
        for page in (
            *("index", "contributing", "migration", "changelog"),
            *("guide/*", "theory/*", "benchmarks/*", "instances/*", "reproduction/*"),
        )
    },
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Pages without a section of their own.
html_sidebars = {
    page: []
    for page in (
        "index",
        "contributing",
        "migration",
        "changelog",
        "benchmarks/*",
        "instances/*",
        "reproduction/*",
    )
}

# The library of instances as a page of its own, and its figures, made from the results that are kept.
_library = HERE / "instances" / "generated"
_library.mkdir(exist_ok=True)
_results = read_results(HERE / "instances" / "profile.csv")
make_page(list_instances(), _results).write(_library / "library.html")
save_figure(draw_hardness(), _library, "hardness", ["svg"])
save_figure(draw_profile(compute_profile([*shipped_results(), *_results])), _library, "profile", ["svg"])

# The report of a reproduction is a page of its own; it is there once one has been run and kept.
_report = HERE / "reproduction" / "report.html"
html_extra_path = [str(_library / "library.html"), *([str(_report)] if _report.exists() else [])]
if _report.exists():
    tags.add("report")  # noqa: F821 - Sphinx puts it here
