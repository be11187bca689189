"""The paper, whole: every table and figure as a named study with its published numbers.

J. Westerhoff, G. Atefi, M. Koddenbrock, A. Figueroa, A. Löser, E. Rodner, F. A. Gers: Robust Weight Imprinting:
Insights from Neural Collapse and Proxy-Based Aggregation. TMLR 2025.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from imprint.core.family import unknown
from imprint.paper import artefacts
from imprint.paper.artefact import Artefact

PREFIX, ALL = "paper/", "all"


@cache
def known() -> dict[str, Artefact]:
    """Every artefact by name, in the order of the paper."""
    names = [m.name for m in iter_modules(artefacts.__path__)]
    found = {name: import_module(f"{artefacts.__name__}.{name}").artefact for name in names}
    return dict(sorted(found.items(), key=lambda item: item[1].order))


def chosen(name: str) -> dict[str, Artefact]:
    """The artefact that `paper/NAME` means, or all of them.

    >>> list(chosen("paper/table1"))
    ['table1']
    """
    short = name.removeprefix(PREFIX)
    if short == ALL:
        return known()
    if short not in known():
        raise unknown("study of the paper", short, [ALL, *known()])
    return {short: known()[short]}


def listing() -> list[dict[str, str]]:
    """What `imprint list studies` shows."""
    every = {"name": PREFIX + ALL, "title": "Everything below", "where": ""}
    return [every, *({"name": PREFIX + n, "title": a.title, "where": a.where} for n, a in known().items())]
