"""`ImprintClassifier`: every method of the framework behind one scikit-learn estimator."""

import os
from contextlib import suppress
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from imprint.active import Suggestions, suggest
from imprint.calibration import CrossValidation
from imprint.calibration.caveats import warn_of_small_samples
from imprint.core.arrays import all_finite, dtype_name, labels_at, like, on_gpu, to_numpy
from imprint.core.compare_and_set import compare_and_set
from imprint.core.defaults import DEFAULT
from imprint.core.errors import FileError, ParameterError
from imprint.core.files import container
from imprint.core.labels import plain
from imprint.core.types import Array
from imprint.estimator.fitted import Fitted, FittedState, read_columns
from imprint.estimator.inputs import FLOATS, Columns, check_same_kind, read_labels, read_seed, refuse_balanced, weighted
from imprint.estimator.parameters import MethodParameters, as_parameters
from imprint.head import Head
from imprint.head.card import model_card
from imprint.method import Method
from imprint.persistence import head_from_parts, head_to_parts


class ImprintClassifier(Fitted, ClassifierMixin, MethodParameters):  # type: ignore[misc]
    """Classify embeddings by proxies made from the embeddings of each class, with no gradient steps.

    Parameters
    ----------
    norm_pre, norm_post, norm_inf : str or component
        How rows are scaled before generation (`none`, `l2`), how proxies are (`none`, `l2`, `quantile`), and how
        queries are (`none`, `l2`).
    generator : str or component
        How the proxies of a class are made, such as `mean` or `kmeans(k=50)`.
    aggregator : str or component
        How proxies decide: `kernel` (together, by one small linear system), `max` or `nearest(m=5)`.
    calibrate : bool
        Whether to calibrate the model by five-fold cross-validation: `expected_accuracy_`, calibrated probabilities,
        and `known`. The model then holds up to 100 rows of every class.
    class_weight : dict, "balanced" or None
        Factors of the weights of the rows of each class, as in scikit-learn. `balanced` gives every class the same
        total weight. It changes what depends on the number of rows (`kernel`), not a mean.
    random_state : int, numpy.random.RandomState or None
        An int makes results repeat; the random numbers of a class depend on it and on the class's label alone.

    Attributes
    ----------
    classes_ : array of the labels, sorted
    proxies_ : Proxies
        `weights` (p, d), `labels` (p,) as indices into `classes_`, `mass` (p,), the rows each stands for, and
        `spread` (p,), their mean squared distance to it.
    n_features_in_ : int
    expected_accuracy_ : float
        With `calibrate=True`: the accuracy to expect on new inputs of these classes. NaN where no row could be
        assessed, because there is one class or every class has one row.
    expected_interval_ : tuple of two floats
        Its 95 % interval; rows that could not be assessed widen it.

    Notes
    -----
    `X` may be a NumPy array or a torch tensor; results come back in kind (text labels always as NumPy). float32 stays
    float32. The fitted state is one immutable value: any number of threads may predict and save while others add and
    forget, and concurrent changes all count.

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
        norm_pre: Any = DEFAULT["norm_pre"],
        generator: Any = DEFAULT["generator"],
        norm_post: Any = DEFAULT["norm_post"],
        norm_inf: Any = DEFAULT["norm_inf"],
        aggregator: Any = DEFAULT["aggregator"],
        calibrate: bool = False,
        class_weight: Any = None,
        random_state: Any = 0,
    ):
        self.norm_pre = norm_pre
        self.generator = generator
        self.norm_post = norm_post
        self.norm_inf = norm_inf
        self.aggregator = aggregator
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.random_state = random_state

    # Learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Imprint every class in `y`, in sorted order, forgetting whatever was there before.

        A row of weight 2 counts as the same row given twice; a row of weight 0 is left out.
        """
        method = self._method()
        X, y, weight, columns = self._labelled("fit(X, y)", X, y, sample_weight, None)
        head = self._empty(method, dtype_name(X)).learn(X, y, weight)
        try:
            head.prepared  # noqa: B018 - what cannot be prepared is refused here, not by the first prediction
        except ParameterError as e:
            raise ParameterError(f"fit(X, y) with {len(X)} sample{'s' * (len(X) > 1)}: {e}") from None
        warn_of_small_samples(head.folds)
        self._learnt = FittedState(head, columns)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Imprint more: new classes as one `fit` over all of them would have, bit for bit; known classes extended.

        Extending is exact for `mean`, `all`, `random` and `least_squares`; the other generators say in their own
        documentation what they do with the rows they kept and the new ones. With `norm_post="quantile"` the order in
        which classes arrive matters, by definition. `classes` is accepted for scikit-learn's sake and not needed.
        """
        refuse_balanced("partial_fit(X, y)", self.class_weight)

        def learn(learnt: FittedState | None) -> FittedState:
            rows, labels, weight, columns = self._labelled("partial_fit(X, y)", X, y, sample_weight, learnt)
            if learnt is not None:
                return learnt._replace(head=learnt.head.learn(rows, labels, weight))
            return FittedState(self._empty(self._method(), dtype_name(rows)).learn(rows, labels, weight), columns)

        compare_and_set(self, "_learnt", learn)
        return self

    def forget(self, label: Any) -> Self:
        """Drop a class, exactly as if it had never been seen."""
        self._known()
        refuse_balanced(f"forget({label!r})", self.class_weight)
        compare_and_set(self, "_learnt", lambda learnt: learnt._replace(head=learnt.head.forget(plain(label))))
        return self

    # Deciding

    def decision_function(self, X: Any) -> Any:
        """Class scores (n, C); for two classes, as scikit-learn does, the second's lead over the first (n,)."""
        S = self._scores("decision_function(X)", X)[1]
        return like(S[:, 1] - S[:, 0] if S.shape[1] == 2 else S, X)

    def predict(self, X: Any) -> Any:
        """The label with the largest score; on a tie the first in `classes_`."""
        head, rows = self._queries("predict(X)", X)
        try:
            return labels_at(head.classes, head.winners(rows), X)
        except ParameterError as e:
            raise ParameterError(f"predict(X): {e}") from None

    def predict_proba(self, X: Any) -> Any:
        """Probabilities (n, C): calibrated with `calibrate=True`, otherwise those of the aggregator."""
        head, S = self._scores("predict_proba(X)", X)
        return like(head.probabilities(S), X)

    def known(self, X: Any) -> Any:
        """For every row the p-value that it belongs to a class this model knows, in (0, 1]; needs `calibrate=True`.

        Refusing rows below 0.05 refuses about 5 % of the rows that do belong, over all classes together.
        """
        head, rows = self._queries("known(X)", X)
        warn_of_small_samples(head.folds, of_known=True)
        try:
            return like(head.known(rows), X)
        except ParameterError as e:
            raise ParameterError(f"known(X): {e}") from None

    def suggest(self, X_pool: Any, n: int = 10) -> Suggestions:
        """Row numbers of the unlabelled pool, most useful to label first, with `reasons`; see `imprint.active`."""
        head, rows = self._queries("suggest(X_pool)", X_pool)
        return suggest(rows, n, head=head)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows whose predicted label is the given one."""
        return float(accuracy_score(to_numpy(y), to_numpy(self.predict(X)), sample_weight=sample_weight))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, whole or not at all. It holds no code: safetensors and JSON."""
        head, columns = self._known()
        document, arrays = head_to_parts(head)
        if columns is not None:
            document["features"] = list(columns)
        document |= {"kind": "classifier", "card": model_card(head, "embedding", None).markdown()}
        document["class_weight"] = "balanced" if self.class_weight == "balanced" else None
        container.write(path, document, arrays, lambda again, its_arrays: head_from_parts(again, its_arrays, path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model written by `save`; a damaged, altered or foreign file is refused."""
        document, arrays = container.read(path)
        if document.get("kind") == "imprinter":
            raise FileError(f"{path} is a model with a backbone: use Imprinter.load({str(path)!r}).classifier.")
        head, columns = head_from_parts(document, arrays, path), read_columns(document.get("features"), path)
        if columns is not None and len(columns) != head.width:
            raise container.foreign(path)
        class_weight = "balanced" if document.get("class_weight") == "balanced" else None
        return cls.of_head(head, columns).set_params(class_weight=class_weight)

    @classmethod
    def of_head(cls, head: Head, columns: tuple[str, ...] | None = None) -> Self:
        """The scikit-learn face of something learnt elsewhere."""
        self = cls(**as_parameters(head.method), calibrate=head.folds is not None, random_state=head.seed)
        self._learnt = FittedState(head, columns)
        return self

    # Internal

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(ParameterError):  # with few features, quantiles leave proxies hardly a difference
            tags.classifier_tags.poor_score = self._method().norm_post.uses_reference
        return tags

    def _empty(self, method: Method, dtype: str) -> Head:
        if not isinstance(self.calibrate, bool | np.bool_):
            raise ParameterError(f"ImprintClassifier(calibrate={self.calibrate!r}): calibrate must be True or False.")
        seed = read_seed(self.random_state)
        return Head(method, seed, dtype, folds=CrossValidation.new(method, seed, dtype) if self.calibrate else None)

    def _labelled(self, call: str, X: Any, y: Any, weight: Any, learnt: FittedState | None) -> Any:
        """Rows, labels and weights that fit what was learnt, or any where nothing was, and the names of the columns."""
        if y is None:
            raise ParameterError(f"{call}: requires y to be passed, but the target y is None.")
        columns = Columns() if learnt is None else Columns(learnt.head.width, learnt.columns)
        rows = columns.read(call, X, FLOATS if learnt is None else learnt.head.dtype)
        labels = read_labels(call, y, len(rows))
        if learnt is not None:
            check_same_kind(learnt.head.label_type, labels)
        return *weighted(call, rows, labels, weight, self.class_weight), columns.names

    def _queries(self, call: str, X: Any) -> tuple[Head, Array]:
        """The head of this moment, and rows that were checked against it."""
        head, names = self._known()
        return head, Columns(head.width, names).read(call, X, head.dtype if on_gpu(X) else FLOATS)

    def _scores(self, call: str, X: Any) -> tuple[Head, Array]:
        head, rows = self._queries(call, X)
        S = head.scores(rows)
        if not all_finite(S):
            rule = "scale the rows down or use norm_inf='l2'"
            raise ParameterError(f"{call}: the scores overflow {dtype_name(S)}; {rule}.")
        return head, S
