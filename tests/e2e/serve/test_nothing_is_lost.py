"""Work that a quick user could lose on the page: answers and texts that are still being
saved.
"""

import json

import numpy as np
import pytest

from .browser import chromium, column, save_coloured

DELAY = """
const send = window.fetch;
window.fetch = (address, options) => new Promise((resolve) => setTimeout(resolve,
  String(address).startsWith(arguments[0]) ? 700 : 0)).then(() => send(address, options));
"""
"""Delays requests to the addresses below a path, as a busy server does."""


@pytest.fixture
def folders(tmp_path):
    """Two folders with ten unlabelled images each."""
    rng = np.random.default_rng(0)
    for name in ("first", "second"):
        for i in range(10):
            save_coloured(tmp_path / name / f"{name}-{i}.png", i % 3, rng)
    return tmp_path


def names(page):
    """The names of the images that the tab *Label next* shows: one or none."""
    return [one.get_attribute("aria-label") for one in page.all("#label-item canvas")]


def undo_is_enabled(page):
    return page.driver.execute_script(
        "return !document.getElementById('undo').disabled"
    )


def test_undo_takes_back_the_answer_that_is_still_being_saved(
    serving, folders, tmp_path
):
    from selenium.webdriver.common.keys import Keys

    with serving("--backbone", "raw") as server, chromium(tmp_path) as page:

        def shown():
            return page.find("#label-item canvas").get_attribute("aria-label")

        def left():
            return server.json("GET", "/api/pool")["left"]

        page.driver.get(server.address)
        page.click("#tab-label")
        page.type("#pool-files", str(folders / "first"))
        for labelled in (1, 2):
            before = page.wait(shown, "an image")
            page.type("#label-new", f"class {labelled}\n")
            page.wait(lambda: shown() != before, "the next image")  # noqa: B023
            page.wait(lambda: left() == 10 - labelled, "the answer")  # noqa: B023
        page.wait(lambda: len(page.all("#label-classes .choice")) == 2, "the buttons")

        page.driver.execute_script(DELAY, "/api/items")
        before = shown()
        page.click("#label-item canvas")
        page.keys("1", "\ue003")
        page.wait(lambda: shown() == before, "the image again")
        page.wait(lambda: undo_is_enabled(page), "the older changes")
        assert left() == 8, "only the newest answer is undone"

        page.keys("1")
        page.chord(Keys.CONTROL, "z")
        page.wait(
            lambda: "Undone: 1 image added to class 1." in page.text("#notes"),
            "the name of the undone change",
        )
        assert left() == 8
        title = page.find("#undo").get_attribute("title")
        assert title == "Undo: 1 image added to class 2 (Ctrl+Z)"

        # What was undone with Ctrl+Z is asked for again.
        seen = set()
        while left() > 0:
            before = page.wait(shown, "an image")
            seen.add(before)
            remaining = left()
            page.keys("2")
            page.wait(lambda: left() < remaining, "the answer")  # noqa: B023
            page.wait(
                lambda: not page.all("#label-item canvas") or shown() != before,  # noqa: B023
                "the next image",
            )
        assert len(seen) == 8
        page.wait(
            lambda: "Everything is labelled" in page.text("#label-item"), "the end"
        )


def test_another_folder_is_labelled_after_the_page_was_loaded_again(
    serving, folders, tmp_path
):
    with serving("--backbone", "raw") as server, chromium(tmp_path) as page:
        rng = np.random.default_rng(1)
        for i in range(30):
            save_coloured(folders / "many" / f"{i}.png", i % 3, rng)
        page.driver.get(server.address)
        page.click("#tab-label")
        page.type("#pool-files", str(folders / "many"))
        page.find("#label-item canvas")
        page.driver.refresh()
        page.click("#tab-label")
        page.type("#pool-files", str(folders / "second"))
        labelled = set()
        while len(labelled) < 10:
            name = page.find("#label-item canvas").get_attribute("aria-label")
            labelled.add(name)
            page.type("#label-new", "any\n")
            page.wait(lambda: name not in names(page), "the next image")  # noqa: B023
        assert all(name.startswith("second") for name in labelled)


def test_a_text_that_is_typed_while_the_last_one_is_saved_stays(serving, tmp_path):
    with serving("--backbone", "minilm") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        page.new_class("late")
        page.driver.execute_script(DELAY, "/api/items")
        writer = f"{column('late')} textarea"
        page.type(writer, "where is my parcel\n")
        page.type(writer, "it has not")
        page.wait(lambda: "where is my parcel" in page.text(column("late")), "the text")
        page.keys(" arrived")
        assert page.find(writer).get_attribute("value") == "it has not arrived"

        # A name that is being typed stays as well, and is not saved half typed.
        page.click(f"{column('late')} .name")
        page.keys("too l")
        server.json("POST", "/api/items?label=late&name=text", "another text")
        page.wait(lambda: "another text" in page.text(column("late")), "the other text")
        page.keys("ate\n")
        page.find(column("too late"))

        # The first texts of the pool, whose order was requested while there were none.
        pool = tmp_path / "pool.txt"
        pool.write_text("the parcel is late\nthank you\n")
        page.driver.execute_script(DELAY, "/api/pool/next")
        page.click("#tab-label")
        page.type("#pool-files", str(pool))
        page.find("#label-item blockquote")

        # A text that cannot be saved returns to its field.
        page.click("#tab-examples")
        server.process.terminate()
        server.process.wait()
        page.type(f"{column('too late')} textarea", "where is it\n")
        page.wait(lambda: "does not answer" in page.text("#notes"), "the failure")
        area = page.find(f"{column('too late')} textarea")
        assert area.get_attribute("value") == "where is it"


def test_the_snippet_lists_every_class_while_examples_arrive(serving, tmp_path):
    rng = np.random.default_rng(0)
    labels = [f"class {i}" for i in range(6)]
    with serving("--backbone", "raw") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        for label in labels:
            server.json(
                "POST", "/api/change", json.dumps({"do": "create", "label": label})
            )

        def add_examples(of):
            for label in of:
                for i in range(3):
                    path = save_coloured(tmp_path / f"{label} {i}.png", i, rng)
                    address = f"/api/items?label={label.replace(' ', '%20')}"
                    server.json("POST", f"{address}&name={i}.png", path.read_bytes())

        def listed(snippet_labels):
            code = page.text("#export")
            return [label for label in labels if f'"{label}"' in code] == snippet_labels

        page.click("#tab-export")
        add_examples(labels[:3])
        page.wait(lambda: server.json("GET", "/api/evaluation")["ready"], "accuracy")
        page.wait(lambda: listed(labels[:3]), "the first classes in the snippet")
        add_examples(labels[3:])
        page.wait(lambda: listed(labels), "every class in the snippet")
