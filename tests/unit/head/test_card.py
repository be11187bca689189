"""Model cards: the description of a model file, in the format of the Hugging Face Hub."""

import html
import json
import re
from dataclasses import replace

import numpy as np
import pytest
import yaml
from sklearn.datasets import load_digits

from imprint import ImprintClassifier, Imprinter
from imprint.core.files import container


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600].astype(np.float32), y[:600]


def test_a_card_states_data_accuracy_and_limits(digits, tmp_path):
    X, y = digits
    model = Imprinter("embeddings").fit(X, y)
    card = model.card()
    assert card.rows_per_class == tuple(np.bincount(y).tolist())
    assert card.expected_accuracy == model.expected_accuracy_
    text = card.markdown("digits.imprint")
    front = yaml.safe_load(text.split("---")[1])
    assert front["library_name"] == "imprint"
    assert front["model-index"][0]["results"][0]["metrics"][0][
        "value"
    ] == pytest.approx(card.expected_accuracy, abs=1e-4)
    for words in (
        "600 embeddings of 10 classes",
        "95 % interval",
        "imprint predict digits.imprint",
        "does not do",
    ):
        assert words in text
    json.dumps(card.as_json())


@pytest.mark.parametrize(
    "make",
    [lambda: ImprintClassifier(), lambda: Imprinter("embeddings", calibrate=False)],
)
def test_saved_models_carry_their_card(digits, tmp_path, make):
    make().fit(*digits).save(tmp_path / "m.imprint")
    document, _ = container.read(tmp_path / "m.imprint")
    assert "600 embeddings of 10 classes" in document["card"]
    assert "It is not calibrated" in document["card"]
    assert Imprinter.load(tmp_path / "m.imprint").card().rows_per_class == tuple(
        np.bincount(digits[1]).tolist()
    )


def test_labels_cannot_break_the_table_or_the_front_matter():
    rows = np.eye(2, dtype=np.float32)
    text = (
        Imprinter("embeddings", recipe="janson2022")
        .fit(rows, ["a|b\n---", "\x1b[31m"])
        .card()
        .markdown()
    )
    assert "a\\|b" in text
    assert "\x1b" not in text
    assert text.count("\n---\n") == 1


def test_labels_are_text_on_the_card_not_markup():
    markdown_it = pytest.importorskip("markdown_it")
    labels = [
        "<img src=x onerror=alert(1)>",
        "[click](javascript:alert(1))",
        "`code` *bold* __init__",
        "![](https://example.org/x.png)",
        "https://example.org",
        "card_delivery_estimate",
        "a\\",
        "&lt;b&gt;",
    ]
    X = np.eye(len(labels), dtype=np.float32)
    card = Imprinter("embeddings", recipe="janson2022").fit(X, labels).card()
    # the hub's flavour of Markdown: tables, raw HTML, bare addresses
    page = markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table")
    rendered = page.render(card.markdown().split("## Classes")[1].split("##")[0])
    for markup in ("<img", "<a ", "<code", "<em", "<strong"):
        assert markup not in rendered
    cells = re.findall(r"<td>(.*?)</td>", rendered)
    assert sorted(html.unescape(cell) for cell in cells) == sorted(labels)
    assert "card_delivery_estimate" in card.markdown()


def test_what_a_model_file_states_about_its_network_is_text_too():
    card = replace(
        Imprinter("embeddings").fit(np.eye(2), ["a", "b"]).card(),
        backbone={
            "name": "<script>x</script>",
            "fingerprint": "`<b>",
            "blocks": [{"name": "<i>", "width": 3}],
            "licence": "<a href=x>",
            "pretraining": "|<u>|",
        },
    )
    assert not re.search(r"<(script|b|i|a|u)\b", card.markdown())
