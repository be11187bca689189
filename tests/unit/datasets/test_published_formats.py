"""The published formats, on small files written in the same format."""

import bz2
import gzip
import hashlib
import io
import struct
import tarfile
from dataclasses import replace

import numpy as np
import pytest
from scipy.io import savemat

from imprint import datasets
from imprint.core.errors import FileError
from imprint.datasets.named import READERS, _read_idx, records

RNG = np.random.default_rng(0)


def table(n, *shape):
    return RNG.integers(0, 256, (n, *shape), dtype=np.uint8), RNG.integers(
        0, 10, n
    ).astype(np.uint8)


def idx(array):
    return gzip.compress(
        struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
        + array.tobytes()
    )


def tar_of(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def cifar_rows(images, labels):
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    return np.hstack([labels[:, None], planes]).tobytes()


def mat(images, labels):
    out = io.BytesIO()
    y = np.where(labels == 0, 10, labels)[:, None]
    savemat(out, {"X": images.transpose(1, 2, 3, 0), "y": y}, do_compression=True)
    return out.getvalue()


def libsvm(images, labels):
    rows = (
        images.reshape(len(images), -1) + 0.25
    ) / 255 * 2 - 1  # plus a quarter, so that truncation restores it
    lines = (
        f"{label + 1} "
        + " ".join(f"{i}:{min(v, 1.0):.6f}" for i, v in enumerate(row, 1))
        + " "
        for row, label in zip(rows, labels)
    )
    return bz2.compress("\n".join(lines).encode())


def torch_file(name, images, labels):
    torch = pytest.importorskip("torch")
    out = io.BytesIO()
    torch.save(
        (torch.from_numpy(images), torch.from_numpy(labels.astype(np.int64))), out
    )
    return tar_of({name: out.getvalue()})


def published(name):
    """The published files of a data set and their content."""
    shape = datasets.record(name).shape
    train, test = table(15, *shape), table(4, *shape)
    if name in ("mnist", "fashionmnist"):
        parts = {"train": train, "t10k": test}
        files = {f"{p}-images-idx3-ubyte.gz": idx(t[0]) for p, t in parts.items()}
        files |= {f"{p}-labels-idx1-ubyte.gz": idx(t[1]) for p, t in parts.items()}
    elif name == "cifar10":
        rows = {
            f"data_batch_{i + 1}.bin": (
                train[0][3 * i : 3 * i + 3],
                train[1][3 * i : 3 * i + 3],
            )
            for i in range(5)
        }
        rows["test_batch.bin"] = test
        members = {f"cifar-10-batches-bin/{k}": cifar_rows(*v) for k, v in rows.items()}
        files = {"cifar-10-binary.tar.gz": tar_of(members)}
    elif name == "svhn":
        files = {"train_32x32.mat": mat(*train), "test_32x32.mat": mat(*test)}
    elif name == "usps":
        files = {"usps.bz2": libsvm(*train), "usps.t.bz2": libsvm(*test)}
    elif name == "mnistm":
        parts = {"train": train, "test": test}
        files = {
            f"mnist_m_{s}.pt.tar.gz": torch_file(f"mnist_m_{s}.pt", *t)
            for s, t in parts.items()
        }
    return files, {"train": train, "test": test}


PACKED = sorted(name for name in READERS if datasets.record(name).modality == "image")


def written(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return {name: folder / name for name in files}


@pytest.mark.parametrize("name", PACKED)
def test_published_files_become_images_and_labels(name, tmp_path):
    files, expected = published(name)
    assert set(files) == {s.file for s in datasets.record(name).sources}
    paths = written(tmp_path, files)
    for split, (images, labels) in expected.items():
        read = READERS[name](paths, split)
        np.testing.assert_array_equal(read[0], images)
        np.testing.assert_array_equal(read[1], labels)


def trusted(name, files, monkeypatch):
    """Change the record of a data set to expect these files."""
    record = datasets.record(name)
    sources = [
        replace(
            s, sha256=hashlib.sha256(files[s.file]).hexdigest(), size=len(files[s.file])
        )
        for s in record.sources
    ]
    monkeypatch.setitem(records(), name, replace(record, sources=tuple(sources)))


@pytest.mark.parametrize("name", PACKED)
def test_files_put_in_place_are_converted_once(name, tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path))
    files, expected = published(name)
    trusted(name, files, monkeypatch)
    raw = written(tmp_path / "data" / "raw" / name, files)
    first = datasets.load(name, "train")
    np.testing.assert_array_equal(first.inputs, expected["train"][0])
    np.testing.assert_array_equal(first.labels, expected["train"][1])
    for path in raw.values():
        path.unlink()
    test = datasets.load(name, "test")  # only from the pack
    np.testing.assert_array_equal(test.inputs, expected["test"][0])
    assert test.names[3] == f"{name}/test/3"
    assert [p.name for p in (tmp_path / "data").iterdir() if p.is_file()] == [
        f"{name}.npz"
    ]


@pytest.mark.parametrize("name", PACKED)
def test_a_wrong_file_put_in_place_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path))
    files, _ = published(name)
    written(
        tmp_path / "data" / "raw" / name, files
    )  # valid format, but not the published bytes
    with pytest.raises(FileError, match=r"has (sha256|md5) [0-9a-f]+, but must have"):
        datasets.load(name)
    assert not (tmp_path / "data" / f"{name}.npz").exists()


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize(
    "damage", [b"", b"not the format", None], ids=["empty", "text", "cut"]
)
def test_damaged_files_are_refused_in_a_sentence(name, damage, tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path))
    files, _ = published(name)
    files = {
        k: v[: len(v) // 2] if damage is None else damage for k, v in files.items()
    }
    trusted(name, files, monkeypatch)
    written(tmp_path / "data" / "raw" / name, files)
    with pytest.raises(FileError, match=r"^[^\n]+\.$"):
        datasets.load(name)


@pytest.mark.parametrize(
    "raw", ["", "000008", "00000801 00000002 61", "00000801 00000002 616263"]
)
def test_idx_of_another_length_is_not_read(raw, tmp_path):
    (tmp_path / "x.gz").write_bytes(gzip.compress(bytes.fromhex(raw)))
    with pytest.raises((IndexError, ValueError)):
        _read_idx(tmp_path / "x.gz")


def test_cifar_records_of_another_length_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path))
    content = tar_of(
        {f"cifar-10-batches-bin/data_batch_{i}.bin": bytes(3072) for i in range(1, 6)}
    )
    files = {"cifar-10-binary.tar.gz": content}
    trusted("cifar10", files, monkeypatch)
    written(tmp_path / "data" / "raw" / "cifar10", files)
    with pytest.raises(
        FileError,
        match=r"cifar10 is not a readable copy of cifar10 \(.*3073\)\); delete it to download",
    ):
        datasets.load("cifar10")


def test_a_pickle_that_is_not_tensors_is_not_run(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")

    class Hostile:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    out = io.BytesIO()
    torch.save(Hostile(), out)
    content = tar_of({"mnist_m_train.pt": out.getvalue()})
    files = {"mnist_m_train.pt.tar.gz": content, "mnist_m_test.pt.tar.gz": content}
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path))
    trusted("mnistm", files, monkeypatch)
    written(tmp_path / "data" / "raw" / "mnistm", files)
    with pytest.raises(
        FileError,
        match=r"is not a readable copy of mnistm \([^\n]+\); delete it to download it ag",
    ):
        datasets.load("mnistm")
    assert not (tmp_path / "ran").exists()
