"""Models in a real local MLflow: its files and its registry in SQLite."""

from pathlib import Path

import numpy as np
import pytest

from imprint import Imprinter
from imprint.export.mlflow import load_model, log_model

mlflow = pytest.importorskip("mlflow", reason="needs mlflow-skinny")
pytestmark = pytest.mark.filterwarnings("ignore")  # those of MLflow itself


@pytest.fixture
def tracking(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(f"file://{tmp_path}/runs")
    mlflow.set_experiment("tests")
    return tmp_path


def points():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 4)) + 4 * np.repeat(np.eye(2, 4), 12, axis=0)
    X = X.astype(np.float32)
    return Imprinter(cache=False).fit((X, ["a"] * 12 + ["b"] * 12)), X


def test_a_logged_model_answers_as_the_library(tracking):
    model, X = points()
    with mlflow.start_run():
        info = log_model(model, input_example=X[:2])
    answers = mlflow.pyfunc.load_model(info.model_uri).predict(X)
    assert answers["label"].tolist() == model.predict(X).tolist()
    np.testing.assert_array_equal(
        answers["probability"], model.predict_proba(X).max(axis=1)
    )
    np.testing.assert_array_equal(answers["known"], model.known(X))
    again = load_model(info.model_uri)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_logged_model_has_a_signature_an_example_and_no_pickle(tracking):
    model, X = points()
    with mlflow.start_run():
        info = log_model(model, input_example=X[:2])
    stated = mlflow.models.get_model_info(info.model_uri)
    assert stated.signature.inputs.inputs[0].shape == (-1, 4)
    assert [c.name for c in stated.signature.outputs.inputs] == [
        "label",
        "probability",
        "known",
    ]
    folder = mlflow.artifacts.download_artifacts(info.model_uri)
    files = {path.name for path in Path(folder).rglob("*")}
    assert {"model.imprint", "README.md", "requirements.txt", "MLmodel"} <= files
    assert "input_example.json" in files
    assert not {name for name in files if name.endswith((".pkl", ".pickle"))}


def test_texts_are_a_column(tracking):
    texts = ["my card is gone", "lost my card", "what is the weather", "will it rain"]
    model = Imprinter("minilm", threads=1, cache=False)
    model.fit((texts, ["card", "card", "weather", "weather"]))
    with mlflow.start_run():
        info = log_model(model, input_example=texts[:1])
    served = mlflow.pyfunc.load_model(info.model_uri)
    import pandas

    answers = served.predict(pandas.DataFrame({"text": texts}))
    assert answers["label"].tolist() == model.predict(texts).tolist()
