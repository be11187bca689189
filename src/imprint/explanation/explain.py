"""The contribution of each part of an input to the difference between two scores.

For an image and a network that knows its maps, the contributions are a closed form. For
every other input, each part is left out in turn, and the difference is measured.
"""

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from imprint.backbones import Backbone
from imprint.core.arrays import Array, to_numpy
from imprint.core.errors import ParameterError, unknown
from imprint.embeddings.pipeline import BATCH_SIZE, embed_checked
from imprint.explanation.closed_form import contributions, seen_box
from imprint.explanation.explanation import CLOSED_FORM, LEFT_OUT, Explanation, Label
from imprint.head import Decider
from imprint.kernels.scores import keep_winners
from imprint.modalities import InputParts, modality

Item: TypeAlias = Any
"""One input, as its modality reads it."""


def explain(
    head: Decider,
    backbone: Backbone,
    item: Item,
    *,
    label: Label = None,
    against: Label = None,
    max_passes: int | None = None,
) -> Explanation:
    """What each part of an input adds to the score of a class minus that of another.

    Parameters
    ----------
    head : Decider
        The fitted head of a model.
    backbone : Backbone
        Its network.
    item : object
        One input, as its modality reads it.
    label, against : label, optional
        The classes. [default: the most probable one, and the second]
    max_passes : int, optional
        An explanation that takes more passes of the network is refused.
    """
    prepared = backbone.prepare(item)
    row = _embedded(backbone, [prepared])
    scores = _scores(head, row)[0]
    columns = _columns(head, scores, label, against)
    labels = [head.classes[column].item() for column in columns]
    labels.append(None)  # what a model of one class, or of tags, compares with
    direction = _direction(columns, len(scores))
    maps = contributions(head, backbone, prepared, row[0], direction)
    if maps is None:
        measured = _measured(
            head, backbone, item, scores @ direction, direction, max_passes
        )
        return replace(measured, label=labels[0], against=labels[1])
    shown = modality(backbone.modality).show(item)
    image = np.asarray(shown)
    return Explanation(
        values=maps.values,
        label=labels[0],
        against=labels[1],
        method=CLOSED_FORM,
        box=seen_box(backbone, image),
        unmapped=maps.unmapped,
        image=image,
    )


def _measured(
    head: Decider,
    backbone: Backbone,
    item: Item,
    whole: float,
    direction: Array,
    max_passes: int | None,
) -> Explanation:
    """How much the difference, `whole` for the input, falls without each of its
    parts; the labels are still missing.
    """
    kind = modality(backbone.modality)
    parts = kind.parts(item)
    if parts is None:
        rule = "an image, a sound, a series or a text of several words has"
        raise ParameterError(f"explain(item): this {kind.noun} has no parts; {rule}.")
    scores = _scores_without(head, backbone, parts, max_passes)
    falls = whole - scores @ direction
    image = None
    # A series is shown as a plot, whose places are not those of its parts.
    if not parts.names:
        image = np.asarray(kind.show(item))
    return Explanation(
        values=falls.reshape(parts.shape),
        label=None,
        against=None,
        method=LEFT_OUT,
        names=parts.names,
        image=image,
    )


def _embedded(backbone: Backbone, prepared: list[Item]) -> Array:
    """The embeddings of prepared inputs.  # (n, d)"""
    names = ["the input"] * len(prepared)
    return embed_checked(backbone, prepared, names)


def _scores(head: Decider, rows: Array) -> Array:
    """The scores of all classes, in float64.  # (n, C)"""
    dtype = head.imprinted.dtype
    scores = head.scores(rows.astype(dtype, copy=False))
    return np.asarray(to_numpy(scores), dtype=np.float64)


def _columns(
    head: Decider,
    scores: Array,
    label: Label,
    against: Label,
) -> list[int]:
    """The columns of the class and of the one that it is compared with; tags and models
    of one class have no other.
    """
    labels = head.classes.tolist()
    for name in (label, against):
        if name is not None and name not in labels:
            raise unknown("class", name, labels)
    raw = scores[None]
    probabilities = head.probabilities(raw.astype(head.imprinted.dtype))
    # Rounding must not change which class is explained.
    probabilities = keep_winners(probabilities, raw)
    order = np.argsort(-probabilities[0], kind="stable").tolist()
    first = order[0] if label is None else labels.index(label)
    if against is not None:
        return [first, labels.index(against)]
    others = [column for column in order if column != first]
    # An input may have several tags, so no tag stands against another.
    return [first] if head.tags else [first, *others[:1]]


def _direction(columns: list[int], count: int) -> Array:
    """The factors of the scores in their difference.  # (C,)"""
    direction = np.zeros(count)
    for column, sign in zip(columns, (1.0, -1.0)):
        direction[column] = sign
    return direction


def _scores_without(
    head: Decider,
    backbone: Backbone,
    parts: InputParts,
    max_passes: int | None,
) -> Array:
    """The scores of the input without each of its parts.  # (parts, C)"""
    count = int(np.prod(parts.shape))
    if max_passes is not None and count > max_passes:
        raise ParameterError(
            f"explain(item): it takes {count} passes of the network, more than"
            f" {max_passes}."
        )
    scores = []
    # In batches, because prepared images are large.
    for start in range(0, count, BATCH_SIZE):
        stop = min(start + BATCH_SIZE, count)
        prepared = []
        for number in range(start, stop):
            prepared.append(backbone.prepare(parts.without(number)))
        rows = _embedded(backbone, prepared)
        scores.append(_scores(head, rows))
    return np.concatenate(scores)
