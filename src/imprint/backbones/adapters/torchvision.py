"""Networks of torchvision with its IMAGENET1K_V1 weights: the four of the paper, and
any other by its name there.
"""

import os
import pickle
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from imprint.backbones.backbone import (
    TorchBackbone,
    check_device,
    import_extra,
    torch_module,
)
from imprint.backbones.block import Block
from imprint.backbones.preprocess import Preprocess
from imprint.backbones.record import Record, location, verified_sha256
from imprint.backbones.torch_blocks import choose_blocks
from imprint.core.errors import FileError, ParameterError, first_line, unknown

VERSION = 2
PREFIX = "torchvision:"
# the modules whose children are the stages or layers of a network
STAGES = ("features", "encoder.layers", "blocks", "trunk_output")
# they scale their input, but only with published weights
TRANSFORMING_NETWORKS = ("googlenet", "inception_v3")


def load(
    source: Record | str, device: str, threads: int | None, *, last: bool = False
) -> TorchBackbone:
    """Build the network, read its weights from torch's cache (downloaded where missing)
    and drop the classifier.

    With `last`, a network without a record here has no blocks.
    """
    record = source if isinstance(source, Record) else describe(source)
    if last:
        record = replace(record, blocks=(), width=record.last_layer().width)
    network, path = architecture(record.name), location(record)
    check_device(record.name, device)
    if not path.is_file():
        _download(record.download or "", path, record.sha256)
    weights = verified_sha256(path, record.sha256)
    try:
        state = torch_module().load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError) as e:
        raise FileError(f"{path} is not a file of weights: {first_line(e)}.") from None
    network.load_state_dict(state, assign=True)
    return TorchBackbone(
        record, without_classifier(network), weights, VERSION, device, threads
    )


def describe(name: str) -> Record:
    """The record of a network without one here, from the metadata of torchvision's
    weights.
    """
    spec = PREFIX + name
    models = import_extra("torchvision.models", "torch", spec)
    names = models.list_models(module=models)
    if name not in names:
        raise unknown("torchvision model", name, names)
    weights = getattr(models.get_model_weights(name), "IMAGENET1K_V1", None)
    if weights is None:
        raise ParameterError(
            f"load({spec!r}): torchvision has no weights IMAGENET1K_V1 of it."
        )
    if name in TRANSFORMING_NETWORKS:
        raise ParameterError(
            f"load({spec!r}): it transforms its input itself, which is not supported."
        )
    rule, network = weights.transforms(), architecture(spec)
    file = weights.url.rsplit("/", 1)[-1]
    scale = {"filter": rule.interpolation.value, "mean": rule.mean, "std": rule.std}
    digits = re.search(r"-([0-9a-f]{8})\.pth$", file)
    preprocess = Preprocess.planes(
        size=rule.crop_size[0], resize=rule.resize_size[0], **scale
    )
    width = network.get_submodule(_classifier(spec, network)).in_features
    blocks = _blocks(network, width, preprocess)
    return Record(
        name=spec,
        adapter="torchvision",
        width=sum(block.width for block in blocks) or width,
        blocks=blocks,
        preprocess=preprocess,
        file=file,
        source=weights.url,
        sha256=digits and digits[1],
        licence=(
            "BSD-3-Clause (torchvision); the pre-training images have ImageNet's terms"
        ),
        pretraining="ImageNet-1K (ILSVRC 2012), torchvision IMAGENET1K_V1",
        top1=weights.meta["_metrics"]["ImageNet-1K"]["acc@1"],
    )


def _blocks(network: Any, width: int, rule: Preprocess) -> tuple[Block, ...]:
    """The blocks at the stages of a network, which may be on torch's meta device."""
    modules = dict(network.named_modules())
    names = [name for name in modules if re.fullmatch(r"layer\d", name)]
    for stages in STAGES:
        if stages in modules:
            children = modules[stages].named_children()
            names += [f"{stages}.{child}" for child, _ in children]
    device = next(network.parameters()).device
    blank = torch_module().zeros(1, rule.channels, *rule.size, device=device)

    def run() -> None:
        with torch_module().inference_mode():
            network.eval()(blank)

    return choose_blocks(network, names, width, run)


def architecture(name: str) -> Any:
    """The network with its classifier, on torch's meta device: its parameters have no
    memory yet.
    """
    torch, models = (
        import_extra("torch", "torch", name),
        import_extra("torchvision.models", "torch", name),
    )
    with torch.device("meta"):
        return models.get_model(name.removeprefix(PREFIX), weights=None)


def without_classifier(network: Any) -> Any:
    """The network without its last layer."""
    network.set_submodule(
        _classifier(type(network).__name__, network), torch_module().nn.Identity()
    )
    return network


def _classifier(spec: str, network: Any) -> str:
    """The name of the last layer, which must be linear."""
    layers = [
        (name, layer)
        for name, layer in network.named_modules()
        if getattr(layer, "weight", None) is not None
    ]
    name, last = layers[-1]
    if not isinstance(last, torch_module().nn.Linear):
        raise ParameterError(
            f"load({spec!r}): its last layer is not linear, so it has no embedding."
        )
    return str(name)


def _download(url: str, path: Path, sha256: str | None) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        torch_module().hub.download_url_to_file(
            url, os.fspath(path), sha256, progress=sys.stderr.isatty()
        )
    except (OSError, RuntimeError) as e:
        advice = f"download it elsewhere and put it at {path}"
        raise FileError(f"Cannot download {url} ({first_line(e)}): {advice}.") from None
