"""A tree of classes, and classes without examples, in a real browser."""

import numpy as np
from PIL import Image

from .browser import chromium, column

CENTRES = {"animal/cat": (8, 8), "animal/dog": (8, 24), "vehicle/car": (40, 48)}


def draw(path, row, column, seed):
    rows, columns = np.indices((48, 64))
    noise = np.random.default_rng(seed).normal(0, 18, (48, 64))
    path.parent.mkdir(parents=True, exist_ok=True)
    spot = 160 * np.exp(-((rows - row) ** 2 + (columns - column) ** 2) / 60)
    Image.fromarray(np.clip(40 + spot + noise, 0, 255).astype(np.uint8)).save(path)
    return path


def test_a_tree_is_predicted_evaluated_and_forgotten(serving, tmp_path):
    for label, centre in CENTRES.items():
        for seed in range(8):
            draw(tmp_path / "photos" / label / f"{seed}.png", *centre, seed)
    lynx = draw(tmp_path / "lynx.png", 8, 16, 77)
    with (
        serving(tmp_path / "photos", "--backbone", "raw") as server,
        chromium(tmp_path) as page,
    ):
        page.driver.get(server.address)
        page.until_text(f"{column('animal/cat')} .count", "8")
        page.click("#tab-evaluate")
        page.wait(
            lambda: (
                "Accuracy at level 1 of the tree (2 nodes): 100"
                in page.find("#evaluate").text
            ),
            "the level",
        )
        page.type("#try-file", str(lynx))
        page.wait(
            lambda: (
                "animal (kind unknown; closest: animal/" in page.find("#winner").text
            ),
            "the node",
        )
        page.click("#tab-examples")
        page.click(f"{column('animal/dog')} summary")
        page.click(f"{column('animal/dog')} [data-node='animal']")
        page.wait(
            lambda: (
                not page.all(column("animal/cat"))
                and not page.all(column("animal/dog"))
            ),
            "the classes gone",
        )
        page.find(column("vehicle/car"))
        page.click("#undo")
        page.until_text(f"{column('animal/cat')} .count", "8")


def test_a_class_is_described_instead_of_given_examples(serving, tmp_path):
    with serving("--backbone", "minilm") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        for name, description in (
            ("weather", ""),
            ("lost_card", "I lost my bank card"),
        ):
            page.type("#new-class", name)
            page.type("#describe", description)
            page.click("#from-name")
            page.until_text(f"{column(name)} .count", "1")
        page.type("#try-text", "will it rain tomorrow?")
        page.until_text("#winner", "weather")
        assert page.find(f"{column('lost_card')} .text").text == "I lost my bank card"
