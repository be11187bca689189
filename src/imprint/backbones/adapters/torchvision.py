"""The four networks of the paper, from torchvision with its IMAGENET1K_V1 weights."""

import os
import pickle
import sys
from pathlib import Path
from typing import Any

from imprint.backbones.backbone import extra, reason
from imprint.backbones.record import Record, verified
from imprint.backbones.torch_backbone import TorchBackbone, check_device, torch_module
from imprint.core.errors import FileError

VERSION = 2


def load(source: Record, device: str, threads: int | None) -> TorchBackbone:
    """Build the network, read its weights from torch's cache (downloaded where missing) and drop the classifier."""
    network = architecture(source)
    check_device(source.name, device)
    path = _cached(source)
    weights = verified(path, source.sha256)
    network.load_state_dict(_state(path), assign=True)
    return TorchBackbone(source, without_classifier(network), weights, VERSION, device, threads)


def architecture(record: Record) -> Any:
    """The network, classifier included, its parameters still without memory."""
    torch = extra("torch", "torch", record.name)
    models = extra("torchvision.models", "torch", record.name)
    with torch.device("meta"):
        return models.get_model(record.name, weights=None)


def without_classifier(network: Any) -> Any:
    """The network up to its penultimate features."""
    (name,) = (n for n in ("fc", "heads", "head") if hasattr(network, n))
    setattr(network, name, torch_module().nn.Identity())
    return network


def _state(path: Path) -> Any:
    try:
        return torch_module().load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError) as e:
        raise FileError(f"{path} is not a file of weights: {reason(e)}.") from None


def _cached(record: Record) -> Path:
    hub, url = torch_module().hub, record.download or ""
    path = Path(hub.get_dir(), "checkpoints", record.file or "")
    if not path.is_file():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            hub.download_url_to_file(url, os.fspath(path), record.sha256, progress=sys.stderr.isatty())
        except (OSError, RuntimeError) as e:
            raise FileError(f"Cannot download {url} ({reason(e)}): fetch it elsewhere and put it at {path}.") from None
    return path
