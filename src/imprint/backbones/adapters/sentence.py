"""Texts through sentence-transformers: a name on the Hugging Face hub or a folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from imprint.backbones.backbone import TextBackbone, creating, extra
from imprint.backbones.record import Record
from imprint.backbones.torch_backbone import check_device, state_digest, torch_module
from imprint.core.types import Array

VERSION = 1


class SentenceBackbone(TextBackbone):
    """A sentence-transformers model; it tokenises, embeds and pools."""

    def __init__(self, record: Record, model: Any, device: str, threads: int | None):
        super().__init__(record, _identity(model), VERSION)
        self.device, self._model = device, model.eval()
        if threads is not None and device == "cpu":
            torch_module().set_num_threads(threads)

    def _forward(self, batch: Sequence[str]) -> Array:
        texts = list(batch)
        out: Array = self._model.encode(
            texts, batch_size=len(texts), convert_to_numpy=True, show_progress_bar=False, device=self.device
        )
        return out


def _identity(model: Any) -> str:
    """Weights, modules and vocabulary: everything that changes an embedding."""
    words = sorted(model.tokenizer.get_vocab().items())
    return "\n".join([state_digest(model), repr(model), repr(model.max_seq_length), repr(words)])


def load(source: str, device: str, threads: int | None) -> SentenceBackbone:
    """Open the model; sentence-transformers fetches the weights into its own cache."""
    spec = f"sentence:{source}"
    package = extra("sentence_transformers", "sentence", spec)
    check_device(spec, device)
    with creating(spec, "write sentence:FOLDER with a model saved there"):
        model = package.SentenceTransformer(source, device=device)
    return SentenceBackbone(describe(source, model), model, device, threads)


def describe(name: str, model: Any) -> Record:
    """The record, from the metadata of the model."""
    dimension = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    card = model.model_card_data
    return Record(
        name=f"sentence:{name}",
        adapter="sentence",
        modality="text",
        width=int(dimension()),
        source=name if Path(name).is_dir() else f"https://huggingface.co/{name}",
        licence=getattr(card, "license", None),
    )
