"""Model files with a valid checksum and arbitrary content: refused in one sentence, or loaded as a working model."""

import os
import time
from functools import cache

import numpy as np
import pytest

from imprint import ImprintClassifier, Imprinter
from imprint.core.errors import ImprintError
from imprint.core.files import container
from imprint.estimator.persistence import head_to_parts

FILES = 2240  # some are unchanged by chance
LONGEST = 5.0  # maximum seconds per file
METHODS = [
    ("mean", "max"),
    ("kmeans(k=2)", "kernel"),
    ("kmedoids(k=2)", "kernel"),
    ("random(k=2)", "nearest(m=2)"),
    ("covmax(k=2)", "max"),
    ("fps(k=2)", "nearest(m=1, metric='cosine')"),
    ("all", "kernel"),
    ("least_squares", "max"),
    ("k_least_squares(k=2)", "nearest(m=2, weighting='uniform')"),
]
LABELS = (
    np.array(["ant", "bee", "cow"]),
    np.array([3, 5, 9]),
    np.array([0.0, 1.0, 2.0]),
)
NEW = {"U": "zebra", "i": 77, "f": 77.0}
RNG = np.random.default_rng(0)
X, Q = RNG.normal(size=(15, 3)), RNG.normal(size=(4, 3))


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def original(which: int):
    return _original(
        which % 162
    )  # methods, types of labels and numbers, calibrated or not


@cache
def _original(which: int):
    """The document and arrays of a small model."""
    generator, aggregator = METHODS[which % len(METHODS)]
    labels, dtype = LABELS[which % 3], (np.float32, np.float64)[which % 2]
    post = ("none", "l2", "quantile")[which % 3 if aggregator != "kernel" else 0]
    knows_itself = which // len(METHODS) % 3 == 0
    clf = ImprintClassifier(
        generator=generator,
        aggregator=aggregator,
        norm_post=post,
        calibrate=knows_itself,
        random_state=1,
    )
    clf.fit(X.astype(dtype), labels[np.arange(15) % 3])
    document, arrays = head_to_parts(clf.head_)
    return {**document, "kind": "classifier"}, arrays


VALUES = [
    None,
    True,
    -1,
    0,
    1,
    3,
    2**31,
    2**63,
    2**64,
    -(10**30),
    0.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
]
VALUES += [
    "mean",
    "kmeans(k=2)",
    "kernel(noise=1e-300)",
    "nearest(m=9)",
    "float16",
    "<U1",
    "|O",
    "<f8",
    "<i8",
]
VALUES += [[], {}, [[]]]
NUMBERS = [
    0.0,
    -1.0,
    0.5,
    1e-320,
    1e-30,
    1e30,
    1e160,
    1e308,
    -1e308,
    np.nan,
    np.inf,
    -np.inf,
    2.0**53,
    2.0**60,
]
TYPES = ["f2", "f4", "f8", "i1", "i8", "u1", "u8", "?"]


