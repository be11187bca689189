"""A person adds examples, tries, corrects, renames, undoes, reloads and exports, in a real browser."""

import io
import time
import zipfile

import numpy as np
import pytest
from PIL import Image

from imprint import Imprinter

from .browser import chromium, column, save_coloured


@pytest.fixture
def files(tmp_path):
    """Images of two kinds, and one of a third, as files."""
    rng, folder = np.random.default_rng(0), tmp_path / "files"
    return {
        kind: [
            save_coloured(folder / kind / f"{kind}{i}.png", colour, rng)
            for i in range(8)
        ]
        for kind, colour in (("red", 0), ("blue", 2), ("green", 1))
    }


def test_add_try_correct_rename_undo_reload_and_export(serving, files, tmp_path):
    (tmp_path / "downloads").mkdir()
    with serving("--backbone", "tinynet") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        for label in ("red", "blue"):
            page.new_class(label)
            page.add(label, files[label][:5])
            page.until_text(f"{column(label)} .count", "5")
        assert "token" not in page.driver.current_url

        page.type("#try-file", str(files["blue"][7]))
        page.until_text("#winner", "blue")
        page.wait(lambda: page.all(".why img"), "the images that decided")
        page.wait(
            lambda: "blue, " in page.find("#spoken").get_attribute("textContent"),
            "the answer to be spoken",
        )

        page.type("#try-file", str(files["green"][7]))
        page.wait(
            lambda: (
                page.all('[data-correct="red"]') or page.all('[data-correct="blue"]')
            ),
            "a way to correct",
        )
        page.type('input[aria-label="Another class"]', "green\n")
        page.find(column("green"))
        page.until_text(f"{column('green')} .count", "1")
        page.until_text("#winner", "green")

        page.click(f"{column('red')} .name")
        page.type("input.rename", "\b" * 3 + "crimson\n")
        page.find(column("crimson"))
        assert not page.all(column("red"))
        page.click("#undo")
        page.find(column("red"))
        page.click("#redo")
        page.find(column("crimson"))

        page.click(f"{column('crimson')} .thumb")
        page.find("#viewer[open] img")
        page.type("#move-to", "blue")
        page.click("#move")
        page.until_text(f"{column('blue')} .count", "6")
        page.keys("\ue00c")
        page.click("#undo")
        page.until_text(f"{column('blue')} .count", "5")

        page.driver.refresh()
        page.until_text(f"{column('crimson')} .count", "5")
        page.until_text(f"{column('green')} .count", "1")

        page.click("#tab-evaluate")
        page.wait(lambda: page.all("#accuracy"), "an evaluation")
        page.click(".cm-cells button.right")
        page.find("#viewer[open] img")
        page.keys("\ue00c")

        page.click("#tab-export")
        for name in ("model.imprint", "model.onnx", "examples.zip", "evaluation.html"):
            page.click(f'a[download="{name}"]')
            download = tmp_path / "downloads" / name
            page.wait(download.exists, name)
        assert page.complaints() == []
    model = Imprinter.load(tmp_path / "downloads" / "model.imprint")
    assert model.classes_.tolist() == ["blue", "crimson", "green"]
    assert model.predict([files["red"][7], files["blue"][6]]).tolist() == [
        "crimson",
        "blue",
    ]
    with zipfile.ZipFile(
        io.BytesIO((tmp_path / "downloads" / "examples.zip").read_bytes())
    ) as z:
        assert len(z.namelist()) == 11


def test_two_tabs_show_the_same(serving, files, tmp_path):
    with serving("--backbone", "raw") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        first = page.driver.current_window_handle
        page.driver.switch_to.new_window("tab")
        page.driver.get(server.address.split("?")[0])
        page.new_class("red")
        page.add("red", files["red"][:3])
        page.until_text(f"{column('red')} .count", "3")
        page.driver.switch_to.window(first)
        page.until_text(f"{column('red')} .count", "3")
        page.click(f"{column('red')} summary")
        page.click(f"{column('red')} .danger")
        page.driver.switch_to.window(page.driver.window_handles[1])
        page.wait(lambda: not page.all(column("red")), "the class to go here too")


