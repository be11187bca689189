"""A model of texts: plain texts, JSON, forms and tensors."""

import json

import pytest

from imprint import Imprinter

from .conftest import serving

pytest.importorskip("tokenizers")

TEXTS = [
    *("where is my parcel", "the parcel has not arrived", "track my delivery"),
    *("I forgot my password", "reset the password", "I cannot log in"),
]
LABELS = ["delivery"] * 3 + ["account"] * 3
QUESTION = "when does the parcel come"


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "mails.imprint"
    Imprinter("minilm", cache=False).fit((TEXTS, LABELS)).save(path)
    with serving({"mails": path}) as client:
        yield client


FORM = (
    "--b\r\n"
    'Content-Disposition: form-data; name="first"\r\n\r\n'
    f"{QUESTION}\r\n"
    "--b--\r\n"
)


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (QUESTION, "text/plain"),
        (QUESTION, "text/plain; charset=utf-8"),
        (json.dumps({"inputs": [QUESTION]}), "application/json"),
        (FORM, "multipart/form-data; boundary=b"),
    ],
    ids=["text", "charset", "json", "form"],
)
def test_one_text_has_one_answer_however_it_is_sent(texts, body, media_type):
    status, answer = texts.json("POST", "/predict?top=1", body, content_type=media_type)
    assert status == 200
    (prediction,) = answer["predictions"]
    assert prediction["label"] == "delivery"
    assert len(prediction["top"]) == 1
    expected = texts.json("POST", "/predict", QUESTION, content_type="text/plain")[1]
    assert prediction["probability"] == pytest.approx(
        expected["predictions"][0]["probability"], abs=1e-6
    )


def test_a_batch_has_the_answers_of_its_texts_in_their_order(texts):
    inputs = [QUESTION, "my password is gone", QUESTION]
    status, answer = texts.json("POST", "/predict", {"inputs": inputs})
    assert status == 200
    labels = [prediction["label"] for prediction in answer["predictions"]]
    assert labels == ["delivery", "account", "delivery"]


def test_texts_as_a_tensor(texts):
    tensor = {"name": "inputs", "datatype": "BYTES", "shape": [2]}
    tensor["data"] = [QUESTION, "my password is gone"]
    request = {"inputs": [tensor], "outputs": [{"name": "label"}]}
    status, answer = texts.json("POST", "/v2/models/mails/infer", request)
    assert status == 200
    assert answer["outputs"][0]["data"] == ["delivery", "account"]


@pytest.mark.parametrize("blank", ["", "  \n"])
def test_a_blank_text_is_refused(texts, blank):
    status, answer = texts.json("POST", "/predict", {"inputs": [QUESTION, blank]})
    assert status == 400
    assert answer["error"] == "Cannot read text 2: the text is empty."
