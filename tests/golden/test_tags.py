"""Tags on real texts: the figures in docs/tags.md."""

import pytest
from benchmarks.tags import embedded, indicator, read, with_names
from sklearn.metrics import average_precision_score, f1_score


@pytest.mark.shared
@pytest.mark.timeout(900)
def test_goemotions(shared_folder):
    folder = shared_folder / "data" / "text" / "goemotions"
    names = (folder / "labels.txt").read_text().split()
    (texts, labels), (questions, truth) = (
        read(folder, "train", 4000),
        read(folder, "test"),
    )
    X, Q = embedded(texts, None, ""), embedded(questions, None, "")
    Y, T = indicator(labels, len(names)), indicator(truth, len(names))
    P, predicted = with_names(names)(X, Y, Q)
    assert 100 * average_precision_score(T, P, average="macro") >= 30.0
    assert 100 * f1_score(T, predicted, average="macro") >= 33.0
    assert predicted.sum(axis=1).mean() < 1.5 * T.sum(axis=1).mean()
