"""A method: five components that turn the rows of classes into proxies, and queries
into scores.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from imprint import aggregators, generators, normalisers
from imprint.aggregators._base import Aggregator
from imprint.core.arrays import Array, State, class_rng, is_torch, to_numpy
from imprint.core.blocks import read_blocks
from imprint.core.component import PARTS, Family
from imprint.core.errors import ParameterError
from imprint.generators._base import Generator, PerClassGenerator
from imprint.kernels.matching import matching_rows
from imprint.normalisers._base import POSITIONS, Normaliser, Scaling
from imprint.normalisers._blocks import Blockwise

FAMILIES: dict[str, Family[Any]] = dict.fromkeys(PARTS, normalisers.family)
FAMILIES |= {"generator": generators.family, "aggregator": aggregators.family}


class ClassState(NamedTuple):
    """The stored state of one class: that of the generator, and the statistics of its
    rows for the aggregator.
    """

    summary: State
    sums: State


@dataclass(frozen=True, kw_only=True)
class Method:
    """Five components that work together; `Method.of` also accepts their texts.

    With `blocks`, the widths of the blocks of an embedding, each block is normalised by
    itself.
    """

    norm_pre: Normaliser
    generator: Generator
    norm_post: Normaliser
    norm_inf: Normaliser
    aggregator: Aggregator
    blocks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", read_blocks(self.blocks or None))
        for position in POSITIONS:
            norm = getattr(self, f"norm_{position}")
            if position not in norm.positions:
                usable = [
                    str(cls.public_name())
                    for cls in normalisers.family
                    if position in cls.positions
                ]
                allowed = " or ".join(f"norm_{p}" for p in norm.positions)
                rule = (
                    f"{norm} works only as {allowed}; norm_{position} takes"
                    f" {', '.join(usable)}"
                )
                raise ParameterError(f"norm_{position}={str(norm)!r}: {rule}.")
        if self.aggregator.needs_points and not self.generator.points:
            rule = (
                "decides by distances, but these proxies are directions, not points;"
                " use a generator of points"
            )
            raise ParameterError(
                f"{self.generator} with {self.aggregator}: {self.aggregator} {rule}."
            )

    @classmethod
    def of(cls, *, blocks: Any = None, **parts: Any) -> "Method":
        """The method of five components, each given as a component or as text such as
        `kmeans(k=20)`, for embeddings of these blocks.
        """
        components = {
            part: FAMILIES[part].resolve(component) for part, component in parts.items()
        }
        return cls(**components, blocks=read_blocks(blocks))

    def __str__(self) -> str:
        return " / ".join(str(getattr(self, part)) for part in PARTS)

    def scaling(self, position: str) -> Scaling:
        """How rows are scaled at a position: `pre`, `post` or `inf`."""
        normaliser: Normaliser = getattr(self, f"norm_{position}")
        return Blockwise(normaliser, self.blocks) if self.blocks else normaliser

    def check_width(self, width: int) -> None:
        """Refuse embeddings that are not as wide as the blocks together."""
        if self.blocks and sum(self.blocks) != width:
            raise ParameterError(
                f"blocks={self.blocks}: they have {sum(self.blocks):,} columns, and X"
                f" has {width:,}."
            )

    @property
    def per_class(self) -> bool:
        """Whether the proxies of a class depend only on that class."""
        return (
            isinstance(self.generator, PerClassGenerator)
            and not self.norm_post.uses_reference
        )

    def summarise(
        self,
        parts: Sequence[Array],
        seed: int,
        labels: Sequence[object],
        weights: Sequence[Array] | None = None,
    ) -> list[ClassState]:
        """The state of each new class, from its rows, their weights and the random
        numbers of (seed, label).

        It depends on no other class: classes whose weights are all 1 are summarised as
        classes without weights.
        """
        if weights is None:
            return self._summarise(parts, seed, labels)
        states: dict[int, ClassState] = {}
        weighted = [_non_unit(weight) is not None for weight in weights]
        for is_weighted in (False, True):
            members = [i for i, w in enumerate(weighted) if w == is_weighted]
            states_of_members = self._summarise(
                [parts[i] for i in members],
                seed,
                [labels[i] for i in members],
                [weights[i] for i in members] if is_weighted else None,
            )
            states |= zip(members, states_of_members)
        return [states[i] for i in range(len(parts))]

    def _summarise(
        self,
        parts: Sequence[Array],
        seed: int,
        labels: Sequence[object],
        weights: Sequence[Array] | None = None,
    ) -> list[ClassState]:
        """The states of classes of which either all or none have weights."""
        if not parts:
            return []
        if is_torch(parts[0]) and not self.generator.takes_tensors:
            raise ParameterError(
                f"{self.generator}: it does not compute on tensors of this device; give"
                " X.cpu()."
            )
        scaling = self.scaling("pre")
        scaled = [scaling.apply(X) for X in parts]
        rngs = [class_rng(seed, label) for label in labels]
        weight_argument = self._weight_argument(weights)
        summaries = map(
            self._check_finite,
            self.generator.summarise_all(scaled, rngs, *weight_argument),
        )
        return list(
            map(ClassState, summaries, map(self.sums, parts, scaled, *weight_argument))
        )

    def extend(
        self,
        state: ClassState,
        X: Array,
        seed: int,
        label: object,
        weight: Array | None = None,
    ) -> ClassState:
        """The state of a class after more rows."""
        weight = _non_unit(weight)
        X = to_numpy(X)  # the stored rows are NumPy arrays
        scaled = self.scaling("pre").apply(X)
        rng = class_rng(seed, label)
        summary = self.generator.extend(
            state.summary, scaled, rng, *self._weight_argument(weight)
        )
        sums = self.aggregator.merge([state.sums, self.sums(X, scaled, weight)])
        return ClassState(self._check_finite(summary), self._check_finite(sums))

    def merge(
        self, states: Sequence[ClassState], seed: int, label: object
    ) -> ClassState:
        """The state of a class from those of disjoint parts of its rows."""
        summaries = [state.summary for state in states]
        summary = self.generator.merge(summaries, class_rng(seed, label))
        sums = self.aggregator.merge([state.sums for state in states])
        return ClassState(self._check_finite(summary), self._check_finite(sums))

    def remove(
        self, state: ClassState, X: Array, seed: int, label: object
    ) -> ClassState:
        """The state of a class without some of its rows, where others remain.

        It is that of one fit, up to rounding; bit for bit if the state holds all rows.
        """
        scaled = self.scaling("pre").apply(X)
        kept = self.generator.all_rows(state.summary)
        if kept is None:
            summary = self.generator.remove(state.summary, scaled)
        else:
            remains = ~matching_rows(kept[0], scaled).stored
            mass = None if kept[1] is None else kept[1][remains]
            rest = self.summarise_scaled(kept[0][remains], mass, seed, label)
            if self.norm_inf == self.norm_pre:
                return rest
            summary = rest.summary
        removed = self.aggregator.remove(state.sums, self.sums(X, scaled))
        return ClassState(self._check_finite(summary), self._check_finite(removed))

    def summarise_scaled(
        self, rows: Array, mass: Array | None, seed: int, label: object
    ) -> ClassState:
        """The state of a class from rows after `norm_pre`, if queries are scaled in the
        same way.
        """
        weight = _non_unit(mass)
        weights = self._weight_argument(weight)
        rng = class_rng(seed, label)
        summary = self._check_finite(self.generator.summarise(rows, rng, *weights))
        return ClassState(summary, self.sums(rows, rows, weight))

    def weights(
        self, states: Sequence[State], arrival: Sequence[int], dtype: Any
    ) -> tuple[Array, list[int]]:
        """The normalised proxies, sorted by class, and their number in each class.  #
        (p, d), (C,)

        `arrival` lists the classes in the order in which they were imprinted.
        """
        parts = self.generator.proxies(states)
        sizes = [len(part) for part in parts]
        W = np.concatenate(parts)
        # else the states were checked
        if W.dtype != dtype or not isinstance(self.generator, PerClassGenerator):
            with np.errstate(over="ignore"):
                W = self._check_finite({"": W.astype(dtype, copy=False)})[""]
        scaling = self.scaling("post")
        if not self.norm_post.uses_reference:
            return scaling.apply(W), sizes
        ends = np.cumsum(sizes)
        earlier: list[Array] = []
        for c in arrival:
            class_proxies = W[ends[c] - sizes[c] : ends[c]]
            class_proxies[:] = scaling.apply(
                class_proxies, np.concatenate(earlier) if earlier else None
            )
            earlier.append(class_proxies)
        return W, sizes

    def _check_finite(self, arrays: State) -> State:
        """The arrays unchanged; an error if the rows were too large for their type."""
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise ParameterError(
                f"{self.generator}: the rows are too large to calculate with; scale"
                " them down."
            )
        return arrays

    def _weight_argument(self, weights: Any) -> tuple[Any, ...]:
        """The weights as a tuple of one argument, or of none; refused if the generator
        does not take weights.
        """
        if weights is None:
            return ()
        if not self.generator.takes_weights:
            raise ParameterError(
                f"{self.generator}: it does not take row weights; leave sample_weight"
                " out."
            )
        return (weights,)

    def sums(self, X: Array, scaled: Array, weight: Array | None = None) -> State:
        """The aggregator's statistics of the rows of a class, given before and after
        `norm_pre`.
        """
        queries = scaled
        if self.norm_inf != self.norm_pre:
            queries = self.scaling("inf").apply(X)
        return self.aggregator.sums(scaled, queries, *self._weight_argument(weight))


def _non_unit(weight: Array | None) -> Array | None:
    """The weights of the rows of a class; None if all of them are 1."""
    return None if weight is None or (weight == 1).all() else weight
