"""`ImprintClassifier`: every method of the framework behind one scikit-learn
estimator.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import _num_samples

from imprint.active import Suggestions, suggest
from imprint.calibration.estimates import warn_of_small_samples
from imprint.core.arrays import Array, like, on_gpu, plain, to_numpy
from imprint.core.component import DEFAULT_METHOD, PARTS
from imprint.core.errors import (
    DataWarning,
    FileError,
    KindError,
    NotFittedError,
    ParameterError,
    check_int,
)
from imprint.core.files import container
from imprint.core.label_sets import read_tags
from imprint.core.labels import (
    check_kinds,
    listed,
    positions,
    renamed_key,
    row_labels,
)
from imprint.core.threads import compare_and_set
from imprint.estimator.base import (
    FLOATS,
    INPUT_ERRORS,
    Columns,
    FittedState,
    MethodEstimator,
    naming,
    read_labels,
)
from imprint.estimator.persistence import (
    head_from_parts,
    head_to_parts,
    read_class_weight,
    stored_class_weight,
)
from imprint.estimator.stored_rows import find_rows
from imprint.head import Head
from imprint.head.card import model_card
from imprint.head.decider import merge
from imprint.head.merging import Merged
from imprint.tags import TagHead
from imprint.tags.head import predicted_sets, reason_against_tags


class ImprintClassifier(ClassifierMixin, MethodEstimator):  # type: ignore[misc]
    """Classify embeddings with proxies (prototypes), without training.

    The proxies of a class are computed from its own embeddings.

    Parameters
    ----------
    norm_pre, norm_post, norm_inf : str or component
        Normalisation of training rows (`none`, `l2`), of proxies (`none`, `l2`,
        `quantile`) and of queries (`none`, `l2`).
    generator : str or component
        How the proxies of a class are computed, such as `mean` or `kmeans(k=20)`.
        The default, `kmeans`, keeps every row of a class with up to 1,280 rows.
    aggregator : str or component
        How proxies classify: `kernel` (kernel ridge regression on the proxies), `max`
        or `nearest(m=5)`.
    blocks : sequence of int, dict or None
        The widths of the blocks of an embedding, such as `(1280, 448, 768)` for three
        layers side by side; or a dict from the name of each block to the names of its
        columns in a data frame, or to the text with which these begin. Each block is
        normalised by itself, and `kernel` chooses their weights. None: the
        embedding is one whole.
    calibrate : bool
        Whether to calibrate the model by five-fold cross-validation:
        `expected_accuracy_`, calibrated probabilities, and `known`. The model then
        holds up to 100 rows of every class, and all that the generator keeps anyway.
    keep_rows : bool
        With `calibrate=True`, whether the model holds all rows of every class. Each of
        them can then be forgotten, and models merge exactly, with every generator.
    class_weight : dict, "balanced" or None
        Factors of the weights of the rows of each class, as in scikit-learn. `balanced`
        gives every class the same total weight. It changes what depends on the number
        of rows (`kernel`), not a mean.
    tree : bool
        Whether labels such as `animal/cat` are the leaves of a tree; see `tree_`.
    random_state : int, numpy.random.RandomState or None
        An int makes results reproducible. The random numbers of a class depend only on
        it and on the label.

    Attributes
    ----------
    classes_ : array of the labels, sorted
    proxies_ : Proxies
        `weights` (p, d), `labels` (p,) as indices into `classes_`, `mass` (p,), the
        number of rows that each represents, and `spread` (p,), their mean squared
        distance to it.
    n_features_in_ : int
    expected_accuracy_ : float
        With `calibrate=True`: the accuracy to expect on new inputs of these classes.
        NaN where no row could be assessed, because there is one class or every class
        has one row.
    expected_interval_ : tuple of two floats
        Its 95 % interval; rows that could not be held out widen it.

    Notes
    -----
    `X` may be a NumPy array or a torch tensor; results have the same type (text labels
    always as NumPy). float32 stays float32. The fitted state is one immutable value:
    any number of threads may predict and save while others add and forget, and
    concurrent changes all count.

    Examples
    --------
    >>> import numpy as np
    >>> from imprint import ImprintClassifier
    >>> X = np.array([[0.9, 0.1], [1.0, 0.0], [0.1, 0.8], [0.0, 1.0]])
    >>> clf = ImprintClassifier(generator="mean").fit(X, ["cat", "cat", "dog", "dog"])
    >>> clf.partial_fit([[-1.0, -0.9]], ["emu"]).predict([[0.7, 0.2], [-2.0, -1.0]])
    array(['cat', 'emu'], dtype='<U3')
    >>> clf.forget("emu").predict([[-2.0, -1.0]])
    array(['dog'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        norm_pre: Any = DEFAULT_METHOD["norm_pre"],
        generator: Any = DEFAULT_METHOD["generator"],
        norm_post: Any = DEFAULT_METHOD["norm_post"],
        norm_inf: Any = DEFAULT_METHOD["norm_inf"],
        aggregator: Any = DEFAULT_METHOD["aggregator"],
        blocks: Any = None,
        calibrate: bool = False,
        keep_rows: bool = False,
        class_weight: Any = None,
        tree: bool = False,
        random_state: Any = 0,
    ):
        self.norm_pre = norm_pre
        self.generator = generator
        self.norm_post = norm_post
        self.norm_inf = norm_inf
        self.aggregator = aggregator
        self.blocks = blocks
        self.calibrate = calibrate
        self.keep_rows = keep_rows
        self.class_weight = class_weight
        self.tree = tree
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Imprint every class in `y`, in sorted order, and discard earlier classes.

        A row of weight 2 counts as the same row given twice; a row of weight 0 is left
        out.
        """
        state = self._learn("fit(X, y)", X, y, sample_weight)
        n = _num_samples(X)
        with naming(f"fit(X, y) with {n} sample{'s' * (n > 1)}"):
            state.head.prepared  # noqa: B018 - raises here, not in the first prediction, if it cannot be solved
        warn_of_small_samples(state.head.imprinted.folds)
        self._learnt = state
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        max_rows: int | None = None,
    ) -> Self:
        """Add new classes, identical to one `fit` over all of them bit for bit, or more
        rows of existing classes.

        Extending is exact for `mean`, `all`, `random` and `least_squares`; see the
        documentation of other generators. With `norm_post="quantile"` the order of the
        classes matters. `classes` exists for scikit-learn only.

        With `max_rows`, each class that gets rows keeps its newest ones only, for
        streams whose classes drift: the model is that of a fit of these rows, and its
        size is bounded. The model must hold its rows: give `max_rows` from the
        beginning, with `calibrate=True` or `generator="all"`. Copies count as one row.
        """
        call = "partial_fit(X, y)"
        self._refuse_balanced(call)
        if max_rows is not None:
            max_rows = check_int("partial_fit", "max_rows", max_rows)
        compare_and_set(
            self,
            "_learnt",
            lambda before: self._learn(call, X, y, sample_weight, before, max_rows),
        )
        return self

    def forget(self, label: Any) -> Self:
        """Remove a class or a tag, or all classes below the node `animal/` of a tree,
        as if the model had never seen it.
        """
        self._fitted_state()
        self._refuse_balanced(f"forget({label!r})")
        compare_and_set(
            self,
            "_learnt",
            lambda state: state._replace(head=state.head.without(plain(label))),
        )
        return self

    def forget_rows(
        self,
        X: Any = None,
        y: Any = None,
        *,
        numbers: Sequence[int] | None = None,
        digests: Sequence[str] | None = None,
    ) -> Self:
        """Remove single training rows, as if the model had never seen them; a class
        whose last row is forgotten is forgotten.

        The model equals a fit without the rows bit for bit where it holds all rows of
        their classes: with `keep_rows=True`, with `calibrate=True` and up to 100 rows
        per class, or with `generator="all"`. It is equal up to rounding for `mean` and
        `least_squares`, and other generators refuse. Copies of a row count as the row.

        Parameters
        ----------
        X : array, optional
            The rows (n, d), as they were given to `fit`.
        y : label or labels, optional
            The class of all rows, or of each. [default: every class that has the row]
            A model that stores no rows cannot find their class, and relies on `y`.
        numbers, digests : list, optional
            In place of `X`: numbers of rows of the class `y` in the order of their
            arrival, from 0 and without copies, or digests as in `row_digests_`.
        """
        call = "forget_rows(X)"
        self._refuse_balanced(call)
        if isinstance(self.class_weight, dict):
            raise ParameterError(
                f"{call} with class_weight: the weights of rows are not stored; fit the"
                " model without them, or again."
            )
        given = [argument is not None for argument in (X, numbers, digests)]
        if sum(given) != 1:
            raise ParameterError(f"{call}: give one of X, numbers and digests.")
        if X is not None:
            _, X = self._queries(call, X)
            X = to_numpy(X)

        def update(state: FittedState) -> FittedState:
            imprinted = state.head.imprinted
            rows = X
            if rows is None:
                rows = find_rows(imprinted, y, numbers, digests)
            rows = rows.astype(imprinted.dtype, copy=False)
            labels = None if y is None else row_labels(call, y, len(rows))
            return state._replace(head=state.head.forget_rows(rows, labels))

        self._fitted_state()
        compare_and_set(self, "_learnt", update)
        return self

    @property
    def row_digests_(self) -> dict[Any, list[str]]:
        """With `calibrate=True`: for each class, the digests of its distinct rows in
        the order of their arrival.
        """
        folds = self._fitted_state().head.imprinted.folds
        if folds is None:
            raise NotFittedError("row_digests_: fit the model with calibrate=True.")
        return {label: folds.held[label].digest_texts() for label in folds.held}

    def merge(self, *others: "ImprintClassifier") -> Self:
        """Take over the classes and rows of other classifiers with equal settings: the
        model of one fit over the rows of all.

        It is equal bit for bit where no class is in several models, or where they hold
        all rows of the classes that they share: with `calibrate=True`, up to 100 rows
        per class. Otherwise it is equal up to rounding for `mean`, `all` and
        `least_squares`; see the documentation of other generators. Rows that two
        models have count twice, with a `DataWarning`.
        """
        states = [self._fitted_state()]
        for i, other in enumerate(others, 2):
            self._check_mergeable(other, f"model {i}")
            states.append(other._fitted_state())

        outcome: list[Merged] = []

        def update(state: FittedState) -> FittedState:
            merged = merge([state.head, *(other.head for other in states[1:])])
            outcome[:] = [merged]
            return state._replace(head=merged.head)

        compare_and_set(self, "_learnt", update)
        for sentence in outcome[0].notices("rows"):
            warnings.warn(sentence, DataWarning, stacklevel=2)
        return self

    def split(self, classes: Iterable[Any]) -> Self:
        """A classifier with only some classes, identical to one that never saw the
        others; `animal/` stands for the classes below this node of a tree.
        """
        self._refuse_balanced("split(classes)")
        state = self._fitted_state()
        part = copy(self)
        labels = [plain(label) for label in listed("split(classes)", classes)]
        part._learnt = state._replace(head=state.head.split(labels))
        return part

    def rename(self, old: Any, new: Any) -> Self:
        """Give a class or a tag another name; predictions stay the same.

        The random numbers of a class depend on its name. A fit under the new name can
        therefore differ where the generator draws random numbers.
        """
        old_label, new_label = plain(old), plain(new)

        def update(state: FittedState) -> FittedState:
            return state._replace(head=state.head.rename(old_label, new_label))

        self._fitted_state()
        compare_and_set(self, "_learnt", update)
        if isinstance(self.class_weight, dict):
            self.class_weight = renamed_key(self.class_weight, old_label, new_label)
        return self

    def _check_mergeable(self, other: Any, name: str) -> None:
        """Refuse what is not a classifier, or one with other class weights or
        columns.
        """
        if not isinstance(other, ImprintClassifier):
            kind = type(other).__name__
            raise KindError(
                f"merge(*others): give classifiers, not {kind}; files are read by"
                " ImprintClassifier.load."
            )
        other._fitted_state()  # raises if it is not fitted
        self._refuse_balanced("merge(*others)")
        if other.class_weight != self.class_weight:
            raise ParameterError(
                f"merge(*others): {name} has class_weight={other.class_weight!r} and"
                f" this model {self.class_weight!r}; fit both with the same."
            )
        columns = [
            getattr(one._learnt.columns, "feature_names_in_", np.empty(0)).tolist()
            for one in (self, other)
        ]
        if columns[0] != columns[1]:
            raise ParameterError(
                f"merge(*others): {name} was fitted on columns of other names than this"
                " model; fit both on the same columns."
            )

    def decision_function(self, X: Any) -> Any:
        """Class scores (n, C); for two classes, as scikit-learn does, the second's lead
        over the first (n,).
        """

        def scores(head: Head | TagHead, rows: Array) -> Any:
            S = head.scores(rows)
            return S[:, 1] - S[:, 0] if S.shape[1] == 2 and not head.tags else S

        return self._answer("decision_function(X)", X, scores)

    def predict(self, X: Any, level: int | None = None) -> Any:
        """The label with the largest score, on a tie the first in `classes_`; with
        `level`, the most probable node.

        Of tags, an indicator matrix (n, L): the labels whose score reaches their
        threshold.
        """
        return self._answer(
            "predict(X)", X, lambda head, rows: head.predict(rows, level)
        )

    def predict_proba(self, X: Any, level: int | None = None) -> Any:
        """Probabilities (n, C), calibrated with `calibrate=True`; with `level`, of the
        nodes `tree_.level(level)`.

        Tags have one probability per label (n, L), which is always calibrated.
        """
        return self._answer(
            "predict_proba(X)",
            X,
            lambda head, rows: head.class_probabilities(rows, level)[1],
        )

    def known(self, X: Any) -> Any:
        """The conformal p-value that each row belongs to one of the classes, in (0, 1];
        needs `calibrate=True`.

        Refusing rows below 0.05 refuses about 5 % of the rows that do belong (measured:
        4 to 6 % of rows like the training rows, 1 to 19 % of others), over all
        classes together.
        """
        warn_of_small_samples(
            self._fitted_state().head.imprinted.folds, known_only=True
        )
        return self._answer("known(X)", X, lambda head, rows: head.known(rows))

    def suggest(self, X_pool: Any, n: int = 10) -> Suggestions:
        """Row numbers of the unlabelled pool, most useful to label first, with
        `reasons`; see `imprint.active`.
        """
        head, rows = self._queries("suggest(X_pool)", X_pool)
        return suggest(rows, n, head=head)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows whose predicted label is the given one; of tags, whose labels
        are all predicted correctly.
        """
        head = self._fitted_state().head
        predicted = to_numpy(self.predict(X))
        if isinstance(head, TagHead):
            if (tagged := read_tags(y, head.labels)) is None:
                raise ParameterError(
                    "score(X, y): y must be an indicator matrix or a set of labels per"
                    " row."
                )
            sets = predicted_sets(predicted, head.labels)
            return float(accuracy_score(tagged.sets, sets, sample_weight=sample_weight))
        classes = head.classes.tolist()
        with naming("score(X, y)", INPUT_ERRORS):
            true = read_labels(y)
            check_kinds("y holds", true, classes)
        # compared by number: scikit-learn does not read arrays of large integers
        numbers = positions(true, classes), positions(predicted, classes)
        return float(accuracy_score(*numbers, sample_weight=sample_weight))

    def save(self, path: str | os.PathLike[str], *, rows: bool = True) -> None:
        """Write the model to one file, atomically. The file contains no code:
        safetensors and JSON.

        With `rows=False`, the file holds no training rows: proxies that are computed
        from several rows, and the numbers of the calibration. It predicts the same and
        can be merged; calibrated, it cannot learn or forget. Refused where the proxies
        of a class are its rows.
        """
        head, columns = self._fitted_state()
        if not rows:
            head = head.without_rows()
        document, arrays = head_to_parts(head)
        if hasattr(columns, "feature_names_in_"):
            document["features"] = columns.feature_names_in_.tolist()
        document |= {
            "kind": "classifier",
            "card": model_card(head, "embedding", None).markdown(),
        }
        document["class_weight"] = stored_class_weight(self.class_weight)
        container.write(
            path, document, arrays, lambda d, a: head_from_parts(d, a, path)
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model written by `save`; a file that is damaged, altered or not a
        model is refused.
        """
        document, arrays = container.read(path)
        if document.get("kind") == "imprinter" or "kept" in document:
            raise FileError(
                f"{path} is a model with a backbone: use"
                f" Imprinter.load({str(path)!r}).classifier."
            )
        head, features = (
            head_from_parts(document, arrays, path),
            document.get("features"),
        )
        names = features if isinstance(features, list) else []
        if features is not None and [type(name) for name in names] != [str] * (
            head.imprinted.width or 0
        ):
            raise container.not_a_model(path)
        class_weight = read_class_weight(document.get("class_weight"), path)
        return cls.of_head(head, names).set_params(class_weight=class_weight)

    @classmethod
    def of_head(cls, head: Head | TagHead, columns: list[str] | None = None) -> Self:
        """A classifier with an existing head, and the names of its columns if they have
        some.
        """
        imprinted = head.imprinted
        parts = {name: getattr(imprinted.method, name) for name in PARTS}
        texts = {
            name: str(component)
            for name, component in parts.items()
            if component.public_name()
        }
        self = cls(
            **{**parts, **texts},
            blocks=imprinted.method.blocks or None,
            calibrate=imprinted.folds is not None,
            keep_rows=imprinted.folds is not None and imprinted.folds.keep_rows,
            tree=bool(imprinted.tree_of_labels),
            random_state=imprinted.seed,
        )
        self._learnt = FittedState(head, Columns(imprinted.width, columns))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # with few features, quantile-normalised proxies hardly differ
        with suppress(ParameterError):
            method = self._method()
            tags.classifier_tags.poor_score = method.norm_post.uses_reference
            tags.classifier_tags.multi_label = reason_against_tags(method) is None
        return tags

    def _refuse_balanced(self, call: str) -> None:
        """Refuse to change some classes of a model whose weights depend on all of
        them.
        """
        if self.class_weight == "balanced":
            rule = (
                "the balance depends on all classes; use fit, or a dict of class"
                " weights"
            )
            raise ParameterError(f"{call} with class_weight='balanced': {rule}.")

    def _queries(self, call: str, X: Any) -> tuple[Head | TagHead, Array]:
        """The current head, and the rows after they were checked against it."""
        head, columns = self._fitted_state()
        return head, columns.read(
            call, X, head.imprinted.dtype if on_gpu(X) else FLOATS
        )

    def _answer(
        self, call: str, X: Any, answer: Callable[[Head | TagHead, Array], Any]
    ) -> Any:
        """The answer of the current head for rows, as an array or tensor like X."""
        head, rows = self._queries(call, X)
        with naming(call):
            return like(answer(head, rows), X)
