"""Finished proxies of classes, each block kept once however many tasks it serves, and their shortlists."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from imprint.aggregators._base import Aggregator
from imprint.core.types import Array, State
from imprint.generators._base import Generator, PerClassGenerator
from imprint.normalisers._base import Normaliser
from imprint.study.arrange import Arrangement


@dataclass
class Blocks:
    """The proxies of one generator, seed and norm_post. Blocks with equal keys are equal arrays."""

    generator: Generator
    norm_post: Normaliser
    dtype: Any
    device: str = "cpu"
    parts: dict[Hashable, Array] = field(default_factory=dict)
    lineups: dict[int, list[Hashable]] = field(default_factory=dict)

    def add(self, lineup: int, classes: tuple[int, ...], states: Sequence[State]) -> None:
        """Finish the proxies of a lineup; what an earlier lineup has finished already is not done again."""
        alone = isinstance(self.generator, PerClassGenerator)
        turns = [classes[:i] if self.norm_post.uses_reference else () for i in range(len(classes))]
        keys: list[Hashable] = [(c, before, None if alone else classes) for c, before in zip(classes, turns)]
        if not all(key in self.parts for key in keys):
            raw = [np.asarray(weights, dtype=self.dtype) for weights in self.generator.proxies(states)]
            if self.norm_post.uses_reference:
                self.parts.update(zip(keys, self.norm_post.apply_in_turn(raw)))
            else:
                missing = {k: w for k, w in zip(keys, raw) if k not in self.parts}
                self.parts.update({k: self.norm_post.apply(w) for k, w in missing.items()})
        self.lineups[lineup] = keys

    def shortlists(
        self, aggregator: Aggregator, queries: Array, arrangement: Arrangement, lineups: Iterable[int]
    ) -> dict[Hashable, tuple[Array, Array]]:
        """What the aggregator needs of every block, for the test rows of all lineups it stands in.

        Gives the rows and the shortlist of each block.  # (q,), (r, q)
        """
        users: dict[Hashable, list[int]] = defaultdict(list)
        for i in lineups:
            for key in self.lineups[i]:
                users[key].append(i)
        by_rows: dict[int, list[Hashable]] = defaultdict(list)
        for key, own in users.items():
            by_rows[arrangement.union(tuple(own))].append(key)
        found = {}
        for union, keys in by_rows.items():
            rows = arrangement.unions[union]
            Q = queries if len(rows) == len(queries) else queries[rows]
            lists = aggregator.shortlists(Q, [self.parts[k] for k in keys], self.device)
            found.update({k: (rows, part) for k, part in zip(keys, lists)})
        return found


def pick(rows: Array, shortlist: Array, wanted: Array) -> Array:
    """The columns of a shortlist that belong to the wanted rows."""
    return shortlist if len(rows) == len(wanted) else shortlist[:, np.searchsorted(rows, wanted)]
