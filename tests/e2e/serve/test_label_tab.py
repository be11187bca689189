"""Label a folder of unlabelled images in a real browser."""

import numpy as np
import pytest

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
        page.keys("s")
        page.wait(lambda: name() != shown, "the next image")
        page.keys("u")
        page.wait(lambda: name() == shown, "the skipped image again")
        page.keys("u")
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
