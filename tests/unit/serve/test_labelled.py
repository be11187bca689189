"""Any changes in any order: the model equals one fitted from scratch on the same items, and undo reverts everything."""

import hashlib
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint.core.errors import ImprintError, ParameterError
from imprint.head import Head
from imprint.method import Method
from imprint.serve.labelled import History
from imprint.serve.model import ModelBasis, ServedModel, changed_labels, refitted
from imprint.serve.projects import start_project

METHOD = Method.of(
    norm_pre="l2",
    generator="kmeans(k=3)",
    norm_post="none",
    norm_inf="l2",
    aggregator="kernel",
)
BASIS = ModelBasis(Head(METHOD, 0, np.float32))
LABELS = ("ant", "bee", "cat")
DIGESTS = [hashlib.sha256(bytes([i])).hexdigest() for i in range(12)]
ROWS = dict(
    zip(DIGESTS, np.random.default_rng(0).normal(size=(12, 6)).astype(np.float32))
)
label, number = st.sampled_from(LABELS), st.integers(1, 14)
ENTRY = st.one_of(
    st.builds(
        lambda k, d, g: {
            "do": "add",
            "label": k,
            "digest": d,
            "name": "a.png",
            "group": g,
        },
        label,
        st.sampled_from(DIGESTS),
        st.sampled_from("abc"),
    ),
    st.builds(lambda i, k: {"do": "move", "ids": [i], "label": k}, number, label),
    st.builds(lambda i: {"do": "delete", "ids": [i]}, number),
    st.builds(lambda a, b: {"do": "rename", "label": a, "to": b}, label, label),
    st.builds(lambda a, b: {"do": "merge", "label": a, "into": b}, label, label),
    st.builds(lambda k: {"do": "drop", "label": k}, label),
    st.sampled_from([{"do": "undo"}, {"do": "redo"}, {"do": "clear"}]),
)


def walked(entries):
    """Apply entries; return those applied, the history after each, and the model after all."""
    history, model, done, seen = (
        History(),
        ServedModel(History(), BASIS),
        [],
        [History()],
    )
    for entry in entries:
        if entry["do"] == "add" and any(
            (item.label, item.digest) == (entry["label"], entry["digest"])
            for item in history.labelled.items.values()
        ):
            continue
        try:
            after = history.after(entry)
        except ImprintError:
            continue
        if after is not history:
            done.append(entry)
            model = refitted(model, after, BASIS, ROWS)
            history = after
            seen.append(history)
    return done, seen, model


@given(st.lists(ENTRY, max_size=25))
def test_the_model_equals_a_fit_from_scratch_on_the_same_items(entries):
    _, seen, model = walked(entries)
    labelled = seen[-1].labelled
    items = sorted(labelled.items.values(), key=lambda i: (i.label, i.file))
    if not items:
        assert model.head is None
        return
    X, y = np.stack([ROWS[i.digest] for i in items]), np.array([i.label for i in items])
    fresh = Head(METHOD, 0, np.float32).learn(X, y)
    assert model.head.classes.tolist() == fresh.classes.tolist()
    assert np.array_equal(model.head.proxies.weights, fresh.proxies.weights)
    assert np.allclose(model.head.scores(X), fresh.scores(X), rtol=1e-6)
    named = {name for shelf in model.exemplars.values() for name in shelf.names}
    assert named <= {i.path for i in items}


@given(st.lists(ENTRY, max_size=25))
def test_replaying_gives_the_same_state_and_undo_reverts_everything(entries):
    done, seen, _ = walked(entries)
    history = History().replayed(done)
    assert history == seen[-1]
    assert list(history.labelled.items) == sorted(history.labelled.items)
    states = [history.labelled]
    while history.done:
        history = history.after({"do": "undo"})
        states.append(history.labelled)
    assert not history.labelled.classes
    assert not history.labelled.items
    for state in reversed(states[:-1]):
        history = history.after({"do": "redo"})
        assert history.labelled == state


@given(st.lists(ENTRY, max_size=25))
def test_changed_labels_are_those_whose_items_or_origin_differ(entries):
    _, seen, _ = walked(entries)
    for before, after in pairwise(seen):
        was, now = before.labelled.by_class(), after.labelled.by_class()
        expected = {k for k in {*was, *now} if was.get(k) != now.get(k)}
        assert changed_labels(before.labelled, after.labelled) == expected


def test_items_dropped_together_are_undone_together():
    history = History()
    for i, group in enumerate(["a", "a", "b", "b", "", ""]):
        history = history.after(
            {
                "do": "add",
                "label": "ant",
                "digest": DIGESTS[i],
                "name": "a",
                "group": group,
            }
        )
    sizes = []
    while history.done:
        history = history.after({"do": "undo"})
        sizes.append(len(history.labelled.items))
    assert sizes == [5, 4, 2, 0]


