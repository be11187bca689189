"""A head as a JSON document and named arrays, which `core.files.container` stores in
one safe file.

The states of classes are stacked (see `core.layout`). Proxies are stored only if they
depend on several classes. What the aggregator prepared is stored too, where that takes
long. A calibrated head also stores its calibration, the rows of cross-validation and,
for classes with more rows than it keeps, the states of the folds. Proxies that are such
rows are stored only once, as rows.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from imprint.aggregators._base import ProxySource
from imprint.calibration import (
    Calibration,
    CrossValidation,
    SharedCalibration,
    held,
)
from imprint.calibration.held import FOLDS, SHARED
from imprint.core.arrays import Array, plain
from imprint.core.blocks import read_blocks
from imprint.core.component import PARTS
from imprint.core.errors import FileError, ParameterError, require
from imprint.core.files.container import reading
from imprint.core.label_sets import indicator
from imprint.core.labels import KINDS, as_labels, kind_of
from imprint.core.layout import MAX_AXIS_LENGTH, to_arrays, to_states
from imprint.estimator.deferred import (
    DeferredProxies,
    DeferredStates,
    deferred_proxies,
)
from imprint.generators._base import PerClassGenerator
from imprint.head import Head
from imprint.head.head import build_proxies
from imprint.method import FAMILIES, ClassState, Method
from imprint.tags import TagCalibration, TagHead

# of the labels as an array, in which every entry is as wide as the longest label
MAX_LABEL_BYTES = 2**28
HEAD_KEYS = (
    "parts",
    "blocks",
    "seed",
    "dtype",
    "width",
    "labels",
    "calibration",
    "keep_rows",
    "shared",
    "tags",
    "tree",
)
MODEL_KEYS = (
    "kind",
    "written_by",
    "features",
    "backbone",
    "images",
    "kept",
    "card",
    "names",
    "class_weight",
)
"""The keys of a document: those of a head, and those of models that contain a head."""
# the prefix of the names of arrays that belong to exemplar images
IMAGES = "images."
# the prefix of the names of arrays that the aggregator prepared
SOLUTION = "solution/"
STACK_ENDINGS = ("values", "shapes")


def head_to_parts(head: Head | TagHead) -> tuple[dict[str, Any], dict[str, Array]]:
    """A head as a JSON document and named arrays; refused if it could not be read
    again.
    """
    if isinstance(head, TagHead):
        document, arrays = _imprinted_to_parts(head.imprinted)
        numbers, calibration = head.calibration.to_parts()
        document["tags"] = {"labels": list(head.labels), **numbers}
        return document, {**arrays, **calibration, **_solution_to_arrays(head)}
    document, arrays = _imprinted_to_parts(head)
    return document, {**arrays, **_solution_to_arrays(head)}


def _solution_to_arrays(head: Head | TagHead) -> dict[str, Array]:
    """What the aggregator prepared, computed from scratch: the file of a model does not
    depend on how it became what it is.
    """
    aggregator = head.aggregator
    if not aggregator.stored_names:
        return {}
    prepared = head.prepared
    if not aggregator.is_fresh(prepared):
        prepared = replace(head).prepared
    stored = aggregator.stored(prepared)
    return {f"{SOLUTION}{name}": array for name, array in stored.items()}


def _restore_solution(
    head: Head | TagHead,
    arrays: dict[str, Array],
    deferred: DeferredProxies | None,
) -> None:
    """Let a head use what the aggregator prepared before it was saved."""
    stored = {
        name.removeprefix(SOLUTION): array
        for name, array in arrays.items()
        if name.startswith(SOLUTION)
    }
    # files of very large models have none, those of earlier versions have others
    if not head.aggregator.is_complete(stored):
        return
    if deferred is None:
        rows = ProxySource.of(head.imprinted.proxies)
    else:
        rows = deferred.source(lambda: head.imprinted.proxies)
    prepared = head.aggregator.restored(rows, stored, len(head))
    head.derived.put("prepared", prepared)


def _imprinted_to_parts(head: Head) -> tuple[dict[str, Any], dict[str, Array]]:
    """A head of classes, without what the aggregator prepared."""
    document = {
        "parts": {
            part: FAMILIES[part].stored_text(getattr(head.method, part))
            for part in PARTS
        },
        "seed": head.seed,
        "dtype": head.dtype.name,
        "width": head.width,
        "labels": list(head.labels),
    }
    if head.method.blocks:
        document["blocks"] = list(head.method.blocks)
    if head.tree_of_labels is not None:
        document["tree"] = head.tree_of_labels
    if head.folds is not None and head.folds.keep_rows:
        document["keep_rows"] = True
    states, arrays = head.states, dict[str, Array]()
    if head.folds is not None:
        document["calibration"], arrays = head.folds.calibration.to_parts()
    if head.folds is not None and not head.folds.has_rows:
        document["shared"] = True
    elif head.folds is not None:
        held_rows = [head.folds.held[label] for label in head.labels]
        shared = [
            held.share_rows(state.summary, rows.rows, head.method.blocks)
            for state, rows in zip(states, held_rows)
        ]
        states = tuple(
            ClassState(rest, state.sums) for (rest, _), state in zip(shared, states)
        )
        arrays |= to_arrays(SHARED, [references for _, references in shared])
        arrays |= to_arrays("held", [rows.to_state() for rows in held_rows])
        large = [i for i, rows in enumerate(held_rows) if not rows.complete]
        for f in range(FOLDS):
            arrays[f"fold{f}/classes"] = np.array(large, dtype=np.int64)
            arrays |= _states_to_arrays(
                [head.folds.fitted[head.labels[i]][f] for i in large], f"fold{f}/"
            )
    if not head.method.per_class:
        arrays |= {
            "weights": head.proxies.weights,
            "sizes": np.bincount(head.proxies.labels),
        }
    return document, {**arrays, **_states_to_arrays(states)}


def _states_to_arrays(
    states: Sequence[ClassState], prefix: str = ""
) -> dict[str, Array]:
    """The states of classes as arrays whose names start with `prefix`."""
    summaries, sums = (
        [state.summary for state in states],
        [state.sums for state in states],
    )
    return {
        **to_arrays(f"{prefix}state", summaries),
        **to_arrays(f"{prefix}sums", sums),
    }


def head_from_parts(
    document: dict[str, Any], arrays: dict[str, Array], source: str | os.PathLike[str]
) -> Head | TagHead:
    """The head from the document and arrays of `head_to_parts`; anything else is
    refused.

    The caller reads what else the document holds: features, exemplars and pre-trained
    classes.
    """
    with reading(source):
        method = _method(document)
        if unknown := _unknown_names(method, document, arrays):
            raise FileError(
                f"{source}: it holds {unknown[0]!r}, which this version of imprint does"
                " not know; fit the model again, or use the version that wrote it"
                f" ({document.get('written_by', 'unknown')!r:.20})."
            )
        deferred = deferred_proxies(method, document, arrays, SOLUTION)
        if deferred is None:
            arrays = held.unshare_rows(arrays, method.blocks)
        head: Head | TagHead = _head(method, document, arrays, deferred, source)
        if "tags" in document:
            head = _tag_head(head.imprinted, dict(document["tags"]), arrays)
        _restore_solution(head, arrays, deferred)
        return head


def _method(document: dict[str, Any]) -> Method:
    """The method that a document names."""
    components = {
        part: FAMILIES[part].restore(str(document["parts"][part])) for part in PARTS
    }
    blocks = document.get("blocks")
    if blocks is not None:
        require(isinstance(blocks, list) and len(blocks) > 1)
        require(sum(read_blocks(blocks)) == document["width"])
    return Method.of(**components, blocks=blocks)


def _unknown_names(
    method: Method, document: dict[str, Any], arrays: dict[str, Array]
) -> list[str]:
    """The unknown names in a file, in order."""
    stacks = "state|sums"
    single = set() if method.per_class else {"weights", "sizes"}
    if "calibration" in document:
        single |= {*Calibration.array_names()}
    if "calibration" in document and not document.get("shared"):
        stacks = rf"(fold[0-{FOLDS - 1}]/)?(state|sums)|held|{SHARED}"
        single |= {f"fold{f}/classes" for f in range(FOLDS)}
    if "tags" in document:
        single |= {*TagCalibration.array_names()}
    single |= {f"{SOLUTION}{name}" for name in method.aggregator.stored_names}

    def is_known(name: str) -> bool:
        array, _, end = name.rpartition("/")
        is_paired = end in STACK_ENDINGS and all(
            f"{array}/{e}" in arrays for e in STACK_ENDINGS
        )
        is_stack = is_paired and re.match(rf"({stacks})/", name) is not None
        return (
            is_stack
            or name in single
            or (name.startswith(IMAGES) and "images" in document)
        )

    tables = [(document, HEAD_KEYS + MODEL_KEYS), (document["parts"], PARTS)]
    keys = [
        key
        for table, known in tables
        if isinstance(table, dict)
        for key in table
        if key not in known
    ]
    return sorted(keys) + sorted(name for name in arrays if not is_known(name))


def _head(
    method: Method,
    document: dict[str, Any],
    arrays: dict[str, Array],
    deferred: DeferredProxies | None,
    source: str | os.PathLike[str],
) -> Head:
    labels, seed, dtype, width = (
        document[key] for key in ("labels", "seed", "dtype", "width")
    )
    require(type(seed) is int and seed >= 0 and dtype in ("float32", "float64"))
    require(type(document.get("tree")) in (bool, type(None)))
    require(type(width) is int and 1 <= width < MAX_AXIS_LENGTH)
    _check_labels(labels)
    empty = Head(
        method,
        seed,
        dtype,
        width=width,
        tree_of_labels=document.get("tree"),
    )
    folds: CrossValidation | SharedCalibration | None = None
    is_shared = document.get("shared", False)
    require((type(is_shared) is bool and "calibration" in document) or not is_shared)
    if is_shared:
        calibration = Calibration.from_parts(document["calibration"], arrays)
        folds = SharedCalibration(calibration)
    elif "calibration" in document:
        folds = _folds(empty, labels, arrays)
        keep_rows = document.get("keep_rows", False)
        require(type(keep_rows) is bool)
        require(not keep_rows or not folds.fitted)
        folds = replace(folds, keep_rows=keep_rows)
        folds.derived.put(
            "calibration", Calibration.from_parts(document["calibration"], arrays)
        )
    if deferred is not None:
        empty = replace(empty, labels=tuple(labels), folds=folds)
        return _deferred_head(empty, arrays, deferred, source)
    states = _states(empty, arrays, len(labels))
    head = replace(empty, labels=tuple(labels), states=states, folds=folds)
    if not method.per_class:
        _restore_weights(head, arrays["weights"], arrays["sizes"])
    with np.errstate(over="ignore"):
        weights = head.proxies.weights
    require(
        weights.dtype.name == dtype
        and weights.shape[1:] == (width,)
        and np.isfinite(weights).all()
    )
    return head


def _deferred_head(
    empty: Head,
    arrays: dict[str, Array],
    deferred: DeferredProxies,
    source: str | os.PathLike[str],
) -> Head:
    """The head with states that are computed when they are needed."""
    count = len(empty.labels)
    # the proxies have no values yet; everything else is checked now
    _states(empty, deferred.with_placeholders(arrays), count)

    def compute() -> tuple[ClassState, ...]:
        with reading(source):
            everything = held.unshare_rows(arrays, empty.method.blocks)
            return _states(empty, everything, count)

    head = replace(empty, states=DeferredStates(count, compute))
    head.derived.put("proxies_per_class", deferred.sizes)
    return head


def _tag_head(sets: Head, numbers: dict[str, Any], arrays: dict[str, Array]) -> TagHead:
    labels = numbers.pop("labels")
    _check_labels(labels)
    require(kind_of(labels) in ("text", "integer"))
    require(labels == sorted(labels) and "" not in labels and sets.folds is None)
    indicator(sets.classes.tolist(), labels)  # refuses sets of other labels
    head = TagHead(sets, tuple(labels))
    calibration = TagCalibration.from_parts(numbers, arrays)
    require(len(calibration.thresholds) == len(labels))
    head.derived.put("calibration", calibration)
    return head


def _states(
    empty: Head, arrays: dict[str, Array], count: int, prefix: str = ""
) -> tuple[ClassState, ...]:
    """The states of classes, checked against the layouts of the generator and the
    aggregator.
    """
    parts = []
    for kind, component in (
        ("state", empty.method.generator),
        ("sums", empty.method.aggregator),
    ):
        try:
            parts.append(
                to_states(
                    arrays, f"{prefix}{kind}", component.layout, count, empty.width or 0
                )
            )
        except (KeyError, ValueError):
            problem = (
                f"the state of {component} does not have the shapes, types and ranges"
                " that its layout declares"
            )
            raise ParameterError(f"this is not an imprint model; {problem}.") from None
    return tuple(map(ClassState, *parts))


def _folds(empty: Head, labels: list[Any], arrays: dict[str, Array]) -> CrossValidation:
    count = len(labels)
    require(arrays["held/rows/values"].dtype == empty.dtype)
    states = to_states(arrays, "held", held.LAYOUT, count, empty.width or 0)
    rows_of = {
        label: held.from_state(state, empty.seed, label)
        for label, state in zip(labels, states)
    }
    fitted: dict[Any, list[ClassState]] = {
        label: [] for label in labels if not rows_of[label].complete
    }
    for f in range(FOLDS):
        classes = arrays[f"fold{f}/classes"]
        require(
            classes.dtype == np.int64
            and classes.ndim == 1
            and ((classes >= 0) & (classes < count)).all()
        )
        require(len(classes) == len(fitted))
        states_of_fold = (
            _states(empty, arrays, len(classes), f"fold{f}/") if len(classes) else ()
        )
        by_label = dict(zip((labels[i] for i in classes.tolist()), states_of_fold))
        for label in fitted:
            fitted[label].append(by_label[label])
    return CrossValidation(
        empty, rows_of, {label: tuple(states) for label, states in fitted.items()}
    )


def _restore_weights(head: Head, weights: Array, sizes: Array) -> None:
    """Let a head use the stored proxies, which depend on several classes."""
    require(
        sizes.dtype == np.int64 and sizes.shape == (len(head),) and (sizes > 0).all()
    )
    require(weights.ndim == 2 and int(sizes.sum()) == len(weights))
    summaries = [state.summary for state in head.sorted_states()]
    if isinstance(head.method.generator, PerClassGenerator):
        require([len(summary["rows"]) for summary in summaries] == sizes.tolist())
    proxies = build_proxies(summaries, weights, sizes.tolist())
    head.derived.put("proxies", proxies._replace(blocks=head.method.blocks))


def stored_class_weight(class_weight: Any) -> Any:
    """The class weights of an `ImprintClassifier` for a document; those of a dict are
    pairs, because labels need not be text.
    """
    if not isinstance(class_weight, dict):
        return class_weight
    return [[plain(label), float(weight)] for label, weight in class_weight.items()]


def read_class_weight(stored: Any, source: str | os.PathLike[str]) -> Any:
    """The class weights that `stored_class_weight` wrote; anything else is refused."""
    if stored is None or stored == "balanced":
        return stored
    with reading(source):
        require(isinstance(stored, list))
        if stored:
            _check_labels([label for label, _ in stored])
        weights = [weight for _, weight in stored]
        require(all(type(weight) is float and weight >= 0 for weight in weights))
        require(np.isfinite(weights).all())
        return dict(stored)


def _check_labels(labels: Any) -> None:
    """Refuse labels that are not distinct values of one kind."""
    require(isinstance(labels, list) and labels)
    if kind_of(labels) == "text":
        longest = max(len(label) for label in labels if type(label) is str)
        # an array holds every text in as much memory as the longest
        require(4 * len(labels) * longest <= MAX_LABEL_BYTES)
    require({type(label) for label in labels} <= KINDS.keys())
    try:
        array = as_labels(labels)
    except ParameterError:
        raise ValueError from None
    require(array.dtype.kind != "f" or np.isfinite(array).all())
    require(array.tolist() == labels and len(set(labels)) == len(labels))
