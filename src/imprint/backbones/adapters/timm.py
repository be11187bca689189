"""Any picture model of timm, by its name there."""

from difflib import get_close_matches
from typing import Any

from imprint.backbones.backbone import creating, extra
from imprint.backbones.preprocess import Preprocess
from imprint.backbones.record import Record
from imprint.backbones.torch_backbone import TorchBackbone, check_device, state_digest
from imprint.core.errors import ParameterError
from imprint.core.family import unknown

VERSION = 1


def load(source: str, device: str, threads: int | None) -> TorchBackbone:
    """Create the model without its classifier; timm fetches the weights into its own cache."""
    return _load(source, device, threads, pretrained=True)


def _load(name: str, device: str, threads: int | None, pretrained: bool) -> TorchBackbone:
    timm = extra("timm", "timm", f"timm:{name}")
    if not timm.is_model(name):
        raise unknown("timm model", name, get_close_matches(name, timm.list_models(), 8, 0.5) or ["timm.list_models()"])
    check_device(f"timm:{name}", device)
    with creating(f"timm:{name}", "its weights must be in Hugging Face's cache (HF_HOME)"):
        module = timm.create_model(name, pretrained=pretrained, num_classes=0)
    return TorchBackbone(describe(name, module), module, state_digest(module), VERSION, device, threads)


def describe(name: str, module: Any) -> Record:
    """The record, from the metadata of timm's weights."""
    cfg = module.pretrained_cfg
    hub = cfg.get("hf_hub_id")
    return Record(
        name=f"timm:{name}",
        adapter="timm",
        width=int(getattr(module, "head_hidden_size", module.num_features)),
        preprocess=_preprocess(name, module),
        source=f"https://huggingface.co/{hub}" if hub else cfg.get("url") or None,
        licence=cfg.get("license"),
        pretraining=cfg.get("tag"),
        citation=cfg.get("paper_name"),
    )


def _preprocess(name: str, module: Any) -> Preprocess:
    cfg = extra("timm.data", "timm", f"timm:{name}").resolve_model_data_config(module)
    channels, height, width = cfg["input_size"]
    if channels not in (1, 3) or cfg["crop_mode"] not in ("center", "squash") or height != width:
        raise ParameterError(f"timm:{name} takes {cfg['input_size']} by '{cfg['crop_mode']}', which is not supported.")
    scaled = int(height / cfg["crop_pct"])
    if cfg["crop_mode"] == "squash" and scaled != height:
        raise ParameterError(f"timm:{name} squashes to {scaled} and crops {height}, which is not supported.")
    return Preprocess.planes(
        size=height,
        resize=None if cfg["crop_mode"] == "squash" else scaled,
        filter=cfg["interpolation"],
        colour="rgb" if channels == 3 else "grey",
        mean=list(cfg["mean"]),
        std=list(cfg["std"]),
    )
