"""Every table and figure of the paper as a named study, as declared in `artefacts.toml`.

J. Westerhoff, G. Atefi, M. Koddenbrock, A. Figueroa, A. Löser, E. Rodner, F. A. Gers: Robust Weight Imprinting:
Insights from Neural Collapse and Proxy-Based Aggregation. TMLR 2025.
"""

import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from imprint.core.errors import ParameterError
from imprint.core.family import unknown
from imprint.paper.artefact import Artefact
from imprint.paper.budgets import GeneratorsOverK, LowData
from imprint.paper.collapse import CollapseFigure
from imprint.paper.gain import GainFigure
from imprint.paper.measurements import Memory, Regularisation, Runtime, Statements
from imprint.paper.modes import BestK, ModeCurves
from imprint.paper.pictures import CombiDigitsFigure, LabelMaps
from imprint.paper.same_architecture import SameArchitecture
from imprint.paper.studies import every_norm
from imprint.paper.tables import Table, TableRow

PREFIX, ALL = "paper/", "all"
KINDS: dict[str, type[Artefact]] = {
    kind.__name__: kind
    for kind in (
        Table, LabelMaps, GeneratorsOverK, LowData, CollapseFigure, ModeCurves, SameArchitecture,
        GainFigure, CombiDigitsFigure, Memory, Regularisation, BestK, Runtime, Statements,
    )
}  # fmt: skip


def _rows(rows: Sequence[Sequence[Any]], budgets: Sequence[int], repeated: bool = False) -> tuple[TableRow, ...]:
    """The rows of a table with all methods that their patterns describe.

    If a table is repeated for several numbers of proxies, `quantile`, which changes directions, is left out.
    """
    filled = []
    for label, pattern, *published in rows:
        texts = dict.fromkeys(pattern.replace("{k}", str(k)) for k in budgets) or [pattern]
        methods = (m for text in texts for m in every_norm(text) if not (repeated and budgets and "quantile" in m))
        filled.append(TableRow(label, tuple(methods), *published))
    return tuple(filled)


def _read() -> dict[str, Artefact]:
    """The artefacts of `artefacts.toml`."""
    artefacts = {}
    for name, entry in tomllib.loads((files("imprint.paper") / "artefacts.toml").read_text("utf-8")).items():
        if "rows" in entry:
            entry["repeated_rows"] = _rows(entry["rows"], entry.pop("repeated_budgets", ()), repeated=True)
            entry["rows"] = _rows(entry["rows"], entry.pop("budgets", ()))
        artefacts[name] = KINDS[entry.pop("kind")](name=name, **entry)
    return artefacts


ARTEFACTS = _read()
"""By name, in the order of the paper."""


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
