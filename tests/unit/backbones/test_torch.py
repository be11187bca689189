"""torchvision and timm adapters, with random weights: nothing is downloaded."""

import hashlib
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from imprint.backbones import load, names, record
from imprint.backbones.backbone import TorchBackbone, state_digest
from imprint.backbones.record import location
from imprint.core.errors import FileError, MissingExtraError, ParameterError

torch = pytest.importorskip("torch")
PAPER = [n for n in names() if record(n).adapter == "torchvision"]
SHAPES = [
    (28, 28),
    (32, 32, 3),
    (300, 401, 3),
    (511, 97, 3),
    (224, 224, 3),
    (231, 1000, 3),
    (1, 1),
    (257, 256),
]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def random_state(network):
    """Random values for every parameter and buffer of a network on the meta device."""
    torch.manual_seed(0)
    empty = network.state_dict().items()
    return {
        k: torch.rand(v.shape) * 0.02
        if v.is_floating_point()
        else torch.zeros(v.shape, dtype=v.dtype)
        for k, v in empty
    }


def untrained(name):
    from imprint.backbones.adapters import torchvision as adapter

    network = adapter.architecture(name)
    network.load_state_dict(random_state(network), assign=True)
    return network


def embedder(name, network):
    from imprint.backbones.adapters import torchvision as adapter

    return TorchBackbone(
        record(name),
        adapter.without_classifier(network),
        "weights",
        adapter.VERSION,
        "cpu",
        1,
    )


@pytest.mark.parametrize("name", PAPER)
def test_the_record_agrees_with_torchvision(torchvision, name):
    weights = torchvision.models.get_model_weights(name).IMAGENET1K_V1
    r = record(name)
    assert r.source == weights.url
    assert r.sha256[:8] in weights.url
    assert r.top1 == weights.meta["_metrics"]["ImageNet-1K"]["acc@1"]


@pytest.mark.parametrize("name", PAPER)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_transform_equals_that_of_the_weights_bit_for_bit(
    torchvision, rng, name, shape
):
    image, rule = rng.integers(0, 256, shape, dtype=np.uint8), record(name).preprocess
    transform = torchvision.models.get_model_weights(name).IMAGENET1K_V1.transforms()
    want = transform(Image.fromarray(image).convert("RGB")).numpy()
    assert np.array_equal(rule.arrange(rule.image(image)[None])[0], want)


@pytest.mark.parametrize("name", PAPER)
def test_the_embedding_is_what_enters_the_classifier(torchvision, rng, name):
    network, seen = untrained(name), []
    classifier = [m for m in network.modules() if isinstance(m, torch.nn.Linear)][-1]
    classifier.register_forward_hook(
        lambda module, inputs, output: seen.append(inputs[0].detach().numpy())
    )
    images, rule = (
        rng.integers(0, 256, (2, 40, 50, 3), dtype=np.uint8),
        record(name).preprocess,
    )
    x = np.stack([rule.image(p) for p in images])
    with torch.inference_mode():
        network.eval()(torch.from_numpy(rule.arrange(x)))
    out = embedder(name, network).embed(x)
    assert out.shape == (2, record(name).width)
    np.testing.assert_allclose(out, seen[0], rtol=1e-5, atol=1e-6)
    assert not np.array_equal(out[0], out[1])


def test_a_network_without_a_text_tower_embeds_no_names(torchvision):
    network = embedder("resnet18", untrained("resnet18"))
    assert not network.embeds_names
    with pytest.raises(
        ParameterError,
        match=r"resnet18 cannot embed class names; use a network of texts",
    ):
        network.embed_names(["cat"])


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_the_number_of_threads_is_that_of_torch(torchvision, threads):
    network = untrained("resnet18")
    for n in (1, 2):
        TorchBackbone(record("resnet18"), network, "weights", 1, "cpu", n)
        assert torch.get_num_threads() == n


def test_the_digest_of_a_module_changes_with_one_weight(torchvision):
    same, other = untrained("resnet18"), untrained("resnet18")
    assert state_digest(same) == state_digest(other)
    other.conv1.weight.data[0, 0, 0, 0] += 1
    assert state_digest(same) != state_digest(other)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    return tmp_path / "hub" / "checkpoints"


