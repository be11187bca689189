"""Projects, a held-out set, bulk selection, archives, cameras and code snippets, in a real browser."""

import csv
import json
import shutil
import subprocess
import sys
import wave

import numpy as np
import pytest
from PIL import Image

from imprint import Imprinter

from . import browser
from .browser import chromium, column, save_coloured

ESCAPE, SHIFT = "\ue00c", "\ue008"


@pytest.fixture
def photos(tmp_path):
    """A folder of train and test images of three colours, whose names are not in alphabetical order."""
    rng = np.random.default_rng(0)
    for split, n in (("train", 8), ("test", 2)):
        for label, colour in (("red", 0), ("blue", 2), ("green", 1)):
            for i in range(n):
                save_coloured(
                    tmp_path / "photos" / split / label / f"{split}{i}.png", colour, rng
                )
    return tmp_path / "photos"


def labels(page):
    return [article.get_attribute("data-label") for article in page.all("article")]


def add_all(page, photos):
    for label in ("red", "blue", "green"):
        page.new_class(label)
        page.add(label, sorted((photos / "train" / label).iterdir()))
        page.until_text(f"{column(label)} .count", "8")


def test_projects_are_created_renamed_duplicated_deleted_and_restored(
    serving, photos, tmp_path
):
    with serving("--backbone", "raw") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        add_all(page, photos)
        page.click("#project")
        page.click('[aria-label="Duplicate room"]')
        page.click('[aria-label="Rename room (copy)"]')
        page.type("#projects li form input", "Colours\n")
        page.click('[aria-label="Delete Colours"]')
        page.wait(
            lambda: not page.all('#projects > ul [data-project="Colours"]'),
            "the project to go",
        )
        page.click("#projects-undo")
        page.click('[aria-label="Open Colours"]')
        page.until_text("#project-name", "Colours")
        page.find(column("green"))
        assert labels(page) == ["red", "blue", "green"], (
            "in the order in which they were added"
        )
        page.click(f"{column('red')} summary")
        page.click(f"{column('red')} .danger")
        page.wait(lambda: not page.all(column("red")), "the class to go")
        page.click("#project")
        page.click('[aria-label="Open room"]')
        page.until_text("#project-name", "room")
        page.until_text(f"{column('red')} .count", "8")
        assert page.complaints() == []


def test_several_images_are_selected_moved_held_out_and_deleted_at_once(
    serving, photos, tmp_path
):
    from selenium.webdriver.common.action_chains import ActionChains

    with serving("--backbone", "raw") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        add_all(page, photos)
        page.click("#select")
        page.click(f"{column('red')} li:nth-child(1) .thumb")
        third = page.find(f"{column('red')} li:nth-child(3) .thumb")
        ActionChains(page.driver).key_down(SHIFT).click(third).key_up(SHIFT).perform()
        page.until_text("#selection p", "3 images selected")
        page.type("#selection-class", "blue")
        page.click("#selection-move")
        page.until_text(f"{column('blue')} .count", "11")
        page.click("#notes .note:last-child button")
        page.until_text(f"{column('blue')} .count", "8")
        page.click("#select")
        page.click(f"{column('green')} .thumb")
        page.click("#selection-hold")
        page.until_text(f"{column('green')} .count", "7 + 1 held out")
        page.click("#select")
        page.click(f"{column('green')} .thumb")
        page.click("#selection-delete")
        page.until_text(f"{column('green')} .count", "6 + 1 held out")
        page.click("#undo")
        page.until_text(f"{column('green')} .count", "7 + 1 held out")


def test_a_held_out_set_measures_the_accuracy(serving, photos, tmp_path):
    with serving("--backbone", "raw") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        page.type("#open-folder", str(photos))
        page.until_text(f"{column('green')} .count", "8 + 2 held out")
        page.click("#tab-evaluate")
        page.until_text("#held-out-accuracy", "100.0 %")
        held_out = server.json("GET", "/api/evaluation")["held_out"]
        assert (held_out["rows"], held_out["accuracy"]) == (6, 1)
        page.click(".cm-cells button.right")
        page.wait(lambda: "held out" in page.text("#viewer"), "a held-out image")
        page.keys(ESCAPE)
        page.click("#hold-out-fifth")
        page.wait(
            lambda: server.json("GET", "/api/evaluation")["held_out"]["rows"] == 9,
            "three more",
        )


