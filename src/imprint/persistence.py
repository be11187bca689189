"""A head as a JSON document and named arrays, which `core.files.container` keeps in one safe file.

States of classes are stored together: for each name all values in turn, and a table with a line for each class, its
number and its shape. Proxies are stored only where they do not follow from each class alone. Of a calibrated head also
the states of its folds, which classes each has, the rows held of every class, and what all of it tells, which takes
long to compute.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from imprint.calibration.calibration import Calibration
from imprint.calibration.cross_validation import FOLDS, HELD, CrossValidation
from imprint.calibration.cross_validation import LAYOUT as HELD_LAYOUT
from imprint.calibration.stored import ARRAYS as CALIBRATION_ARRAYS
from imprint.calibration.stored import calibration_from_parts, calibration_to_parts
from imprint.core.errors import FileError, ParameterError
from imprint.core.files.container import foreign, require
from imprint.core.layout import Layout, Stack, fits
from imprint.core.types import Array, State
from imprint.generators._base import PerClassGenerator
from imprint.head import Head
from imprint.method import FAMILIES, PARTS, ClassState, Method

LABELS = {"U": (str,), "b": (bool,), "i": (int,), "u": (int,), "f": (int, float)}
"""The plain types of labels for each kind of NumPy's."""
WIDEST = 2**31
HELD_BY_HEAD = ("parts", "seed", "dtype", "width", "labels", "calibration")
HELD_BESIDE = ("kind", "written_by", "features", "backbone", "pictures", "kept", "card", "names")
"""The keys of a document: those of a head, and those of whoever keeps one in a file."""
PICTURES = "pictures."
"""How the names of arrays begin that remember pictures."""
ENDS = ("values", "shapes")


def head_to_parts(head: Head) -> tuple[dict[str, Any], dict[str, Array]]:
    """A head as a JSON document and named arrays; refuses what could not be read again."""
    document = {
        "parts": head.method.stored_texts(),
        "seed": head.seed,
        "dtype": head.dtype.name,
        "width": head.width,
        "labels": {"type": np.dtype(head.label_type).str, "imprinted": list(head.labels)},
    }
    arrays = _states_to_arrays(head)
    if not head.method.per_class:
        arrays |= {"weights": head.proxies.weights, "sizes": np.bincount(head.proxies.labels)}
    if isinstance(head.folds, CrossValidation):
        document["calibration"], found = calibration_to_parts(head.folds.calibration)
        arrays |= _folds_to_arrays(head.labels, head.folds) | found
    return document, arrays


def _states_to_arrays(head: Head, before: str = "") -> dict[str, Array]:
    """The states of all classes; `before` stands before every name."""
    kept, sums = f"{before}state", f"{before}sums"
    arrays = {**_to_arrays(kept, [s.summary for s in head.states]), **_to_arrays(sums, [s.sums for s in head.states])}
    for component, kind in ((head.method.generator, kept), (head.method.aggregator, sums)):
        if not _fit(arrays, kind, component.layout, len(head), head.width or 0):
            rule = "finite numbers, and as its layout says where it has one"
            raise ParameterError(f"save: what {component} keeps must be {rule}.")
    return arrays


def _folds_to_arrays(labels: Sequence[Any], folds: CrossValidation) -> dict[str, Array]:
    arrays, places = _to_arrays("held", [folds.held[label] for label in labels]), {k: i for i, k in enumerate(labels)}
    for f, head in enumerate(folds.heads):
        arrays[f"fold{f}/classes"] = np.array([places[label] for label in head.labels], dtype=np.int64)
        arrays |= _states_to_arrays(head, f"fold{f}/") if len(head) else {}
    return arrays


