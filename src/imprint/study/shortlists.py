"""What an aggregator needs of every span, for the test rows of all lineups that the span stands in."""

from collections.abc import Callable, Iterable

import numpy as np

from imprint.aggregators._base import Aggregator
from imprint.core.types import Array
from imprint.study.arrange import Arrangement
from imprint.study.blocks import Blocks, Place


class Shortlists:
    """For every span the union of lineups whose rows it was compared with, and its shortlist.  # (r, q)"""

    def __init__(self, aggregator: Aggregator, blocks: Blocks, plan: Arrangement, device: str) -> None:
        self.aggregator, self.blocks, self.plan, self.device = aggregator, blocks, plan, device
        self._found: dict[int, tuple[int, Array]] = {}

    def fill(self, places: Iterable[Place], queries: Callable[[int], Array]) -> None:
        """Look at the spans of some places. `queries` gives the test rows of a union of lineups."""
        for union, spans in self.blocks.by_rows(self.blocks.users(places), self.plan).items():
            parts = [self.blocks.spans[i].rows(self.blocks.bases) for i in spans]
            lists = self.aggregator.shortlists(queries(union), parts, self.device)
            self._found.update({i: (union, part) for i, part in zip(spans, lists)})

    def of(self, place: Place) -> list[Array]:
        """The shortlists of the classes of a lineup, for its rows."""
        found = [self._found[i] for i in self.blocks.places[place]]
        picked = [(part, self.plan.columns(union, place.lineup)) for union, part in found]
        return [part if columns is None else np.take(part, columns, axis=1) for part, columns in picked]
