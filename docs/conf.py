"""Sphinx, with MyST for Markdown and Furo for the looks. `make docs` builds the site, and a warning is an error."""

import shutil
from pathlib import Path
from typing import Any

from imprint.core import __version__

project, author, release = "imprint", "The imprint developers", __version__
copyright = author
extensions = ["myst_parser"]
highlight_language = "text"
smartquotes_action = "qe"  # quotes and ellipses; `--` stays two dashes, as options have
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "imprint"
html_static_path = ["_static"]
html_css_files = ["site.css"]
exclude_patterns = ["examples"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#00598c", "color-brand-content": "#00598c"},
    "dark_css_variables": {"color-brand-primary": "#7db5dc", "color-brand-content": "#7db5dc"},
}


def setup(app: Any) -> None:
    """Copy the pictures that HTML on the page of results names itself, one for narrow screens and one for wide ones."""
    here = Path(__file__).resolve().parent
    places = here / "results", Path(app.outdir) / "results"
    app.connect("build-finished", lambda app, _: shutil.copytree(*places, dirs_exist_ok=True))
