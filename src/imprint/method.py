"""A method is a composition of five small values: what is done to a class, to its proxies and to a query."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from imprint import aggregators, generators, normalisers
from imprint.aggregators._base import Aggregator
from imprint.core.digest import class_rng
from imprint.core.errors import ParameterError
from imprint.core.types import Array, Proxies, State
from imprint.generators._base import Generator, PerClassGenerator
from imprint.kernels.rows import squared_norms
from imprint.normalisers._base import POSITIONS, Normaliser

LENGTHS = "lengths"  # the part of a class's state that belongs to the method, not to the generator


def _normaliser(spec: Any, position: str) -> Normaliser:
    found = normalisers.family.resolve(spec)
    if position not in found.positions:
        usable = [n for n in normalisers.family.names() if position in normalisers.family.load(n).positions]
        raise ParameterError(
            f"norm_{position}={str(found)!r}: {found} works only as "
            f"{' or '.join('norm_' + p for p in found.positions)}; norm_{position} takes {', '.join(usable)}."
        )
    return found


@dataclass(frozen=True, kw_only=True)
class Method:
    """One point of the framework. Build it from texts or components with `Method.of`."""

    norm_pre: Normaliser
    generator: Generator
    norm_post: Normaliser
    norm_inf: Normaliser
    aggregator: Aggregator

    @classmethod
    def of(cls, *, generator: Any, aggregator: Any, **norms: Any) -> "Method":
        """Resolve five texts or components; a name that does not exist or fit is refused in one sentence.

        >>> print(Method.of(norm_pre="l2", generator="mean", norm_post="l2", norm_inf="l2", aggregator="max"))
        l2 / mean / l2 / l2 / max
        """
        return cls(
            generator=generators.family.resolve(generator),
            aggregator=aggregators.family.resolve(aggregator),
            **{f"norm_{p}": _normaliser(norms[f"norm_{p}"], p) for p in POSITIONS},
        )

    def __str__(self) -> str:
        parts = self.norm_pre, self.generator, self.norm_post, self.norm_inf, self.aggregator
        return " / ".join(map(str, parts))

    @property
    def per_class(self) -> bool:
        """Whether the proxies of a class depend on that class alone."""
        return isinstance(self.generator, PerClassGenerator) and not self.norm_post.uses_reference

    def summarise(self, X: Array, seed: int, label: object) -> State:
        """The state of one class from its own rows and the random numbers of (seed, label)."""
        state = self.generator.summarise(self.norm_pre.apply(X), class_rng(seed, label))
        return {**state, LENGTHS: self._lengths(X)}

    def extend(self, state: State, X: Array, seed: int, label: object) -> State:
        """The state of a class after more of its rows."""
        kept = {name: array for name, array in state.items() if name != LENGTHS}
        kept = self.generator.extend(kept, self.norm_pre.apply(X), class_rng(seed, label))
        return {**kept, LENGTHS: state[LENGTHS] + self._lengths(X)}

    def weights(self, states: Sequence[State], order: Sequence[int], dtype: Any) -> list[Array]:
        """The finished proxies of every class; `order` says which class was imprinted first, second, ..."""
        raw = [np.asarray(w, dtype=dtype) for w in self.generator.proxies(states)]
        done: list[Array] = list(raw)
        before: list[Array] = []
        for c in order:
            reference = np.concatenate(before) if before and self.norm_post.uses_reference else None
            done[c] = self.norm_post.apply(raw[c], reference)
            before.append(done[c])
        return done

    def _lengths(self, X: Array) -> Array:
        """How long queries like these rows are: the sum of their lengths and their number.  # (2,)"""
        with np.errstate(over="ignore"):
            total = np.sqrt(squared_norms(self.norm_inf.apply(X))).sum()
        if not np.isfinite(total):
            rule = "the lengths of the rows overflow float64; scale them down or use norm_inf='l2'"
            raise ParameterError(f"norm_inf={str(self.norm_inf)!r}: {rule}.")
        return np.array([total, len(X)])

    def reach(self, states: Sequence[State], weights: Array) -> float:
        """The score of a query of usual length that points along the longest proxy."""
        total, count = np.sum([s[LENGTHS] for s in states], axis=0)
        return float(total / count * np.sqrt(squared_norms(weights).max())) or 1.0

    def scores(self, Q: Array, proxies: Proxies, n_classes: int) -> Array:
        """Class scores of raw queries."""
        return self.aggregator.scores(self.norm_inf.apply(Q), proxies, n_classes)

    def probabilities(self, S: Array, reach: float) -> Array:
        """Class scores as probabilities whose largest is the winner's."""
        P = self.aggregator.probabilities(S, reach).astype(S.dtype)
        winners = S.argmax(axis=1)
        lost = np.flatnonzero(P.argmax(axis=1) != winners)  # rounding made two probabilities equal
        P[lost, winners[lost]] = np.nextafter(P[lost].max(axis=1), P.dtype.type(2))
        return P
