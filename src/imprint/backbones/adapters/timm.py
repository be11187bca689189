"""Any image model of timm, by its name there."""

from typing import Any

from imprint.backbones.backbone import (
    TorchBackbone,
    creating,
    import_extra,
    state_digest,
    torch_module,
)
from imprint.backbones.block import Block
from imprint.backbones.preprocess import Preprocess
from imprint.backbones.record import Record
from imprint.backbones.torch_blocks import choose_blocks
from imprint.core.errors import ParameterError, unknown

VERSION = 1


def load(
    source: str,
    device: str,
    threads: int | None,
    *,
    last: bool = False,
    pretrained: bool = True,
) -> TorchBackbone:
    """Create the model without its classifier; timm fetches the weights into its own
    cache.

    Its blocks are inner modules that timm lists as its features; with `last`, it has
    none.
    """
    spec = f"timm:{source}"
    timm = import_extra("timm", "timm", spec)
    if not timm.is_model(source):
        raise unknown("timm model", source, timm.list_models())
    with creating(
        spec, device, "its weights must be in Hugging Face's cache (HF_HOME)"
    ):
        module = timm.create_model(source, pretrained=pretrained, num_classes=0)
    config = module.pretrained_cfg
    hub = config.get("hf_hub_id")
    data = import_extra("timm.data", "timm", spec)
    preprocess = _preprocess(spec, data.resolve_model_data_config(module))
    width = int(getattr(module, "head_hidden_size", module.num_features))
    blocks = () if last else _blocks(module, width, preprocess)
    record = Record(
        name=spec,
        adapter="timm",
        width=sum(block.width for block in blocks) or width,
        blocks=blocks,
        preprocess=preprocess,
        source=f"https://huggingface.co/{hub}" if hub else config.get("url") or None,
        licence=config.get("license"),
        pretraining=config.get("tag"),
        citation=config.get("paper_name"),
    )
    return TorchBackbone(record, module, state_digest(module), VERSION, device, threads)


def _blocks(module: Any, width: int, rule: Preprocess) -> tuple[Block, ...]:
    """The blocks at the features that timm lists."""
    features = getattr(module, "feature_info", None)
    if not isinstance(features, list):
        return ()
    known = {name for name, _ in module.named_modules()}
    names = [str(feature["module"]) for feature in features]
    blank = torch_module().zeros(1, rule.channels, *rule.size)

    def run() -> None:
        with torch_module().inference_mode():
            module.eval()(blank)

    return choose_blocks(module, [name for name in names if name in known], width, run)


def _preprocess(spec: str, cfg: dict[str, Any]) -> Preprocess:
    (channels, height, width), mode = cfg["input_size"], cfg["crop_mode"]
    resize = int(height / cfg["crop_pct"])
    fits = mode == "center" or (mode == "squash" and resize == height)
    if channels not in (1, 3) or height != width or not fits:
        raise ParameterError(
            f"{spec} takes {cfg['input_size']} by '{mode}' from {resize}, which is not"
            " supported."
        )
    scale = {"filter": cfg["interpolation"], "mean": cfg["mean"], "std": cfg["std"]}
    colour = "rgb" if channels == 3 else "grey"
    return Preprocess.planes(
        size=height, resize=None if mode == "squash" else resize, colour=colour, **scale
    )
