"""Every table and figure of the paper as a named study, as declared in
`artefacts.toml`.

J. Westerhoff, G. Atefi, M. Koddenbrock, A. Figueroa, A. Löser, E. Rodner, F. A. Gers:
Robust Weight Imprinting: Insights from Neural Collapse and Proxy-Based Aggregation.
TMLR 2025.
"""

import tomllib
from importlib.resources import files
from pkgutil import resolve_name

from imprint.core.errors import ParameterError
from imprint.extend import unknown
from imprint_reproduction.artefact import Artefact

PREFIX, ALL = "paper/", "all"
_ENTRIES = tomllib.loads(
    (files("imprint_reproduction") / "artefacts.toml").read_text("utf-8")
)
ARTEFACTS: dict[str, Artefact] = {
    name: resolve_name(f"imprint_reproduction.{entry.pop('kind')}")(name=name, **entry)
    for name, entry in _ENTRIES.items()
}
"""By name, in the order of the paper."""


def artefacts_named(name: str) -> dict[str, Artefact]:
    """The artefact `paper/NAME`, or all of them for `paper/all`."""
    short = name.removeprefix(PREFIX)
    if short == ALL:
        return ARTEFACTS
    if short not in ARTEFACTS:
        raise ParameterError(
            f"{unknown('study of the paper', short, [ALL, *ARTEFACTS])} See: imprint"
            " list studies."
        )
    return {short: ARTEFACTS[short]}


def listing() -> list[dict[str, str]]:
    """The rows of `imprint list studies`."""
    every = {"name": PREFIX + ALL, "title": "Everything below", "where": ""}
    return [
        every,
        *(
            {"name": PREFIX + n, "title": a.title, "where": a.where}
            for n, a in ARTEFACTS.items()
        ),
    ]