def head_from_parts(document: dict[str, Any], arrays: dict[str, Array], source: str | os.PathLike[str]) -> Head:
    """The head that `head_to_parts` described; anything else is refused in one sentence."""
    if "kept" in document:
        raise FileError(f"{source} keeps the classes of its network's own head: use Imprinter.load.")
    try:
        method = Method.of(**{part: FAMILIES[part].restore(str(document["parts"][part])) for part in PARTS})
    except (KeyError, TypeError):
        raise foreign(source) from None
    except ParameterError as e:
        raise FileError(f"{source}: {e}") from None
    if strange := _unknown(method, document, arrays):
        raise FileError(
            f"{source}: it holds {strange[0]!r}, which this imprint does not know and so cannot take into account; fit "
            f"the model again, or use the imprint that wrote it ({document.get('written_by', 'unknown')!r:.20})."
        )
    try:
        return _head(method, document, arrays)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
        raise foreign(source) from None


def _unknown(method: Method, document: dict[str, Any], arrays: dict[str, Array]) -> list[str]:
    """The names in a file that no part of it is read by; in order."""
    calibrated = "calibration" in document
    folds = [f"fold{f}/" for f in range(FOLDS)] if calibrated else []
    kinds = [f"{before}{kind}/" for before in ("", *folds) for kind in ("state", "sums")] + ["held/"] * calibrated
    single = {f"{fold}classes" for fold in folds} | ({*CALIBRATION_ARRAYS} if calibrated else set())
    single |= set() if method.per_class else {"weights", "sizes"}

    def is_known(name: str) -> bool:
        if name in single or (name.startswith(PICTURES) and "pictures" in document):
            return True
        array, _, end = name.rpartition("/")
        return name.startswith(tuple(kinds)) and end in ENDS and all(f"{array}/{e}" in arrays for e in ENDS)

    places = [(document, (*HELD_BY_HEAD, *HELD_BESIDE)), (document["parts"], PARTS)]
    strange = [key for place, known in places if isinstance(place, dict) for key in place if key not in known]
    return sorted(strange) + sorted(name for name in arrays if not is_known(name))


def _head(method: Method, document: dict[str, Any], arrays: dict[str, Array]) -> Head:
    labels, seed, dtype, width = (document[key] for key in ("labels", "seed", "dtype", "width"))
    imprinted = labels["imprinted"]
    require(type(seed) is int and seed >= 0 and dtype in ("float32", "float64"))
    require(type(width) is int and 1 <= width < WIDEST and type(labels["type"]) is str)
    require(_are_labels(imprinted, np.dtype(labels["type"])))
    head = _from_states(Head(method, seed, dtype, (), (), labels["type"], width), arrays, imprinted)
    head = head if method.per_class else _with_weights(head, arrays["weights"], arrays["sizes"])
    with np.errstate(over="ignore"):
        weights = head.proxies.weights
    require(weights.dtype.name == dtype and weights.shape[1:] == (width,) and bool(np.isfinite(weights).all()))
    if "calibration" in document:
        calibration = calibration_from_parts(document["calibration"], arrays, len(head))
        head = replace(head, folds=_folds(head, arrays, calibration))
    return head


def _from_states(empty: Head, arrays: dict[str, Array], labels: list[Any], before: str = "") -> Head:
    """A head with the states of some classes, checked against what its components say of them."""
    method, width, count = empty.method, empty.width or 0, len(labels)
    require(_fit(arrays, f"{before}state", method.generator.layout, count, width))
    require(_fit(arrays, f"{before}sums", method.aggregator.layout, count, width))
    states = tuple(map(ClassState, *(_states(_stacks(arrays, f"{before}{kind}"), count) for kind in ("state", "sums"))))
    return replace(empty, labels=tuple(labels), states=states)


def _folds(head: Head, arrays: dict[str, Array], calibration: Calibration) -> CrossValidation:
    labels = head.labels
    require(_fit(arrays, "held", HELD_LAYOUT, len(labels), head.width or 0))
    held = dict(zip(labels, _states(_stacks(arrays, "held"), len(labels))))
    for state in held.values():
        require(len(state["keys"]) == min(int(state["seen"][0]), HELD) and state["rows"].dtype == head.dtype)
        require(bool((np.diff(state["keys"]) >= 0).all()))
    empty = Head(head.method, head.seed, head.dtype, (), (), head.label_type, head.width)
    heads = []
    for f in range(FOLDS):
        classes = arrays[f"fold{f}/classes"]
        require(classes.dtype == np.int64 and classes.ndim == 1)
        places = classes.tolist()
        require(len(set(places)) == len(places) and all(0 <= i < len(labels) for i in places))
        known = [labels[i] for i in places]
        heads.append(_from_states(empty, arrays, known, f"fold{f}/") if known else empty)
    return CrossValidation(tuple(heads), held, calibration)


