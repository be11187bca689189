"""Labels are Python values: integers of any size stay what they are, and no two become
one.
"""

import numpy as np
import pytest

from imprint import ImprintClassifier, Imprinter
from imprint.core.errors import ParameterError
from imprint.core.labels import MAX_INTEGER_BITS
from imprint.evaluation import evaluation

X = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], dtype=np.float32)
LARGE = [2**63, 2**63 + 1]


def fitted(labels, rows=X, **options):
    return ImprintClassifier(generator="mean", **options).fit(rows, labels)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.array(LARGE, np.uint64), np.array([-5, 7], np.int64)),
        (np.array([-5, 7], np.int64), np.array(LARGE, np.uint64)),
        (np.array([2**53, 2**53 + 1]), np.array([1, 2], np.uint64)),
        (np.array([1, 2], np.uint8), np.array([2**53, 2**53 + 1])),
        ([2**70, 2**70 + 1], np.array([1, 2], np.int8)),
        (LARGE, [-(2**70), 3]),
    ],
)
def test_integers_of_all_types_stay_apart(tmp_path, first, second):
    labels = [int(label) for label in [*first, *second]]
    clf = fitted(first, X[:2], calibrate=True).partial_fit(X[2:], second)
    assert clf.classes_.tolist() == sorted(labels)
    assert clf.predict(X).tolist() == labels
    assert clf.score(X, as_objects(labels)) == 1
    assert clf.score(X, as_objects([labels[1], labels[0], *labels[2:]])) == 0.5
    clf.save(tmp_path / "m")
    back = ImprintClassifier.load(tmp_path / "m")
    assert back.classes_.tolist() == clf.classes_.tolist()
    assert back.classes_.dtype == clf.classes_.dtype
    back.forget(labels[0])
    assert back.predict(X[1:]).tolist() == labels[1:]


def as_objects(values):
    return np.array(values, dtype=object)


def test_integers_in_a_list_do_not_become_floats():
    clf = fitted([2**63, -1, 2**63 + 1, 0])
    assert clf.predict(X).tolist() == [2**63, -1, 2**63 + 1, 0]


def test_large_integers_are_told_apart_by_cross_validation():
    labels = np.repeat(np.array(LARGE, np.uint64), 20)
    rows = np.repeat(X[:3], 20, axis=0)
    rows += 0.1 * np.random.default_rng(0).normal(size=rows.shape).astype(rows.dtype)
    clf = ImprintClassifier(calibrate=True).fit(rows[:40], labels)
    clf.partial_fit(rows[40:], np.full(20, -1))
    assert clf.head_.calibration.expected_accuracy > 0.9


@pytest.mark.parametrize(
    ("first", "second", "kinds"),
    [
        ([1, 2], [3.0, 4.0], "float labels, the model integer labels"),
        ([1.0, 2.0], [3, 4], "integer labels, the model float labels"),
        ([True, False], [0, 1], "integer labels, the model boolean labels"),
        ([0, 1], [True, False], "boolean labels, the model integer labels"),
        (["a", "b"], [0, 1], "integer labels, the model text labels"),
    ],
)
def test_kinds_of_labels_do_not_mix(first, second, kinds):
    clf = fitted(first, X[:2])
    with pytest.raises(ParameterError, match=rf"^partial_fit\(X, y\): y holds {kinds}"):
        clf.partial_fit(X[2:], second)
    with pytest.raises(ParameterError, match=rf"^score\(X, y\): y holds {kinds}"):
        clf.score(X[2:], second)
    assert clf.classes_.tolist() == sorted(first)


@pytest.mark.parametrize("labels", [[2**53 + 1, 1.0, 2, 3], [True, 2, 3, 4]])
def test_a_list_of_several_kinds_is_refused(labels):
    with pytest.raises(ParameterError, match="y mixes labels of the types"):
        fitted(labels)


def test_floats_stay_floats():
    clf = fitted(np.array([0.0, 1, 2, 3], np.float32))
    assert clf.predict(X).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert clf.classes_.dtype == np.float64


def test_a_label_that_ends_in_nul_is_refused():
    for labels in (["a", "a\0", "b", "c"], as_objects(["a", "a\0", "b", "c"])):
        with pytest.raises(ParameterError, match=r"'a\\x00': .* must not end with"):
            fitted(labels)
    with pytest.raises(ParameterError, match="must not end with"):
        Imprinter().fit(X, ["a", "a\0", "b", "c"])
    assert fitted(["a\0b", "a", "b", "c"]).predict(X[:1]).tolist() == ["a\0b"]


def test_an_integer_of_thousands_of_digits_is_refused():
    with pytest.raises(ParameterError, match=f"{MAX_INTEGER_BITS:,} bits"):
        fitted([1, 2, 3, 1 << MAX_INTEGER_BITS])


@pytest.mark.parametrize("calibrate", [False, True])
def test_large_integers_of_an_imprinter(tmp_path, calibrate):
    model = Imprinter(calibrate=calibrate)
    model.fit(X[:2], np.array(LARGE, np.uint64)).add(X[2:], [-5, 7])
    model.save(tmp_path / "m")
    back = Imprinter.load(tmp_path / "m")
    assert back.predict(X).tolist() == [*LARGE, -5, 7]
    true, names = as_objects([*LARGE, -5, -6]), ["a", "b", "c", "d"]
    result = evaluation(back.predict_proba(X), back.classes_, true, names)
    assert result.accuracy == 0.75
    assert result.unknown == [-6]


def test_a_missing_class_suggests_one_of_its_own_kind():
    clf = fitted([1, 2, 3, 4])
    with pytest.raises(ParameterError, match=r"'1'.*Did you mean 1\?"):
        clf.forget("1")
    with pytest.raises(ParameterError, match=r"'cta'.*Did you mean 'cat'\?"):
        fitted(["cat", "dog", "emu", "fox"]).forget("cta")
