"""The fitted state of an `Imprinter`, one value."""

from typing import Any, NamedTuple, Self

import numpy as np

from imprint.calibration import CrossValidation
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.head import Decider
from imprint.imprinter import exemplars, pretrained
from imprint.imprinter.exemplars import ExemplarsByClass, choose_exemplars
from imprint.imprinter.items import Embedded
from imprint.modalities.embedding import check_width


class ImprinterState(NamedTuple):
    """A head and the exemplars of its classes: one immutable value, which one thread reads while another learns."""

    head: Decider
    exemplars: ExemplarsByClass
    named: bool = False
    """Whether one row of each class is its name."""

    def with_rows(self, rows: Embedded) -> Self:
        """The state after more rows, of known or of new classes."""
        y = np.asarray(rows.y)
        if len(self.head.imprinted):
            check_width(rows.X, self.head.imprinted.width)
            _same_kind(self.head, y)
        head = self.head.learn(rows.X.astype(self.head.imprinted.dtype, copy=False), y)
        return self._replace(head=head, exemplars=choose_exemplars(head.imprinted, self.exemplars, rows))

    def count_known(self, rows: Embedded) -> int:
        """How many rows are copies of a row that their class already has; 0 if the model is not calibrated."""
        folds = self.head.imprinted.folds
        if not isinstance(folds, CrossValidation):
            return 0
        return folds.count_known(rows.X.astype(self.head.imprinted.dtype, copy=False), np.asarray(rows.y))

    def without(self, label: Any, flat: bool = False) -> Self:
        """The state without a class, or without the classes below a node of the tree unless it is flat."""
        head = self.head.forget(label) if flat else self.head.without(label)
        nothing = Embedded(
            np.empty((0, head.imprinted.width or 0), np.float32), [], (), np.empty(0, head.classes.dtype)
        )
        return self._replace(head=head, exemplars=choose_exemplars(head.imprinted, self.exemplars, nothing))

    def to_parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """A JSON document and named arrays."""
        document, arrays = pretrained.to_parts(self.head)
        names, pictures = exemplars.to_parts(self.head.imprinted.classes.tolist(), self.exemplars)
        return {**document, "pictures": names, "names": self.named}, {**arrays, **pictures}

    @classmethod
    def of_parts(cls, head: Decider, document: dict[str, Any], arrays: dict[str, Array]) -> Self:
        """A head with the pictures that `to_parts` described; KeyError, TypeError or ValueError for anything else."""
        names = document.get("pictures", [[] for _ in range(len(head.imprinted))])
        return cls(head, exemplars.from_parts(head.imprinted, names, arrays), document.get("names") is True)


def _same_kind(head: Decider, y: Array) -> None:
    text = [np.dtype(dtype).kind == "U" for dtype in (head.imprinted.label_type, y.dtype)]
    if text[0] != text[1]:
        kinds = ["text" if is_text else "number" for is_text in text]
        raise ParameterError(f"add(data): the data have {kinds[1]} labels, the model {kinds[0]} labels.")


def read_seed(random_state: Any) -> int:
    """The seed of an `Imprinter`."""
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise ParameterError(f"Imprinter(random_state={random_state!r}): random_state must be int >= 0.")
    return int(random_state)
