"""Sphinx for the site of the reproduction, with the settings of the main site.

`make docs` builds both; `make reproduction` only this one.
"""

import runpy
from pathlib import Path

HERE = Path(__file__).resolve().parent
main = runpy.run_path(str(HERE.parents[1] / "docs" / "conf.py"))
globals().update({name: value for name, value in main.items() if name[0] != "_"})

html_title = "imprint: reproduction"
html_theme_options = {
    name: value.replace("/main/docs/", "/main/reproduction/docs/")
    if isinstance(value, str)
    else value
    for name, value in main["html_theme_options"].items()
}
exclude_patterns = []
OTHER_SITE = ("docs", "..")  # a folder of the repository, and where its site lies
