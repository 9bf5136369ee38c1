"""Sphinx configuration: MyST pages, furo theme; `make docs` builds without warnings."""

import shutil
from pathlib import Path
from typing import Any

from phygail import __version__
from phygail.web.build import PAGE

project = "phygail"
author = "The phygail team"
copyright = "2026, The phygail team"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax", "sphinx_copybutton"]
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "phygail"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
SWARM = "swarm.html"  # the page to play, embedded in index and play; play.html is the document about it
exclude_patterns = ["_build", "METHODS.md"]  # METHODS is the specification that comments refer to, read as a file
autodoc_typehints = "description"
autodoc_member_order = "bysource"


def add_page(app: Any, error: Exception | None) -> None:
    """Put the page to play beside the documents."""
    if error is None and app.builder.format == "html":
        shutil.copy(PAGE, Path(app.outdir) / SWARM)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("build-finished", add_page)
