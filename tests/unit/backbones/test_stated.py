"""Facts about a backbone before it is loaded: availability, fingerprint and defaults."""

import hashlib
import shutil

import pytest

from imprint.backbones import (
    default,
    is_installed,
    load,
    names,
    record,
    stated_fingerprint,
)
from imprint.backbones.record import RECORDS
from imprint.core.errors import FileError, ParameterError

SHIPPED = ["efficientnet_lite0", "minilm", "minirocket", "raw", "tinynet"]


def test_shipped_weights_match_their_records_and_other_records_state_a_source(
    monkeypatch, tmp_path
):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert [n for n in names() if is_installed(record(n))] == SHIPPED
    for r in map(record, SHIPPED):
        content = (RECORDS.parent / r.file).read_bytes() if r.file else b""
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (
            r.sha256,
            r.size,
        ) or r.name == "raw"
    fetched = {n: record(n).download for n in names() if n not in SHIPPED}
    assert {n for n, address in fetched.items() if not address} == {
        "deit_tiny",
        "yamnet",
    }  # these files are not published elsewhere
    with pytest.raises(
        FileError,
        match=r"mobilenet_v2 are missing: download https://.*\(4\.1 MB\); put the file at .*back",
    ):
        load("mobilenet_v2")


def test_a_named_file_in_the_home_folder_is_used(monkeypatch, tmp_path):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path))
    stand_in = record("deit_tiny").file
    (tmp_path / "backbones").mkdir()
    shutil.copy(
        RECORDS.parent / "weights/tinynet.onnx", tmp_path / "backbones" / stand_in
    )
    assert is_installed(record("deit_tiny"))
    with pytest.raises(FileError, match="its record says 1a2c6d4f"):
        load("deit_tiny")


@pytest.mark.parametrize("name", SHIPPED)
def test_the_stated_fingerprint_is_that_of_the_loaded_backbone(name):
    assert stated_fingerprint(name) == load(name).fingerprint


def test_fingerprints_do_not_change_between_versions():
    expected = {
        "tinynet:last": "7dfd019b",
        "raw": "d4ab400a",
        "efficientnet_lite0:last": "cc3788cf",
        "minilm:last": "eddadd50",
        "tinynet": "c74581e3",
        "efficientnet_lite0": "600ced79",
        "minilm": "6dff72b7",
    }
    assert {n: (stated_fingerprint(n) or "")[:8] for n in expected} == expected


def test_a_fingerprint_that_only_the_model_knows_is_not_stated(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert [
        stated_fingerprint(s) for s in ("timm:vit_b_16", "sentence:a/b", "swin_b")
    ] == [None] * 3
    assert stated_fingerprint("resnet18", "cpu") != stated_fingerprint(
        "resnet18", "cuda"
    )


def test_the_default_depends_on_what_is_read():
    assert [default(m) for m in ("image", "text", "sound")] == [
        "efficientnet_lite0",
        "minilm",
        "yamnet",
    ]
    with pytest.raises(ParameterError, match="Unknown modality 'film'"):
        default("film")
