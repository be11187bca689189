"""Blocks of torch modules, with random weights: nothing is downloaded."""

import numpy as np
import pytest

from imprint.backbones import load
from imprint.backbones.backbone import TorchBackbone
from imprint.backbones.block import Block, projection
from imprint.backbones.preprocess import Preprocess
from imprint.backbones.record import Record
from imprint.core.errors import ParameterError

torch = pytest.importorskip("torch")

RULE = Preprocess.planes(size=32)


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)


class Network(torch.nn.Module):
    """Two convolutions, with the channels last after the second one, as in Swin."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Conv2d(3, 6, 3, stride=4)
        self.second = torch.nn.Conv2d(6, 10, 3)
        self.last = torch.nn.Sequential(torch.nn.Identity())
        self.tokens = torch.nn.Identity()

    def forward(self, x):
        x = self.second(torch.relu(self.first(x)))
        channels_last = self.last(x.permute(0, 2, 3, 1))
        self.tokens((channels_last.flatten(1, 2), None))
        return x.mean((2, 3))


def backbone(*blocks):
    record = Record(
        name="net",
        adapter="timm",
        width=sum(block.width for block in blocks),
        blocks=blocks,
        preprocess=RULE,
    )
    return TorchBackbone(record, Network(), "weights", 1, "cpu", None)


def quadrants(x):
    """Of (n, c, side, side); an odd side shares the middle."""
    side = x.shape[2]
    halves = [slice(None, side - side // 2), slice(side // 2, None)]
    means = [x[:, :, i, j].mean((2, 3)) for i in halves for j in halves]
    return np.stack(means, axis=2).reshape(len(x), -1)


def test_blocks_are_inner_outputs_pooled(images):
    network = Network().eval()
    x = torch.from_numpy(RULE.arrange(images))
    with torch.inference_mode():
        first = network.first(x)
        second = network.second(torch.relu(first)).numpy().astype(np.float64)
    first = first.numpy().astype(np.float64)
    tokens = second.transpose(0, 2, 3, 1).reshape(3, -1, 10)
    cases = [
        ("output", "none", second.mean((2, 3))),
        ("first", "mean", first.mean((2, 3))),
        ("first", "std", first.std((2, 3))),
        ("second", "quadrants", quadrants(second)),
        ("last", "quadrants", quadrants(second)),
        ("last", "none", second.transpose(0, 2, 3, 1).reshape(3, -1)),
        ("tokens", "tokens", tokens.mean(1)),
        ("tokens", "class_token", tokens[:, 0]),
        ("tokens", "patches", tokens[:, 1:].mean(1)),
    ]
    blocks = [
        Block(name=str(i), tensor=name, pooling=pooling, width=rows.shape[1])
        for i, (name, pooling, rows) in enumerate(cases)
    ]
    narrow = Block(
        name="narrow",
        tensor="second",
        pooling="quadrants",
        width=15,
        projected_from=40,
    )
    expected = [*(rows for _, _, rows in cases), quadrants(second) @ projection(40, 15)]
    rows = backbone(*blocks, narrow).embed(images)
    np.testing.assert_allclose(
        rows, np.concatenate(expected, axis=1), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tensor": "secnd"}, "Unknown module of net 'secnd'. Did you mean 'second'"),
        ({"width": 41}, "The block 'b' of net gives 40 numbers; its record says 41"),
        ({"pooling": "tokens"}, "has 4 axes, and the pooling 'tokens' needs 3"),
    ],
    ids=str,
)
def test_a_block_that_a_module_does_not_have_is_refused(images, change, message):
    facts = {"name": "b", "tensor": "second", "pooling": "quadrants", "width": 40}
    with pytest.raises(ParameterError, match=message):
        backbone(Block(**(facts | change))).embed(images)


@pytest.mark.parametrize(
    ("name", "blocks"),
    [
        (
            "resnet18",
            ["last", "layer2 quadrants", "layer3 quadrants", "layer4 quadrants"],
        ),
        (
            "swin_t",
            [
                "last",
                "features.3 quadrants",
                "features.5 quadrants",
                "features.7 quadrants",
            ],
        ),
        (
            "vit_b_16",
            [
                "last",
                *(
                    f"encoder.layers.encoder_layer_{i} {part}"
                    for i in (5, 8, 11)
                    for part in ("class token", "patches")
                ),
            ],
        ),
        (
            "mobilenet_v2",
            [
                "last",
                "features.6 quadrants",
                "features.13 quadrants",
                "features.18 quadrants",
            ],
        ),
    ],
)
def test_networks_of_torchvision_have_blocks_at_their_stages(torchvision, name, blocks):
    from imprint.backbones.adapters import torchvision as adapter

    record = adapter.describe(name)
    assert [block.name for block in record.blocks] == blocks
    assert record.width == sum(block.width for block in record.blocks)
    assert max(block.width for block in record.blocks[1:]) <= 512


def test_a_network_of_torchvision_reads_its_blocks_in_one_pass(
    torchvision, tmp_path, monkeypatch
):
    from dataclasses import replace

    from imprint.backbones.adapters import torchvision as adapter

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    described = adapter.describe("resnet18")
    unchecked = replace(described, sha256=None)
    monkeypatch.setattr(adapter, "describe", lambda name: unchecked)
    torch.manual_seed(0)
    network = torchvision.models.resnet18(weights=None).eval()
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    torch.save(network.state_dict(), folder / described.file)
    backbone = load("torchvision:resnet18", threads=1)
    last = load("torchvision:resnet18:last", threads=1)
    assert (backbone.width, last.width, last.blocks) == (2048, 512, ())
    assert backbone.fingerprint != last.fingerprint
    items = np.random.default_rng(0).integers(0, 256, (2, 50, 60, 3), dtype=np.uint8)
    batch = np.stack([backbone.prepare(item) for item in items])
    rows = backbone.embed(batch)
    np.testing.assert_allclose(rows[:, :512], last.embed(batch), rtol=1e-5, atol=1e-6)
    x = torch.from_numpy(backbone.preprocess.arrange(batch))
    stem = torch.nn.Sequential(*list(network.children())[:6])  # up to layer2
    with torch.inference_mode():
        layer2 = stem(x).numpy()
    np.testing.assert_allclose(
        rows[:, 512:1024], quadrants(layer2), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(
    ("name", "width", "blocks"),
    [
        ("resnet18", 512, ["layer2 quadrants", "layer3 quadrants", "layer4 quadrants"]),
        (
            "efficientnet_b0",
            1280,
            ["blocks.2 quadrants", "blocks.4 quadrants", "blocks.6 quadrants"],
        ),
        (
            "vit_tiny_patch16_224",
            192,
            [
                f"blocks.{i} {part}"
                for i in (5, 8, 11)
                for part in ("class token", "patches")
            ],
        ),
        (
            "swin_tiny_patch4_window7_224",
            768,
            [f"layers.{i} quadrants" for i in (1, 2, 3)],
        ),
        ("mixer_s32_224", 512, [f"blocks.{i} tokens" for i in (3, 5, 7)]),
    ],
)
def test_networks_of_timm_have_blocks_at_their_features(
    torchvision, name, width, blocks
):
    pytest.importorskip("timm")
    from imprint.backbones.adapters import timm as adapter

    torch.manual_seed(0)
    backbone = adapter.load(name, "cpu", 1, pretrained=False)
    assert [block.name for block in backbone.blocks] == ["last", *blocks]
    items = np.random.default_rng(0).integers(0, 256, (2, 50, 60, 3), dtype=np.uint8)
    batch = np.stack([backbone.prepare(item) for item in items])
    rows = backbone.embed(batch)
    assert rows.shape == (2, backbone.width)
    assert np.isfinite(rows).all()
    torch.manual_seed(0)
    last = adapter.load(name, "cpu", 1, last=True, pretrained=False)
    assert (last.width, last.blocks) == (width, ())
    np.testing.assert_allclose(rows[:, :width], last.embed(batch), rtol=1e-4, atol=1e-5)
