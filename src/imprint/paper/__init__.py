"""Every table and figure of the paper as a named study, with its published numbers.

J. Westerhoff, G. Atefi, M. Koddenbrock, A. Figueroa, A. Löser, E. Rodner, F. A. Gers: Robust Weight Imprinting:
Insights from Neural Collapse and Proxy-Based Aggregation. TMLR 2025.
"""

from imprint.core.errors import ParameterError
from imprint.core.family import unknown
from imprint.paper.artefact import Artefact
from imprint.paper.artefacts import ARTEFACTS

PREFIX, ALL = "paper/", "all"


def chosen(name: str) -> dict[str, Artefact]:
    """The artefact `paper/NAME`, or all of them for `paper/all`.

    >>> list(chosen("paper/table1"))
    ['table1']
    """
    short = name.removeprefix(PREFIX)
    if short == ALL:
        return ARTEFACTS
    if short not in ARTEFACTS:
        raise ParameterError(f"{unknown('study of the paper', short, [ALL, *ARTEFACTS])} See: imprint list studies.")
    return {short: ARTEFACTS[short]}


def listing() -> list[dict[str, str]]:
    """The rows of `imprint list studies`."""
    every = {"name": PREFIX + ALL, "title": "Everything below", "where": ""}
    return [every, *({"name": PREFIX + n, "title": a.title, "where": a.where} for n, a in ARTEFACTS.items())]