def test_offline_the_message_names_the_file_and_the_place(
    torchvision, hub, monkeypatch
):
    def unreachable(*args, **kwargs):
        raise OSError("Name or service not known")

    monkeypatch.setattr(torch.hub, "download_url_to_file", unreachable)
    place = hub / "resnet18-f37072fd.pth"
    with pytest.raises(
        FileError,
        match=rf"resnet18-f37072fd\.pth \(Name .*\): download it elsewhere and put it at {place}\.",
    ):
        load("resnet18")


def test_weights_in_the_cache_are_checked_and_used(torchvision, hub, monkeypatch, rng):
    from imprint.backbones.adapters import torchvision as adapter

    hub.mkdir(parents=True)
    path, network = hub / "resnet18-f37072fd.pth", untrained("resnet18")
    torch.save(network.state_dict(), path)
    with pytest.raises(FileError, match="its record says f37072fd"):
        load("resnet18")
    mine = replace(
        record("resnet18"), sha256=hashlib.sha256(path.read_bytes()).hexdigest()
    )
    x = record("resnet18").preprocess.image(
        rng.integers(0, 256, (9, 9), dtype=np.uint8)
    )[None]
    loaded = adapter.load(mine, "cpu", 1)
    assert np.array_equal(loaded.embed(x), embedder("resnet18", network).embed(x))
    assert loaded.fingerprint == mine.fingerprint(
        mine.sha256, adapter.VERSION, "float32"
    )
    assert location(mine) == path


@pytest.mark.parametrize("name", PAPER)
def test_by_its_name_in_torchvision_a_network_has_the_same_record(torchvision, name):
    from imprint.backbones.adapters import torchvision as adapter

    described, ours = adapter.describe(name), record(name)
    assert described.name == f"torchvision:{name}"
    # those of the paper are their last layer; by the other name, they have blocks
    assert described.blocks[0].width == ours.width
    for key in (
        "preprocess",
        "file",
        "source",
        "top1",
        "licence",
        "pretraining",
    ):
        assert getattr(described, key) == getattr(ours, key), key
    assert ours.sha256.startswith(described.sha256)


@pytest.mark.parametrize("name", ["mobilenet_v2", "efficientnet_b0"])
def test_any_network_of_torchvision_by_its_name(
    torchvision, hub, monkeypatch, rng, name
):
    from imprint.backbones.adapters import torchvision as adapter

    described = adapter.describe(name)
    monkeypatch.setattr(
        adapter, "describe", lambda name: replace(described, sha256=None)
    )
    network, seen = adapter.architecture(described.name), []
    network.load_state_dict(random_state(network), assign=True)
    hub.mkdir(parents=True)
    torch.save(network.state_dict(), hub / described.file)
    network.classifier[-1].register_forward_hook(
        lambda module, given, out: seen.append(given[0].detach().numpy())
    )
    backbone = load(f"torchvision:{name}:last", threads=1)
    x = np.stack(
        [
            backbone.prepare(p)
            for p in rng.integers(0, 256, (2, 40, 50, 3), dtype=np.uint8)
        ]
    )
    with torch.inference_mode():
        network.eval()(torch.from_numpy(backbone.preprocess.arrange(x)))
    np.testing.assert_allclose(backbone.embed(x), seen[0], rtol=1e-5, atol=1e-6)
    assert backbone.width == 1280


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "mobilenetv2",
            "Unknown torchvision model 'mobilenetv2'. Did you mean 'mobilenet_v2'?",
        ),
        ("vit_h_14", "no weights IMAGENET1K_V1"),
        ("squeezenet1_0", "its last layer is not linear"),
        ("inception_v3", "transforms its input"),
    ],
)
def test_a_network_of_torchvision_without_a_suitable_classifier_is_refused(
    torchvision, name, message
):
    with pytest.raises(ParameterError, match=re.escape(message)):
        load(f"torchvision:{name}")


def test_a_file_without_weights_is_refused(torchvision, hub):
    from imprint.backbones.adapters import torchvision as adapter

    hub.mkdir(parents=True)
    (hub / "resnet18-f37072fd.pth").write_bytes(b"no weights")
    with pytest.raises(FileError, match="is not a file of weights"):
        adapter.load(replace(record("resnet18"), sha256=None), "cpu", 1)


@pytest.mark.parametrize(
    ("device", "message"),
    [("cuda:99", "does not find this device"), ("gpu", "must be 'cpu', 'cuda'")],
)
def test_a_device_that_is_not_there_is_refused(torchvision, device, message):
    with pytest.raises(ParameterError, match=message):
        load("resnet18", device=device)


