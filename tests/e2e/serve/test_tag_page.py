"""A model of tags in a real browser: import, predictions with several labels, results per label."""

import numpy as np
from PIL import Image

from imprint import Imprinter

from .browser import chromium, column

STUB = """
const [answer, real] = [JSON.stringify(arguments[0]), window.fetch];
const stub = () => Promise.resolve(new Response(answer));
window.fetch = (path, ...rest) => String(path).startsWith("/api/predict") ? stub() : real(path, ...rest);
"""


def halves(top, bottom, seed):
    pixels = np.random.default_rng(seed).integers(0, 70, (20, 24), dtype=np.uint8)
    pixels[:10] += np.uint8(150 * top)
    pixels[10:] += np.uint8(150 * bottom)
    return pixels


def test_a_model_of_tags_is_opened_tried_and_evaluated(serving, tmp_path):
    sets = {(1, 0): ["top"], (0, 1): ["bottom"], (1, 1): ["bottom", "top"]}
    rows = [
        (halves(*lit, [i, *lit]), labels)
        for lit, labels in sets.items()
        for i in range(12)
    ]
    Imprinter("raw", cache=False).fit(
        ([r for r, _ in rows], [labels for _, labels in rows])
    ).save(tmp_path / "m.imprint")
    Image.fromarray(halves(1, 1, 99)).save(tmp_path / "both.png")
    with serving(tmp_path / "m.imprint") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        page.find(column("bottom + top"))
        page.type("#try-file", str(tmp_path / "both.png"))
        page.wait(
            lambda: set(page.find("#winner").text.split(" + ")) == {"bottom", "top"},
            "both labels",
        )
        assert len(page.all("#answer .bars li")) == 2
        page.click("#tab-evaluate")
        page.wait(
            lambda: "mean average precision" in page.find("#evaluate").text,
            "the results",
        )
        assert {"bottom", "top"} <= set(page.find("#evaluate table").text.split())

        empty = {
            "path": "x",
            "label": "no label",
            "labels": [],
            "probability": 0.2,
            "known": 0.5,
            "calibrated": True,
        }
        page.driver.execute_script(
            STUB, [{**empty, "top": [{"label": "top", "probability": 0.2}]}]
        )
        page.type("#try-file", str(tmp_path / "both.png"))
        page.until_text("#winner", "no label")
        assert not page.all("#right")  # it would create a class called "no label"
        assert page.all(".wrong [data-correct]")
