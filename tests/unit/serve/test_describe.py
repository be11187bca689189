"""Classes on the page that have a name or a description and no examples."""

import csv
import io
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from imprint import Imprinter, backbones
from imprint.core.component import PARTS
from imprint.serve.export import exported_model
from imprint.serve.project import Project

from .conftest import METHOD, image


class Pair(type(backbones.load("raw"))):
    """A two-tower model without a network: pixels for images, an image bright at top or bottom for names."""

    embeds_names = True

    def embed_names(self, names):
        shades = [1 if "bottom" in name else 0 for name in names]
        return np.concatenate(
            [self.embed(self.prepare(_pixels(shade))[None]) for shade in shades]
        )


def _pixels(shade):
    pixels = np.full((20, 24, 3), 30, np.uint8)
    pixels[slice(0, 10) if shade == 0 else slice(10, None)] += 150
    return pixels


@pytest.fixture
def project(tmp_path, request):
    backbone = backbones.load("raw")
    if getattr(request, "param", None) == "pair":
        backbone.__class__ = Pair
    elif getattr(request, "param", None) == "texts":
        backbone = backbones.load("minilm", threads=1)
    method = replace(METHOD, blocks=backbone.record.block_widths or ())
    project = Project(tmp_path / "room", backbone.record.name, backbone, method)
    yield project
    project.close()


@pytest.mark.parametrize("project", ["texts"], indirect=True)
def test_texts_are_classified_by_names_alone_as_in_the_terminal(client, project):
    assert client.json("GET", "/api/state")[1]["describes"] is True
    labels = ("lost_card", "refund", "weather")
    for label in labels:
        status, answer = client.change(do="describe", label=label)
        assert (status, "revision" in answer) == (200, True)
    question = "What will the forecast for tomorrow be, rain or sun?"
    (answer,) = client.json("POST", "/api/predict?top=3", question.encode())[1]
    model = Imprinter(
        "minilm",
        calibrate=False,
        **{part: str(getattr(METHOD, part)) for part in PARTS},
    )
    model.fit_names(labels)
    assert answer["label"] == model.predict([question])[0] == "weather"
    expected = {guess.label: guess.probability for guess in model.top([question])[0]}
    assert {one["label"]: one["probability"] for one in answer["top"]} == pytest.approx(
        expected, abs=1e-5
    )
    client.change(
        do="describe", label="card colour", description="the colour of a bank card"
    )
    assert [
        item.text for item in project.history.labelled.by_class()["card colour"]
    ] == ["the colour of a bank card"]
    assert [item.text for item in project.history.labelled.by_class()["lost_card"]] == [
        "lost card"
    ]


@pytest.mark.parametrize("project", ["pair"], indirect=True)
def test_images_are_classified_by_names_of_a_pair_of_towers(client, project, tmp_path):
    client.change(do="describe", label="upper", description="bright at the top")
    client.change(do="describe", label="lower", description="bright at the bottom")
    (answer,) = client.json("POST", "/api/predict?why", image(1, shade=1))[1]
    assert answer["label"] == "lower"
    assert answer["why"][0]["name"] == "bright at the bottom"
    client.add("upper", 5, 0)
    state = client.json("GET", "/api/state")[1]
    assert [item[4] for one in state["classes"] for item in one["items"]] == [
        True,
        False,
        True,
    ]
    with zipfile.ZipFile(
        io.BytesIO(client.ask("GET", "/api/export/examples.zip")[2])
    ) as archive:
        names = archive.namelist()
        table = list(csv.DictReader(io.TextIOWrapper(archive.open("descriptions.csv"))))
    assert len([name for name in names if name.startswith("upper/")]) == 1
    assert [(row["label"], row["text"]) for row in table] == [
        ("upper", "bright at the top"),
        ("lower", "bright at the bottom"),
    ]
    assert exported_model(project, project.evaluated().result()).classes_.tolist() == [
        "lower",
        "upper",
    ]


def test_descriptions_survive_a_restart_without_their_embeddings(tmp_path):
    backbone = backbones.load("raw")
    backbone.__class__ = Pair
    for start in range(2):
        project = Project(tmp_path / "room", "raw", backbone, METHOD)
        try:
            if start == 0:
                project.describe(
                    {"label": "upper", "description": "bright at the top"}
                ).result()
                project.describe(
                    {"label": "lower", "description": "bright at the bottom"}
                ).result()
            assert len(project.model().head) == 2
        finally:
            project.close()
        for cache in (tmp_path / "room").glob("cache.sqlite*"):
            cache.unlink()


def test_a_network_without_names_refuses(client):
    assert client.json("GET", "/api/state")[1]["describes"] is False
    status, answer = client.change(
        do="describe", label="cat", description="a small animal"
    )
    assert status == 400
    assert (
        "raw cannot embed class names; use a network of texts, or a two-tower model"
        in answer["error"]
    )
    for entry in (
        {"label": "cat", "description": 7},
        {"label": "cat", "description": "x" * 501},
        {"label": None},
    ):
        assert client.change(do="describe", **entry)[0] == 400
    assert client.labels() == {}
