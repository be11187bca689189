"""CLIP and SigLIP through transformers and OpenCLIP, as small models with random weights: nothing is downloaded."""

import json
import sys

import numpy as np
import pytest
from PIL import Image

from imprint import Imprinter
from imprint.backbones import load, stated_fingerprint
from imprint.backbones.backbone import TEMPLATES
from imprint.core.errors import FileError, MissingExtraError, ParameterError

torch = pytest.importorskip("torch")
SIZE, WIDTH = 32, 24


def tokenizer(folder, transformers):
    """A CLIP tokeniser of single bytes."""
    from transformers.models.clip import CLIPTokenizerFast

    letters = [chr(c) for c in range(33, 127)]
    words = [
        *letters,
        *(f"{c}</w>" for c in letters),
        "<|startoftext|>",
        "<|endoftext|>",
    ]
    (folder / "vocab.json").write_text(
        json.dumps({word: i for i, word in enumerate(words)})
    )
    (folder / "merges.txt").write_text("#version: 0.2\n")
    return CLIPTokenizerFast(
        str(folder / "vocab.json"), str(folder / "merges.txt")
    ), len(words)


def clip_folder(folder):
    transformers = pytest.importorskip("transformers")
    folder.mkdir()
    words, n = tokenizer(folder, transformers)
    layers = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    config = transformers.CLIPConfig(
        text_config={
            **layers,
            "vocab_size": n,
            "max_position_embeddings": 77,
            "bos_token_id": n - 2,
            "eos_token_id": n - 1,
        },
        vision_config={**layers, "image_size": SIZE, "patch_size": 16},
        projection_dim=WIDTH,
    )
    torch.manual_seed(0)
    transformers.CLIPModel(config).save_pretrained(folder)
    words.save_pretrained(folder)
    sizes = {
        "size": {"shortest_edge": SIZE},
        "crop_size": {"height": SIZE, "width": SIZE},
    }
    transformers.CLIPImageProcessor(**sizes).save_pretrained(folder)
    return f"clip:{folder}"


