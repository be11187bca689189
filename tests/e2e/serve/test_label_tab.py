"""Label a folder of unlabelled images in a real browser."""

import io

import numpy as np
import pytest
from PIL import Image

from .browser import chromium, save_coloured

COLOURS = {"red": 0, "blue": 2, "green": 1}


@pytest.fixture
def folder(tmp_path):
    """Thirty images of three colours, with the colour in the file name."""
    rng = np.random.default_rng(0)
    for i in range(30):
        kind = list(COLOURS)[i % 3]
        save_coloured(tmp_path / "unlabelled" / f"{kind}-{i}.png", COLOURS[kind], rng)
    return tmp_path / "unlabelled"


def test_label_skip_undo_and_let_the_model_label_the_rest(serving, folder, tmp_path):
    with serving("--backbone", "tinynet") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        page.click("#tab-label")
        page.type("#pool-files", str(folder))
        page.wait(lambda: server.json("GET", "/api/pool")["inputs"] == 30, "all images")

        def name():
            css = "#label-item canvas"
            return page.wait(
                lambda: page.driver.find_element("css selector", css).get_attribute(
                    "aria-label"
                ),
                css,
            )

        def classes():
            return [one["label"] for one in server.json("GET", "/api/classes")]

        labelled = 0
        while labelled < 9:
            shown = name()
            kind = shown.split("-")[0]
            if kind in classes():
                page.wait(
                    lambda: len(page.all("#label-classes .choice")) == len(classes()),
                    "the buttons",
                )
                page.keys(str(classes().index(kind) + 1))
            else:
                page.type("#label-new", f"{kind}\n")
            labelled += 1
            page.wait(lambda: name() != shown, "the next image")  # noqa: B023
            page.wait(
                lambda: server.json("GET", "/api/pool")["left"] == 30 - labelled,  # noqa: B023
                "the answer",
            )
        assert sorted(classes()) == sorted(COLOURS)
        page.wait(
            lambda: "The model:" in page.find("#label-last").text,
            "the prediction after the answer",
        )

        shown = name()
        page.keys("\ue014")  # the arrow to the right
        page.wait(lambda: name() != shown, "the next image")
        page.keys("\ue003")  # Backspace
        page.wait(lambda: name() == shown, "the skipped image again")
        page.keys("\ue003")  # Backspace
        page.wait(
            lambda: server.json("GET", "/api/pool")["left"] == 22, "the undone answer"
        )

        share = page.find("#rest-share")
        share.clear()
        share.send_keys("50")
        page.click("#rest-show")
        page.wait(lambda: page.all(".guess canvas"), "the grid")
        page.click("#rest-add")
        page.wait(
            lambda: server.json("GET", "/api/pool")["left"] < 5, "labels by the model"
        )
        page.wait(lambda: not page.all("#rest-add"), "the end of it")
        page.click("#undo")
        page.wait(
            lambda: server.json("GET", "/api/pool")["left"] == 22,
            "all of them undone in one step",
        )


def test_a_class_from_elsewhere_keeps_the_name_that_is_being_typed(
    serving, folder, tmp_path
):
    with serving("--backbone", "tinynet") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        page.click("#tab-label")
        page.type("#pool-files", str(folder))
        page.type("#label-new", "gre")
        server.json(
            "POST",
            "/api/items?label=red&name=red-0.png",
            (folder / "red-0.png").read_bytes(),
        )
        page.wait(
            lambda: page.all("#label-classes .choice"), "the button of the new class"
        )
        page.keys("en\n")
        labels = ["red", "green"]
        page.wait(
            lambda: (
                [one["label"] for one in server.json("GET", "/api/classes")] == labels
            ),
            "the typed class",
        )
        page.wait(
            lambda: len(page.all("#label-classes .choice")) == 2,
            "a button for each class",
        )


CLASSES = 200
# Press a key, and wait until another image is on the stage; the milliseconds that this takes.
NEXT_IMAGE = """
const [key, done] = arguments;
const label = () => document.querySelector("#label-stage canvas")?.getAttribute("aria-label");
const shown = label();
const start = performance.now();
document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const look = () => (label() !== shown ? done(performance.now() - start) : performance.now() - start > 20000 ? done(null) : requestAnimationFrame(look));
requestAnimationFrame(look);
"""
PLACES = """
return ["#label-stage", "#label-classes", "#label-new", "#label-skip", "#label-undo"].map((css) => {
  const { x, y, width, height } = document.querySelector(css).getBoundingClientRect();
  return [css, x, y, width, height].join(" ");
});
"""


@pytest.fixture
def many(tmp_path):
    """Forty unlabelled photographs, larger than the stage."""
    rng = np.random.default_rng(1)
    folder = tmp_path / "unlabelled"
    folder.mkdir()
    for i in range(40):
        pixels = rng.integers(0, 255, (30, 40, 3), dtype=np.uint8)
        image = Image.fromarray(pixels).resize((1600, 1200))
        image.save(folder / f"{i:02d}.jpg")
    return folder


def test_two_hundred_classes_are_labelled_by_keys_on_a_stage_that_stays(
    serving, many, tmp_path
):
    rng = np.random.default_rng(2)
    with serving("--backbone", "raw") as server, chromium(tmp_path) as page:
        for i in range(CLASSES):
            pixels = rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)
            raw = io.BytesIO()
            Image.fromarray(pixels).save(raw, "png")
            address = f"/api/items?label=bird%20{i:03d}&name={i}.png"
            server.json("POST", address, raw.getvalue())
        page.driver.get(server.address)
        page.click("#tab-label")
        page.type("#pool-files", str(many))
        page.wait(lambda: server.json("GET", "/api/pool")["inputs"] == 40, "all images")
        page.find("#label-stage canvas")
        page.wait(lambda: len(page.all(".slot.choice")) == 5, "five classes")
        assert len(page.all("#label button")) < 15, "no wall of buttons"

        run = page.driver.execute_script
        before = run(PLACES)
        times = []
        for _ in range(20):
            times.append(page.driver.execute_async_script(NEXT_IMAGE, "1"))
            assert run(PLACES) == before
        assert np.median(times) < 100, times
        page.wait(
            lambda: server.json("GET", "/api/pool")["left"] == 20, "twenty answers"
        )

        page.keys("1", "7", "3")  # a digit answers; a letter begins to filter
        page.wait(lambda: server.json("GET", "/api/pool")["left"] == 18, "two answers")
        page.keys("bird 17")
        page.wait(
            lambda: "bird 17" in page.text("#label-classes .marked span"), "a match"
        )
        page.keys("\ue015")  # the arrow down
        slots = page.all("#label-classes .slot")
        assert "marked" in slots[1].get_attribute("class")
        chosen = slots[1].find_element("css selector", "span").text
        page.keys("\n")
        page.wait(lambda: chosen in page.text("#label-last"), "the answer")
        assert run(PLACES) == before
        assert page.complaints() == []
