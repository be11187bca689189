"""How often a model is right on labelled rows, and where it is not."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from imprint.calibration import calibration_error
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.embeddings import Skipped


class PerClass(NamedTuple):
    """One class: its rows, the share of them that are found, and the share of its answers that are right.

    `recall` is None where there are no rows of the class, `precision` where the model never answers it.
    """

    label: Any
    rows: int
    recall: float | None
    precision: float | None


class Mistake(NamedTuple):
    """A row that got another label than its own, and the probability the model gave its answer."""

    path: str
    label: Any
    predicted: Any
    probability: float


@dataclass(frozen=True)
class Evaluation:
    """What a model does on labelled rows. Labels it does not know are classes of their own, never answered."""

    accuracy: float
    balanced_accuracy: float
    """The mean recall of the classes that have rows."""
    rows: int
    classes: list[Any]
    """The labels of the model and of the rows, sorted; the order of `confusion`."""
    confusion: list[list[int]]
    """How many rows of the class i are called j: `confusion[i][j]`."""
    per_class: list[PerClass]
    calibration_error: float
    """The expected calibration error of the probabilities of the answers."""
    mistakes: list[Mistake]
    """The surest first."""
    unreadable: list[dict[str, str]]
    unknown: list[Any]
    """Labels of the rows that the model does not know."""

    def as_json(self) -> dict[str, Any]:
        """The public keys, with plain values."""
        fields = asdict(self)
        fields |= {"per_class": [one._asdict() for one in self.per_class]}
        fields |= {"mistakes": [one._asdict() for one in self.mistakes]}
        del fields["unknown"]
        return fields


def evaluation(P: Array, classes: Array, y: Array, names: Sequence[str], skipped: Sequence[Skipped] = ()) -> Evaluation:
    """Compare probabilities P (n, C), in the order of `classes`, with the labels `y` of the rows.

    >>> P = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
    >>> found = evaluation(P, np.array(["cat", "dog"]), np.array(["cat", "dog", "cat"]), ["a", "b", "c"])
    >>> found.confusion, found.balanced_accuracy, found.mistakes
    ([[1, 1], [0, 1]], 0.75, [Mistake(path='c', label='cat', predicted='dog', probability=0.6)])
    """
    if not len(y):
        raise ParameterError("evaluation(y=[]): there are no rows to evaluate.")
    labels = all_labels(classes, y)
    truth, answers = np.searchsorted(labels, y), np.searchsorted(labels, classes[P.argmax(axis=1)])
    confusion = np.zeros((len(labels), len(labels)), dtype=np.int64)
    np.add.at(confusion, (truth, answers), 1)
    right, sure = truth == answers, P.max(axis=1)
    recalls = [_share(confusion[c, c], confusion[c].sum()) for c in range(len(labels))]
    precisions = [_share(confusion[c, c], confusion[:, c].sum()) for c in range(len(labels))]
    wrong = sorted(np.flatnonzero(~right).tolist(), key=lambda i: -sure[i])
    plain = labels.tolist()
    return Evaluation(
        accuracy=float(right.mean()),
        balanced_accuracy=float(np.mean([r for r in recalls if r is not None])),
        rows=len(y),
        classes=plain,
        confusion=confusion.tolist(),
        per_class=[PerClass(plain[c], int(confusion[c].sum()), recalls[c], precisions[c]) for c in range(len(plain))],
        calibration_error=calibration_error(P, np.where(right, P.argmax(axis=1), -1)),
        mistakes=[Mistake(names[i], plain[truth[i]], plain[answers[i]], float(sure[i])) for i in wrong],
        unreadable=unreadable(skipped),
        unknown=sorted(set(np.unique(y).tolist()) - set(classes.tolist())),
    )


def all_labels(classes: Array, y: Array) -> Array:
    """The labels of a model and of rows together, sorted; refuses texts beside numbers."""
    if (classes.dtype.kind == "U") != (y.dtype.kind == "U"):
        kinds = ["text" if a.dtype.kind == "U" else "number" for a in (classes, y)]
        raise ParameterError(f"evaluation(): the data have {kinds[1]} labels, the model {kinds[0]} labels.")
    return np.union1d(classes, y)


def unreadable(skipped: Sequence[Skipped]) -> list[dict[str, str]]:
    """What could not be read, for JSON."""
    return [{"path": one.name, "reason": one.reason} for one in skipped]


def _share(part: int, whole: int) -> float | None:
    return float(part / whole) if whole else None