def test_the_camera_adds_images_while_the_button_is_held_and_is_tried_live(
    serving, tmp_path
):
    from selenium.webdriver.common.action_chains import ActionChains

    with serving("--backbone", "raw") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        page.new_class("ball")
        hold = page.find(f"{column('ball')} .hold")
        ActionChains(page.driver).click_and_hold(hold).perform()
        page.wait(
            lambda: int(page.text(f"{column('ball')} .count") or 0) >= 3,
            "images from the camera",
        )
        ActionChains(page.driver).release().perform()
        page.wait(lambda: not page.all("video"), "the camera to stop")
        page.click("#try-camera")
        page.until_text("#winner", "ball")
        page.click("#try-camera")
        page.wait(
            lambda: (
                not any(v.get_property("srcObject") for v in page.all("#stage video"))
            ),
            "the camera to end",
        )
        assert page.complaints() == []
        number = int(page.text(f"{column('ball')} .count"))
        page.click("#undo")  # holding the button once is one undo step
        page.until_text(f"{column('ball')} .count", "0")
        assert number >= 3


def test_the_keyboard_alone_is_enough(serving, files, tmp_path):
    tab, enter, right = "\ue004", "\ue007", "\ue014"
    with serving("--backbone", "raw") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        page.find("#new-class")

        def tab_to(css):
            for _ in range(40):
                if page.driver.execute_script(
                    "return document.activeElement?.matches(arguments[0]) ?? false", css
                ):
                    return
                page.keys(tab)
            pytest.fail(f"no way to {css} by the Tab key")

        tab_to("#new-class")
        page.keys("red", enter)
        page.find(column("red"))
        page.add(
            "red", files["red"][:3]
        )  # the file chooser belongs to the operating system
        page.until_text(f"{column('red')} .count", "3")
        tab_to(f"{column('red')} .thumb")
        page.keys("\ue017")
        page.until_text(f"{column('red')} .count", "2")
        tab_to(f"{column('red')} .name")
        page.keys(enter)
        page.find("input.rename")
        page.keys("rot", enter)
        page.find(column("rot"))
        page.driver.execute_script("document.activeElement.blur()")
        tab_to("[role=tab][aria-selected=true]")
        page.keys(right)
        page.wait(
            lambda: page.find("#tab-label").get_attribute("aria-selected") == "true",
            "the next tab",
        )
        page.chord("\ue009", "z")
        page.find(column("red"))


@pytest.mark.timeout(400)
def test_two_hundred_classes_and_five_thousand_images_stay_usable(serving, tmp_path):
    rng, root = np.random.default_rng(0), tmp_path / "many"
    for c in range(200):
        folder = root / f"class {c:03}"
        folder.mkdir(parents=True)
        base = rng.integers(0, 200, (4, 4, 3))
        for i in range(25):
            pixels = np.clip(base + rng.integers(0, 56, (4, 4, 3)), 0, 255).astype(
                np.uint8
            )
            Image.fromarray(pixels).save(folder / f"{i}.png")
    with (
        serving(root, "--backbone", "raw", "--recipe", "qi2018") as server,
        chromium(tmp_path, 390, 844) as page,
    ):
        started = time.monotonic()
        page.driver.get(server.address)
        page.find(column("class 199"))
        assert time.monotonic() - started < 30
        assert len(page.all("article")) == 200
        loaded = page.driver.execute_script(
            "return [...document.images].filter((i) => i.complete && i.naturalWidth).length"
        )
        assert loaded < 700, "images far below are not loaded yet"
        wide = page.driver.execute_script("return document.documentElement.scrollWidth")
        assert wide <= page.driver.execute_script("return innerWidth")
        nodes = page.driver.execute_script(
            "return document.querySelectorAll('*').length"
        )
        stops = "return [...document.querySelectorAll('button, input, select, a, summary')].filter((e) => e.tabIndex >= 0)"
        assert nodes < 8000, "menus are built when they are opened"
        assert len(page.driver.execute_script(stops)) < 1300
        page.type("#filter", "class 123")
        page.wait(
            lambda: sum(a.is_displayed() for a in page.all("article")) == 1,
            "one class to be left",
        )
        page.click(f"{column('class 123')} .more")
        page.wait(
            lambda: len(page.all(f"{column('class 123')} .thumb")) == 25,
            "all images of the class",
        )
        started = time.monotonic()
        page.click(f"{column('class 123')} .name")
        page.type("input.rename", "class 123!\n")
        page.find(column("class 123!"))
        assert time.monotonic() - started < 10