def test_a_model_is_merged_with_the_classes_of_the_page(serving, photos, tmp_path):
    model = Imprinter("raw", cache=False)
    model.fit(str(photos / "train")).forget("green").save(tmp_path / "site.imprint")
    seeds = Imprinter("raw", cache=False, random_state=1).fit(str(photos / "train"))
    seeds.save(tmp_path / "other.imprint")
    with serving("--backbone", "raw") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        for label, part in (("red", "test"), ("green", "train")):
            page.new_class(label)
            page.add(label, sorted((photos / part / label).iterdir()))
        page.until_text(f"{column('green')} .count", "8")
        page.click("#tab-export")
        page.type("#open-model", str(tmp_path / "other.imprint"))
        page.wait(
            lambda: (
                "other.imprint has random_state 1 and this project has 0"
                in page.text("#notes")
            ),
            "the refusal",
        )
        page.type("#open-model", str(tmp_path / "site.imprint"))
        page.wait(
            lambda: "Merged with classes that were here: red." in page.text("#notes"),
            "the merged class",
        )
        opened = {
            one["label"]: one["opened"] for one in server.json("GET", "/api/classes")
        }
        assert opened == {"red": True, "green": False, "blue": True}
        assert (
            page.find("#undo")
            .get_attribute("title")
            .startswith("Undo: site.imprint imported")
        )
        page.click("#notes .note:last-child button")
        page.wait(
            lambda: len(server.json("GET", "/api/classes")) == 2,
            "the import to be undone",
        )
        assert page.complaints() == []


def evaluated(page, server):
    """The evaluation of all thirty images."""
    page.wait(
        lambda: (
            [c["items"] for c in server.json("GET", "/api/classes")] == [10, 10, 10]
        ),
        "all images",
    )
    revision = server.json("GET", "/api/state")["revision"]
    page.wait(
        lambda: server.json("GET", "/api/evaluation")["revision"] == revision,
        "the evaluation",
    )
    return server.json("GET", "/api/evaluation")


def test_an_archive_and_a_model_are_imported_again_with_their_calibration(
    serving, photos, tmp_path
):
    (tmp_path / "downloads").mkdir()
    with serving("--backbone", "raw") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        page.type("#open-folder", str(photos))
        before = evaluated(page, server)
        page.click("#tab-export")
        for name in ("model.imprint", "examples.zip"):
            page.click(f'a[download="{name}"]')
            page.wait((tmp_path / "downloads" / name).exists, name)
        page.click("#export .danger")
        page.wait(lambda: not page.all("article"), "nothing to be left")
        page.type("#open-archive", str(tmp_path / "downloads" / "examples.zip"))
        after = evaluated(page, server)
        for key in ("accuracy", "interval", "classes", "confusion"):
            assert after[key] == before[key]
        assert after["held_out"]["rows"] == 6
        page.click("#undo")
        page.wait(
            lambda: server.json("GET", "/api/classes") == [],
            "the import to be undone in one step",
        )
        page.type("#open-model", str(tmp_path / "downloads" / "model.imprint"))
        page.wait(
            lambda: (
                server.json("GET", "/api/evaluation").get("accuracy")
                == before["accuracy"]
            ),
            "the calibration",
        )
        page.wait(
            lambda: "Hold out images first" in page.text("#export"),
            "no report without images",
        )
        page.click("#tab-evaluate")
        page.wait(lambda: page.all(".cm-cells .right"), "the confusion matrix")
        assert not page.all(".cm-cells button"), "there are no images to show"


def test_tables_of_texts_are_imported_exported_and_imported_again(serving, tmp_path):
    (tmp_path / "downloads").mkdir()
    rows = [
        ("the card is lost", "card"),
        ('a "stolen" card, sadly', "card"),
        ("money back", "pay/refund"),
        ("17", "17"),
    ]
    with open(tmp_path / "mails.csv", "w", newline="", encoding="utf-8") as f:
        csv.writer(f).writerows([("text", "label"), *rows])
    with serving("--backbone", "minilm") as server, chromium(tmp_path) as page:

        def texts():
            classes = server.json("GET", "/api/state")["classes"]
            return [
                (item[1], one["label"], item[3])
                for one in classes
                for item in one["items"]
            ]

        page.driver.get(server.address)
        page.click("#tab-export")
        page.type("#open-archive", str(tmp_path / "mails.csv"))
        expected = [(*row, False) for row in rows]
        page.wait(lambda: sorted(texts()) == sorted(expected), "the texts of the table")
        first = server.json("GET", "/api/state")["classes"][0]["items"][0][0]
        server.json("POST", "/api/change", json.dumps({"do": "hold", "ids": [first]}))
        before = texts()
        page.click('a[download="examples.zip"]')
        page.wait((tmp_path / "downloads" / "examples.zip").exists, "examples.zip")
        page.click("#export .danger")
        page.wait(lambda: texts() == [], "nothing to be left")
        page.type("#open-archive", str(tmp_path / "downloads" / "examples.zip"))
        page.wait(
            lambda: sorted(texts()) == sorted(before),
            "the same texts, one of them held out",
        )
        assert page.complaints() == []


