"""Texts through sentence-transformers, with a small random model created in the test."""

import numpy as np
import pytest

from imprint.backbones import load
from imprint.backbones.block import projection
from imprint.core.errors import FileError, ParameterError

package = pytest.importorskip("sentence_transformers")
transformers = pytest.importorskip("transformers")

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "lost",
    "my",
    "card",
    "weather",
    "today",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch, path = pytest.importorskip("torch"), tmp_path_factory.mktemp("model")
    (path / "vocab.txt").write_text("\n".join(WORDS))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
    )
    transformers.BertModel(config).save_pretrained(path / "bert")
    transformers.BertTokenizerFast(str(path / "vocab.txt")).save_pretrained(
        path / "bert"
    )
    return path / "bert"


def test_texts_become_rows(folder):
    b = load(f"sentence:{folder}", threads=1)
    out = b.embed(
        [b.prepare(t) for t in ("lost my card", "weather today", "lost my card")]
    )
    assert (b.modality, b.width, out.shape, out.dtype) == (
        "text",
        16,
        (3, 16),
        np.dtype(np.float32),
    )
    np.testing.assert_allclose(out[0], out[2], atol=1e-6)
    assert np.abs(out[0] - out[1]).max() > 1e-3
    assert b.embed([]).shape == (0, 16)
    assert b.fingerprint == load(f"sentence:{folder}").fingerprint
    with pytest.raises(ParameterError, match="A text must be a str"):
        b.prepare(b"bytes")


@pytest.fixture(scope="module")
def deep(tmp_path_factory):
    """A model of four layers, wider than a block may be."""
    torch, path = pytest.importorskip("torch"), tmp_path_factory.mktemp("deep")
    (path / "vocab.txt").write_text("\n".join(WORDS))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=600,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=32,
    )
    transformers.BertModel(config).save_pretrained(path / "bert")
    tokenizer = transformers.BertTokenizerFast(str(path / "vocab.txt"))
    tokenizer.save_pretrained(path / "bert")
    return path / "bert"


def test_inner_layers_are_blocks(deep):
    """The means of hidden states over the tokens of each text, whatever its batch is padded to."""
    torch = pytest.importorskip("torch")
    backbone = load(f"sentence:{deep}", threads=1)
    last = load(f"sentence:{deep}:last", threads=1)
    names = [block.name for block in backbone.blocks]
    assert names == ["last", "layer 1", "layer 2", "layer 3"]
    assert (backbone.width, last.width, last.blocks) == (600 + 3 * 512, 600, ())
    assert backbone.fingerprint != last.fingerprint
    texts = ["card", "lost my card today", "my weather"]
    rows = backbone.embed(texts)
    np.testing.assert_allclose(rows[:, :600], last.embed(texts), atol=1e-5)
    network = transformers.BertModel.from_pretrained(deep).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(deep)
    for text, row in zip(texts, rows):
        with torch.inference_mode():
            tokens = tokenizer(text, return_tensors="pt")
            hidden = network(**tokens, output_hidden_states=True).hidden_states
        for layer in (1, 2, 3):
            mean = hidden[layer][0].mean(0).numpy() @ projection(600, 512)
            part = row[600 + 512 * (layer - 1) :][:512]
            np.testing.assert_allclose(part, mean, rtol=1e-3, atol=1e-5)


def test_offline_the_message_says_what_to_write(monkeypatch):
    def unreachable(*args, **kwargs):
        raise OSError("no network")

    monkeypatch.setattr(package, "SentenceTransformer", unreachable)
    with pytest.raises(
        FileError,
        match=r"sentence:a/b could not be created \(no network\).*write sentence:FOLDER",
    ):
        load("sentence:a/b")
