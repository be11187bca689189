"""Texts through sentence-transformers: a name on the Hugging Face hub or a folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from imprint.backbones.backbone import (
    Backbone,
    creating,
    import_extra,
    state_digest,
    torch_module,
)
from imprint.backbones.record import Record
from imprint.core.arrays import Array

VERSION = 1


class SentenceBackbone(Backbone):
    """A sentence-transformers model; it tokenises, embeds and pools."""

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
        if threads is not None and device == "cpu":
            torch_module().set_num_threads(threads)

    def _forward(self, batch: Sequence[str]) -> Array:
        options = {
            "convert_to_numpy": True,
            "show_progress_bar": False,
            "device": self.device,
        }
        return self._model.encode(list(batch), batch_size=len(batch), **options)


def load(source: str, device: str, threads: int | None) -> SentenceBackbone:
    """Open the model; sentence-transformers fetches the weights into its own cache."""
    spec = f"sentence:{source}"
    package = import_extra("sentence_transformers", "sentence", spec)
    with creating(spec, device, "write sentence:FOLDER with a model saved there"):
        model = package.SentenceTransformer(source, device=device)
    dimension = (
        getattr(model, "get_embedding_dimension", None)
        or model.get_sentence_embedding_dimension
    )
    record = Record(
        name=spec,
        adapter="sentence",
        modality="text",
        width=int(dimension()),
        source=source if Path(source).is_dir() else f"https://huggingface.co/{source}",
        licence=getattr(model.model_card_data, "license", None),
    )
    return SentenceBackbone(record, model, device, threads)
