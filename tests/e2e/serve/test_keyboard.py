"""From an empty page to an exported model without a mouse."""

import numpy as np
import pytest
from PIL import Image

from .browser import chromium

TAB, ENTER, ESCAPE, RIGHT = "\ue004", "\ue007", "\ue00c", "\ue014"
MATCHES = "return document.activeElement?.matches(arguments[0]) ?? false"
SHOWN = "return document.querySelector(arguments[0])?.getAttribute(arguments[1])"


@pytest.mark.timeout(300)
def test_from_the_sample_to_the_exported_model_by_keys(serving, tmp_path):
    (tmp_path / "downloads").mkdir()
    unlabelled = tmp_path / "unlabelled"
    unlabelled.mkdir()
    for i in range(4):
        pixels = np.random.default_rng(i).integers(0, 255, (32, 32, 3), np.uint8)
        Image.fromarray(pixels).save(unlabelled / f"{i}.png")

    with serving("--backbone", "tinynet") as server, chromium(tmp_path) as page:
        run = page.driver.execute_script

        def tab_to(css):
            for _ in range(80):
                if run(MATCHES, css):
                    return
                page.keys(TAB)
            pytest.fail(f"no way to {css} by the Tab key")

        def go_to(name):
            """Go to a tab of the page by the arrow keys."""
            run("document.activeElement.blur()")
            tab_to("[role=tab][aria-selected=true]")
            for _ in range(5):
                if run(MATCHES, f"#tab-{name}"):
                    return
                page.keys(RIGHT)
            pytest.fail(f"no way to the tab {name}")

        page.driver.get(server.address)
        page.find("#try-sample")
        tab_to("#try-sample")
        page.keys(ENTER)
        page.wait(lambda: "is imported" in page.text("#notes"), "the sample")
        page.wait(lambda: page.text("#evaluate-badge"), "the evaluation")
        images = sum(one["items"] for one in server.json("GET", "/api/classes"))

        go_to("label")
        page.type("#pool-files", str(unlabelled))  # the chooser is the system's
        page.find("#label-stage canvas")
        page.wait(lambda: page.all(".slot.choice"), "the classes")
        run("document.activeElement.blur()")
        page.keys("1")
        page.wait(
            lambda: server.json("GET", "/api/pool")["left"] == 3, "the first answer"
        )
        page.keys("tw", ENTER)
        page.wait(
            lambda: server.json("GET", "/api/pool")["left"] == 2, "the second answer"
        )
        page.keys(RIGHT)
        page.wait(lambda: server.json("GET", "/api/pool")["left"] == 1, "the skip")
        labelled = sum(one["items"] for one in server.json("GET", "/api/classes"))
        assert labelled == images + 2

        go_to("evaluate")
        tab_to(".cm-cells button")
        page.keys(ENTER)
        page.find("#viewer[open]")
        page.keys(ESCAPE)
        page.wait(lambda: not page.all("#viewer[open]"), "the page behind the viewer")

        page.type("#try-file", str(unlabelled / "3.png"))
        page.find("#winner")
        run("document.activeElement.blur()")
        page.keys("m")
        page.wait(
            lambda: "Orange speaks for" in page.text("#where-text"), "the explanation"
        )
        assert run(SHOWN, "#overlay", "src").startswith("data:image/png")
        page.keys("m")
        page.wait(lambda: not page.text("#where-text"), "the image alone")

        go_to("export")
        tab_to('a[download="model.imprint"]')
        page.keys(ENTER)
        page.wait((tmp_path / "downloads" / "model.imprint").exists, "the model")
        assert page.complaints() == []
