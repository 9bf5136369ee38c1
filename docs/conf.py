"""Sphinx configuration: MyST pages, furo theme; `make docs` builds without warnings."""

from phygail import __version__

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
html_extra_path = ["../src/phygail/web/play.html"]  # the page to play, embedded in index and play
exclude_patterns = ["_build", "METHODS.md"]  # METHODS is the specification that comments refer to, read as a file
autodoc_typehints = "description"
autodoc_member_order = "bysource"
