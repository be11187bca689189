"""The fitted state of an `Imprinter`, one value."""

from typing import Any, NamedTuple, Self

import numpy as np

from imprint.calibration import CrossValidation
from imprint.core.errors import ParameterError
from imprint.core.label_sets import single_labels
from imprint.core.types import Array
from imprint.head import Decider, check_label_types
from imprint.imprinter import exemplars, pretrained
from imprint.imprinter.exemplars import ExemplarsByClass, choose_exemplars
from imprint.imprinter.items import Embedded
from imprint.method import Method
from imprint.modalities.embedding import check_width
from imprint.tags.head import default_method, renamed


class ImprinterState(NamedTuple):
    """A head and the exemplars of its classes: one immutable value, which one thread reads while another learns."""

    head: Decider
    exemplars: ExemplarsByClass
    named: bool = False
    """Whether one row of each class is its name."""

    def with_rows(self, rows: Embedded) -> Self:
        """The state after more rows, of known or of new classes. A model of tags also accepts rows with one label."""
        if self.head.tags:
            check_label_types("add(data): the data have", np.asarray(rows.labels).dtype, self.head.classes.dtype)
        if rows.tags is None and self.head.tags:
            rows = rows._replace(y=single_labels(np.asarray(rows.y).tolist()))
        elif rows.tags is not None and not self.head.tags:
            raise ParameterError("add(data): the data have tags, and the model has one label per input; fit it again.")
        y = np.asarray(rows.y)
        if len(self.head.imprinted):
            check_width(rows.X, self.head.imprinted.width)
            check_label_types("add(data): the data have", y.dtype, self.head.imprinted.label_type)
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
        nothing = np.empty((0, head.imprinted.width or 0), np.float32)
        rows, before = Embedded(nothing, [], (), np.empty(0, head.classes.dtype)), self.exemplars
        if head.tags:  # rows of label sets with this label move to the sets without it
            after = {label_set: renamed(label_set, label) for label_set in before}
            moved = [(before[one], to) for one, to in after.items() if to not in (one, None)]
            X = np.concatenate([nothing, *(of_set.X for of_set, _ in moved)])
            names = [name for of_set, _ in moved for name in of_set.names]
            rows = Embedded(X, names, (), np.array([to for of_set, to in moved for _ in of_set.names], dtype=str))
            before = {one: of_set for one, of_set in before.items() if after[one] == one}
        return self._replace(head=head, exemplars=choose_exemplars(head.imprinted, before, rows))

    def to_parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """A JSON document and named arrays."""
        document, arrays = pretrained.to_parts(self.head)
        names, pictures = exemplars.to_parts(self.head.imprinted.classes.tolist(), self.exemplars)
        return {**document, "pictures": names, "names": self.named}, {**arrays, **pictures}

    @classmethod
    def of_parts(cls, head: Decider, document: dict[str, Any], arrays: dict[str, Array]) -> Self:
        """A head with the exemplars from the parts of `to_parts`; KeyError, TypeError or ValueError if they differ."""
        names = document.get("pictures", [[] for _ in range(len(head.imprinted))])
        return cls(head, exemplars.from_parts(head.imprinted, names, arrays), document.get("names") is True)


def method_for_tags(chosen: Method | None, keep: pretrained.PretrainedOptions | None) -> Method:
    """The given method, or the default for tags; refused together with pre-trained classes."""
    if keep is not None:
        raise ParameterError("fit(data) with keep_head: the network predicts one class per input; leave keep_head out.")
    return chosen or default_method()


def read_seed(random_state: Any) -> int:
    """The seed of an `Imprinter`."""
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise ParameterError(f"Imprinter(random_state={random_state!r}): random_state must be int >= 0.")
    return int(random_state)
