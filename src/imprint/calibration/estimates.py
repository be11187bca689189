"""Estimates from held-out rows: the expected accuracy of a model, and p-values that a
query belongs to its classes.
"""

import warnings
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import SmallSampleWarning, require

if TYPE_CHECKING:
    from imprint.calibration.cross_validation import CrossValidation

SIGNIFICANCE_LEVEL = 0.05  # the threshold of p-values that warnings assume
MIN_ROWS_PER_CLASS = 5  # with which each fold leaves out at most a fifth of a class
NORMAL_QUANTILE = 1.959964  # two-sided, 95 %
MIN_SPREAD = 1e-12  # to divide by, relative to the values and absolute


@dataclass(frozen=True, eq=False)
class Estimates:
    """The expected accuracy of a model, and an out-of-distribution score with its
    conformal p-values.

    The score of a query is its largest class score minus its doubt, each divided by its
    spread. A model file stores every field under its name.
    """

    prefix: ClassVar[str]  # of the names of the arrays in a file
    expected: float | None  # the accuracy; None if no row was assessed
    low: float  # the 95 % interval of the accuracy
    high: float
    score_spread: float
    doubt_spread: float
    heaviest: float  # the largest weight of a held-out row, and at least 1
    reference: Array  # (n,) the scores of held-out rows, ascending
    below: Array  # (n + 1,) the total weight of the first 0, 1, ... of them

    def __post_init__(self) -> None:
        require(
            0 <= self.low <= self.high <= 1
            and (self.expected is None or 0 <= self.expected <= 1)
        )
        require(
            min(self.score_spread, self.doubt_spread) >= MIN_SPREAD
            and self.heaviest > 0
        )
        require(
            self.reference.ndim == 1
            and self.below.shape == (len(self.reference) + 1,)
            and self.below[0] == 0
        )
        for array in (self.reference, self.below):
            require(
                array.dtype == np.float64
                and np.isfinite(array).all()
                and (np.diff(array) >= 0).all()
            )

    @property
    def expected_accuracy(self) -> float:
        """The accuracy to expect; NaN if no row was assessed."""
        return float("nan") if self.expected is None else self.expected

    @property
    def expected_interval(self) -> tuple[float, float]:
        """The 95 % interval of the accuracy."""
        return self.low, self.high

    def p_values(self, S: Array, doubt: Array | None) -> Array:
        """The conformal p-value that each query belongs to one of the classes, in (0,
        1].  # (q,)

        It is the share of held-out rows whose score is not larger, with the query
        counted as one of them.
        """
        scores = ood_scores(S, doubt, self.score_spread, self.doubt_spread)
        index = np.searchsorted(self.reference, scores, side="right")
        return np.asarray(
            (self.below[index] + self.heaviest) / (self.below[-1] + self.heaviest)
        )

    def missing_rows(self, level: float) -> int:
        """How many more rows are needed, at least, before any p-value can be below a
        level; 0 if there are enough.
        """
        return missing_rows(float(self.below[-1]), self.heaviest, level)

    def graph_p_values(
        self,
        g: Any,
        S: str,
        doubt: str | None,
    ) -> str:
        """The p-values of the scores `S` and doubts as nodes of an ONNX graph `g`, in
        float64.  # (q,)
        """
        double = np.float64
        score = g.add(
            "Div",
            g.reduce("ReduceMax", g.cast(S, double), 1),
            g.constant(self.score_spread, double),
        )
        if doubt is not None:
            score = g.add(
                "Sub",
                score,
                g.add(
                    "Div", g.cast(doubt, double), g.constant(self.doubt_spread, double)
                ),
            )
        if not len(self.reference):
            # no row to compare with: 1
            return str(g.add("Exp", g.add("Mul", score, g.constant(0.0, double))))
        total = float(self.below[-1]) + self.heaviest
        reached = g.cast(
            g.add(
                "GreaterOrEqual",
                g.unsqueeze(score, 1),
                g.constant(self.reference, double),
            ),
            double,
        )
        weight = g.add("MatMul", reached, g.constant(np.diff(self.below), double))
        return str(
            g.add(
                "Div",
                g.add("Add", weight, g.constant(self.heaviest, double)),
                g.constant(total, double),
            )
        )

    @classmethod
    def array_names(cls) -> list[str]:
        """The names of its arrays in a file."""
        return [
            f"{cls.prefix}{field.name}" for field in fields(cls) if field.type == Array
        ]

    def to_parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Numbers and arrays for a file, by name."""
        numbers = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.type != Array
        }
        return numbers, {
            name: getattr(self, name.removeprefix(self.prefix))
            for name in self.array_names()
        }

    @classmethod
    def from_parts(cls, numbers: dict[str, Any], arrays: dict[str, Array]) -> Self:
        """The inverse of `to_parts`; KeyError, TypeError or ValueError for anything
        else.
        """
        stated = [
            number
            for name, number in numbers.items()
            if (name, number) != ("expected", None)
        ]
        require(all(type(number) is float and np.isfinite(number) for number in stated))
        values: dict[str, Any] = {
            name.removeprefix(cls.prefix): arrays[name] for name in cls.array_names()
        }
        return cls(**numbers, **values)


def fit_conformal(
    S: Array,
    doubt: Array | None,
    weight: Array,
    gain: float = 0.0,
) -> dict[str, Any]:
    """The fields of `Estimates` for p-values, from predictions by models without the
    rows.

    Parameters
    ----------
    S : array (n, C)
        Class scores of held-out rows.
    doubt : array (n,), optional
        The doubt of the aggregator about them, if it has one.
    weight : array (n,)
        How many rows each of them represents.
    gain : float
        The models that predicted the rows were fitted with fewer rows than the model
        itself, which scores new rows higher. The reference scores are raised by the
        expected difference; leave-one-out predictions need no gain.
    """
    score_spread, doubt_spread = spreads_of(S, doubt)
    scores = ood_scores(S, doubt, score_spread, doubt_spread) + gain
    order = np.argsort(scores, kind="stable")
    return {
        "score_spread": score_spread,
        "doubt_spread": doubt_spread,
        "heaviest": float(weight.max(initial=1.0)),
        "reference": scores[order],
        "below": np.concatenate([[0.0], np.cumsum(weight[order])]),
    }


def spreads_of(S: Array, doubt: Array | None) -> tuple[float, float]:
    """The standard deviations of the largest class scores and of the doubts."""
    return _spread(S.max(axis=1)), 1.0 if doubt is None else _spread(doubt)


def ood_scores(
    S: Array,
    doubt: Array | None,
    score_spread: float,
    doubt_spread: float,
) -> Array:
    """Out-of-distribution scores: large for queries that look like the training rows.
    # (q,)
    """
    score = S.max(axis=1).astype(np.float64) / score_spread
    return score if doubt is None else np.asarray(score - doubt / doubt_spread)


def _spread(values: Array) -> float:
    """The standard deviation; 1 where it is zero, or too small to divide by."""
    largest = float(np.abs(values).max(initial=0.0))
    spread = (
        largest * float(np.std(values / largest, dtype=np.float64))
        if largest > 0
        else 0.0
    )
    return spread if spread > MIN_SPREAD * max(1.0, largest) else 1.0


def wilson_interval(share: float, size: float) -> tuple[float, float]:
    """The 95 % confidence interval of a share that was measured on `size` rows (Wilson
    1927).
    """
    z = NORMAL_QUANTILE
    middle = share + z**2 / (2 * size)
    half = z * (share * (1 - share) / size + z**2 / (4 * size**2)) ** 0.5
    return max(0.0, (middle - half) / (1 + z**2 / size)), min(
        1.0, (middle + half) / (1 + z**2 / size)
    )


def caveats(folds: "CrossValidation", inputs: str = "rows") -> list[str]:
    """Warnings about `known` and the expected accuracy, as sentences; empty if there
    are enough rows.
    """
    sizes = {label: len(held.digests) for label, held in folds.held.items()}
    smallest = min(sizes, key=sizes.__getitem__)
    single = [label for label, size in sizes.items() if size == 1]
    sentences = [p_value_caveat(folds, inputs)]
    if len(sizes) == 1:
        sentences.append(
            "With one class the accuracy cannot be estimated: add a second class."
        )
    elif single:
        subject = (
            f"{single[0]!r} has" if len(single) == 1 else f"{len(single)} classes have"
        )
        problem = f"{subject} only one and cannot be assessed"
        if len(single) == len(sizes):
            problem = "with one per class, the accuracy cannot be estimated"
        sentences.append(f"Too few {inputs}: {problem}; add {inputs}.")
    elif sizes[smallest] < MIN_ROWS_PER_CLASS:
        sentences.append(
            f"The expected accuracy is uncertain: {smallest!r} has {sizes[smallest]}"
            f" {inputs}, and folds leave out up to half of them; give at least"
            f" {MIN_ROWS_PER_CLASS} of every class."
        )
    return [sentence for sentence in sentences if sentence]


def missing_rows(
    total: float,
    heaviest: float,
    level: float,
) -> int:
    """How many more rows are needed, at least, before any p-value can be below a level.

    The smallest p-value is that of an input that looks less familiar than every
    held-out row: heaviest / (total + heaviest).

    Parameters
    ----------
    total : float
        The total weight of the held-out rows.
    heaviest : float
        The largest weight of one of them, and at least 1.
    level : float
        No p-value is below 0, with any number of rows: then none are missing.
    """
    if not 0 < level < 1 or heaviest / (total + heaviest) < level:
        return 0
    return int(heaviest * (1 / level - 1) - total) + 1


def cannot_tell(
    calibration: Estimates,
    level: float,
    inputs: str,
    remedy: str,
) -> str | None:
    """One sentence if no p-value can be below a level; `remedy` is how the user sets
    the level.
    """
    missing = calibration.missing_rows(level)
    if not missing:
        return None
    smallest = calibration.heaviest / (calibration.below[-1] + calibration.heaviest)
    return _cannot_tell(float(smallest), level, missing, inputs, remedy)


def _cannot_tell(
    smallest: float,
    level: float,
    missing: int,
    inputs: str,
    remedy: str,
) -> str:
    sentence = (
        f"known cannot tell yet what to refuse below {level:g}: needs"
        f" {missing:,} more {inputs}"
    )
    if smallest == 1:
        return f"{sentence}."
    return (
        f"{sentence} (the smallest p-value is {smallest:.2f}), or {remedy}"
        f" {int(100 * smallest + 1) / 100:.2f}."
    )


def p_value_caveat(folds: "CrossValidation", inputs: str = "rows") -> str | None:
    """One sentence if no p-value of `known` can be below the usual level.

    It follows from the held rows, without models of folds.
    """
    assessed = [
        held
        for held in folds.held.values()
        if len(held.digests) > 1 or len(folds.held) == 1
    ]
    total = sum(held.total for held in assessed)
    heaviest = max((float(held.weight.max()) for held in assessed), default=1.0)
    heaviest = max(1.0, heaviest)
    missing = missing_rows(total, heaviest, SIGNIFICANCE_LEVEL)
    if not missing:
        return None
    smallest = heaviest / (total + heaviest)
    return _cannot_tell(smallest, SIGNIFICANCE_LEVEL, missing, inputs, "refuse below")


def warn_of_small_samples(
    folds: "CrossValidation | None",
    inputs: str = "rows",
    known_only: bool = False,
) -> None:
    """Warn if a calibrated model has too few rows: for any estimate, or with
    `known_only` for `known`.

    The warning points to the caller's caller.
    """
    if folds is not None and folds.has_rows:
        sentences = (
            [p_value_caveat(folds, inputs)] if known_only else caveats(folds, inputs)
        )
        for sentence in filter(None, sentences):
            warnings.warn(sentence, SmallSampleWarning, stacklevel=3)
