"""A model that has forgotten a class has the same file, byte for byte, as one that never
saw it.
"""

import numpy as np
import pytest

from imprint import ImprintClassifier, Imprinter

RNG = np.random.default_rng(0)
LABELS = np.array(["ant", "bee", "cat", "a label of thirty-two characters"])
CENTRES = RNG.normal(size=(4, 6))
Y = np.repeat(LABELS, 9)
X = (np.repeat(CENTRES, 9, axis=0) + 0.3 * RNG.normal(size=(36, 6))).astype(np.float32)
WEIGHTED = ["all", "mean", "random(k=4)", "kmeans(k=3)"]
UNWEIGHTED = ["least_squares", "kmedoids(k=3)", "k_least_squares(k=2)", "fps(k=3)"]
QUANTILE = dict(generator="mean", norm_post="quantile", aggregator="max")


def bytes_of(model, folder):
    model.save(folder / "m.imprint")
    return (folder / "m.imprint").read_bytes()


def fitted(labels, weight=None, **options):
    rows = np.isin(Y, labels)
    clf = ImprintClassifier(**options)
    return clf.fit(X[rows], Y[rows], None if weight is None else weight[rows])


def method(generator):
    is_direction = "least_squares" in generator
    return dict(generator=generator, aggregator="max" if is_direction else "kernel")


@pytest.mark.parametrize("calibrate", [False, True])
@pytest.mark.parametrize(
    "parts", [*map(method, WEIGHTED + UNWEIGHTED), QUANTILE], ids=str
)
@pytest.mark.parametrize("label", LABELS[[0, 3]])
def test_the_file_has_no_trace_of_a_forgotten_class(tmp_path, parts, calibrate, label):
    options = dict(parts, calibrate=calibrate)
    rest = LABELS[label != LABELS]
    expected = bytes_of(fitted(rest, **options), tmp_path)
    assert bytes_of(fitted(LABELS, **options).forget(label), tmp_path) == expected
    new = label == Y
    later = fitted(rest, **options).partial_fit(X[new], Y[new]).forget(label)
    assert bytes_of(later, tmp_path) == expected


@pytest.mark.parametrize("calibrate", [False, True])
@pytest.mark.parametrize("generator", WEIGHTED)
def test_weights_of_a_forgotten_class_leave_no_trace(tmp_path, generator, calibrate):
    weight = np.where(Y == "bee", np.arange(36) % 3 + 0.5, 1.0)
    options = dict(method(generator), calibrate=calibrate)
    rest = LABELS[LABELS != "bee"]
    expected = bytes_of(fitted(rest, **options), tmp_path)
    forgetful = fitted(LABELS, weight, **options).forget("bee")
    assert bytes_of(forgetful, tmp_path) == expected


def test_the_type_of_a_forgotten_label_leaves_no_trace(tmp_path):
    labels = np.repeat(np.array([1, 2, 2**63], np.uint64), 12)
    small = labels < 5
    expected = ImprintClassifier().fit(X[small], labels[small].astype(np.int8))
    clf = ImprintClassifier().fit(X, labels).forget(2**63)
    assert bytes_of(clf, tmp_path) == bytes_of(expected, tmp_path)
    assert clf.classes_.dtype == expected.classes_.dtype


def test_the_file_of_an_imprinter_has_no_trace_of_a_forgotten_class(tmp_path):
    rest = LABELS[3] != Y
    expected = bytes_of(Imprinter().fit(X[rest], Y[rest]), tmp_path)
    model = Imprinter().fit(X, Y).forget(LABELS[3])
    assert bytes_of(model, tmp_path) == expected