def siglip_folder(folder):
    transformers = pytest.importorskip("transformers")
    folder.mkdir()
    words, n = tokenizer(folder, transformers)
    layers = {
        "hidden_size": WIDTH,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    config = transformers.SiglipConfig(
        text_config={
            **layers,
            "vocab_size": n,
            "max_position_embeddings": 64,
            "projection_size": WIDTH,
        },
        vision_config={**layers, "image_size": SIZE, "patch_size": 16},
    )
    torch.manual_seed(0)
    transformers.SiglipModel(config).save_pretrained(folder)
    words.save_pretrained(folder)
    transformers.SiglipImageProcessor(
        size={"height": SIZE, "width": SIZE}
    ).save_pretrained(folder)
    return f"clip:{folder}"


def open_clip_folder(folder):
    package = pytest.importorskip("open_clip", reason="open_clip is not installed")
    folder.mkdir()
    config = {
        "embed_dim": WIDTH,
        "vision_cfg": {
            "image_size": SIZE,
            "layers": 1,
            "width": 64,
            "head_width": 32,
            "patch_size": 16,
        },
        "text_cfg": {
            "context_length": 77,
            "vocab_size": 49408,
            "width": 32,
            "heads": 2,
            "layers": 1,
        },
    }
    rule = {
        "mean": [0.48, 0.46, 0.41],
        "std": [0.27, 0.26, 0.28],
        "interpolation": "bicubic",
        "resize_mode": "shortest",
    }
    torch.manual_seed(0)
    model = package.CLIP(**config)
    (folder / "open_clip_config.json").write_text(
        json.dumps({"model_cfg": config, "preprocess_cfg": rule})
    )
    torch.save(model.state_dict(), folder / "open_clip_pytorch_model.bin")
    return f"open_clip:{folder}"


MAKERS = {"CLIP": clip_folder, "SigLIP": siglip_folder, "OpenCLIP": open_clip_folder}


@pytest.fixture(scope="module", params=MAKERS)
def spec(request, tmp_path_factory, torchvision):
    return MAKERS[request.param](tmp_path_factory.mktemp("model") / "weights")


def test_images_and_names_share_one_space(spec):
    backbone = load(spec, threads=1)
    images = np.random.default_rng(0).integers(0, 255, (3, 50, 40, 3), np.uint8)
    batch = np.stack([backbone.prepare(image) for image in images])
    rows = backbone.embed(batch)
    assert (backbone.modality, batch.shape, rows.shape, rows.dtype) == (
        "image",
        (3, SIZE, SIZE, 3),
        (3, WIDTH),
        np.float32,
    )
    assert np.isfinite(rows).all()
    np.testing.assert_allclose(backbone.embed(batch[1:2])[0], rows[1], atol=1e-5)
    names = backbone.embed_names(["cat", "fire truck", "cat"])
    assert (names.shape, names.dtype) == ((3, WIDTH), np.float32)
    np.testing.assert_allclose(names[0], names[2], atol=1e-6)
    assert np.abs(names[0] - names[1]).max() > 1e-4
    assert np.linalg.norm(names, axis=1).max() <= 1 + 1e-6  # mean of unit vectors


def test_a_name_is_the_mean_of_its_templates(spec, monkeypatch):
    backbone = load(spec, threads=1)
    together, alone = backbone.embed_names(["cat"])[0], []
    for template in TEMPLATES:
        monkeypatch.setattr("imprint.backbones.backbone.TEMPLATES", (template,))
        alone += [*backbone.embed_names(["cat"])]
    np.testing.assert_allclose(np.linalg.norm(alone, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(together, np.mean(alone, axis=0), atol=1e-5)


@pytest.mark.filterwarnings(
    "ignore:The given NumPy array is not writable"
)  # of the image processor
def test_rows_are_those_of_the_library_itself(spec):
    prefix, _, folder = spec.partition(":")
    rng = np.random.default_rng(0)
    image = np.asarray(
        Image.fromarray(rng.integers(0, 255, (6, 5, 3), np.uint8)).resize(
            (50, 60), Image.Resampling.BICUBIC
        )
    )
    if prefix == "open_clip":
        package = pytest.importorskip("open_clip")
        model, _, prepare = package.create_model_and_transforms(f"local-dir:{folder}")
        expected = model.eval().encode_image(prepare(Image.fromarray(image))[None])
    else:
        transformers = pytest.importorskip("transformers")
        pixels = transformers.AutoImageProcessor.from_pretrained(folder)(
            images=image, return_tensors="pt"
        )
        output = transformers.AutoModel.from_pretrained(folder).get_image_features(
            **pixels
        )
        expected = getattr(output, "pooler_output", output)
    backbone = load(spec, threads=1)
    row, expected = (
        backbone.embed(backbone.prepare(image)[None])[0],
        expected.detach().numpy()[0],
    )
    assert row @ expected / np.linalg.norm(row) / np.linalg.norm(expected) > 0.9999


def test_the_fingerprint_follows_the_weights(spec):
    assert load(spec).fingerprint == load(spec, threads=1).fingerprint
    assert stated_fingerprint(spec) is None


def test_a_model_can_be_loaded_for_another_device(spec, monkeypatch):
    """The width is measured by embedding a text, which must be on the device of the model; `meta` replaces a GPU."""
    from imprint.backbones import backbone as base
    from imprint.backbones.adapters import clip, open_clip

    for module in (base, clip, open_clip):
        monkeypatch.setattr(module, "check_device", lambda name, device: None)
    backbone = load(spec, device="meta")
    assert (backbone.device, backbone.width) == ("meta", WIDTH)
    assert {weights.device.type for weights in backbone._module.parameters()} == {
        "meta"
    }


def test_a_model_from_class_names_alone_reads_images(spec, tmp_path):
    model = Imprinter(spec, cache=False).fit_names(["cat", "fire truck"])
    images = list(np.random.default_rng(0).integers(0, 255, (2, 40, 40, 3), np.uint8))
    assert set(model.predict(images)) <= {"cat", "fire truck"}
    model.add((images, ["emu", "emu"]))
    model.save(tmp_path / "m.imprint")
    again = Imprinter.load(tmp_path / "m.imprint", backbone=spec, cache=False)
    assert again.predict(images).tolist() == model.predict(images).tolist()
    with pytest.raises(FileError, match="has to be loaded before it can be trusted"):
        Imprinter.load(tmp_path / "m.imprint")


def test_missing_models_are_refused_in_one_sentence(torchvision, tmp_path):
    package = pytest.importorskip("open_clip", reason="open_clip is not installed")
    with pytest.raises(
        ParameterError,
        match=r"Unknown open_clip model 'ViT-B-3'\. Did you mean 'ViT-B-32'",
    ):
        load("open_clip:ViT-B-3/openai")
    with pytest.raises(
        ParameterError,
        match=r"name the weights, open_clip:ViT-B-32/WEIGHTS; there are: openai",
    ):
        load("open_clip:ViT-B-32")
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        FileError,
        match=r"open_clip:.*empty could not be created .*write open_clip:FOLDER",
    ):
        load(f"open_clip:{tmp_path / 'empty'}")
    with pytest.raises(
        FileError, match=r"clip:.*empty could not be created .*write clip:FOLDER"
    ):
        load(f"clip:{tmp_path / 'empty'}")
    assert package.list_models()


def test_a_model_with_one_tower_is_refused(torchvision, tmp_path):
    transformers = pytest.importorskip("transformers")
    clip_folder(tmp_path / "bert")
    config = transformers.BertConfig(
        vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2
    )
    transformers.BertModel(config).save_pretrained(tmp_path / "bert")
    with pytest.raises(
        ParameterError,
        match="is a BertModel, without a tower for images and one for texts",
    ):
        load(f"clip:{tmp_path / 'bert'}")


def test_a_missing_package_names_its_extra(monkeypatch):
    for module, prefix in (("open_clip", "open_clip"), ("transformers", "clip")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(
            MissingExtraError, match=r"pip install 'weight-imprinting\[clip\]'"
        ):
            load(f"{prefix}:a/b")
