"""CLIP models of OpenCLIP: `open_clip:NAME/WEIGHTS`,
`open_clip:hf-hub:ORGANISATION/NAME`, or a folder.
"""

import os
from typing import Any

from imprint.backbones.backbone import (
    TorchBackbone,
    creating,
    import_extra,
    state_digest,
)
from imprint.backbones.preprocess import Preprocess
from imprint.backbones.record import Record
from imprint.core.errors import ParameterError, unknown

VERSION = 1


def load(
    source: str, device: str, threads: int | None, *, last: bool = False
) -> TorchBackbone:
    """Create the model and its tokeniser; open_clip fetches the weights into Hugging
    Face's cache.

    It has no blocks, `last` or not: images and class names share the last layer only.
    """
    spec = f"open_clip:{source}"
    package = import_extra("open_clip", "clip", spec)
    name, weights = _model_and_weights(package, source)
    with creating(
        spec, device, "write open_clip:FOLDER with a model that open_clip saved there"
    ):
        model = package.create_model(name, pretrained=weights, require_pretrained=True)
        tokenizer = package.get_tokenizer(name)
    preprocess = _preprocess(spec, package.get_model_preprocess_cfg(model))
    width = int(model.encode_text(tokenizer(["a"])).shape[-1])
    record = Record(
        name=spec,
        adapter="open_clip",
        width=width,
        preprocess=preprocess,
        source=source,
    )

    def embed_texts(texts: list[str]) -> Any:
        return model.encode_text(tokenizer(texts).to(device))

    return TorchBackbone(
        record,
        model,
        state_digest(model),
        VERSION,
        device,
        threads,
        model.encode_image,
        embed_texts,
    )


def _model_and_weights(package: Any, source: str) -> tuple[str, str | None]:
    """The model and the name of its weights, as open_clip takes them."""
    if source.startswith(("hf-hub:", "local-dir:")):
        return source, None
    if os.path.isdir(folder := os.path.expanduser(source)):
        return f"local-dir:{folder}", None
    name, _, weights = source.partition("/")
    if name not in package.list_models():
        raise unknown("open_clip model", name, package.list_models())
    tags = package.list_pretrained_tags_by_model(name)
    if weights not in tags:
        raise ParameterError(
            f"open_clip:{source}: name the weights, open_clip:{name}/WEIGHTS; there"
            f" are: {', '.join(tags)}."
        )
    return name, weights


def _preprocess(spec: str, cfg: dict[str, Any]) -> Preprocess:
    size = (
        list(cfg["size"])
        if isinstance(cfg["size"], tuple | list)
        else [cfg["size"]] * 2
    )
    mode = cfg.get("resize_mode") or "shortest"
    if mode not in ("shortest", "squash") or size[0] != size[1]:
        raise ParameterError(
            f"{spec} needs {tuple(size)} by '{mode}', which is not supported."
        )
    scale = {
        "filter": cfg.get("interpolation") or "bicubic",
        "mean": cfg["mean"],
        "std": cfg["std"],
    }
    return Preprocess.planes(
        size=size, resize=size[0] if mode == "shortest" else None, **scale
    )
