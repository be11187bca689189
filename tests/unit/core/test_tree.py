import time

import numpy as np
import pytest

from imprint import ImprintClassifier, Imprinter
from imprint.core.errors import ParameterError
from imprint.core.tree import LabelTree, Node

CLASSES = ["animal/bird/emu", "animal/bird/owl", "animal/cat", "sky", "vehicle/car"]


@pytest.fixture
def tree():
    return LabelTree.of(CLASSES)


def test_a_node_has_the_sum_of_its_leaves(tree):
    P = np.array([[0.1, 0.2, 0.3, 0.15, 0.25]])
    nodes, sums = tree.at(P, 1)
    assert nodes == ["animal", "sky", "vehicle"]
    assert sums[0] == pytest.approx([0.6, 0.15, 0.25])
    nodes, sums = tree.at(P, 2)
    assert nodes == ["animal/bird", "animal/cat", "sky", "vehicle/car"]
    assert sums[0] == pytest.approx([0.3, 0.3, 0.15, 0.25])
    assert tree.at(P, 3)[0] == CLASSES
    assert tree.at(P.astype(np.float32), 1)[1].dtype == np.float32


def test_the_deepest_likely_node_replaces_none_of_these(tree):
    P = np.array(
        [
            [0.6, 0.35, 0.03, 0.01, 0.01],
            [0.4, 0.1, 0.42, 0.04, 0.04],
            [0.45, 0.1, 0.2, 0.15, 0.1],
        ]
    )
    assert [node and node.label for node in tree.deepest(P)] == [
        "animal/bird",
        "animal",
        None,
    ]
    assert tree.deepest(P)[0] == Node("animal/bird", pytest.approx(0.95))
    assert [node and node.label for node in tree.deepest(P, level=1)] == [
        "animal",
        "animal",
        None,
    ]


def test_a_node_replaces_none_of_these_only_for_inputs_that_are_not_remote(tree):
    P, known = (
        np.tile([[0.6, 0.35, 0.03, 0.01, 0.01]], (4, 1)),
        np.array([0.05, 0.04, 0.01, 0.009]),
    )
    assert [node and node.label for node in tree.instead(P, known, 0.05)] == [
        None,
        "animal/bird",
        "animal/bird",
        None,
    ]
    assert [node and node.label for node in tree.instead(P, known, 0.05, level=1)] == [
        None,
        "animal",
        "animal",
        None,
    ]


def test_a_node_of_one_class_is_not_an_answer(tree):
    assert tree.deepest(np.array([[0.01, 0.0, 0.0, 0.0, 0.99]])) == [None]
    assert LabelTree.of(["n/a", "yes"]).deepest(np.array([[1.0, 0.0]])) == [None]


def test_levels_that_group_classes(tree):
    assert tree.grouped_levels == [1, 2]
    assert LabelTree.of(["n/a", "yes"]).grouped_levels == []
    assert LabelTree.of(["cat", "dog"]).grouped_levels == []
    assert LabelTree.of(CLASSES, flat=True).grouped_levels == []


@pytest.mark.parametrize(
    "labels",
    [[3, 7], ["http://a", "http://b"], ["/a", "/b"], ["a/", "b//c"], ["cat", "dog"]],
)
def test_labels_that_are_not_paths_have_one_level(labels):
    tree = LabelTree.of(labels)
    assert (tree.depth, tree.level(1)) == (1, sorted(labels))
    assert tree.leaves("http:") == tree.leaves("a") == []


def test_leaves_of_a_node_and_of_none(tree):
    assert tree.leaves("animal") == CLASSES[:3]
    assert tree.leaves("animal/bird") == CLASSES[:2]
    assert (
        tree.leaves("anim")
        == tree.leaves("sky")
        == tree.leaves("animal/bird/emu")
        == []
    )


def test_spaces_around_the_slash_do_not_count():
    tree = LabelTree.of(["TV / Audio", "TV/Video"])
    assert (tree.level(1), tree.level(2), tree.leaves("TV")) == (
        ["TV"],
        ["TV / Audio", "TV/Video"],
        list(tree.classes),
    )


@pytest.mark.parametrize("level", [0, 4, -1, True, "1", 1.0])
def test_a_level_that_the_tree_does_not_have_is_refused(tree, level):
    with pytest.raises(
        ParameterError,
        match=r"level=.*: the classes of this model have levels 1 to 3\.$",
    ):
        tree.level(level)


def rows(labels, n=6, seed=0):
    rng = np.random.default_rng(seed)
    X = np.concatenate(
        [
            np.eye(len(labels), 8)[[i] * n] + 0.1 * rng.normal(size=(n, 8))
            for i in range(len(labels))
        ]
    )
    return X.astype(np.float32), np.repeat(labels, n)


