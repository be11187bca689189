"""Predictions as JSON agree with the methods of `Imprinter`."""

import numpy as np
import pytest

from imprint import Imprinter
from imprint.core.errors import NotFittedError
from imprint.imprinter.predictor import predictions

LABELS = ("animal/cat", "animal/dog", "sky")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = np.repeat(LABELS, 20)
    return (
        rng.normal(size=(60, 5)) + 2 * np.eye(3, 5)[np.repeat(range(3), 20)]
    ).astype(np.float32), y


def test_predictions_agree_with_the_methods_of_the_model(rows):
    model = Imprinter("embeddings").fit(*rows)
    queries = model.look(rows[0][::7] + np.float32(0.5))
    answers = predictions(model.state.head, queries, top=2, level=1)
    assert [answer["label"] for answer in answers] == model.predict(
        queries, level=1
    ).tolist()
    assert [answer["known"] for answer in answers] == model.known(queries).tolist()
    expected = [
        [guess._asdict() for guess in guesses]
        for guesses in model.top(queries, 2, level=1)
    ]
    assert [answer["top"] for answer in answers] == expected
    assert all("node" not in answer and "doubt" not in answer for answer in answers)


def test_an_input_is_rejected_below_the_threshold_and_not_at_it(rows):
    model = Imprinter("embeddings", tree=True).fit(*rows)
    queries = model.look(rows[0][:1] - np.float32(1))
    p_value = float(model.known(queries)[0])
    at, above = (
        predictions(model.state.head, queries, unknown=unknown, with_doubt=True)[0]
        for unknown in (p_value, np.nextafter(p_value, 2))
    )
    assert (at["label"] is None, above["label"] is None) == (False, True)
    assert at["node"] is None
    assert at["doubt"] == pytest.approx(model.state.head.doubt(queries.X)[0])


def test_a_threshold_needs_a_calibrated_model(rows):
    model = Imprinter("embeddings", calibrate=False).fit(*rows)
    queries = model.look(rows[0][:2])
    assert [answer["known"] for answer in predictions(model.state.head, queries)] == [
        None,
        None,
    ]
    with pytest.raises(NotFittedError, match="calibrate=True"):
        predictions(model.state.head, queries, unknown=0.05)
