"""A typical session on real images: FashionMNIST as PNG files, TinyNet, the real entry point."""

import json
import resource
import sys

import numpy as np
import pytest
from PIL import Image

NAMES = [
    "tshirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "boot",
]

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(sys.platform == "win32", reason="the resource module is POSIX"),
]


@pytest.fixture
def clothes(shared_folder, tmp_path):
    """`first` with eight classes of 25 images, `rest` with the other two and more tshirts, `test` with 20 of each."""
    with np.load(shared_folder / "data" / "fashionmnist.npz") as pack:
        train, test = (
            (pack[f"{s}_images"], pack[f"{s}_labels"]) for s in ("train", "test")
        )
    for c, name in enumerate(NAMES):
        rows = np.flatnonzero(train[1] == c)
        save(tmp_path / ("first" if c < 8 else "rest") / name, train[0][rows[:25]])
        save(tmp_path / "test" / name, test[0][np.flatnonzero(test[1] == c)[:20]])
    save(tmp_path / "rest" / "tshirt", train[0][np.flatnonzero(train[1] == 0)[25:35]])
    return tmp_path


def save(folder, images) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for i, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{i}.png")


def accuracy(done, labels) -> float:
    answers = [a for a in json.loads(done.out) if a["path"].split("/")[-2] in labels]
    assert len(answers) == 20 * len(labels)
    return float(np.mean([a["label"] == a["path"].split("/")[-2] for a in answers]))


def test_fit_predict_add_forget(clothes, start, finish):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert finish(start("fit", clothes / "first", "-o", "m.imprint")).code == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 10, "200 images: five seconds on two cores"

    first = finish(start("predict", "m.imprint", clothes / "test", "--json"))
    assert accuracy(first, NAMES[:8]) > 0.65
    assert finish(start("add", "m.imprint", clothes / "rest")).code == 0
    second = finish(start("predict", "m.imprint", clothes / "test", "--json"))
    assert accuracy(second, NAMES) > 0.65
    assert accuracy(second, NAMES[8:]) > 0.7

    assert finish(start("forget", "m.imprint", "shirt")).code == 0
    third = finish(start("predict", "m.imprint", clothes / "test", "--json"))
    assert "shirt" not in {a["label"] for a in json.loads(third.out)}
    assert accuracy(third, [n for n in NAMES if n != "shirt"]) > accuracy(second, NAMES)
