"""Texts through sentence-transformers: a name on the Hugging Face hub or a folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from imprint.backbones.backbone import (
    Backbone,
    creating,
    import_extra,
    state_digest,
    torch_module,
)
from imprint.backbones.block import Block, projection
from imprint.backbones.record import Record
from imprint.backbones.torch_blocks import OUTPUT
from imprint.core.arrays import Array

VERSION = 1


MAX_LAYERS = 5  # inner ones that are blocks, as of the six-layer model that ships
MAX_WIDTH = 512  # numbers of such a block; wider ones are projected


class SentenceBackbone(Backbone):
    """A sentence-transformers model; it tokenises, embeds and pools.

    Its blocks are its own embedding, and the means of inner layers over the tokens.
    """

    def __init__(self, record: Record, model: Any, device: str, threads: int | None):
        vocabulary = sorted(model.tokenizer.get_vocab().items())
        identity = [
            state_digest(model),
            repr(model),
            repr(model.max_seq_length),
            repr(vocabulary),
        ]
        super().__init__(record, "\n".join(identity), VERSION)
        self.device, self._model = device, model.eval()
        if record.blocks:
            inner = [block for block in record.blocks if block.tensor != OUTPUT]
            _transformer(model).config.output_hidden_states = True
            # the last module, whose output `encode` returns in the order of the texts
            list(model.children())[-1].register_forward_hook(_appending(inner))
        if threads is not None and device == "cpu":
            torch_module().set_num_threads(threads)

    def _forward(self, batch: Sequence[str]) -> Array:
        options = {
            "convert_to_numpy": True,
            "show_progress_bar": False,
            "device": self.device,
        }
        return self._model.encode(list(batch), batch_size=len(batch), **options)


def load(
    source: str, device: str, threads: int | None, *, last: bool = False
) -> SentenceBackbone:
    """Open the model; sentence-transformers fetches the weights into its own cache.

    With `last`, it has no blocks.
    """
    spec = f"sentence:{source}"
    package = import_extra("sentence_transformers", "sentence", spec)
    with creating(spec, device, "write sentence:FOLDER with a model saved there"):
        model = package.SentenceTransformer(source, device=device)
    dimension = (
        getattr(model, "get_embedding_dimension", None)
        or model.get_sentence_embedding_dimension
    )
    width = int(dimension())
    blocks = () if last else _blocks(model, width)
    record = Record(
        name=spec,
        adapter="sentence",
        modality="text",
        width=sum(block.width for block in blocks) or width,
        blocks=blocks,
        source=source if Path(source).is_dir() else f"https://huggingface.co/{source}",
        licence=getattr(model.model_card_data, "license", None),
    )
    return SentenceBackbone(record, model, device, threads)


def _transformer(model: Any) -> Any:
    """The network of the first module; None if it is not a transformer."""
    first = next(iter(model.children()))
    return getattr(first, "auto_model", None) or getattr(first, "model", None)


def _blocks(model: Any, width: int) -> tuple[Block, ...]:
    """The blocks of a model: its embedding, then inner layers, evenly spaced."""
    network = _transformer(model)
    config = getattr(network, "config", None)
    layers = getattr(config, "num_hidden_layers", None)
    hidden = getattr(config, "hidden_size", None)
    if not layers or not hidden or layers < 2 or model.truncate_dim is not None:
        return ()
    inner = layers - 1
    count = min(inner, MAX_LAYERS)
    chosen = np.linspace(1, inner, count).round()
    narrow = min(hidden, MAX_WIDTH)
    last = Block(
        name="last",
        tensor=OUTPUT,
        width=width,
    )
    blocks = [last]
    for layer in chosen.astype(int).tolist():
        blocks.append(
            Block(
                name=f"layer {layer}",
                tensor=str(layer),
                pooling="tokens",
                width=narrow,
                projected_from=hidden if hidden > narrow else None,
            )
        )
    return tuple(blocks)


def _appending(blocks: Sequence[Block]) -> Any:
    """A hook that appends the means of inner layers to the embeddings of a batch."""
    torch = torch_module()
    matrices = {}
    for block in blocks:
        if block.projected_from is not None:
            matrix = projection(block.projected_from, block.width)
            matrices[block] = torch.from_numpy(matrix)

    def append(module: Any, inputs: Any, features: Any) -> Any:
        mask = features["attention_mask"].unsqueeze(-1)
        rows = [features["sentence_embedding"]]
        for block in blocks:
            layer = features["all_layer_embeddings"][int(block.tensor)]
            mean = (layer * mask).sum(dim=1) / mask.sum(dim=1)
            if block in matrices:
                mean = mean @ matrices[block].to(mean)
            rows.append(mean)
        features["sentence_embedding"] = torch.cat(rows, dim=1)
        return features

    return append
