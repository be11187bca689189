"""Exported folders on a thousand images and a thousand texts, run by Python without imprint, by Node and by a browser."""

import base64
import csv
import functools
import http.server
import io
import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from PIL import Image

from imprint import Imprinter, datasets
from imprint.datasets.samples import sample_files
from imprint.export.whole import export_whole

ROOT = Path(__file__).resolve().parents[2]
# `make node` installs what JavaScript needs
NODE_MODULES = Path(
    os.environ.get("IMPRINT_NODE_MODULES", ROOT / ".venv" / "node" / "node_modules")
)
COUNT = 1000
PYTHON_PROGRAM = """
import base64, json, sys
for name in ("imprint", "sklearn", "scipy", "torch", "onnx", "tokenizers", "PIL"):
    sys.modules[name] = None
folder, inputs, outputs = sys.argv[1:]
sys.path.insert(0, folder)
import numpy as np
from pathlib import Path
from types import MappingProxyType
from classify import Model
model = Model(Path(folder), 1)
answers = []
for item in json.load(open(inputs)):
    if isinstance(item, dict):
        raw = np.frombuffer(base64.b64decode(item["data"]), np.uint8)
        item = raw.reshape(item["height"], item["width"], 3)
    values = model.outputs(item)
    answers.append([values["labels"], values["probabilities"].tolist(), values["known"]])
json.dump(answers, open(outputs, "w"))
"""
NODE_PROGRAM = """
import { readFileSync, writeFileSync } from "node:fs";
import * as ort from "onnxruntime-web";
import { load } from "./imprint.mjs";
const [inputs, outputs] = process.argv.slice(2);
ort.env.wasm.numThreads = 1;
const model = await load(ort, new URL(".", import.meta.url));
const answers = [];
for (const item of JSON.parse(readFileSync(inputs, "utf8"))) {
  const input = item.data ? { ...item, data: Buffer.from(item.data, "base64"), channels: 3 } : item;
  const values = await model.outputs(input);
  answers.push([values.labels[0], values.probabilities, values.known[0]]);
}
writeFileSync(outputs, JSON.stringify(answers));
"""


BROWSER_PROGRAM = """
const done = arguments[0];
const pixels = (data) => Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
async function run() {
  const ort = await import("onnxruntime-web");
  const { load } = await import(new URL("imprint.mjs", location.href).href);
  const model = await load(ort, new URL("./", location.href));
  const answers = [];
  for (const item of await (await fetch("inputs.json")).json()) {
    const input = item.data ? { ...item, data: pixels(item.data), channels: 3 } : item;
    const values = await model.outputs(input);
    answers.push([values.labels[0], values.probabilities, values.known[0]]);
  }
  return JSON.stringify(answers);
}
run().then(done, (error) => done(String(error)));
"""
# a thousand images take about two minutes on a machine that does ten things at once
BROWSER_SECONDS = 350


def images():
    """A model of digits, and a thousand of them in colours and sizes of their own."""
    rng = np.random.default_rng(0)
    learnt, others = datasets.load("digits", "test"), datasets.load("digits", "train")
    rows = [learnt.inputs[i] for i in range(200)]
    model = Imprinter("tinynet", threads=1, cache=False)
    model.fit((rows, [f"digit {label}" for label in learnt.labels[:200]]))
    queries = []
    for i in range(COUNT):
        width, height = rng.integers(8, 90, 2)
        image = Image.fromarray(others.inputs[i]).resize((width, height))
        colour = rng.uniform(0.5, 1, 3)
        queries.append((np.asarray(image)[:, :, None] * colour).astype(np.uint8))
    return model, queries


def texts():
    """A model of messages, and a thousand texts that are made of their words."""
    rng = np.random.default_rng(0)
    raw = sample_files("messages")["train.csv"].decode()
    rows = list(csv.DictReader(io.StringIO(raw)))
    model = Imprinter("minilm", threads=2, cache=False)
    model.fit(([row["text"] for row in rows], [row["label"] for row in rows]))
    words = " ".join(row["text"] for row in rows).split()
    queries = [" ".join(rng.choice(words, rng.integers(1, 9))) for _ in range(COUNT)]
    return model, queries


class Exported:
    """An exported model, the inputs in a file, and the answers of the library."""

    def __init__(self, model, queries, folder):
        self.model, self.folder = model, folder / "whole"
        export_whole(model, self.folder)
        self.inputs = folder / "inputs.json"
        self.inputs.write_text(json.dumps([stored(query) for query in queries]))
        rows = model.look(queries)
        self.labels = model.predict(rows).tolist()
        self.probabilities, self.known = model.predict_proba(rows), model.known(rows)

    def check(self, path, tolerance):
        answers = json.loads(path.read_text())
        assert len(answers) == COUNT
        assert [label for label, _, _ in answers] == self.labels
        probabilities = [row for _, row, _ in answers]
        np.testing.assert_allclose(probabilities, self.probabilities, atol=tolerance)
        known = np.array([value for _, _, value in answers])
        # a score that is rounded otherwise may be counted before or after a held-out row
        assert np.mean(np.abs(known - self.known) > 1e-9) < 0.01
        np.testing.assert_allclose(known, self.known, atol=0.02)

    def link_packages(self):
        if not (NODE_MODULES / "onnxruntime-web").is_dir():
            pytest.skip(f"needs onnxruntime-web in {NODE_MODULES}: make node")
        if not (self.folder / "node_modules").exists():
            (self.folder / "node_modules").symlink_to(NODE_MODULES)


