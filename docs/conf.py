"""Sphinx, with MyST for Markdown and Furo for the looks. `make docs` builds the site, and a warning is an error."""

import json
import os
import re
import shutil
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

from docutils.nodes import SkipNode, meta
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
html_title = f"imprint {release}"
html_static_path = [str(HERE / "_static")]
html_css_files = ["site.css"]
exclude_patterns = ["examples"]
html_favicon = str(HERE.parent / "src" / "imprint" / "serve" / "static" / "mark.svg")
html_show_sourcelink = False
html_copy_source = False
html_theme_options: dict[str, Any] = {
    "light_css_variables": {
        "color-brand-primary": "#00598c",
        "color-brand-content": "#00598c",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7db5dc",
        "color-brand-content": "#7db5dc",
    },
}


def _repository() -> str:
    """The address of the repository: as stated, or of the repository whose workflow builds the site; "" elsewhere."""
    stated = os.environ.get("IMPRINT_REPOSITORY", "")
    server, name = (os.environ.get(f"GITHUB_{n}") for n in ("SERVER_URL", "REPOSITORY"))
    return stated or (f"{server}/{name}" if server and name else "")


if repository := _repository():
    # a link to the repository at the foot of each page, and links to view and edit its source at the head
    html_theme_options |= {
        "source_view_link": f"{repository}/blob/main/docs/{{filename}}",
        "source_edit_link": f"{repository}/edit/main/docs/{{filename}}",
        "footer_icons": [
            {"name": "Repository", "url": repository, "html": "Repository"}
        ],
    }

ACCESSIBLE = {
    r'role="heading">': 'role="heading" aria-level="2">',  # captions of the navigation
    r'<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Site">',
    r'<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
    r'<div class="(table-wrapper[^"]*)">': r'<div class="\1" tabindex="0" role="group" aria-label="Table">',
    r'<div class="(math-wrapper[^"]*)">': r'<div class="\1" tabindex="0" role="group" aria-label="Formula">',
    r'<div class="wide">': '<div class="wide" tabindex="0" role="group" aria-label="Table">',
    r'<p>(?=<img [^>]*\.svg")': '<p tabindex="0">',  # wide drawings
    r'(?=<div id="search-results">)': "<h1>Search</h1>",
    r"<pre>": '<pre tabindex="0">',  # what scrolls can be reached with the keyboard
    r'<th class="head[^"]*">(<p></p>)?</th>': "<td></td>",
}
"""Corrections of the HTML of Sphinx and Furo for keyboards and screen readers: patterns and replacements."""

OTHER_SITE = ("reproduction/docs", "reproduction")
"""The other site: the folder of its sources in the repository, and where it lies seen from this one."""

SEARCH = tomllib.loads((HERE / "search.toml").read_text("utf-8"))
"""What people search for, and the page that should come first."""
SCORER = """
const PAGES = {pages};
const QUERY = (new URLSearchParams(window.location.search).get("q") || "").trim().toLowerCase();
var Scorer = {
  // a page that is named for the whole query comes before all others
  score: ([page, title, anchor, description, score]) =>
    PAGES[QUERY] === page && !anchor ? score + 1000 : score,
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
"""
"""The ranking of Sphinx's search, with its own values."""


def setup(app: Any) -> None:
    """Link the two sites, know what people search for, and finish the pages."""
    app.connect("config-inited", _write_scorer)
    app.connect("doctree-read", _add_keywords)
    app.add_config_value("OTHER_SITE", OTHER_SITE, "env", tuple)
    app.connect("source-read", _link_other_site)
    app.add_html_math_renderer(
        "mathml", (_render_math, None), (partial(_render_math, display="block"), None)
    )
    app.connect("build-finished", lambda app, _: _finish_pages(Path(app.outdir)))


def _write_scorer(app: Any, config: Any) -> None:
    path = Path(app.doctreedir) / "scorer.js"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SCORER.replace("{pages}", json.dumps(SEARCH)), "utf-8")
    config.html_search_scorer = str(path)


def _add_keywords(app: Any, tree: Any) -> None:
    """The words that people search for, as keywords of the page: the search finds it by them."""
    terms = [term for term, page in SEARCH.items() if page == app.env.docname]
    words = sorted({word for term in terms for word in re.split(r"[ -]", term)})
    if words:
        tree.append(meta(name="keywords", content=", ".join(words)))


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
