"""The cost of many classes in function calls and bytes, which are the same on every machine."""

import sys
import tracemalloc

import numpy as np
import pytest

from imprint import ImprintClassifier
from imprint.core.files import container
from imprint.head import Head
from imprint.method import ClassState, Method

WIDTH = 8
PARTS = dict(
    norm_pre="l2", generator="mean", norm_post="l2", norm_inf="l2", aggregator="max"
)


def known(classes: int, width: int = WIDTH) -> ImprintClassifier:
    """A model with many classes, assembled directly from class states."""
    means = np.random.default_rng(0).normal(size=(classes, 1, width))
    one, two = np.array([5.0]), np.array([0.5])
    sums = {"length": one, "rows": one}
    states = tuple(
        ClassState({"rows": m, "mass": one, "spread": two}, sums) for m in means
    )
    labels, method = tuple(range(classes)), Method.of(**PARTS)
    return ImprintClassifier.of_head(Head(method, 0, "float32", labels, states, width))


def operations(call) -> int:
    """The number of function calls, including C functions."""
    count = 0

    def see(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(see)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def allocated(call) -> int:
    """The peak number of bytes that a call allocates."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


ROW = np.random.default_rng(1).normal(size=(1, WIDTH)).astype(np.float32)


@pytest.mark.parametrize("prepared", [False, True], ids=["unread", "asked before"])
def test_adding_a_class_copies_only_two_pointers_per_class(prepared):
    costs = []
    for classes in (1000, 50_000):
        clf = known(classes)
        if prepared:
            clf.predict(ROW)
        clf.partial_fit(
            ROW, [10**6]
        )  # for everything that is imported or allocated once
        steps = operations(lambda clf=clf: clf.partial_fit(ROW, [10**6 + 1]))
        room = allocated(lambda clf=clf: clf.partial_fit(ROW, [10**6 + 2]))
        costs.append((steps, room))
    (few_steps, few_room), (many_steps, many_room) = costs
    assert many_steps <= few_steps + 5
    pointers = 2 * 8 * (50_000 - 1000)  # a new head has new tuples of labels and states
    assert many_room <= few_room + pointers + 4096


def test_a_thousand_additions_are_linear():
    clf = known(2000)
    clf.predict(ROW)

    def add(first, count):
        for i in range(first, first + count):
            clf.partial_fit(ROW, [i])

    add(10**6, 5)
    early, room = (
        operations(lambda: add(2 * 10**6, 100)),
        allocated(lambda: add(3 * 10**6, 100)),
    )
    add(4 * 10**6, 1000)
    assert operations(lambda: add(5 * 10**6, 100)) <= 1.01 * early
    assert (
        allocated(lambda: add(6 * 10**6, 100)) <= 1.5 * room + 200_000
    )  # growing lists are copied sometimes
    assert len(clf.predict(ROW)) == 1


def test_predict_proba_of_one_row_costs_about_as_much_as_predict():
    clf = known(50_000)
    clf.predict(ROW)
    label, probability = (
        operations(lambda call=call: call(ROW))
        for call in (clf.predict, clf.predict_proba)
    )
    assert probability <= 2 * label
    label, probability = (
        allocated(lambda call=call: call(ROW))
        for call in (clf.predict, clf.predict_proba)
    )
    assert probability <= 8 * label, "a few arrays of one number for each class"


def test_predicting_many_rows_never_stores_all_scores():
    clf, queries = (
        known(20_000),
        np.random.default_rng(2).normal(size=(5000, WIDTH)).astype(np.float32),
    )
    clf.predict(ROW)
    assert (
        allocated(lambda: clf.predict(queries)) < 200e6 < queries.shape[0] * 20_000 * 4
    )


def test_the_number_of_arrays_in_a_file_does_not_grow_with_classes(tmp_path):
    """The number of arrays in a file, and of function calls per class to save and load, do not grow with classes."""
    sizes, steps = [], []
    for classes in (500, 5000):
        clf = known(classes)
        steps.append(
            operations(lambda clf=clf, n=classes: clf.save(tmp_path / str(n))) / classes
        )
        steps.append(
            operations(lambda n=classes: ImprintClassifier.load(tmp_path / str(n)))
            / classes
        )
        sizes.append(len(container.read(tmp_path / str(classes))[1]))
    assert sizes[0] == sizes[1]
    assert max(steps[2:]) <= max(steps[:2]) <= 35
