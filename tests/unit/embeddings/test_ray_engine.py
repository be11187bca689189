"""The computation of one batch on a node of a cluster, and its errors; no cluster is needed."""

import pickle
import socket
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from imprint import backbones
from imprint.core import cluster
from imprint.core.errors import ImprintError, ParameterError
from imprint.datasets import load
from imprint.embeddings import extract, ray_engine


@pytest.fixture
def photos(tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    rng = np.random.default_rng(0)
    for i in range(20):
        place = tmp_path / "photos" / f"class {i % 2}" / f"{i:02}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (9, 9), np.uint8)).save(place)
    (tmp_path / "photos" / "class 1" / "19.png").write_bytes(b"no image")
    return load(tmp_path / "photos")


def compute(backbone, split, first, count, fingerprint=None):
    part = SimpleNamespace(
        inputs=split.inputs[first : first + count],
        names=split.names[first : first + count],
    )
    sent = pickle.dumps(
        (pickle.dumps(backbone), fingerprint or backbone.fingerprint, part, first, 8, 2)
    )
    return ray_engine._compute(*pickle.loads(sent))


def test_separate_batches_equal_those_of_one_machine(photos, tmp_path):
    raw = backbones.load("raw")
    whole = extract(raw, photos, batch_size=8, folder=tmp_path / "store")
    parts = [
        batch
        for first, count in ((0, 16), (16, 8))
        for batch in compute(raw, photos, first, count)
    ]
    assert [p.inputs for p in parts] == [8, 8, 4]
    assert (
        np.concatenate([p.rows for p in parts]).tobytes()
        == np.asarray(whole.X).tobytes()
    )
    assert [s for p in parts for s in p.skipped] == list(whole.skipped)
    assert whole.skipped[0].index == 19


def test_errors_on_a_node_name_the_node_and_the_cause(photos, tmp_path):
    raw = backbones.load("raw")
    assert len(photos.fingerprint) == 64
    with pytest.raises(
        ImprintError,
        match=rf"^On the node {socket.gethostname()}: raw is not the backbone it is where",
    ):
        compute(raw, photos, 0, 8, fingerprint="another")
    (
        tmp_path / "photos" / photos.names[3]
    ).unlink()  # as if the folder differed between nodes
    with pytest.raises(
        ImprintError,
        match=r"^On the node .*06\.png has changed since its fingerprint was computed",
    ):
        compute(raw, photos, 0, 8)


def test_a_backbone_is_pickled_as_its_specification():
    tinynet = backbones.load("tinynet", threads=1)
    content = pickle.dumps(tinynet)
    assert len(content) < 1000
    again = pickle.loads(content)
    image = np.random.default_rng(0).integers(0, 256, (30, 40, 3), np.uint8)
    rows = [b.embed(b.prepare(image)[None]) for b in (tinynet, again)]
    assert again.fingerprint == tinynet.fingerprint
    assert rows[0].tobytes() == rows[1].tobytes()


def test_a_backbone_that_cannot_be_pickled_is_refused(make_backbone):
    backbone = make_backbone()
    backbone.lock = socket.socket()
    with (
        backbone.lock,
        pytest.raises(
            ParameterError, match="projection cannot be sent to other machines"
        ),
    ):
        ray_engine._pickled(SimpleNamespace(cloudpickle=pickle), backbone)


def test_a_cluster_without_free_cores_is_reported_after_a_short_wait(monkeypatch):
    def ray(*resources, alive=True):
        return SimpleNamespace(
            nodes=lambda: [{"Alive": alive, "Resources": r} for r in resources]
        )

    assert cluster.Slots(ray({"CPU": 4.0}, {"CPU": 3.0, "GPU": 1.0}, {})).count() == 7
    assert cluster.Slots(ray({"CPU": 4.0}, {"CPU": 3.0}), cores=2).count() == 3
    assert (
        cluster.Slots(
            ray({"CPU": 4.0}, {"CPU": 4.0, "GPU": 1.0}), cores=2, gpus=1
        ).count()
        == 1
    )
    nodes = [{"Alive": True, "Resources": {"CPU": 4.0}}]
    slots = cluster.Slots(SimpleNamespace(nodes=lambda: nodes))
    assert slots.count() == 4
    nodes.append(nodes[0])
    assert slots.count() == 4  # for two seconds
    monkeypatch.setattr(cluster, "LISTING_INTERVAL", 0)
    assert slots.count() == 8
    monkeypatch.setattr(cluster, "JOIN_TIMEOUT", 0.01)
    monkeypatch.setattr(cluster, "POLL_INTERVAL", 0.01)
    with pytest.raises(
        ImprintError,
        match=r"No node of the Ray cluster has 8 core\(s\); the largest has 4 core\(s\)\.",
    ):
        cluster.Slots(ray({"CPU": 4.0}), cores=8).count()
    with pytest.raises(
        ImprintError, match=r"has 1 core\(s\) and a GPU; the largest has 4"
    ):
        cluster.Slots(ray({"CPU": 4.0}), gpus=1).count()
    with pytest.raises(ImprintError, match="the largest has 0"):
        cluster.Slots(ray({"CPU": 4.0}, alive=False)).count()


class BatchSizes:
    """A backbone whose embedding is the number of inputs in the forward pass."""

    record, width, fingerprint = SimpleNamespace(name="sizes"), 1, "sizes"

    def prepare(self, item):
        return np.zeros(1, np.float32)

    def embed(self, batch):
        return np.full((len(batch), 1), len(batch), np.float32)


def test_a_node_divides_batches_like_one_machine(tmp_path):
    """Rounding may depend on the inputs per pass, and only the first batch is divided (to show progress early)."""
    inputs, names = np.zeros((200, 1)), [str(i) for i in range(200)]
    labels = np.arange(200) % 2
    split = SimpleNamespace(
        inputs=inputs, names=names, labels=labels, fingerprint="zeros"
    )
    whole = extract(BatchSizes(), split, batch_size=64, folder=tmp_path)
    parts = []
    for first in (0, 64, 128, 192):
        part = SimpleNamespace(
            inputs=inputs[first : first + 64], names=names[first : first + 64]
        )
        parts += ray_engine._compute(
            pickle.dumps(BatchSizes()), "sizes", part, first, 64, 1
        )
    assert (
        np.concatenate([p.rows for p in parts]).ravel().tolist()
        == np.asarray(whole.X).ravel().tolist()
    )
    assert [i for p in parts for i in p.index] == list(range(200))
