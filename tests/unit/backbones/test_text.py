"""The sentence encoder that ships with the package."""

from types import SimpleNamespace

import numpy as np
import pytest

from imprint.backbones import Record, load
from imprint.backbones.adapters.onnx import session
from imprint.core.errors import ParameterError
from imprint.imprinter import items

TEXTS = [
    "I lost my card",
    "My card is gone",
    "What is the weather like today in Paris?",
    "",
    "naïve café 東京 🙂",
    "word " * 500,
    "a\x00b\n\tc",
]


@pytest.fixture(scope="module")
def minilm():
    return load("minilm", threads=2)


def test_texts_of_similar_meaning_have_similar_embeddings():
    minilm = load("minilm:last", threads=2)
    out = minilm.embed([minilm.prepare(t) for t in TEXTS])
    assert (minilm.modality, out.shape, out.dtype) == (
        "text",
        (len(TEXTS), 384),
        np.dtype(np.float32),
    )
    assert np.isfinite(out).all()
    unit = out / np.linalg.norm(out, axis=1, keepdims=True)
    assert unit[0] @ unit[1] > 0.6 > 0.3 > unit[0] @ unit[2]
    assert minilm.embed([]).shape == (0, 384)


def test_a_text_is_embedded_alone_as_among_others(minilm):
    alone = np.concatenate([minilm.embed([t]) for t in TEXTS])
    many = [t for t in TEXTS for _ in range(9)][::-1]
    together = minilm.embed(many)[::-1][::9]
    assert np.array_equal(alone, together)
    assert np.array_equal(load("minilm", threads=1).embed(TEXTS), alone)


def test_only_whole_batches_of_one_length_reach_the_network(minilm, monkeypatch):
    seen, run = [], minilm._run
    monkeypatch.setattr(minilm, "_run", lambda ids: seen.append(ids.shape) or run(ids))
    minilm.embed(["one two", "three four", "five six seven", *["eight"] * 10])
    assert sorted(seen) == [(1, 5), (2, 3), (2, 4), (8, 3)]


def test_a_long_text_is_cut_before_it_is_tokenised(minilm, monkeypatch):
    """The tokeniser needs 60 bytes per character of a text, and ends the process if it gets none."""
    lengths, tokenizer = [], minilm.tokenizer

    class Recording:
        def encode(self, text):
            lengths.append(len(text))
            return tokenizer.encode(text)

    long = "a sentence of some words. " * 800_000  # 20 MB
    monkeypatch.setattr(minilm, "tokenizer", Recording())
    row = minilm.embed([minilm.prepare(long)])
    assert minilm.count_truncated([long, "short", "long " * 200]) == 2
    assert minilm.embed_names([long]).shape == (1, 6 * 384)
    assert max(lengths) <= 128 * 256
    assert np.array_equal(row, minilm.embed([long[:5000]]))


def test_only_the_beginning_of_a_long_text_decides_whether_it_is_foreign(monkeypatch):
    lengths = []
    monkeypatch.setattr(
        items, "is_foreign", lambda text: lengths.append(len(text)) or False
    )
    assert not list(items._text_notices(["x " * 10_000_000], load("minilm")))[1:]
    assert lengths == [128 * 256]


def test_tokens_beyond_the_limit_are_cut_off(minilm):
    long = "word " * 126
    assert np.array_equal(
        minilm.embed([long])[0], minilm.embed([long + "other words"])[0]
    )
    assert not np.array_equal(
        minilm.embed([long])[0], minilm.embed(["other " + long])[0]
    )


@pytest.mark.parametrize(
    ("item", "rule"),
    [(b"bytes", "must be a str"), (3, "must be a str"), ("\ud800", "surrogates")],
)
def test_only_texts_are_prepared(minilm, item, rule):
    with pytest.raises(ParameterError, match=rule):
        minilm.prepare(item)


def test_loading_and_running_prints_nothing(capfd):
    load("minilm").embed(TEXTS)
    assert capfd.readouterr() == ("", "")


def test_a_backbone_states_its_device(monkeypatch):
    """The Ray engine requests a GPU for a backbone that is not on the CPU."""
    from imprint.backbones.adapters import sentence, text

    monkeypatch.setattr(
        text,
        "session",
        lambda name, content, device, threads: session(name, content, "cpu", threads),
    )
    assert (load("minilm", "cuda").device, load("minilm").device) == ("cuda", "cpu")
    words = SimpleNamespace(get_vocab=dict)
    model = SimpleNamespace(
        tokenizer=words, max_seq_length=8, state_dict=dict, eval=lambda: None
    )
    record = Record(name="sentence:x", adapter="sentence", modality="text", width=4)
    assert sentence.SentenceBackbone(record, model, "cuda:0", None).device == "cuda:0"
