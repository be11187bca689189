"""Every named data set, found by discovery."""

import os
import pickle
import re
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from imprint import datasets
from imprint.core.errors import FileError, ParameterError

SHARED = Path(
    os.environ.get("IMPRINT_SHARED")
    or Path(__file__).resolve().parents[2].parent / "shared"
)


@pytest.fixture(params=datasets.names())
def name(request):
    return request.param


def test_the_data_sets_of_the_paper_and_the_offline_default_are_listed():
    expected = {
        "digits",
        "mnist",
        "fashionmnist",
        "cifar10",
        "usps",
        "svhn",
        "mnistm",
        "combidigits",
        "imagenet",
    }
    assert expected <= set(datasets.names())


def test_a_record_is_a_value(name):
    record = datasets.record(name)
    copy = pickle.loads(pickle.dumps(record))
    assert copy == record
    assert hash(copy) == hash(record)


def test_a_record_is_complete(name):
    record = datasets.record(name)
    assert all(
        (record.title, record.homepage, record.licence, record.citation, record.about)
    )
    assert record.modality in ("image", "text")
    assert record.classes > 1
    assert record.train > record.test > 0
    assert len(record.class_names) in (0, record.classes)
    assert len({s.file for s in record.sources}) == len(record.sources)
    for source in record.sources:
        assert source.sha256 or source.md5
        assert re.fullmatch("[0-9a-f]{64}|", source.sha256)
        assert re.fullmatch("[0-9a-f]{32}|", source.md5)
        assert all(
            re.match("https?://.*[^/]$", url) and url.endswith(f"/{source.file}")
            for url in source.urls
        )


def test_the_page_in_the_docs_lists_it(name):
    record = datasets.record(name)
    page = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text("utf-8")
    assert (
        f"| `{name}` | {record.train:,} + {record.test:,} | {record.classes:,} |"
        in page
    )


def test_records_are_read_without_heavy_imports():
    heavy = [
        "torch",
        "PIL",
        "sklearn",
        "scipy",
        "urllib.request",
        "http.client",
        "pandas",
    ]
    code = (
        "import sys; from imprint import datasets\n"
        "for n in datasets.names(): datasets.record(n)\n"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_without_a_network_the_message_names_the_file_and_the_place(
    name, tmp_path, monkeypatch
):
    def unplugged(*_, **__):
        raise urllib.error.URLError("no route to host")

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", unplugged)
    monkeypatch.setattr("imprint.datasets.download.PAUSE", 0)
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path))
    if name == "digits":
        assert len(datasets.load(name)) == 1442
        return
    with pytest.raises(FileError) as caught:
        datasets.load(name)
    message = str(caught.value)
    sources = datasets.record("mnist" if name == "combidigits" else name).sources
    assert str(tmp_path / "data") in message
    assert "\n" not in message
    assert message.endswith(".")
    if sources:
        assert sources[0].file in message
        assert "no route to host" in message
    else:
        assert "must be downloaded by hand from https://" in message


@pytest.mark.parametrize("split", ["val", "", "Train", None])
def test_a_split_that_does_not_exist_is_refused(split):
    with pytest.raises(ParameterError, match=r"split must be one of 'train', 'test'\."):
        datasets.load("digits", split)


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(
        ParameterError, match=r"Unknown dataset 'mnits'\. Did you mean 'mnist'\?"
    ):
        datasets.load("mnits")
    with pytest.raises(ParameterError, match="Unknown dataset"):
        datasets.record("nothing")


@pytest.mark.parametrize("path", ["nowhere/photos", "photos.npz", "./photos"])
def test_a_missing_path_is_named(path):
    with pytest.raises(FileError, match=r"There is no file or folder .*photos"):
        datasets.load(path)


def check_split(split, record, name, part):
    assert len(split) == len(split.inputs) == len(split.names) == len(split.labels)
    assert len(split.classes) == record.classes
    assert set(split.labels.tolist()) == set(split.classes)
    assert split.labels.dtype == np.int64 or split.labels.dtype.kind == "U"
    assert split.names[0].endswith(f"/{part}/0")
    assert split.modality == record.modality
    for i in (0, len(split) // 2, len(split) - 1):
        item = split.inputs[i]
        if record.modality == "text":
            assert isinstance(item, str)
            assert item
        else:
            assert item.dtype == np.uint8
            assert item.shape == (record.shape or item.shape)
            assert item.std() > 0
    assert re.fullmatch("[0-9a-f]{64}", split.fingerprint)
    assert datasets.load(name, part).fingerprint == split.fingerprint


@pytest.mark.parametrize("part", datasets.SPLITS)
def test_digits_is_complete_and_stratified(part):
    split = datasets.load("digits", part)
    record = datasets.record("digits")
    check_split(split, record, "digits", part)
    assert len(split) == getattr(record, part)
    share = np.bincount(split.labels) / np.bincount(datasets.load("digits").labels)
    assert np.ptp(share) < 0.01


PARTIAL = {  # numbers of rows of the packs that hold a part of the published set
    "cifar10": (1500, 500),
    "svhn": (1500, 500),
    "mnistm": (1500, 500),
    "fashionmnist": (10_000, 10_000),
    "combidigits": (60_000 + 1500 + 1500 + 7291, 10_000 + 500 + 500 + 2007),
}


@pytest.fixture
def real_home(tmp_path, monkeypatch):
    if not (SHARED / "data").is_dir():
        pytest.skip("the real data are not next to the project")
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path))
    (tmp_path / "data").symlink_to(SHARED / "data")


@pytest.mark.shared
@pytest.mark.parametrize("part", datasets.SPLITS)
def test_real_data(name, part, real_home):
    if name == "imagenet":
        pytest.skip("ImageNet is not next to the project")
    split, record = datasets.load(name, part), datasets.record(name)
    check_split(split, record, name, part)
    rows = PARTIAL.get(name, (record.train, record.test))
    assert len(split) == rows[datasets.SPLITS.index(part)]


@pytest.mark.shared
def test_combidigits_states_the_source_of_each_row(real_home):
    merged = datasets.load("combidigits", "test")
    assert list(dict.fromkeys(merged.source.tolist())) == [
        "mnist",
        "mnistm",
        "svhn",
        "usps",
    ]
    for source in dict.fromkeys(merged.source.tolist()):
        original = datasets.load(source, "test")
        rows = np.flatnonzero(merged.source == source)
        np.testing.assert_array_equal(merged.labels[rows], original.labels)
        np.testing.assert_array_equal(merged.inputs[int(rows[7])], original.inputs[7])
        assert merged.names[int(rows[-1])] == original.names[-1]