@pytest.mark.parametrize(
    ("spec", "module", "message"),
    [
        (
            "resnet18",
            "torch",
            "resnet18 needs torch: pip install 'weight-imprinting[torch]', or in a clone: pip install '.[torch]'.",
        ),
        (
            "resnet18",
            "torchvision.models",
            "resnet18 needs torchvision: pip install 'weight-imprinting[torch]', or in a clone: pip install '.[torch]'.",
        ),
        (
            "torchvision:resnet18",
            "torchvision.models",
            "torchvision:resnet18 needs torchvision: pip install 'weight-imprinting[torch]', or in a clone: pip install '.[torch]'.",
        ),
        (
            "timm:resnet18",
            "timm",
            "timm:resnet18 needs timm: pip install 'weight-imprinting[timm]', or in a clone: pip install '.[timm]'.",
        ),
        (
            "sentence:x",
            "sentence_transformers",
            "sentence:x needs sentence-transformers: pip install 'weight-imprinting[sentence]', or in a clone: pip install '.[sentence]'.",
        ),
    ],
)
def test_a_missing_extra_names_the_command(monkeypatch, spec, module, message):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError) as caught:
        load(spec)
    assert str(caught.value) == message


@pytest.fixture
def timm(torchvision):
    return pytest.importorskip("timm")


@pytest.mark.parametrize(
    "name", ["vit_tiny_patch16_224", "test_resnet", "mobilenetv3_small_050"]
)
def test_a_timm_model_brings_its_width_and_its_transform(timm, rng, name):
    from imprint.backbones.adapters import timm as adapter

    backbone, images = adapter.load(name, "cpu", 1, pretrained=False), []
    model = timm.create_model(name)
    transform = timm.data.create_transform(
        **timm.data.resolve_model_data_config(model), is_training=False
    )
    for shape in SHAPES:
        image = rng.integers(0, 256, shape, dtype=np.uint8)
        images.append(backbone.prepare(image))
        want = transform(Image.fromarray(image).convert("RGB")).numpy()
        assert np.array_equal(backbone.preprocess.arrange(images[-1][None])[0], want)
    assert backbone.embed(np.stack(images)).shape == (len(SHAPES), backbone.width)
    assert backbone.record.name == f"timm:{name}"
    assert backbone.record.licence


def test_an_unknown_timm_model_gets_a_suggestion(timm):
    with pytest.raises(
        ParameterError, match=r"Unknown timm model 'resnet_18'\. Did you mean"
    ):
        load("timm:resnet_18")


def test_timm_refuses_a_device_before_it_creates_the_model(timm, monkeypatch):
    monkeypatch.setattr(timm, "create_model", None)
    with pytest.raises(
        ParameterError,
        match=r"load\('timm:test_vit', device='gpu'\): device must be 'cpu', 'cuda'",
    ):
        load("timm:test_vit", device="gpu")


def test_timm_offline_says_where_to_put_the_weights(timm, monkeypatch):
    def unreachable(*args, **kwargs):
        raise OSError("no network\nand more")

    monkeypatch.setattr(timm, "create_model", unreachable)
    with pytest.raises(
        FileError, match=r"timm:test_vit could not be created \(no network\): .*HF_HOME"
    ):
        load("timm:test_vit")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", PAPER)
def test_cuda_in_mixed_precision_agrees_with_cpu(torchvision, rng, name):
    from imprint.backbones.adapters import torchvision as adapter

    torch.manual_seed(0)
    network = adapter.without_classifier(
        torchvision.models.get_model(name, weights=None)
    )
    x = np.stack(
        [
            record(name).preprocess.image(p)
            for p in rng.integers(0, 256, (8, 32, 32, 3), dtype=np.uint8)
        ]
    )
    on_cpu = TorchBackbone(
        record(name), network, "weights", adapter.VERSION, "cpu", None
    )
    want = on_cpu.embed(x)
    on_cuda = TorchBackbone(
        record(name), network, "weights", adapter.VERSION, "cuda", None
    )
    out = on_cuda.embed(x)
    cosine = (
        (out * want).sum(1) / np.linalg.norm(out, axis=1) / np.linalg.norm(want, axis=1)
    )
    assert out.dtype == np.float32
    assert cosine.min() > 0.999
    assert (
        on_cpu.fingerprint != on_cuda.fingerprint
    )  # embeddings of another precision have another cache key
