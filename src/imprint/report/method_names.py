"""Names of methods that are short enough for a table: a recipe's, or the parts in which the methods differ."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from imprint import recipes
from imprint.method import PARTS, Method


@dataclass(frozen=True)
class Naming:
    """How the methods of a study are called."""

    names: tuple[str, ...]
    """One for each method, no two the same."""
    what: str
    """What such a name is, for the head of a column."""
    common: str
    """The parts that the methods without a recipe's name share, such as `norm_pre l2`; empty where none are."""


def name_methods(methods: Sequence[tuple[str, ...]], named: Iterable[str] = ()) -> Naming:
    """Name methods, given as texts of their parts; those in `named` that are recipes keep their names.

    >>> two = [("l2", "mean", "l2", "l2", "max"), ("l2", "kmeans(k=5)", "l2", "l2", "max")]
    >>> name_methods(two).names, name_methods(two).common
    (('mean', 'kmeans(k=5)'), 'norm_pre l2, norm_post l2, norm_inf l2, aggregator max')
    >>> name_methods(two, ["qi2018"]).names
    ('qi2018', 'l2 / kmeans(k=5) / l2 / l2 / max')
    """
    known = {_texts(name): name for name in named if name in recipes.names()}
    others = [m for m in methods if m not in known]
    varying = [j for j in range(len(PARTS)) if len({m[j] for m in others}) > 1] or list(range(len(PARTS)))
    names = tuple(known.get(m) or " / ".join(m[j] for j in varying) for m in methods)
    kinds = (["recipe"] if len(others) < len(methods) else []) + (
        [" / ".join(PARTS[j] for j in varying)] if others else []
    )
    shared = [f"{PARTS[j]} {others[0][j]}" for j in range(len(PARTS)) if j not in varying] if others else []
    return Naming(names, " or ".join(kinds), ", ".join(shared))


def _texts(recipe: str) -> tuple[str, ...]:
    method = Method.of(**recipes.describe(recipe).parts())
    return tuple(str(getattr(method, part)) for part in PARTS)
