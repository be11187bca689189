"""Results of a model of tags."""

import numpy as np
import pytest

from imprint import Imprinter
from imprint.evaluation.tags import tag_evaluation

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


def test_the_evaluation_is_that_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    X, Y = data(120, noise=4)
    Q, T = data(80, seed=1, noise=4)
    model = Imprinter().fit(X, lists(Y))
    assert ((model.predict_proba(Q) >= 0.5) != model.predict(Q)).any()
    sets = np.array(["|".join(row) for row in lists(T)])
    result = tag_evaluation(model.state.head, Q, sets, [str(i) for i in range(len(Q))])
    P, chosen = model.predict_proba(Q), model.predict(Q)
    assert result.mean_average_precision == pytest.approx(
        metrics.average_precision_score(T, P, average="macro")
    )
    assert result.macro_f1 == pytest.approx(
        metrics.f1_score(T, chosen, average="macro")
    )
    assert result.micro_f1 == pytest.approx(
        metrics.f1_score(T, chosen, average="micro")
    )
    assert result.accuracy == pytest.approx(metrics.accuracy_score(T, chosen))
    recall, precision = (
        metrics.recall_score(T, chosen, average=None),
        metrics.precision_score(T, chosen, average=None),
    )
    assert [one.recall for one in result.per_label] == pytest.approx(recall)
    assert [one.precision for one in result.per_label] == pytest.approx(precision)
    assert len(result.mistakes) == (chosen != T).any(axis=1).sum()


def test_labels_that_the_model_does_not_have_count_as_missed(model):
    result = tag_evaluation(
        model.state.head, Q[:2], np.array(["joy|zebra", "zebra"]), ["a", "b"]
    )
    assert result.unknown == ["zebra"]
    assert result.per_label[-1] == ("zebra", 2, pytest.approx(1.0), 0.0, None, 0.0)
    assert len(result.mistakes) == 2


def test_the_json_has_the_public_keys_with_plain_values(model):
    result = tag_evaluation(
        model.state.head,
        Q,
        np.array(["|".join(row) for row in lists(T)]),
        list(map(str, range(80))),
    )
    document = result.as_json()
    assert list(document) == [
        "mean_average_precision",
        "macro_f1",
        "micro_f1",
        "accuracy",
        "rows",
        "labels",
        "per_label",
        "calibration_error",
        "mistakes",
        "unreadable",
    ]
    assert list(document["per_label"][0]) == [
        "label",
        "rows",
        "average_precision",
        "f1",
        "precision",
        "recall",
    ]
    first = document["mistakes"][0]
    row = int(first["path"])
    assert first["labels"] == lists(T)[row]
    assert first["predicted"] == lists(model.predict(Q))[row]
    wrong = (model.predict(Q) != T)[row]
    assert first["probability"] == pytest.approx(
        np.abs(T - model.predict_proba(Q))[row][wrong].max()
    )
    assert [m["probability"] for m in document["mistakes"]] == sorted(
        m.probability for m in result.mistakes
    )[::-1]
    P = model.predict_proba(Q).ravel()
    bins = np.minimum((P * 10).astype(int), 9)
    gaps = [abs((P - T.ravel())[bins == b].sum()) for b in range(10)]
    assert document["calibration_error"] == pytest.approx(sum(gaps) / P.size)