def test_a_classifier_predicts_at_a_level():
    X, y = rows(CLASSES)
    clf = ImprintClassifier(generator="mean", calibrate=True, tree=True).fit(X, y)
    assert clf.predict(X, level=1).tolist() == [label.split("/")[0] for label in y]
    assert clf.predict(X, level=3).tolist() == y.tolist() == clf.predict(X).tolist()
    assert clf.tree_.level(1) == ["animal", "sky", "vehicle"]
    P = clf.predict_proba(X)
    assert clf.predict_proba(X, level=1)[:, 0] == pytest.approx(P[:, :3].sum(axis=1))
    with pytest.raises(ParameterError, match="levels 1 to 3"):
        clf.predict(X, level=4)


def test_numbers_have_one_level_and_keep_their_type():
    X, y = rows([3, 5, 9])
    assert (
        ImprintClassifier(generator="mean").fit(X, y).predict(X, level=1).tolist()
        == y.tolist()
    )


def test_forgetting_a_node_is_exact():
    X, y = rows(CLASSES)
    options = dict(generator="mean", calibrate=True, tree=True)
    clf = ImprintClassifier(**options).fit(X, y).forget("animal/")
    rest = ~np.char.startswith(y, "animal")
    fresh = ImprintClassifier(**options).fit(X[rest], y[rest])
    assert clf.classes_.tolist() == ["sky", "vehicle/car"]
    assert np.array_equal(clf.predict_proba(X), fresh.predict_proba(X))
    assert np.array_equal(clf.known(X), fresh.known(X))


def test_a_class_is_forgotten_before_a_node_of_its_name():
    X, y = rows(["animal", "animal/", "animal/cat", "sky"])
    clf = ImprintClassifier(generator="mean", tree=True).fit(X, y)
    assert clf.forget("animal").classes_.tolist() == ["animal/", "animal/cat", "sky"]
    assert clf.forget("animal/").classes_.tolist() == ["animal/cat", "sky"]
    assert clf.forget("animal/").classes_.tolist() == ["sky"]


def test_labels_with_a_slash_are_a_tree_only_if_one_was_asked_for(tmp_path):
    """`n/a` means 'not available' in many tables."""
    X, y = rows(["n/a", "n/b", "yes"])
    clf = ImprintClassifier(generator="mean").fit(X, y)
    clf.save(tmp_path / "m")
    for flat in (
        clf,
        ImprintClassifier.load(tmp_path / "m"),
        Imprinter().fit(X, y),
        Imprinter.load(tmp_path / "m"),
    ):
        for label in ("n", "n/"):
            with pytest.raises(ParameterError, match=f"Unknown class '{label}'"):
                flat.forget(label)
        with pytest.raises(ParameterError, match="the classes of this model have one"):
            flat.predict(X, level=2)
        assert flat.classes_.tolist() == ["n/a", "n/b", "yes"]


@pytest.mark.parametrize("of", [ImprintClassifier, Imprinter])
def test_a_tree_that_was_asked_for_is_stored(of, tmp_path):
    X, y = rows(["n/a", "n/b", "yes"])
    of(generator="mean", tree=True).fit(X, y).save(tmp_path / "m")
    loaded = [ImprintClassifier.load(tmp_path / "m"), Imprinter.load(tmp_path / "m")]
    for model in loaded:
        assert set(model.predict(X, level=1).tolist()) == {"n", "yes"}
        assert model.fit(X, y).forget("n/").classes_.tolist() == ["yes"]


def test_a_node_without_a_slash_at_its_end_is_refused_with_advice():
    X, y = rows(CLASSES)
    clf = ImprintClassifier(generator="mean", tree=True).fit(X, y)
    rule = "'animal' is not a class but a node .* 'animal/' means all classes below it"
    with pytest.raises(ParameterError, match=rule):
        clf.forget("animal")
    assert clf.classes_.tolist() == CLASSES


def test_tree_must_be_true_or_false():
    clf = ImprintClassifier(tree="yes")
    with pytest.raises(ParameterError, match=r"tree='yes'\): tree must be True or"):
        clf.fit(*rows(["a", "b"]))


def test_forgetting_all_classes_or_none_is_refused_and_changes_nothing():
    X, y = rows(["animal/cat", "animal/dog"])
    clf = ImprintClassifier(generator="mean", tree=True).fit(X, y)
    with pytest.raises(ParameterError, match="it is the only class"):
        clf.forget("animal/")
    with pytest.raises(ParameterError, match="Unknown class 'plant'"):
        clf.forget("plant")
    assert clf.classes_.tolist() == ["animal/cat", "animal/dog"]


def test_memory_for_twenty_thousand_classes_is_not_quadratic():
    classes = [f"n{i // 100:03}/c{i:05}" for i in range(20_000)]
    started = time.process_time()
    tree = LabelTree.of(classes)
    assert tree.instead(np.full((1, 20_000), 1 / 20_000), np.array([0.02]), 0.05) == [
        None
    ]
    assert len(tree.at(np.full((1, 20_000), 1 / 20_000), 1)[0]) == 200
    assert time.process_time() - started < 5