def test_another_camera_is_chosen(serving, tmp_path, monkeypatch):
    two = "--use-fake-device-for-media-stream=device-count=2"
    monkeypatch.setattr(
        browser, "FLAGS", (*(f for f in browser.FLAGS if "fake-device" not in f), two)
    )
    with serving("--backbone", "raw") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        page.find("#new-class")
        page.click("#try-camera")
        page.wait(lambda: len(page.all("#cameras button")) == 2, "two cameras")
        used = "return document.querySelector('#stage video').srcObject.getVideoTracks()[0].label"
        first = page.driver.execute_script(used)
        page.click('#cameras button[aria-pressed="false"]')
        page.wait(lambda: page.driver.execute_script(used) != first, "the other camera")
        page.wait(
            lambda: (
                page.driver.execute_script(used)
                == page.text('#cameras [aria-pressed="true"]')
            ),
            "its button",
        )
        page.click("#try-camera")
        page.wait(lambda: not page.all("#cameras button"), "the end")


def test_the_snippets_run_as_they_are_shown(serving, photos, tmp_path):
    (tmp_path / "downloads").mkdir()
    with serving("--backbone", "tinynet") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        page.type("#open-folder", str(photos))
        evaluated(page, server)
        page.click("#tab-export")
        page.click('a[download="model.imprint"]')
        page.wait((tmp_path / "downloads" / "model.imprint").exists, "model.imprint")
        Image.open(photos / "test" / "blue" / "test0.png").save(
            tmp_path / "downloads" / "new.jpg", quality=95
        )
        codes = {
            s.find_element("css selector", "h4").text: s.find_element(
                "css selector", "pre"
            ).text
            for s in page.all(".snippet")
        }
        assert list(codes) == ["Python", "JavaScript with onnxruntime-web", "curl"]
        here = {
            "cwd": tmp_path / "downloads",
            "capture_output": True,
            "text": True,
            "timeout": 120,
        }
        done = subprocess.run([sys.executable, "-c", codes["Python"]], **here)
        assert (done.stderr, done.stdout.startswith("['blue'] [")) == ("", True), done
        if shutil.which("curl") is None:
            pytest.skip("needs curl")
        done = subprocess.run(["bash", "-c", codes["curl"]], **here)
        assert json.loads(done.stdout)[0]["top"][0]["label"] == "blue", done
        assert '["blue","green","red"]' in codes["JavaScript with onnxruntime-web"], (
            "in the order of the model"
        )


@pytest.mark.shared
def test_sounds_are_added_tried_and_played(serving, shared_folder, tmp_path):
    pytest.importorskip("ai_edge_litert")
    (tmp_path / "home" / "backbones").mkdir(parents=True)
    shutil.copy(
        shared_folder / "models" / "yamnet.tflite", tmp_path / "home" / "backbones"
    )
    rng, time = np.random.default_rng(0), np.arange(16000) / 16000
    for label, pitch in (("low", 200), ("high", 2000)):
        (tmp_path / "sounds" / label).mkdir(parents=True)
        for i in range(4):
            samples = 0.4 * np.sin(
                2 * np.pi * pitch * (1 + 0.02 * i) * time
            ) + 0.02 * rng.normal(size=16000)
            with wave.open(
                str(tmp_path / "sounds" / label / f"{i}.wav"), "wb"
            ) as sound:
                sound.setparams((1, 2, 16000, 16000, "NONE", ""))
                sound.writeframes((20000 * samples).astype("<i2").tobytes())
    with serving("--backbone", "yamnet") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        page.type("#open-folder", str(tmp_path / "sounds"))
        page.until_text(f"{column('low')} .count", "4")
        page.type("#try-file", str(tmp_path / "sounds" / "low" / "0.wav"))
        page.until_text("#winner", "low")
        page.wait(
            lambda: page.find("#stage audio").get_property("duration") == 1,
            "the tried sound",
        )
        page.click(f"{column('low')} .text")
        page.wait(
            lambda: page.find("#viewer[open] audio").get_property("duration") == 1,
            "an example",
        )
        assert page.complaints() == []