def change_document(value, draw):
    """Replace, remove or duplicate a random part of a JSON value."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = list(value)[draw.integers(len(value))]
        if draw.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: change_document(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.8:
        at = draw.integers(len(value))
        other = [*value[:at], junk(draw), *value[at + 1 :]]
        return draw_one([value[:at], value + value[at:], value[::-1], other], draw)
    return junk(draw)


def draw_one(options, draw):
    return options[draw.integers(len(options))]


def junk(draw):
    return draw_one(VALUES, draw)


def change_arrays(arrays, draw):
    """Remove, rename or change one array (type, shape or values), or add one."""
    name = draw_one(sorted(arrays), draw)
    array, rest = arrays[name], {k: v for k, v in arrays.items() if k != name}
    kind = draw.integers(14)  # mostly changed values, which are hard to detect
    with np.errstate(all="ignore"):
        if kind == 0:
            return rest
        if kind == 1:
            return {
                **rest,
                draw_one(
                    [name + "x", "state/more/values", "state//values", "weights"], draw
                ): array,
            }
        if kind == 2:
            return {**arrays, name: array.astype(draw_one(TYPES, draw))}
        if kind == 3:
            return {
                **arrays,
                name: array.reshape(
                    draw_one([(-1,), (1, -1), (-1, 1), (1, 1, -1)], draw)
                ),
            }
        if kind == 4:
            twice = np.concatenate([array, array])
            return {
                **arrays,
                name: draw_one([array[:0], array[:-1], array[::-1], twice], draw),
            }
        if kind == 5:
            return {**arrays, name: arrays[draw_one(sorted(arrays), draw)]}
        if kind == 6:
            return {**arrays, name: array * array.dtype.type(draw_one([0, 2, 3], draw))}
        values = array.copy()
        if not values.size:
            return rest
        if array.dtype.kind == "f":
            values[...] = draw_one(NUMBERS, draw) if kind == 7 else values
            values.flat[draw.integers(values.size)] = draw_one(NUMBERS, draw)
        else:
            number = np.array(draw_one([-1, 0, 1, 7, 2**31, 2**62], draw)).astype(
                array.dtype
            )
            values.flat[draw.integers(values.size)] = number
        return {**arrays, name: values}


def mutant(seed: int):
    draw = np.random.default_rng(seed)
    document, arrays = original(seed)
    for _ in range(draw_one([1, 1, 2], draw)):
        if draw.random() < 0.3:
            changed = change_document(document, draw)
            document = changed if isinstance(changed, dict) else document
        else:
            arrays = change_arrays(arrays, draw)
    return document, arrays


def same(one, other):
    (document, arrays), (other_document, others) = one, other
    return document == other_document and {
        k: (a.dtype, a.shape, a.tobytes()) for k, a in arrays.items()
    } == {k: (a.dtype, a.shape, a.tobytes()) for k, a in others.items()}


def live(path):
    """Load a model and use it; True if it was loaded, False if it was refused in one sentence."""
    try:
        clf = ImprintClassifier.load(path)
    except ImprintError as e:
        one_sentence(e)
        return False
    width, kind = clf.n_features_in_, clf.classes_.dtype.kind
    rows, queries = np.resize(X, (3, width)), np.resize(Q, (4, width))
    again = path.with_name("again")
    for step in (
        lambda: sound(clf, queries),
        lambda: (clf.save(again), agree(clf, ImprintClassifier.load(again), queries)),
        lambda: clf.partial_fit(rows, np.repeat(clf.classes_[:1], 3)),
        lambda: sound(clf, queries),
        lambda: clf.partial_fit(rows, [NEW.get(kind, 1)] * 3),
        lambda: sound(clf, queries),
        lambda: clf.forget(clf.classes_[-1]),
        lambda: (clf.save(again), agree(clf, ImprintClassifier.load(again), queries)),
    ):
        try:
            step()
        except ImprintError as e:
            one_sentence(e)
    return True


def one_sentence(error):
    assert "\n" not in str(error)
    assert str(error).endswith(".")


def sound(clf, queries):
    P, labels = clf.predict_proba(queries), clf.predict(queries)
    assert np.isfinite(P).all()
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-3)
    assert set(labels.tolist()) <= set(clf.classes_.tolist())
    if clf.head_.folds is not None:
        p = clf.known(queries)
        assert ((p > 0) & (p <= 1)).all()
        assert 0 <= clf.expected_accuracy_ <= 1


def agree(clf, back, queries):
    assert np.array_equal(
        clf.decision_function(queries), back.decision_function(queries)
    )
    assert np.array_equal(clf.classes_, back.classes_)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("block", range(8))
def test_files_with_a_valid_checksum_and_random_changes(block, tmp_path):
    path, loaded, changed = tmp_path / "m", 0, 0
    for seed in range(block, FILES, 8):
        document, arrays = mutant(seed)
        try:
            container.write(path, document, arrays)
        except (TypeError, ValueError, KeyError):
            continue  # invalid JSON or safetensors
        changed += not same(original(seed), (document, arrays))
        start = time.monotonic()
        try:
            loaded += live(path)
        except Exception as e:
            raise AssertionError(f"file {seed}") from e
        assert time.monotonic() - start < LONGEST, f"file {seed}"
    assert changed >= 250, "too few files"
    assert 10 < loaded < FILES // 8 - 50, (
        "the mutants must neither all be refused nor all be harmless"
    )


@cache
def images():
    """The document and arrays of a model that stores exemplars for its proxies."""
    model = Imprinter("embeddings", generator="kmeans(k=2)").fit(
        (X, np.array(["ant", "bee", "cow"])[np.arange(15) % 3])
    )
    document, arrays = model.state.to_parts()
    return {**document, "kind": "classifier"}, arrays


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_files_with_a_valid_checksum_and_random_exemplars(tmp_path):
    path, loaded = tmp_path / "m", 0
    for seed in range(300):
        draw = np.random.default_rng(seed)
        document, arrays = images()
        if draw.random() < 0.5:
            document = {
                **document,
                "images": change_document(document["images"], draw),
            }
        else:
            exemplars = {k: v for k, v in arrays.items() if k.startswith("images")}
            arrays = {
                **{k: v for k, v in arrays.items() if k not in exemplars},
                **change_arrays(exemplars, draw),
            }
        container.write(path, document, arrays)
        try:
            model = Imprinter.load(path)
            loaded += 1
            assert len(model.why(X[0], 6)) == 6
            model.add((X[:2], ["dog", "ant"])).forget("bee").save(path)
            assert len(Imprinter.load(path).why(X[0], 3)) == 3
        except ImprintError as e:
            one_sentence(e)
    assert 5 < loaded < 250