def stored(query):
    """An input in JSON."""
    if isinstance(query, str):
        return query
    height, width, _ = query.shape
    data = base64.b64encode(query.tobytes()).decode()
    return {"height": height, "width": width, "data": data}


@pytest.fixture(scope="module", params=[images, texts], ids=["images", "texts"])
def exported(request, tmp_path_factory):
    return Exported(*request.param(), tmp_path_factory.mktemp("whole"))


def test_python_without_imprint(exported, tmp_path):
    out = tmp_path / "answers.json"
    command = [sys.executable, "-c", PYTHON_PROGRAM, exported.folder, exported.inputs]
    subprocess.run([*map(str, command), str(out)], check=True, timeout=300)
    exported.check(out, 1e-4)


def test_node(exported, tmp_path):
    if not shutil.which("node"):
        pytest.skip("needs Node.js")
    exported.link_packages()
    out, script = tmp_path / "answers.json", exported.folder / "test.mjs"
    script.write_text(NODE_PROGRAM)
    command = ["node", script, exported.inputs, out]
    subprocess.run(list(map(str, command)), check=True, timeout=350)
    exported.check(out, 1e-3)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Images as files of several formats: JPEG, PNG, one of them transparent, and one turned by its metadata."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(1)
    smooth = rng.integers(0, 256, (6, 5, 4), dtype=np.uint8)
    image = Image.fromarray(smooth).resize((70, 90), Image.Resampling.BICUBIC)
    rgb = image.convert("RGB")
    turned = Image.Exif()
    turned[0x0112] = 6  # the orientation: a quarter turn
    rgb.save(folder / "plain.png")
    rgb.convert("L").save(folder / "grey.png")
    rgb.save(folder / "plain.jpg", quality=90)
    rgb.save(folder / "turned.jpg", exif=turned, quality=90)
    image.save(folder / "transparent.png")
    return sorted(folder.iterdir())


def agrees(answers, model, inputs):
    """Assert that printed answers are those of the library."""
    assert [answer["path"] for answer in answers] == [Path(i).name for i in inputs]
    rows = model.look(inputs)
    for answer, p, known in zip(
        answers, model.predict_proba(rows), model.known(rows), strict=True
    ):
        # images of noise may have two classes that are equally probable
        likeliest = model.classes_.tolist().index(answer["top"][0]["label"])
        assert p[likeliest] == pytest.approx(p.max(), abs=1e-3)
        assert answer["probability"] == pytest.approx(p.max(), abs=1e-3)
        assert answer["known"] == pytest.approx(known, abs=0.02)
        assert (answer["label"] is None) == (answer["known"] < 0.05)


@pytest.mark.parametrize("runner", [sys.executable, "node"], ids=["python", "node"])
def test_the_programs_read_files_and_texts(exported, files, runner, monkeypatch):
    name = "classify.py"
    if runner == "node":
        exported.link_packages()
        if not (NODE_MODULES / "sharp").is_dir():
            pytest.skip(f"needs sharp in {NODE_MODULES}: make node")
        name = "classify.mjs"
    inputs = ["where is my parcel", "asdf qwer"]
    if exported.model.modality == "image":
        inputs = [path.name for path in files]
        monkeypatch.chdir(files[0].parent)
    program = exported.folder / name
    command = [runner, str(program), *inputs, "--unknown", "0.05"]
    done = subprocess.run(command, check=True, timeout=100, capture_output=True)
    agrees(list(map(json.loads, done.stdout.splitlines())), exported.model, inputs)


@pytest.fixture
def address(exported):
    """The address of the exported folder."""
    handler = functools.partial(Quiet, directory=exported.folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Files of a folder; no log."""

    extensions_map = MappingProxyType(
        {
            ".mjs": "text/javascript",
            ".wasm": "application/wasm",
            ".html": "text/html; charset=utf-8",
            "": "application/octet-stream",
        }
    )

    def log_message(self, *_):
        pass


def test_a_thousand_inputs_in_a_browser(exported, browser_page, address, tmp_path):
    exported.link_packages()
    shutil.copy(exported.inputs, exported.folder / "inputs.json")
    browser_page.driver.get(address)
    browser_page.find("#input")
    browser_page.driver.set_script_timeout(BROWSER_SECONDS)
    printed = browser_page.driver.execute_async_script(BROWSER_PROGRAM)
    (tmp_path / "answers.json").write_text(printed)
    exported.check(tmp_path / "answers.json", 1e-3)


def test_browser(exported, files, browser_page, address):
    exported.link_packages()
    page = browser_page
    page.driver.get(address)
    page.find("#input")
    inputs = ["where is my parcel", "asdf qwer"]
    if exported.model.modality == "image":
        inputs = list(map(str, files))
    page.until_text("#answer", "")
    page.type("#input", "\n".join(inputs))
    if exported.model.modality == "text":
        page.click("h1")  # leaves the field
    page.wait(lambda: page.text("#answer").count("\n") == len(inputs) - 1, "answers")
    answers = list(map(json.loads, page.text("#answer").splitlines()))
    agrees(answers, exported.model, inputs)
    complaints = [one for one in page.complaints() if "favicon" not in one]
    assert complaints == []
