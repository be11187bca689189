"""Every task, found by discovery."""

import pickle
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import numpy as np
import pytest

from imprint import tasks
from imprint.core.errors import ParameterError
from imprint.tasks import Chain, family, resolve

LABELS = np.random.default_rng(0).integers(0, 100, 3000).astype(np.uint8)
CLASSES = tuple(range(100))
SETTINGS = {  # for tasks that need parameters
    "classes": [{"labels": (7, 0, 3)}],
    "d_in_1": [
        {},
        {"d": 3, "i": 4},
        {"d": 10, "kind": "sequential"},
        {"d": 2, "labels": 3, "pool": 6, "seed": 1},
    ],
}


def every_task():
    single = [
        family.load(name)(**given)
        for name in tasks.names()
        for given in SETTINGS.get(name, [{}])
    ]
    shots = family.load("shots")(n=4)
    return single + [task | shots for task in single]


@pytest.fixture(params=every_task(), ids=str)
def task(request):
    return request.param


def test_a_task_is_a_frozen_value(task):
    assert pickle.loads(pickle.dumps(task)) == task
    assert hash(pickle.loads(pickle.dumps(task))) == hash(task)
    assert resolve(str(task)) == task
    assert resolve(task) is task
    assert type(task).__doc__
    for f in fields(task):
        with pytest.raises(FrozenInstanceError):
            setattr(task, f.name, None)


@pytest.mark.parametrize("name", tasks.names())
def test_the_page_in_the_docs_lists_it(name):
    table = (
        (Path(__file__).parents[2] / "docs" / "studies.md")
        .read_text("utf-8")
        .split("## Tasks")[1]
        .split("### The grammar")[0]
    )
    assert f"`{name}`" in table or f"`{name}(" in table


def test_different_tasks_have_different_texts():
    texts = [str(t) for t in every_task()]
    assert len(set(texts)) == len(texts)


def test_rows_and_labels_follow_the_mapping(task):
    rows, labels = task.select(LABELS, seed=3, classes=CLASSES)
    mapping = task.mapping(CLASSES)
    assert len(rows) == len(set(rows.tolist())) == len(labels) > 0
    assert rows.dtype == np.intp
    assert labels.tolist() == [mapping[label] for label in LABELS[rows].tolist()]
    assert task.touches(CLASSES) == tuple(mapping)
    assert set(mapping) <= set(CLASSES)
    assert task.outcomes(CLASSES) == tuple(dict.fromkeys(mapping.values()))
    assert set(labels.tolist()) == set(task.outcomes(CLASSES))


def test_a_task_is_repeatable_and_keeps_its_input(task):
    labels = LABELS.copy()
    labels.flags.writeable = False
    one, two = (task.select(labels, seed=5, classes=CLASSES) for _ in range(2))
    np.testing.assert_array_equal(one.rows, two.rows)
    np.testing.assert_array_equal(one.labels, two.labels)


def test_the_type_of_the_labels_does_not_matter(task):
    small, wide, plain = (
        task.select(v, 1, CLASSES)
        for v in (LABELS, LABELS.astype(np.int64), LABELS.tolist())
    )
    np.testing.assert_array_equal(small.rows, wide.rows)
    np.testing.assert_array_equal(small.rows, plain.rows)
    np.testing.assert_array_equal(small.labels, wide.labels)


def test_queries_keep_all_rows_of_the_same_labels(task):
    queries = task.queries()
    assert "shots" not in str(queries)
    rows, labels = queries.select(LABELS, classes=CLASSES)
    mapping = task.mapping(CLASSES)
    assert rows.tolist() == [
        i for i, label in enumerate(LABELS.tolist()) if label in mapping
    ]
    assert set(labels.tolist()) == set(task.outcomes(CLASSES))
    assert queries.queries() == queries


def test_a_split_without_some_classes_has_the_same_mapping(task):
    """A split without some classes must not change the labels of the others."""
    part = LABELS[LABELS < 50]
    rows, labels = task.queries().select(part, classes=CLASSES)
    mapping = task.mapping(CLASSES)
    assert labels.tolist() == [mapping[v] for v in part[rows].tolist()]


def test_no_rows_give_no_rows(task):
    rows, labels = task.select(LABELS[:0], classes=CLASSES)
    assert len(rows) == len(labels) == 0


@pytest.mark.parametrize("labels", [[1.0, 2.0], [[1, 2]], [True, False], [None], 3])
def test_bad_labels_are_refused(task, labels):
    with pytest.raises(
        ParameterError, match="labels must be a list of integers or of strings"
    ):
        task.select(labels)


@pytest.mark.parametrize("seed", [-1, 1.0, True, None])
def test_a_bad_seed_is_refused(task, seed):
    with pytest.raises(ParameterError, match=r"seed must be int >= 0\."):
        task.select(LABELS, seed=seed, classes=CLASSES)


def test_a_label_that_is_not_a_class_is_refused(task):
    with pytest.raises(ParameterError, match="the label 99 is not among the classes"):
        task.select(LABELS, classes=CLASSES[:-1])


@pytest.mark.parametrize("name", tasks.names())
def test_bad_parameters_are_refused_when_built(name):
    cls = family.load(name)
    for f in fields(cls):
        for bad in (None, -1, 0.5, "nonsense", True):
            with pytest.raises(
                ParameterError, match=rf"^{cls.__name__}\(.*{f.name} must be "
            ):
                cls(**{f.name: bad})


NO_TASKS = [
    "",
    "even |",
    "| even",
    "even or odd",
    "even + odd",
    "1",
    "even.odd",
    "shots(5)",
    "classes(x)",
]
NO_TASKS += [
    "classes(1, labels=(2,))",
    "even; odd",
    "(" * 5000,
    "shots(n=__import__('os'))",
    "even(odd)",
]


@pytest.mark.parametrize("text", [*NO_TASKS, "classes(*[1])", "a" * 30_000, None])
def test_texts_that_are_not_tasks_are_refused_in_one_line(text):
    with pytest.raises(ParameterError, match=r"^[^\n]{1,400}$"):
        resolve(text)


def test_an_unknown_task_gets_a_suggestion():
    with pytest.raises(
        ParameterError, match=r"Unknown task 'shot'\. Did you mean 'shots'\?"
    ):
        resolve("even | shot(n=5)")
    with pytest.raises(
        ParameterError, match=r"Shots has no parameter 'k'\. It takes: n\."
    ):
        resolve("shots(k=5)")


def test_a_chain_needs_tasks():
    for steps in (
        (),
        (resolve("even"),),
        (resolve("even"), "odd"),
        (resolve("even"), resolve("all | odd")),
    ):
        with pytest.raises(ParameterError, match="steps must be two or more tasks"):
            Chain(steps=steps)
