"""`Imprinter` with tags: all forms of labels, files, additions, removals and explanations."""

import numpy as np
import pytest

from imprint import Imprinter
from imprint.core.errors import DataWarning, ParameterError
from imprint.datasets import load

LABELS = ["fear", "joy", "love"]


def data(n=120, seed=0, noise=0.6):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, 3)) < 0.4).astype(int)
    X = (
        Y @ np.random.default_rng(7).normal(size=(3, 10)) * 2
        + rng.normal(size=(n, 10)) * noise
    )
    return X.astype(np.float32), Y


def lists(Y):
    return [[LABELS[c] for c in np.flatnonzero(row)] for row in Y]


X, Y = data()
Q, T = data(80, seed=1)


@pytest.fixture
def model():
    return Imprinter().fit(X, lists(Y))


def test_the_method_for_tags_is_the_default(model):
    assert "all" in str(model.state.head.imprinted.method.generator)
    assert "noise=1.0" in str(model.state.head.imprinted.method.aggregator)
    chosen = Imprinter(generator="kmeans(k=5)").fit(X, lists(Y))
    assert str(chosen.state.head.imprinted.method.generator) == "kmeans(k=5)"


def test_tags_do_not_change_the_method_of_later_fits(model, tmp_path):
    assert str(model.fit(X, Y[:, 0]).state.head.imprinted.method) == str(
        Imprinter().fit(X, Y[:, 0]).state.head.imprinted.method
    )
    Imprinter(generator="kmeans(k=5)").fit(X, lists(Y)).save(tmp_path / "m.imprint")
    again = Imprinter.load(tmp_path / "m.imprint").fit(X, lists(Y))
    assert str(again.state.head.imprinted.method.generator) == "kmeans(k=5)"


def test_the_matrix_probabilities_and_tags_agree(model):
    P, chosen = model.predict_proba(Q), model.predict(Q)
    assert chosen.shape == P.shape == T.shape
    assert (chosen == T).mean() > 0.85
    for row, probabilities, guesses in zip(chosen, P, model.tags(Q)):
        assert [g.label for g in guesses] == [LABELS[c] for c in np.flatnonzero(row)]
        assert [g.probability for g in guesses] == [
            probabilities[c] for c in np.flatnonzero(row)
        ]
    assert model.top(Q, 1)[0][0].label == LABELS[P[0].argmax()]


def test_a_file_holds_everything(model, tmp_path):
    model.save(tmp_path / "m.imprint")
    again = Imprinter.load(tmp_path / "m.imprint")
    assert np.array_equal(again.predict_proba(Q), model.predict_proba(Q))
    assert np.array_equal(again.classifier.predict(Q), model.predict(Q))
    again.forget("joy").save(tmp_path / "m.imprint")
    after = Imprinter.load(tmp_path / "m.imprint")
    assert after.classes_.tolist() == ["fear", "love"]
    assert {r.label for r in after.why(Q[0], 99)} <= {"", "fear", "love", "fear|love"}
    assert not any("joy" in key for key in after.state.exemplars)
    assert sum(len(s.nearest) for s in after.state.exemplars.values()) == len(
        after.state.head.proxies.labels
    )


def test_one_label_per_input_may_be_added_and_the_reverse_is_refused(model):
    assert model.add((X[:2], ["joy", "new"])).classes_.tolist() == [
        "fear",
        "joy",
        "love",
        "new",
    ]
    with pytest.raises(
        ParameterError,
        match=r"add\(data\): the data have integer labels, the model text labels",
    ):
        model.add((X[:2], [[1], [2, 3]]))
    single = Imprinter().fit(X, Y[:, 0])
    with pytest.raises(
        ParameterError,
        match=r"add\(data\): the data have tags, and the model has one label",
    ):
        single.add((X, lists(Y)))


def test_keep_head_and_suggestions_are_refused(model):
    shades = [np.full((32, 32, 3), shade, np.uint8) for shade in (0, 200)]
    with pytest.raises(ParameterError, match="leave keep_head out"):
        Imprinter("efficientnet_lite0", keep_head=True).fit(
            (shades, [["a"], ["a", "b"]])
        )
    with pytest.raises(ParameterError, match="suggestions are for one label per input"):
        model.suggest(Q)
    with pytest.raises(
        ParameterError, match="level=2: the classes of this model have one level"
    ):
        model.predict(Q, level=2)


def test_names_serve_as_examples_of_single_labels(monkeypatch):
    rows = {
        "card lost": ["loss"],
        "card stolen": ["loss", "crime"],
        "theft": ["crime"],
        "refund": ["money"],
    }
    model = Imprinter("minilm", names=True, cache=False).fit(
        list(rows), list(rows.values())
    )
    assert model.state.named
    assert len(model.state.head.proxies.labels) == len(rows) + 3
    assert model.card().rows_per_class == (2, 2, 1)
    assert model.card().rows == 4


def test_labels_with_a_separator_are_reported(tmp_path):
    (tmp_path / "a.csv").write_text("x0,x1,label\n1,2,joy|love\n2,1,joy\n3,3,joy\n")
    with pytest.warns(
        DataWarning,
        match=r"'joy\|love' are one class each; --separator '\|' .* reads them as tags\.",
    ):
        Imprinter().fit(tmp_path / "a.csv")
    Imprinter().fit(load(tmp_path / "a.csv", separator="|"))  # no warning
