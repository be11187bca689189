"""CLIP and SigLIP models of Hugging Face transformers: a name on the hub or a
folder.
"""

from pathlib import Path
from typing import Any

from imprint.backbones.backbone import (
    TorchBackbone,
    creating,
    import_extra,
    state_digest,
)
from imprint.backbones.preprocess import FILTERS, Preprocess
from imprint.backbones.record import Record
from imprint.core.errors import ParameterError

VERSION = 1


def load(
    source: str, device: str, threads: int | None, *, last: bool = False
) -> TorchBackbone:
    """Open the model, its tokeniser and its preprocessing; transformers fetches them
    into its own cache.

    It has no blocks, `last` or not: images and class names share the last layer only.
    """
    spec = f"clip:{source}"
    package = import_extra("transformers", "clip", spec)
    with creating(spec, device, "write clip:FOLDER with a model saved there"):
        model = package.AutoModel.from_pretrained(source)
        tokenizer = package.AutoTokenizer.from_pretrained(source)
        rule = package.AutoImageProcessor.from_pretrained(source).to_dict()
    if not hasattr(model, "get_image_features") or not hasattr(
        model, "get_text_features"
    ):
        raise ParameterError(
            f"{spec} is a {type(model).__name__}, without a tower for images and one"
            " for texts."
        )
    length = model.config.text_config.max_position_embeddings

    def embed_images(images: Any) -> Any:
        return _pooled(model.get_image_features(pixel_values=images))

    def embed_texts(texts: list[str]) -> Any:
        """Texts are padded to the longest length, as SigLIP was trained; to CLIP it
        makes no difference.
        """
        tokens = tokenizer(
            texts,
            padding="max_length",
            truncation=True,
            max_length=length,
            return_tensors="pt",
        )
        return _pooled(model.get_text_features(**tokens.to(model.device)))

    record = Record(
        name=spec,
        adapter="clip",
        width=int(embed_texts(["a"]).shape[-1]),
        preprocess=_preprocess(spec, rule),
        source=source if Path(source).is_dir() else f"https://huggingface.co/{source}",
    )
    identity = f"{state_digest(model)}\n{sorted(tokenizer.get_vocab().items())!r}"
    return TorchBackbone(
        record, model, identity, VERSION, device, threads, embed_images, embed_texts
    )


def _pooled(output: Any) -> Any:
    """The embeddings: a tensor before transformers 5, a part of the output since."""
    return getattr(output, "pooler_output", output)


def _preprocess(spec: str, rule: dict[str, Any]) -> Preprocess:
    crop = rule["crop_size"] if rule.get("do_center_crop") else rule["size"]
    size, shortest = (
        [crop.get("height"), crop.get("width")],
        rule["size"].get("shortest_edge"),
    )
    if (
        None in size
        or (shortest is None and crop != rule["size"])
        or not rule.get("do_normalize", True)
    ):
        raise ParameterError(
            f"{spec} needs {rule['size']} cropped to {crop}, which is not supported."
        )
    scale = {
        "divide": 1 / rule["rescale_factor"],
        "mean": rule["image_mean"],
        "std": rule["image_std"],
    }
    return Preprocess.planes(
        size=size, resize=shortest, filter=FILTERS[int(rule["resample"])], **scale
    )