def test_an_image_that_is_in_another_class_is_reported(serving, files, tmp_path):
    with serving("--backbone", "raw") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        for label in ("red", "blue"):
            page.new_class(label)
        page.add("red", files["red"][:2])
        page.until_text(f"{column('red')} .count", "2")
        page.add("blue", files["red"][:1])
        page.find("#conflicts[open]")
        assert "Which class is right?" in page.text("#conflicts")
        page.click('#conflicts [data-keep="blue"]')
        page.until_text(f"{column('red')} .count", "1")
        page.until_text(f"{column('blue')} .count", "1")
        page.wait(lambda: not page.all("#conflicts[open]"), "the question to go")
        page.click("#undo")
        page.until_text(f"{column('red')} .count", "2")


def test_choosing_in_a_list_changes_nothing_until_the_button_is_pressed(
    serving, files, tmp_path
):
    down = "\ue015"
    with serving("--backbone", "raw") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        for label in ("red", "blue", "green"):
            page.new_class(label)
            page.add(label, files[label][:2])
            page.until_text(f"{column(label)} .count", "2")
        revision = server.json("GET", "/api/state")["revision"]
        page.click(f"{column('red')} summary")
        page.type(f"{column('red')} select", down + down)
        page.click(f"{column('blue')} .thumb")
        page.type("#move-to", down + down)
        page.keys("\ue00c")
        assert server.json("GET", "/api/state")["revision"] == revision
        page.click(f"{column('red')} summary")
        page.type(f"{column('red')} select", "green")
        page.click(f"{column('red')} .pop form button")
        page.until_text(f"{column('green')} .count", "4")
        page.wait(
            lambda: "red is merged into green: 2 images moved." in page.text("#notes"),
            "what was done",
        )
        page.click("#notes .note:last-child button")
        page.until_text(f"{column('red')} .count", "2")


def test_none_of_these_names_the_closest_class_and_explains_itself(
    serving, files, tmp_path
):
    with serving("--backbone", "raw") as server, chromium(tmp_path) as page:
        for label in ("red", "blue"):
            for file in files[label]:
                server.json(
                    "POST",
                    f"/api/items?label={label}&name={file.name}",
                    file.read_bytes(),
                )
        for _ in range(16):
            pixels = np.random.default_rng(_).integers(
                0, 70, (48, 64, 3), dtype=np.uint8
            )
            pixels[8:40, 8:56, 0] += 160
            out = io.BytesIO()
            Image.fromarray(pixels).save(out, "PNG")
            server.json("POST", "/api/items?label=red&name=more.png", out.getvalue())
        page.driver.get(server.address)
        page.wait(lambda: page.text("#evaluate-badge"), "the evaluation")
        Image.new("RGB", (64, 48), "white").save(tmp_path / "white.png")
        page.type("#try-file", str(tmp_path / "white.png"))
        page.wait(
            lambda: page.text("#winner").startswith("None of these (closest: "),
            "an answer",
        )
        page.click(".verdict .explain summary")
        assert "share of your examples" in page.text(".verdict .explain")
        assert "%" not in page.text("#winner")


def test_the_page_notices_that_the_server_has_stopped(serving, tmp_path):
    with serving("--backbone", "raw") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        page.find("#new-class")
        assert not page.find("#offline").is_displayed()
        server.process.kill()
        page.wait(lambda: page.find("#offline").is_displayed(), "the page to notice")