def _with_weights(head: Head, weights: Array, sizes: Array) -> Head:
    require(sizes.dtype == np.int64 and sizes.shape == (len(head),) and bool((sizes > 0).all()))
    require(weights.ndim == 2 and int(sizes.sum()) == len(weights))
    if isinstance(head.method.generator, PerClassGenerator):
        rows = {label: len(state.summary["rows"]) for label, state in zip(head.labels, head.states)}
        require([rows[label] for label in sorted(rows)] == sizes.tolist())
    return head.with_weights(weights, sizes)


def _fit(arrays: dict[str, Array], kind: str, layout: Layout | None, count: int, width: int) -> bool:
    try:
        stacks = _stacks(arrays, kind)
    except ValueError:
        return False
    if layout is not None:
        return fits(stacks, layout, count, width)
    return all(s.values.dtype.kind in "biuf" and bool(np.isfinite(s.values).all()) for s in stacks.values())


def _to_arrays(kind: str, states: Sequence[State]) -> dict[str, Array]:
    found = {}
    for name in sorted({name for state in states for name in state}):
        holders = [i for i, state in enumerate(states) if name in state]
        own = [states[i][name] for i in holders]
        if len({(a.dtype, a.ndim) for a in own}) > 1:
            raise ParameterError(f"save: the array {name!r} must have one type and number of axes for every class.")
        found[f"{kind}/{name}/values"] = np.concatenate([a.ravel() for a in own])
        found[f"{kind}/{name}/shapes"] = np.array([(i, *a.shape) for i, a in zip(holders, own)], dtype=np.int64)
    return found


def _stacks(arrays: dict[str, Array], kind: str) -> dict[str, Stack]:
    """What `_to_arrays` made, by name."""
    found: dict[str, Stack] = {}
    for key, values in arrays.items():
        if key.startswith(f"{kind}/") and key.endswith("/values"):
            name = key.removeprefix(f"{kind}/").removesuffix("/values")
            shapes = arrays[key.removesuffix("values") + "shapes"]
            require(values.ndim == 1 and shapes.ndim == 2 and shapes.dtype == np.int64)
            require(bool((shapes >= 0).all()) and bool((shapes < WIDEST).all()))
            require(int(shapes[:, 1:].prod(axis=1).sum()) == len(values) and bool((np.diff(shapes[:, 0]) > 0).all()))
            found[name] = Stack(values, shapes[:, 0], shapes[:, 1:])
    return found


def _states(stacks: dict[str, Stack], count: int) -> list[State]:
    states: list[State] = [{} for _ in range(count)]
    for name, (values, classes, shapes) in stacks.items():
        if len(shapes) and (shapes == shapes[0]).all():
            parts = iter(values.reshape(len(shapes), *shapes[0]))
        else:
            ends = np.cumsum(shapes.prod(axis=1))[:-1]
            parts = (part.reshape(shape) for part, shape in zip(np.split(values, ends), shapes.tolist()))
        for c, part in zip(classes.tolist(), parts):
            states[c][name] = part
    return states


def _are_labels(labels: Any, label_type: np.dtype[Any]) -> bool:
    """Whether labels are distinct plain values that an array of their type gives back."""
    types = LABELS.get(label_type.kind, ())
    if not isinstance(labels, list) or not labels or not all(type(label) in types for label in labels):
        return False
    kept = np.array(labels, dtype=str if label_type.kind == "U" else label_type)
    finite = kept.dtype.kind != "f" or bool(np.isfinite(kept).all())
    return finite and bool(kept.tolist() == labels) and len(set(labels)) == len(labels)
