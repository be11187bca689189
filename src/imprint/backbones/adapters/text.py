"""Sentence encoders in ONNX files that carry their tokeniser, through ONNX Runtime."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from imprint.backbones.adapters.onnx import session, with_outputs
from imprint.backbones.backbone import Backbone, thread_count
from imprint.backbones.record import Record, read_weights
from imprint.core.arrays import Array
from imprint.core.errors import FileError, ParameterError

VERSION = 1
PASS_TEXTS = 8  # texts of one length per pass of the network; more is not faster


class SentenceEncoder(Backbone):
    """The average of a text's token embeddings, not scaled to unit length.

    Only texts of the same number of tokens share a batch, so nothing is padded and a
    text's embedding does not depend on the other texts in its batch.
    """

    def __init__(self, record: Record, device: str, threads: int | None):
        from tokenizers import Tokenizer

        content, digest = read_weights(record)
        super().__init__(record, digest, VERSION)
        self.device, self._threads = device, thread_count(threads)
        self._tensors = averaged_tensors(record)
        inner = [tensor for tensor in self._tensors if tensor != record.layer]
        content = with_outputs(record.name, content, inner)
        self._session = session(record.name, content, device, 1)
        tokenizer = self._session.get_modelmeta().custom_metadata_map.get("tokenizer")
        if tokenizer is None or record.tokens is None:
            raise FileError(
                f"{record.name} needs a tokeniser in its file and tokens in its record."
            )
        self.tokenizer = Tokenizer.from_str(tokenizer)
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(record.tokens)

    def _forward(self, batch: Sequence[str]) -> Array:
        tokens = [self.tokenizer.encode(text).ids for text in batch]
        lengths = np.array([len(ids) for ids in tokens])
        # the longest first
        groups = [np.flatnonzero(lengths == n) for n in np.unique(lengths)[::-1]]
        out = np.empty((len(tokens), self.width), np.float32)

        def fill(rows: Array) -> None:
            out[rows] = self._run(np.array([tokens[row] for row in rows], np.int64))

        with ThreadPoolExecutor(self._threads) as pool:
            list(
                pool.map(
                    fill,
                    (
                        g[i : i + PASS_TEXTS]
                        for g in groups
                        for i in range(0, len(g), PASS_TEXTS)
                    ),
                )
            )
        return out

    def _run(self, ids: Array) -> Array:
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        values = self._session.run(self._tensors, inputs)
        return np.concatenate([layer.mean(1) for layer in values], axis=1)  # of tokens

    def count_truncated(self, texts: Sequence[str]) -> int:
        beginnings = self.cut(texts)
        encodings = map(self.tokenizer.encode, beginnings)
        return sum(
            len(beginning) < len(text) or bool(encoding.overflowing)
            for text, beginning, encoding in zip(texts, beginnings, encodings)
        )


def averaged_tensors(record: Record) -> list[str]:
    """The tensors that are averaged over the tokens: the layer, or those of blocks."""
    for block in record.blocks:
        if block.pooling != "tokens" or block.projected_from is not None:
            raise ParameterError(
                f"The block {block.name!r} of {record.name}: a block of texts must have"
                " the pooling 'tokens', without a projection."
            )
    if record.blocks:
        return [block.tensor for block in record.blocks]
    return [str(record.layer)]


load = SentenceEncoder
