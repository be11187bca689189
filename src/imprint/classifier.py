"""`ImprintClassifier`: every method of the framework behind one scikit-learn estimator."""

import os
from contextlib import suppress
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from imprint import persistence
from imprint.core.errors import FileError, ParameterError
from imprint.core.family import unknown
from imprint.core.inkind import like, to_numpy
from imprint.core.types import Array, Proxies
from imprint.memory import LABEL_KINDS, Memory, as_labels, plain, states_in
from imprint.method import Method

PARTS = ("norm_pre", "generator", "norm_post", "norm_inf", "aggregator")


class ImprintClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classify embeddings by proxies made from the embeddings of each class, with no gradient steps.

    Parameters
    ----------
    norm_pre, norm_post, norm_inf : str or component
        How rows are scaled before generation (`none`, `l2`), how proxies are (`none`, `l2`, `quantile`), and how
        queries are (`none`, `l2`).
    generator : str or component
        How the proxies of a class are made, such as `mean` or `kmeans(k=20)`.
    aggregator : str or component
        How proxies decide: `max` or `nearest(m=5)`.
    random_state : int, numpy.random.RandomState or None
        An int makes results repeat; the random numbers of a class depend on it and on the class's label alone.

    Attributes
    ----------
    classes_ : array of the labels, sorted
    proxies_ : Proxies
        `weights` (p, d), and `labels` (p,), indices into `classes_`.
    n_features_in_ : int

    Notes
    -----
    `X` may be a NumPy array or a torch tensor; results come back in kind (text labels always as NumPy). float32 stays
    float32. Everything a class needs to be extended or forgotten travels with the model.

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
        norm_pre: Any = "l2",
        generator: Any = "kmeans(k=20)",
        norm_post: Any = "l2",
        norm_inf: Any = "l2",
        aggregator: Any = "max",
        random_state: Any = None,
    ):
        self.norm_pre = norm_pre
        self.generator = generator
        self.norm_post = norm_post
        self.norm_inf = norm_inf
        self.aggregator = aggregator
        self.random_state = random_state

    # Learning

    def fit(self, X: Any, y: Any) -> Self:
        """Imprint every class in `y`, in sorted order, forgetting whatever was there before."""
        method = self._method()
        X, y = self._labelled("fit(X, y)", X, y, reset=True)
        fresh = Memory(method, _seed(self.random_state), X.dtype)
        fresh.imprint(X, y)
        try:
            method.aggregator.check(fresh.proxies)
        except ParameterError as e:
            raise ParameterError(f"fit(X, y) with {len(X)} sample{'s' * (len(X) > 1)}: {e}") from None
        return self._take(fresh)

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Imprint more: new classes as one `fit` over all of them would have, bit for bit; known classes extended.

        Extending is exact for `mean`, `all`, `random` and `least_squares`; the other generators say in their own
        documentation what they do with the rows they kept and the new ones. With `norm_post="quantile"` the order in
        which classes arrive matters, by definition. `classes` is accepted for scikit-learn's sake and not needed.
        """
        known = getattr(self, "_memory", None)
        method = self._method() if known is None else known.method
        if known is None:
            X, y = self._labelled("partial_fit(X, y)", X, y, reset=True)
            known = Memory(method, _seed(self.random_state), X.dtype)
        else:
            X, y = self._labelled("partial_fit(X, y)", X, y, reset=False, dtype=known.dtype)
            _same_kind(known.classes, y)
            known = known.copy()
        known.imprint(X, y)
        return self._take(known)

    def forget(self, label: Any) -> Self:
        """Drop a class, exactly as if it had never been seen."""
        check_is_fitted(self)
        key = plain(label)
        if key not in self._memory.states:
            raise unknown("class", key, map(str, self.classes_))
        if len(self._memory.states) == 1:
            raise ParameterError(f"forget({key!r}): it is the only class; a classifier needs at least one.")
        memory = self._memory.copy()
        memory.drop(key)
        return self._take(memory)

    # Deciding

    def decision_function(self, X: Any) -> Any:
        """Class scores (n, C); for two classes, as scikit-learn does, the second's lead over the first (n,)."""
        S = self._scores("decision_function(X)", X)
        return like(S[:, 1] - S[:, 0] if S.shape[1] == 2 else S, X)

    def predict(self, X: Any) -> Any:
        """The label with the largest score; on a tie the first in `classes_`."""
        winners = self._scores("predict(X)", X).argmax(axis=1)
        return like(self.classes_[winners], X)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities (n, C): the softmax of the scores for `max`, the share of the votes for `nearest`."""
        S = self._scores("predict_proba(X)", X)
        return like(self._memory.method.probabilities(S, self._memory.reach), X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows whose predicted label is the given one."""
        return float(accuracy_score(to_numpy(y), to_numpy(self.predict(X)), sample_weight=sample_weight))

    # Keeping

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, whole or not at all. It holds no code: safetensors and JSON."""
        check_is_fitted(self)
        persistence.write(path, *self.to_parts())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model written by `save`; a damaged, altered or foreign file is refused."""
        document, arrays = persistence.read(path)
        if document.get("kind") == "imprinter":
            raise FileError(
                f"{path} is a model with a backbone: use Imprinter.load; its `classifier` is what you want."
            )
        return cls.from_parts(document, arrays, source=str(path))

    def to_parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """The fitted model as a JSON document and named arrays."""
        memory = self._memory
        document = {
            "kind": "classifier",
            "parts": {part: str(getattr(memory.method, part)) for part in PARTS},
            "seed": memory.seed,
            "dtype": memory.dtype.name,
            "width": self.n_features_in_,
            "labels": {"type": self.classes_.dtype.str, "imprinted": list(memory.states)},
        }
        if hasattr(self, "feature_names_in_"):
            document["features"] = self.feature_names_in_.tolist()
        arrays = {f"state.{i}.{k}": v for i, s in enumerate(memory.states.values()) for k, v in s.items()}
        return document, {**arrays, "weights": self.proxies_.weights, "owners": self.proxies_.labels}

    @classmethod
    def from_parts(cls, document: dict[str, Any], arrays: dict[str, Array], source: str = "model") -> Self:
        """The model that `to_parts` described."""
        try:
            self = cls(**{part: document["parts"][part] for part in PARTS}, random_state=document["seed"])
            labels = as_labels(document["labels"]["imprinted"], np.dtype(document["labels"]["type"]))
            memory = Memory(self._method(), _seed(document["seed"]), document["dtype"])
            memory.states = dict(zip(map(plain, labels), states_in(arrays, len(labels))))
            memory.classes, memory.proxies = np.unique(labels), Proxies(arrays["weights"], arrays["owners"])
            self.n_features_in_ = int(document["width"])
            memory.verify(self.n_features_in_, arrays)
            if "features" in document:
                self.feature_names_in_ = _names(document["features"], self.n_features_in_)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise persistence.foreign(source) from None
        return self._take(memory)

    # Within

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(ParameterError):  # with few features, quantiles leave proxies hardly a difference
            tags.classifier_tags.poor_score = self._method().norm_post.uses_reference
        return tags

    def _method(self) -> Method:
        return Method.of(**{part: getattr(self, part) for part in PARTS})

    def _take(self, memory: Memory) -> Self:
        self._memory, self.classes_, self.proxies_ = memory, memory.classes, memory.proxies
        return self

    def _rows(self, call: str, X: Any, reset: bool, dtype: Any = (np.float64, np.float32)) -> Array:
        try:
            with np.errstate(over="ignore"):  # what does not fit the type becomes infinite and is refused
                return np.asarray(validate_data(self, to_numpy(X), reset=reset, dtype=dtype, order="C"))
        except ValueError as e:
            raise _in_one_sentence(call, e) from None

    def _labelled(self, call: str, X: Any, y: Any, **reading: Any) -> tuple[Array, Array]:
        if y is None:
            raise ParameterError(f"{call}: requires y to be passed, but the target y is None.")
        X = self._rows(call, X, **reading)
        try:
            y = column_or_1d(to_numpy(y), warn=True)
            if y.dtype == object:
                kinds = sorted({type(plain(v)).__name__ for v in y})
                if len(kinds) > 1:
                    raise ValueError(f"y mixes labels of the types {', '.join(kinds)}")
                y = np.array(list(y))
            assert_all_finite(y, input_name="y")
            check_classification_targets(np.repeat(np.unique(y), 2))  # once each looks like a regression to it
            if y.dtype.kind not in LABEL_KINDS:
                raise ValueError(f"labels of the type {y.dtype} cannot be kept; give text or whole numbers")
        except (ValueError, TypeError) as e:
            raise _in_one_sentence(call, e) from None
        if len(y) != len(X):
            raise ParameterError(f"{call}: X has {len(X)} rows and y has {len(y)} labels; they must be as many.")
        return X, y

    def _scores(self, call: str, X: Any) -> Array:
        check_is_fitted(self)
        memory = self._memory
        S = memory.method.scores(self._rows(call, X, reset=False), memory.proxies, len(memory.classes))
        if not np.isfinite(S).all():
            raise ParameterError(f"{call}: the scores overflow {S.dtype}; scale the rows down or use norm_inf='l2'.")
        return S


def _names(features: list[str], width: int) -> Array:
    if len(features) != width or not all(isinstance(name, str) for name in features):
        raise ValueError
    return np.array(features, dtype=object)


def _seed(random_state: Any) -> int:
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError:
        raise ParameterError(
            f"random_state={random_state!r}: random_state must be an int >= 0, a numpy RandomState or None."
        ) from None


def _same_kind(classes: Array, y: Array) -> None:
    text = [a.dtype.kind in "US" for a in (classes, y)]
    if text[0] != text[1]:
        raise ParameterError(
            f"partial_fit(X, y): y holds {'text' if text[1] else 'number'} labels, the model "
            f"{'text' if text[0] else 'number'} labels; they must be of one kind."
        )


def _in_one_sentence(call: str, error: Exception) -> ParameterError:
    first = str(error).splitlines()[0].rstrip(".:")
    hint = "; Reshape your data with X.reshape(1, -1) if it is one row" if "Expected 2D array" in first else ""
    return ParameterError(f"{call}: {first}{hint}.")
