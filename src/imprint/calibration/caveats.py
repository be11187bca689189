"""Sentences about models that were calibrated with few rows, each with a remedy."""

import warnings

from imprint.calibration.cross_validation import CrossValidation
from imprint.core.errors import SmallSampleWarning

USUAL_LEVEL = 0.05
ENOUGH_ROWS = 5  # rows of a class with which each fold leaves out at most a fifth of them


def caveats(folds: CrossValidation, inputs: str = "rows") -> list[str]:
    """Sentences about `known` and the expected accuracy; none if there are enough rows."""
    sizes = {label: len(held.digests) for label, held in folds.held.items()}
    smallest = min(sizes, key=sizes.__getitem__, default=None)
    single = [label for label, size in sizes.items() if size == 1]
    sentences = [p_value_caveat(folds, USUAL_LEVEL, inputs)]
    if len(sizes) == 1:
        sentences.append("With one class the accuracy cannot be estimated: add a second class.")
    elif single:
        which = f"{single[0]!r} has" if len(single) == 1 else f"{len(single)} classes have"
        limit = f"{which} only one and cannot be assessed"
        if len(single) == len(sizes):
            limit = "with one per class, the accuracy cannot be estimated"
        sentences.append(f"Too few {inputs}: {limit}; add {inputs}.")
    elif sizes and sizes[smallest] < ENOUGH_ROWS:
        sentences.append(
            f"The expected accuracy is uncertain: {smallest!r} has {sizes[smallest]} {inputs}, and folds leave out up "
            f"to half of them; give at least {ENOUGH_ROWS} of every class."
        )
    return [sentence for sentence in sentences if sentence]


def p_value_caveat(
    folds: CrossValidation, level: float, inputs: str = "rows", remedy: str = "refuse below"
) -> str | None:
    """One sentence if no p-value of `known` can be below a level; `remedy` is how the user sets the level."""
    rows = sum(len(held.index) for held in folds.held.values() if len(held.digests) > 1 or len(folds.held) == 1)
    smallest = 1 / (rows + 1)
    if smallest < level:
        return None
    if not rows:
        rule = "with one per class, the p-values of known are 1 and nothing is refused"
        return f"Too few {inputs}: {rule}; add {inputs}."
    return (
        f"With {'one of the' if rows == 1 else rows} {inputs} the smallest p-value of known is {smallest:.2f}, so "
        f"nothing is refused below {level:g}: add {inputs}, or {remedy} {int(100 * smallest + 1) / 100:.2f}."
    )


def warn_of_small_samples(folds: CrossValidation | None, inputs: str = "rows", of_known: bool = False) -> None:
    """Warn the caller's caller if a calibrated model has too few rows: for `known` only, or for any estimate."""
    if folds is not None:
        sentences = [p_value_caveat(folds, USUAL_LEVEL, inputs)] if of_known else caveats(folds, inputs)
        for sentence in filter(None, sentences):
            warnings.warn(sentence, SmallSampleWarning, stacklevel=3)