def test_a_change_after_an_undo_clears_redo():
    entries = [
        {"do": "create", "label": "ant"},
        {"do": "undo"},
        {"do": "create", "label": "bee"},
    ]
    history = History()
    for entry in entries:
        history = history.after(entry)
    assert History().replayed(entries) == history
    with pytest.raises(ParameterError, match="nothing to redo"):
        history.after({"do": "redo"})


def test_an_item_that_is_moved_to_a_class_with_the_same_content_is_deleted():
    history = History()
    for label in ("ant", "bee"):
        history = history.after(
            {"do": "add", "label": label, "digest": DIGESTS[0], "name": "a.png"}
        )
    moved = history.after({"do": "move", "ids": [2], "label": "ant"})
    merged = history.after({"do": "merge", "label": "bee", "into": "ant"})
    assert list(moved.labelled.items) == list(merged.labelled.items) == [1]
    assert (list(moved.labelled.classes), list(merged.labelled.classes)) == (
        ["ant", "bee"],
        ["ant"],
    )
    assert moved.after({"do": "undo"}).labelled == history.labelled
    both = history.after({"do": "move", "ids": [1, 2], "label": "cat"})
    assert list(both.labelled.by_class()["cat"]) == [
        history.labelled.items[1]._replace(label="cat")
    ]


@pytest.mark.parametrize(
    "bad", ["", " ", ".hidden", "a//b", "a\\b", "x" * 101, "bell\a", "a:b", None, 7]
)
def test_labels_that_cannot_name_a_folder_are_refused(bad):
    with pytest.raises(ImprintError):
        History().after({"do": "create", "label": bad})


def test_a_folder_of_sounds_is_refused_once(tmp_path):
    from scipy.io import wavfile

    for name in ("a", "b"):
        (tmp_path / "sounds" / name).mkdir(parents=True)
        wavfile.write(
            tmp_path / "sounds" / name / "1.wav", 8000, np.zeros(800, dtype=np.int16)
        )
    with pytest.raises(
        ParameterError,
        match=r"sounds holds sounds, and raw reads images; choose another backbone",
    ):
        start_project(tmp_path / "sounds", tmp_path / "project", "raw")


def applied(*entries):
    """The history after entries that a client sends one by one."""
    history = History()
    for entry in entries:
        history = history.after(entry)
    return history


def added(label, number, group=""):
    return {
        "do": "add",
        "label": label,
        "digest": DIGESTS[number],
        "name": "a.png",
        "group": group,
    }


def test_undo_takes_back_the_change_that_it_names_and_no_other():
    history = applied(added("ant", 0), added("bee", 1), added("ant", 2))
    undone = history.after({"do": "undo", "change": 2})
    assert [item.digest for item in undone.labelled.items.values()] == [
        DIGESTS[0],
        DIGESTS[2],
    ]
    with pytest.raises(ParameterError, match="no change 2, or it was undone"):
        undone.after({"do": "undo", "change": 2})
    # Items keep their numbers and their order.
    assert undone.after({"do": "redo", "change": 2}).labelled == history.labelled


def test_an_older_change_is_undone_with_its_whole_group():
    history = applied(
        added("ant", 0, "x"), added("bee", 1), added("ant", 2, "x"), added("bee", 3)
    )
    undone = history.after({"do": "undo", "change": 1})
    assert [item.label for item in undone.labelled.items.values()] == ["bee", "bee"]
    assert undone.after({"do": "redo"}).labelled == history.labelled


def test_a_change_on_which_a_later_one_depends_is_not_undone():
    history = applied(added("ant", 0), {"do": "move", "ids": [1], "label": "bee"})
    with pytest.raises(ParameterError, match="a later one depends on it"):
        history.after({"do": "undo", "change": 1})
    renamed = applied(
        {"do": "create", "label": "ant"},
        {"do": "rename", "label": "ant", "to": "bee"},
        added("bee", 0),
    )
    with pytest.raises(ParameterError, match="Undo the later changes first"):
        renamed.after({"do": "undo", "change": 2})


def test_redo_refuses_another_change_than_the_one_it_names():
    history = applied(added("ant", 0), added("ant", 1), {"do": "undo"}, {"do": "undo"})
    with pytest.raises(ParameterError, match="not the next one to redo"):
        history.after({"do": "redo", "change": 2})
    assert len(history.after({"do": "redo", "change": 1}).labelled.items) == 1


def redone(history):
    """The history with everything redone."""
    while history.undone:
        history = history.after({"do": "redo"})
    return history


@given(st.lists(ENTRY, max_size=25), st.lists(st.integers(1, 25), max_size=5))
def test_undo_by_name_and_redo_give_what_was_there(entries, revisions):
    _, seen, _ = walked(entries)
    history = seen[-1]
    for revision in revisions:
        try:
            history = history.after({"do": "undo", "change": revision})
        except ParameterError:
            continue
        stored = [one.revision for one in history.done]
        assert stored == sorted(stored)
    assert redone(history).labelled == redone(seen[-1]).labelled
