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
from imprint.study.arrange import Lineup


@dataclass
class Blocks:
    """The proxies of one generator, seed and norm_post. Blocks with equal keys are equal arrays."""

    generator: Generator
    norm_post: Normaliser
    dtype: Any
    parts: dict[Hashable, Array] = field(default_factory=dict)
    lineups: dict[int, list[Hashable]] = field(default_factory=dict)

    def add(self, lineup: int, classes: tuple[int, ...], states: Sequence[State]) -> None:
        """Finish the proxies of a lineup; what an earlier lineup has finished already is not done again."""
        alone = isinstance(self.generator, PerClassGenerator)
        raw = self.generator.proxies(states)
        keys: list[Hashable] = []
        for i, weights in enumerate(raw):
            before = classes[:i] if self.norm_post.uses_reference else ()
            key = (classes[i], before, None if alone else classes)
            if key not in self.parts:
                reference = np.concatenate([self.parts[k] for k in keys]) if keys and before else None
                self.parts[key] = self.norm_post.apply(np.asarray(weights, dtype=self.dtype), reference)
            keys.append(key)
        self.lineups[lineup] = keys

    def shortlists(
        self, aggregator: Aggregator, queries: Array, lineups: dict[int, Lineup]
    ) -> dict[Hashable, tuple[Array, Array]]:
        """What the aggregator needs of every block, for the test rows of all lineups it stands in.

        Gives the rows and the shortlist of each block.  # (q,), (r, q)
        """
        users: dict[Hashable, list[int]] = defaultdict(list)
        for i in lineups:
            for key in self.lineups[i]:
                users[key].append(i)
        together: dict[tuple[int, ...], list[Hashable]] = defaultdict(list)
        for key, own in users.items():
            together[tuple(own)].append(key)
        by_rows: dict[bytes, list[Hashable]] = defaultdict(list)
        for these, keys in together.items():
            by_rows[_union(lineups[i].rows for i in these).tobytes()] += keys
        found = {}
        for raw, keys in by_rows.items():
            rows = np.frombuffer(raw, dtype=np.intp)
            Q = queries if len(rows) == len(queries) else queries[rows]
            lists = aggregator.shortlists(Q, [self.parts[k] for k in keys])
            found.update({k: (rows, part) for k, part in zip(keys, lists)})
        return found


def pick(rows: Array, shortlist: Array, wanted: Array) -> Array:
    """The columns of a shortlist that belong to the wanted rows."""
    return shortlist if len(rows) == len(wanted) else shortlist[:, np.searchsorted(rows, wanted)]


def _union(rows: Iterable[Array]) -> Array:
    return np.unique(np.concatenate(list(rows))).astype(np.intp)
