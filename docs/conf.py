"""Sphinx, with MyST for Markdown and Furo for the looks. `make docs` builds the site, and a warning is an error."""

import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

from imprint.core import __version__

HERE = Path(__file__).resolve().parent
project, author, release = "imprint", "The imprint developers", __version__
copyright = author
extensions = ["myst_parser", "sphinx_copybutton"]
copybutton_prompt_text = "$ "  # of a console block, only what is typed is copied
html_math_renderer = "mathml"  # no script, nothing from elsewhere
highlight_language = "text"
smartquotes_action = "qe"  # quotes and ellipses; `--` stays two dashes, as options have
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "imprint"
html_static_path = [str(HERE / "_static")]
html_css_files = ["site.css"]
exclude_patterns = ["examples"]
html_favicon = str(HERE.parent / "src" / "imprint" / "serve" / "static" / "mark.svg")
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#00598c",
        "color-brand-content": "#00598c",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7db5dc",
        "color-brand-content": "#7db5dc",
    },
}

ACCESSIBLE = {
    r'role="heading">': 'role="heading" aria-level="2">',  # captions of the navigation
    r'<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Site">',
    r'<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
    r'<div class="(table-wrapper[^"]*)">': r'<div class="\1" tabindex="0" role="group" aria-label="Table">',
    r'<div class="wide">': '<div class="wide" tabindex="0" role="group" aria-label="Table">',
    r'<p>(?=<img [^>]*\.svg")': '<p tabindex="0">',  # wide drawings
    r'(?=<div id="search-results">)': "<h1>Search</h1>",
    r"<pre>": '<pre tabindex="0">',  # what scrolls can be reached with the keyboard
    r'<th class="head[^"]*">(<p></p>)?</th>': "<td></td>",
}
"""Corrections of the HTML of Sphinx and Furo for keyboards and screen readers: patterns and replacements."""

OTHER_SITE = ("reproduction/docs", "reproduction")
"""The other site: the folder of its sources in the repository, and where it lies seen from this one."""


def setup(app: Any) -> None:
    """Link the two sites, and finish the pages."""
    app.add_config_value("OTHER_SITE", OTHER_SITE, "env", tuple)
    app.connect("source-read", _link_other_site)
    app.add_html_math_renderer(
        "mathml", (_render_math, None), (partial(_render_math, display="block"), None)
    )
    app.connect("build-finished", lambda app, _: _finish_pages(Path(app.outdir)))


def _render_math(page: Any, node: Any, display: str = "inline") -> None:
    """LaTeX as MathML, which browsers draw and screen readers read."""
    page.body.append(convert(node.astext(), display=display))
    raise SkipNode


def _link_other_site(app: Any, page: str, source: list[str]) -> None:
    """Pages link to sources of the other site, as the repository has them; readers go to its pages."""
    sources, site = app.config.OTHER_SITE
    up = "../" * page.count("/")
    link = re.compile(rf"\[([^\]]+)\]\((?:\.\./)+{sources}/([\w/-]+)\.md(#[\w-]+)?\)")
    source[0] = link.sub(rf'<a href="{up}{site}/\2.html\3">\1</a>', source[0])


def _drawings_for_dark_pages(page: Path, text: str) -> str:
    """Next to each drawing that has a version for dark pages, that version; the style sheet shows one of them."""

    def both(match: re.Match[str]) -> str:
        image, folder, name = match[0], match[1], match[2]
        dark = HERE / "images" / f"{name}-dark.svg"
        if not dark.exists():
            return image
        shutil.copy(dark, (page.parent / folder).resolve())
        second = image.replace(f"{name}.svg", f"{name}-dark.svg")
        light = image.replace("<img ", '<img class="only-light" ')
        return light + second.replace("<img ", '<img class="only-dark" ')

    return re.sub(r'<img [^>]*src="([^"]*_images/)([\w-]+)\.svg"[^>]*>', both, text)


def _finish_pages(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        for pattern, replacement in ACCESSIBLE.items():
            text = re.sub(pattern, replacement, text)
        page.write_text(_drawings_for_dark_pages(page, text), "utf-8")
