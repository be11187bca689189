"""A modality defined outside of the package, colour swatches of three numbers: one file with adapter and renderer."""

import json
import sys
import textwrap
import threading
import time
import urllib.request

import numpy as np
import pytest

from imprint import Imprinter, backbones, datasets, modalities
from imprint.cli.run import run
from imprint.core import extras

SWATCHES = {"red": (210, 30, 40), "green": (30, 200, 50), "blue": (20, 40, 220)}
POINTS = """
    [imprint.modalities]
    swatch = swatches:Swatch
    [imprint.backbones]
    colours = swatches.adapter
"""
MODALITY = """
    from dataclasses import dataclass
    from typing import ClassVar

    import numpy as np

    from imprint.core.errors import ParameterError, UnreadableInput
    from imprint.modalities import Modality

    @dataclass(frozen=True, kw_only=True)
    class Swatch(Modality):
        '''A colour, as three numbers from 0 to 255.'''

        noun: ClassVar[str] = "colour swatch"
        backbone: ClassVar[str | None] = "colours"

        @property
        def plural(self):
            return "colour swatches"

        def suffixes(self):
            return frozenset({".swatch"})

        def read(self, raw):
            try:
                return self.convert(tuple(map(int, raw.split())))
            except (ValueError, ParameterError) as e:
                raise UnreadableInput("the given bytes", str(e)) from None

        def convert(self, value):
            if len(value) != 3 or not all(0 <= v <= 255 for v in value):
                raise ParameterError("A colour swatch must be three numbers from 0 to 255.")
            return np.array(value, np.float32)

        def recognises(self, value):
            return isinstance(value, tuple) and len(value) == 3

        def show(self, item):
            return np.full((16, 16, 3), item, np.uint8)
"""
ADAPTER = """
    import numpy as np

    from imprint.backbones import Backbone, Record

    VERSION = 1
    RECORD = Record(name="colours", adapter="colours", modality="swatch", width=3)

    class Colours(Backbone):
        def prepare(self, item):
            return item / np.float32(255)

        def _forward(self, batch):
            return np.asarray(batch)

    def load(record, device, threads):
        return Colours(record, "no weights", VERSION)
"""


@pytest.fixture
def swatches(tmp_path, monkeypatch):
    """Install the plug-in, and create a folder with one sub-folder of swatches per colour."""
    site = tmp_path / "site"
    files = {
        "swatches-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: swatches\nVersion: 1.0\n",
        "swatches-1.0.dist-info/entry_points.txt": POINTS,
        "swatches/__init__.py": MODALITY,
        "swatches/adapter.py": ADAPTER,
    }
    for name, text in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    forget()
    rng = np.random.default_rng(0)
    for label, colour in SWATCHES.items():
        (tmp_path / "data" / label).mkdir(parents=True)
        for i in range(8):
            values = np.clip(colour + rng.integers(-20, 21, 3), 0, 255)
            (tmp_path / "data" / label / f"{i}.swatch").write_text(
                " ".join(map(str, values))
            )
    yield tmp_path / "data"
    for name in [name for name in sys.modules if name.partition(".")[0] == "swatches"]:
        del sys.modules[name]
    forget()


def forget():
    """Clear the caches of installed modalities."""
    extras.registered.cache_clear()
    modalities.family.load.cache_clear()
    modalities.modality.cache_clear()
    modalities._of_suffix.cache_clear()


def test_a_folder_of_its_files_is_found_read_and_fitted(swatches):
    (swatches / "red" / "bad.swatch").write_text("300 0 0")
    split = datasets.load(swatches)
    assert (split.modality, split.found) == (
        "swatch",
        "25 colour swatches of 3 classes (data)",
    )
    assert "swatch" in modalities.family.names()
    assert "colours" in backbones.names()
    model = Imprinter().fit(split)
    assert (model.modality, model.embedder.spec) == ("swatch", "colours")
    assert model.predict([(200, 35, 30), (15, 40, 200)]).tolist() == ["red", "blue"]
    rows = model.embed(swatches)
    assert [s.reason for s in rows.skipped] == [
        "A colour swatch must be three numbers from 0 to 255."
    ]
    direct = Imprinter().fit(
        [(200, 30, 30), (190, 20, 25), (10, 10, 200), (5, 20, 210)],
        ["r", "r", "b", "b"],
    )
    assert direct.predict([(180, 10, 10)]).tolist() == ["r"]


def test_it_is_fitted_predicted_evaluated_and_checked_in_the_terminal(
    swatches, tmp_path, capsys
):
    model = str(tmp_path / "m.imprint")
    assert run(["fit", str(swatches), "-o", model]) == 0
    assert (
        "24 colour swatches of 3 classes (data), by colours." in capsys.readouterr().err
    )
    assert run(["predict", model, str(swatches / "blue"), "--json"]) == 0
    assert {a["label"] for a in json.loads(capsys.readouterr().out)} == {"blue"}
    page = tmp_path / "page.html"
    assert run(["evaluate", model, str(swatches), "--json", "--page", str(page)]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == 1.0
    assert run(["check", str(swatches), "--json", "--page", str(page)]) == 0
    assert json.loads(capsys.readouterr().out)["unreadable"] == []
    assert "data:image/" in page.read_text(), "its renderer gives the page an image"
    assert run(["list", "backbones", "--json"]) == 0
    assert "colours" in capsys.readouterr().out


def test_it_is_served(swatches, tmp_path):
    pytest.importorskip("starlette")
    import uvicorn

    from imprint.http.listening import listen, server_config
    from imprint.serve.projects import Projects, start_project
    from imprint.serve.server import application

    (swatches / "red" / "bad.swatch").write_text("300 0 0")
    project, unreadable = start_project(swatches, tmp_path / "project")
    listening = listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    server = uvicorn.Server(
        server_config(application(Projects(project), "secret", port))
    )
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()

    def ask(path, body=None):
        headers = {"Authorization": "Bearer secret"}
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/api/{path}", body, headers
        )
        return urllib.request.urlopen(request, timeout=60).read()

    try:
        while not server.started:
            time.sleep(0.01)
        state = json.loads(ask("state"))
        assert (state["noun"], state["typed"], state["suffixes"]) == (
            "colour swatch",
            False,
            [".swatch"],
        )
        assert {c["label"]: len(c["items"]) for c in state["classes"]} == {
            "red": 8,
            "green": 8,
            "blue": 8,
        }
        assert len(unreadable) == 1
        (answer,) = json.loads(ask("predict?name=new.swatch&preview=1", b"20 30 200"))
        assert answer["label"] == "blue"
        assert answer["preview"].startswith("data:image/jpeg")
        assert ask(f"items/{state['classes'][0]['items'][0][0]}/thumbnail").startswith(
            b"\xff\xd8"
        )
    finally:
        server.should_exit = True
        thread.join()
        project.close()
