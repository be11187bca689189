"""Notices about training data, one sentence each."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from imprint.core.errors import count, printable
from imprint.core.types import Array
from imprint.datasets import Split
from imprint.datasets.split import first_names
from imprint.embeddings import Skipped
from imprint.imprinter.items import Embedded

NAMED = 5  # inputs that one notice names
TOLERANCE = 1e-5  # of the largest value: rows of equal inputs differ by rounding only
UNLABELLED = -1  # the label that many libraries give to rows without one
COMMON_ENGLISH = "the and of to in is it for that with on was are this have not you what how my can i"
COMMON_FOREIGN = (
    "der die das und ist nicht ein eine ich mit für auf den von zu wie mein le la les et est une des que pas je pour "
    "dans du avec mon el los las es un una por con para como mi il che di è per non sono come het een van niet ik "
    "de o os um uma não com och är att det som inte jag på"
)
ENGLISH, FOREIGN = frozenset(COMMON_ENGLISH.split()), frozenset(COMMON_FOREIGN.split())
WORD = re.compile(r"[^\W\d_]+")


def notices(split: Split, rows: Embedded, blank: Sequence[Skipped], backbone: Any) -> Iterator[str]:
    """Sentences about labelled data, their embeddings, and the blank texts that were left out."""
    kind, labels, readable = split.kind, split.labels, rows.readable
    yield from split.omissions
    if blank:
        names = first_names([skipped.name for skipped in blank], NAMED)
        yield f"Left out {count(len(blank), 'blank text')}: {names}."
    if labels.dtype.kind in "iu" and (unlabelled := int(np.sum(labels == UNLABELLED))):
        have = f"{kind.count(unlabelled)} {'has' if unlabelled == 1 else 'have'}"
        yield f"{have} the label -1, which often means 'no label'; here it is a class like the others."
    piped = [label for label in split.classes if isinstance(label, str) and "|" in label.strip("|")]
    if piped and not split.tags and split.origin:  # the data are a file
        shown = printable(piped[0], 60)
        yield f"Labels such as {shown!r} are one class each; --separator '|' (separator='|') reads them as tags."
    if kind.typed:
        yield from _about_texts([split.inputs[i] for i in readable.tolist()], backbone)
    pairs = conflicts(rows.X, labels[readable])
    for pair in readable[np.array(pairs[:NAMED], dtype=np.intp)].tolist():
        first, second = (f"{printable(split.names[i])} ({printable(labels[i], 60)})" for i in pair)
        yield f"The same {kind.noun} has two labels: {first} and {second}."
    if len(pairs) > NAMED:
        yield f"{len(pairs) - NAMED:,} more pairs of equal {kind.plural} have two labels; see imprint check."


def _about_texts(texts: Sequence[str], backbone: Any) -> Iterator[str]:
    """Sentences about texts that the backbone truncates, or that are not in its language."""
    name, tokens = backbone.record.name, backbone.record.tokens
    long = [text for text in texts if tokens is not None and len(text) > tokens]  # a token has at least one character
    if long and (truncated := backbone.count_truncated(long)):
        yield f"{truncated:,} of {len(texts):,} texts have more than {tokens} tokens; {name} ignores the rest."
    foreign = sum(map(is_foreign, texts)) if backbone.record.language == "en" else 0
    if foreign > len(texts) / 20:
        yield (
            f"{foreign:,} of {len(texts):,} texts do not look English, and {name} was trained on English; "
            "use a multilingual backbone, such as sentence:NAME."
        )


def is_foreign(text: str) -> bool:
    """Whether a text is probably not in English, by its letters and its most frequent words.

    >>> is_foreign("Ich habe meine Karte verloren"), is_foreign("I lost my card"), is_foreign("猫が好き")
    (False, False, True)
    >>> is_foreign("Wie kann ich die Karte sperren?")
    True
    """
    words = WORD.findall(text.lower())
    letters = "".join(words)
    if letters and sum(unicodedata.name(c, "").startswith("LATIN") for c in letters) < len(letters) / 2:
        return True
    foreign = sum(word in FOREIGN for word in words)
    return foreign >= 2 and foreign > sum(word in ENGLISH for word in words)


def conflicts(X: Array, y: Array) -> list[tuple[int, int]]:
    """Pairs of equal rows that have different labels, in ascending order.

    Rows are compared with their neighbours in the order of one random projection: equal rows lie together.

    >>> conflicts(np.array([[1.0, 2], [3, 4], [1, 2]]), np.array(["a", "b", "b"]))
    [(0, 2)]
    """
    if len(X) < 2:
        return []
    limit = TOLERANCE * max(float(np.abs(X).max()), 1e-30)
    projection: Array = np.random.default_rng(0).normal(size=(X.shape[1],))
    order = np.argsort(X @ projection.astype(X.dtype), kind="stable")
    first, second = order[:-1], order[1:]
    differ = np.flatnonzero(y[first] != y[second])
    near = [k for k in differ.tolist() if np.abs(X[first[k]] - X[second[k]]).max() <= limit]
    return sorted((int(min(first[k], second[k])), int(max(first[k], second[k]))) for k in near)
