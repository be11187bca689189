"""Several heads as one: the head of one fit over all their rows, where the generator
allows it.

A class that only one head has keeps its state, which depends on no other class. A class
that several heads have is fitted again from its rows if all heads hold them. Otherwise
the states of the heads that do not hold all rows are merged by the generator, and the
rows of the others are added to the result.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from imprint.core.arrays import Array, class_rng, digest
from imprint.core.errors import ParameterError, first_names
from imprint.core.labels import kind_of
from imprint.method import ClassState, Method

if TYPE_CHECKING:
    from imprint.head.decider import Decider
    from imprint.head.head import Head

Names: TypeAlias = Sequence[str]
"""How errors name the heads that are merged."""
DigestsByClass: TypeAlias = Mapping[Any, list[int]]
"""The digests of the rows of each class."""
ADVICE = "fit the models with the same settings"
MAX_NAMED = 5  # classes that a notice names


class StoredRows(NamedTuple):
    """All rows of a class and their weights, in the order of their arrival."""

    rows: Array  # (n, d)
    weight: Array  # (n,)


class ClassFit(NamedTuple):
    """How the state of a class is computed."""

    method: Method
    seed: int
    label: Any

    def summarise(
        self,
        stored: StoredRows,
    ) -> ClassState:
        """The state of the class, fitted from its rows."""
        rows, weight = self._weighted(stored)
        weights = None if weight is None else [weight]
        labels = [self.label]
        (state,) = self.method.summarise([rows], self.seed, labels, weights)
        return state

    def extend(
        self,
        state: ClassState,
        stored: StoredRows,
    ) -> ClassState:
        """The state after more rows."""
        rows, weight = self._weighted(stored)
        return self.method.extend(state, rows, self.seed, self.label, weight)

    def merge(
        self,
        states: Sequence[ClassState],
    ) -> ClassState:
        """The state of the rows of several states."""
        if len(states) == 1:
            return states[0]
        return self.method.merge(states, self.seed, self.label)

    def merges_exactly(
        self,
        states: Sequence[ClassState],
    ) -> bool:
        """Whether `merge` returns the state of one fit, up to rounding."""
        if len(states) == 1:
            return True
        summaries = [state.summary for state in states]
        rng = class_rng(self.seed, self.label)
        return self.method.generator.merges_exactly(summaries, rng)

    def _weighted(
        self,
        stored: StoredRows,
    ) -> tuple[Array, Array | None]:
        """The rows and their weights.

        For a generator without weights, which are then numbers of copies, each row is
        given as often as it came.
        """
        rows, weight = stored
        if (weight == 1).all():
            return rows, None
        if self.method.generator.takes_weights:
            return rows, weight
        copies = weight.astype(int)
        return np.repeat(rows, copies, axis=0), None


class ClassPart(NamedTuple):
    """A class of one of the heads: its state, and its rows if the head holds all."""

    state: ClassState
    stored: StoredRows | None


class Merged(NamedTuple):
    """One head from several, and what its user should know."""

    head: Any
    # classes whose proxies differ from those of one fit by more than rounding
    approximate: tuple[Any, ...] = ()
    copies: int = 0  # rows that their class already had in an earlier head
    conflicts: int = 0  # rows that another class has in an earlier head
    lost_calibration: bool = False  # some heads were calibrated, and this one is not

    def notices(
        self,
        plural: str,
    ) -> list[str]:
        """Sentences for the user; `plural` names the inputs."""
        sentences = []
        if self.copies:
            sentences.append(
                f"{self.copies:,} {plural} of a class are in several models; they count"
                " several times."
            )
        if self.conflicts:
            sentences.append(
                f"{self.conflicts:,} {plural} have one class in one model and another"
                " class in another."
            )
        if self.lost_calibration:
            sentences.append(
                "The merged model is not calibrated, because some of the models are not"
                " or were shared without rows."
            )
        if self.approximate:
            labels = first_names(list(map(repr, self.approximate)), MAX_NAMED)
            sentences.append(
                f"Not all {plural} of some classes are stored, so their proxies were"
                f" merged, which is not exactly one fit: {labels}."
            )
        return sentences


def default_names(count: int) -> list[str]:
    """How errors name the heads that are merged, if their user gives no names."""
    numbers = range(2, count + 1)
    return ["this model", *(f"model {i}" for i in numbers)]


def merge_heads(
    heads: Sequence["Head"],
    names: Names,
) -> Merged:
    """The head of all rows of several heads with equal settings."""
    _check_settings(heads, names)
    _check_copies(heads, names)
    first = heads[0]
    labels = _labels_in_order(heads)
    parts: dict[Any, list[ClassPart]] = defaultdict(list)
    for head in heads:
        for label, state in zip(head.labels, head.states):
            stored = stored_rows(head, label)
            parts[label].append(ClassPart(state, stored))
    approximate = []
    states = []
    method = first.method
    seed = first.seed
    for label in labels:
        fit = ClassFit(method, seed, label)
        state, is_exact = merged_state(fit, parts[label])
        states.append(state)
        if not is_exact:
            approximate.append(label)
    # the calibration of a model that was shared without rows cannot be merged
    has_rows = [head.folds is not None and head.folds.has_rows for head in heads]
    is_calibrated = all(has_rows)
    folds = None
    if is_calibrated:
        folds = first.folds.merge([head.folds for head in heads])
    copies, conflicts = count_copies([held_digests(head) for head in heads])
    was_calibrated = any(head.folds is not None for head in heads)
    head = replace(
        first,
        labels=tuple(labels),
        states=tuple(states),
        folds=folds,
        tree_of_labels=_tree_of(heads),
    )
    return Merged(
        head,
        tuple(approximate),
        copies,
        conflicts,
        was_calibrated and not is_calibrated,
    )


def check_types(
    heads: Sequence["Decider"],
    names: Names,
) -> None:
    """Refuse heads of different types: a class cannot also be a tag, and the classes of
    a network's own head do not mix with others.
    """
    if len(heads) < 2:
        raise ParameterError("merge: give at least two models.")
    for head, name in zip(heads, names):
        if head.tags != heads[0].tags:
            tagged = name if head.tags else names[0]
            raise ParameterError(
                f"merge: the classes of {tagged} are tags, and those of the others are"
                " not; fit all models with tags, or all without."
            )
        if type(head) is not type(heads[0]):
            raise ParameterError(
                f"merge: only one of {names[0]} and {name} keeps the classes of its"
                " network (keep_head); fit both in the same way."
            )


def _check_settings(
    heads: Sequence["Head"],
    names: Names,
) -> None:
    """Refuse heads that were not fitted with equal settings."""
    expected = settings_of(heads[0])
    for head, name in zip(heads, names):
        for setting, value in settings_of(head).items():
            if value != expected[setting]:
                raise ParameterError(
                    f"merge: {name} has {setting} {value} and {names[0]} has"
                    f" {expected[setting]}; {ADVICE}."
                )


def settings_of(head: "Head") -> dict[str, object]:
    """The settings that must be equal, by the names that errors use."""
    method = head.method
    parts = [field.name for field in fields(Method)]
    return {
        **{part: getattr(method, part) for part in parts},
        "random_state": head.seed,
        "the precision": head.dtype.name,
        "the width": head.width,
        "labels of the kind": kind_of(head.labels),
        "tree": bool(head.tree_of_labels),
    }


def _check_copies(
    heads: Sequence["Head"],
    names: Names,
) -> None:
    """Refuse a head that is given twice: all its rows would count twice."""
    name_of: dict[str, str] = {}
    for head, name in zip(heads, names):
        content = fingerprint(head)
        if content in name_of:
            raise ParameterError(
                f"merge: {name} is a copy of {name_of[content]}; give each model once."
            )
        name_of[content] = name


def fingerprint(head: "Head") -> str:
    """The digest of the labels and states of a head, in any order."""
    classes = []
    for label, state in zip(head.labels, head.states):
        kind = type(label).__name__
        parts: list[str | Array] = [kind, repr(label)]
        for arrays in state:
            for name in sorted(arrays):
                parts.append(name)
                parts.append(arrays[name])
        classes.append(digest(parts))
    return digest(sorted(classes))


def _labels_in_order(heads: Sequence["Head"]) -> list[Any]:
    """The labels of all heads, sorted as one fit sorts them.

    If proxies depend on those imprinted before, the order of the heads counts.
    """
    arrival: dict[Any, None] = {}
    for head in heads:
        arrival |= dict.fromkeys(head.labels)
    is_ordered = heads[0].method.norm_post.uses_reference
    return list(arrival) if is_ordered else sorted(arrival)


def _tree_of(heads: Sequence["Head"]) -> bool | None:
    """Whether labels with a slash form a tree, as `Head.tree_of_labels` states it."""
    answers = {head.tree_of_labels for head in heads}
    return answers.pop() if len(answers) == 1 else False


def merged_state(
    fit: ClassFit,
    parts: Sequence[ClassPart],
) -> tuple[ClassState, bool]:
    """The state of a class that several heads have, and whether it is that of one fit,
    up to rounding.
    """
    if len(parts) == 1:
        return parts[0].state, True
    rows = [part.stored for part in parts if part.stored is not None]
    others = [part.state for part in parts if part.stored is None]
    if not others:
        return fit.summarise(concatenated(rows)), True
    is_exact = fit.merges_exactly(others)
    state = fit.merge(others)
    if not rows:
        return state, is_exact
    added = concatenated(rows)
    # rows are added exactly where the state of a single row is merged exactly
    one_row = StoredRows(added.rows[:1], added.weight[:1])
    is_exact = is_exact and fit.merges_exactly([state, fit.summarise(one_row)])
    return fit.extend(state, added), is_exact


def stored_rows(
    head: "Head",
    label: Any,
) -> StoredRows | None:
    """All rows of a class; None if the head does not hold all of them."""
    return None if head.folds is None else head.folds.rows_of(label)


def concatenated(parts: Sequence[StoredRows]) -> StoredRows:
    """The rows of several parts, one after the other."""
    rows = [part.rows for part in parts]
    weight = [part.weight for part in parts]
    return StoredRows(np.concatenate(rows), np.concatenate(weight))


def count_copies(parts: Sequence[DigestsByClass]) -> tuple[int, int]:
    """How many rows of a part another part before it has: in the same class, and only
    in other classes.
    """
    labels_of: dict[int, set[Any]] = defaultdict(set)
    copies = 0
    conflicts = 0
    for digests in parts:
        for label, rows in digests.items():
            earlier = [labels_of[row] for row in rows if row in labels_of]
            same_class = sum(label in labels for labels in earlier)
            copies += same_class
            conflicts += len(earlier) - same_class
        for label, rows in digests.items():
            for row in rows:
                labels_of[row].add(label)
    return copies, conflicts


def held_digests(head: "Head") -> DigestsByClass:
    """The digests of the rows of every class, where the head stores them."""
    if head.folds is None:
        return {}
    held = head.folds.held
    return {label: rows.digests.tolist() for label, rows in held.items()}
