"""The limits of small samples, each in one sentence with a remedy."""

import warnings
from typing import Any

from imprint.calibration.cross_validation import CrossValidation
from imprint.core.errors import SmallSampleWarning

USUAL_LEVEL = 0.05
ENOUGH = 5
"""Rows of a class from which on each fold holds out at most a fifth of them."""


def caveats(folds: CrossValidation, things: str = "rows") -> list[str]:
    """Sentences about `known` and the expected accuracy; none if there are enough rows."""
    sizes = {label: len(held.digests) for label, held in folds.held.items()}
    sentences = [p_value_caveat(folds, USUAL_LEVEL, things)]
    single = [label for label, size in sizes.items() if size == 1]
    if len(sizes) == 1:
        sentences.append("With one class the accuracy cannot be estimated: add a second class.")
    elif len(single) == len(sizes):
        sentences.append(f"Too few {things}: with one per class, the accuracy cannot be estimated; add {things}.")
    elif single:
        which = f"{single[0]!r} has" if len(single) == 1 else f"{len(single)} classes have"
        sentences.append(f"Too few {things}: {which} only one and cannot be assessed; add {things}.")
    elif sizes and min(sizes.values()) < ENOUGH:
        label = min(sizes, key=sizes.__getitem__)
        sentences.append(
            f"The expected accuracy is uncertain: {label!r} has {sizes[label]} {things}, and folds leave out up to "
            f"half of them; give at least {ENOUGH} of every class."
        )
    return [sentence for sentence in sentences if sentence]


def p_value_caveat(
    folds: CrossValidation, level: float, things: str = "rows", remedy: str = "refuse below"
) -> str | None:
    """One sentence if no p-value of `known` can fall below a level; None otherwise.

    `remedy` is how the user's interface sets the level.
    """
    rows = sum(len(held.index) for held in folds.held.values() if len(held.digests) > 1 or len(folds.held) == 1)
    smallest = 1 / (rows + 1)
    if smallest < level:
        return None
    if not rows:
        return (
            f"Too few {things}: with one per class, the p-values of known are 1 and nothing is refused; add {things}."
        )
    count = "one of the" if rows == 1 else f"{rows}"
    return (
        f"With {count} {things} the smallest p-value of known is {smallest:.2f}, so nothing is refused below "
        f"{level:g}: add {things}, or {remedy} {int(100 * smallest + 1) / 100:.2f}."
    )


def warn_of_small_samples(folds: Any, things: str = "rows", of_known: bool = False) -> None:
    """Warn the caller's caller if a calibrated model has too few rows: for `known` only, or for any estimate."""
    if isinstance(folds, CrossValidation):
        sentences = [p_value_caveat(folds, USUAL_LEVEL, things)] if of_known else caveats(folds, things)
        for sentence in filter(None, sentences):
            warnings.warn(sentence, SmallSampleWarning, stacklevel=3)
