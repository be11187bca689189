"""`benchmarks/resnet50*.py`: tests that do not need the published weights."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))


@pytest.mark.parametrize("side", [16, 28, 32])
def test_images_are_enlarged_as_pillow_does_bit_for_bit(side):
    from resnet50_full import SIZE, enlarged, enlargement

    images = np.random.default_rng(0).integers(0, 256, (20, side, side), dtype=np.uint8)
    found = enlarged(torch.from_numpy(images), enlargement(side)).numpy()
    for image, ours in zip(images, found):
        pillow = (
            Image.fromarray(image)
            .convert("RGB")
            .resize((SIZE, SIZE), Image.Resampling.BILINEAR)
        )
        assert np.array_equal(ours.transpose(1, 2, 0), np.asarray(pillow))


def test_a_convolution_holds_the_normalisation_behind_it_and_takes_rgb(tmp_path):
    from resnet50 import folded

    rng = np.random.default_rng(0)
    shapes = {"conv1/kernel": (7, 7, 3, 4), "conv1/bias": (4,)}
    shapes |= {
        f"bn_conv1/{part}": (4,)
        for part in ("gamma", "beta", "moving_mean", "moving_variance")
    }
    tensors = {
        name: rng.uniform(0.5, 2, shape).astype("<f4") for name, shape in shapes.items()
    }
    content = b"".join(t.tobytes() for t in tensors.values())
    for i, part in enumerate(
        (content[:1000], content[1000:])
    ):  # a tensor may span two shards
        (tmp_path / f"shard{i}").write_bytes(part)
    weights = [
        {"name": name, "shape": list(shape), "dtype": "float32"}
        for name, shape in shapes.items()
    ]
    layers = [
        {"config": {"name": "conv1"}},
        {"config": {"name": "bn_conv1", "epsilon": 0.01}},
    ]
    model = {
        "modelTopology": {"model_config": {"config": {"layers": layers}}},
        "weightsManifest": [{"paths": ["shard0", "shard1"], "weights": weights}],
    }
    (tmp_path / "model.json").write_text(json.dumps(model))

    rgb = torch.from_numpy(rng.normal(size=(2, 3, 9, 9)))
    by = {name: torch.from_numpy(t.astype(np.float64)) for name, t in tensors.items()}
    plain = torch.nn.functional.conv2d(
        rgb.flip(1), by["conv1/kernel"].permute(3, 2, 0, 1), by["conv1/bias"]
    )
    moments = (by["bn_conv1/moving_mean"], by["bn_conv1/moving_variance"])
    want = torch.nn.functional.batch_norm(
        plain, *moments, by["bn_conv1/gamma"], by["bn_conv1/beta"], eps=0.01
    )
    found = {
        name: torch.from_numpy(np.ascontiguousarray(t))
        for name, t in folded(tmp_path).items()
    }
    torch.testing.assert_close(
        torch.nn.functional.conv2d(rgb, found["conv1/kernel"], found["conv1/bias"]),
        want,
    )
