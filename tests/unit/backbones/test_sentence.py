"""Texts through sentence-transformers, with a small random model created in the test."""

import numpy as np
import pytest

from imprint.backbones import load
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


def test_offline_the_message_says_what_to_write(monkeypatch):
    def unreachable(*args, **kwargs):
        raise OSError("no network")

    monkeypatch.setattr(package, "SentenceTransformer", unreachable)
    with pytest.raises(
        FileError,
        match=r"sentence:a/b could not be created \(no network\).*write sentence:FOLDER",
    ):
        load("sentence:a/b")
