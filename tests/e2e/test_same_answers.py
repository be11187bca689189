"""A model gives the same predictions through every interface, to 1e-6, on 100 real inputs of each kind."""

import csv
import json
from contextlib import redirect_stdout, suppress
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from imprint import ImprintClassifier, Imprinter
from imprint.cli import main
from imprint.export import export

MAILS = Path(__file__).parent / "mails.csv"
CLOSE = dict(rtol=0, atol=1e-6)


def onnx_answers(path, rows):
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0].name
    return dict(
        zip((o.name for o in session.get_outputs()), session.run(None, {given: rows}))
    )


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    return X[:800], np.char.add("digit ", y[:800].astype(str)), X[800:900]


@pytest.fixture(scope="module")
def mails():
    with MAILS.open(encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    texts = [row["text"] for row in rows]
    more = [f"{text} Please answer soon." for text in texts[:40]]
    return texts, [row["label"] for row in rows], [*texts, *more]


@pytest.mark.parametrize("aggregator", ["kernel", "max", "nearest(m=3)"])
def test_embeddings(digits, tmp_path, aggregator):
    X, y, Q = digits
    model = ImprintClassifier(
        generator="kmeans(k=20)", aggregator=aggregator, calibrate=True
    ).fit(X, y)
    P, known = model.predict_proba(Q), model.known(Q)
    assert len(np.unique(known)) > 30

    model.save(tmp_path / "m.imprint")
    back = ImprintClassifier.load(tmp_path / "m.imprint")
    np.testing.assert_allclose(back.predict_proba(Q), P, **CLOSE)
    np.testing.assert_allclose(back.known(Q), known, **CLOSE)

    grown = (
        ImprintClassifier.load(tmp_path / "m.imprint")
        .partial_fit(Q[:9] + 50, ["none"] * 9)
        .forget("none")
    )
    np.testing.assert_allclose(grown.predict_proba(Q), P, **CLOSE)
    np.testing.assert_allclose(grown.known(Q), known, **CLOSE)

    export(model, tmp_path / "m.onnx")
    answers = onnx_answers(tmp_path / "m.onnx", Q)
    np.testing.assert_allclose(
        answers["probabilities"], P, rtol=0, atol=5e-6
    )  # the graph of kernel is in float64
    np.testing.assert_allclose(answers["known"], known, **CLOSE)

    np.save(tmp_path / "queries.npy", Q)
    printed = terminal(
        tmp_path / "m.imprint", tmp_path / "queries.npy", tmp_path, len(model.classes_)
    )
    agree(printed, model.classes_, P, known)


def test_texts(mails, tmp_path):
    texts, labels, queries = mails
    model = Imprinter("minilm", cache=False).fit((texts, labels))
    P, known = model.predict_proba(queries), model.known(queries)
    model.save(tmp_path / "m.imprint")
    back = Imprinter.load(tmp_path / "m.imprint", cache=False)
    np.testing.assert_allclose(back.predict_proba(queries), P, **CLOSE)
    np.testing.assert_allclose(back.known(queries), known, **CLOSE)
    again = back.add((["A", "B", "C"], ["other"] * 3)).forget("other")
    np.testing.assert_allclose(again.predict_proba(queries), P, **CLOSE)
    np.testing.assert_allclose(again.known(queries), known, **CLOSE)
    export(model, tmp_path / "m.onnx", head_only=True)
    answers = onnx_answers(tmp_path / "m.onnx", model.look(queries).X)
    np.testing.assert_allclose(answers["probabilities"], P, **CLOSE)
    np.testing.assert_allclose(answers["known"], known, **CLOSE)
    table = tmp_path / "queries.csv"
    with table.open("w", encoding="utf-8", newline="") as f:
        csv.writer(f).writerows([["text"], *([text] for text in queries)])
    agree(
        terminal(tmp_path / "m.imprint", table, tmp_path, len(model.classes_)),
        model.classes_,
        P,
        known,
    )


def terminal(model, data, folder, classes):
    """The output of `imprint predict --json`."""
    out = folder / "answers.json"
    with out.open("w") as f, redirect_stdout(f), suppress(SystemExit):
        main(["predict", str(model), str(data), "--json", "--top", str(classes)])
    return json.loads(out.read_text())


def agree(printed, classes, P, known):
    """Assert that the probabilities and p-values in the terminal output agree with the expected ones."""
    place = {str(label): c for c, label in enumerate(classes.tolist())}
    assert len(printed) == len(P)
    for answer, row, p_value in zip(printed, P, known):
        for guess in answer["top"]:
            assert guess["probability"] == pytest.approx(
                row[place[guess["label"]]], abs=1e-6
            )
        assert answer["known"] == pytest.approx(p_value, abs=1e-6)
