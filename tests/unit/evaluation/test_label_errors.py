"""Rows whose label is probably wrong."""

import numpy as np

from imprint.evaluation.inspection import label_error_scores, label_errors


def scores_with_planted_labels(seed=0, n=600, classes=6, planted=30):
    """Scores of classes of which the first two are similar, with some labels replaced."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    S = rng.normal(scale=0.15, size=(n, classes)) + np.eye(classes)[y]
    alike = y < 2
    S[alike, :2] += rng.normal(scale=0.7, size=(alike.sum(), 2))
    chosen = rng.choice(np.flatnonzero(y > 1), planted, replace=False)
    z = y.copy()
    z[chosen] = 2 + (y[chosen] - 1) % (classes - 2)
    P = np.exp(S / 0.15) / np.exp(S / 0.15).sum(axis=1, keepdims=True)
    return S, P, z, chosen


def test_planted_label_errors_score_higher_than_rows_of_similar_classes():
    S, P, z, chosen = scores_with_planted_labels()
    first = np.argsort(-label_error_scores(S, P, z))[:30]
    by_probability = np.argsort(P[np.arange(len(z)), z])[:30]
    assert len(set(first) & set(chosen)) >= 26
    assert len(set(first) & set(chosen)) >= 3 + len(set(by_probability) & set(chosen))
    listed = label_errors(S, P, P, z, np.ones(len(z), bool))
    assert len({row for row, _, _ in listed} & set(chosen)) >= 26
    assert len(listed) <= 40
    assert all(suggested == P[row].argmax() != z[row] for row, suggested, _ in listed)
    assert [e[2] for e in listed] == sorted((e[2] for e in listed), reverse=True)


def test_hard_rows_of_correct_labels_are_not_listed():
    """Rows between two classes are misclassified with high confidence, but they are typical of neither class."""
    rng = np.random.default_rng(0)
    y = rng.integers(6, size=1200)
    S = rng.normal(scale=0.05, size=(1200, 6)) + np.eye(6)[y]
    hard = rng.choice(1200, 20, replace=False)
    S[hard] = rng.normal(scale=0.05, size=(20, 6)) + 0.7 * np.eye(6)[(y[hard] + 1) % 6]
    P = np.exp(S / 0.1) / np.exp(S / 0.1).sum(axis=1, keepdims=True)
    assert (P.argmax(axis=1) != y).sum() == 20
    assert label_errors(S, P, P, y, np.ones(len(y), bool)) == []
    S[hard[:10]] += (
        0.3 * np.eye(6)[(y[hard[:10]] + 1) % 6]
    )  # ten of them become typical rows of the other class
    P = np.exp(S / 0.1) / np.exp(S / 0.1).sum(axis=1, keepdims=True)
    assert (
        5
        <= len(
            {e[0] for e in label_errors(S, P, P, y, np.ones(len(y), bool))}
            & set(hard[:10].tolist())
        )
        <= 10
    )
