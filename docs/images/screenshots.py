"""Take the screenshots of the web app: `python docs/images/screenshots.py`.

The examples are crops of the two photographs that scikit-learn ships (CC BY 2.0). It
needs Chromium with its driver, and selenium.
"""

import io
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait
from sklearn.datasets import load_sample_images

HERE = Path(__file__).resolve().parent
SIDE = 256  # pixels of a crop
TRAIN, TEST, POOL = 16, 4, 6  # crops of each class
# where each class is: the photograph, then left, top, right and bottom, in pixels
REGIONS = {
    "dahlia": (1, 170, 30, 500, 400),
    "pagoda": (0, 90, 60, 335, 350),
    "sky": (0, 340, 0, 640, 130),
    "trees": (0, 380, 270, 640, 427),
}
SIZES = (70, 125)  # of a crop, before it is enlarged
WINDOW = (1264, 1110)
COLOURS = 255  # of a file: a third of the bytes of all colours, with no visible loss


def write_crops(folder: Path) -> None:
    """Crops of every class: to fit, held out, and unlabelled."""
    photographs = load_sample_images().images
    rng = np.random.default_rng(0)
    for label, (which, left, top, right, bottom) in REGIONS.items():
        photograph = Image.fromarray(photographs[which])
        parts = ["train"] * TRAIN + ["test"] * TEST + ["pool"] * POOL
        for number, part in enumerate(parts):
            side = int(rng.integers(*SIZES))
            x = int(rng.integers(left, right - side))
            y = int(rng.integers(top, bottom - side))
            crop = photograph.crop((x, y, x + side, y + side)).resize((SIDE, SIDE))
            path = folder / part / ("" if part == "pool" else label)
            path.mkdir(parents=True, exist_ok=True)
            crop.save(path / f"{label}-{number:02}.png")


def take(address: str, crops: Path) -> None:
    """Open the app, try an image, and save the tabs."""
    options = webdriver.ChromeOptions()
    width, height = WINDOW
    flags = ["--headless=new", "--no-sandbox", f"--window-size={width},{height}"]
    for flag in [*flags, "--hide-scrollbars", "--force-device-scale-factor=1"]:
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        driver.set_window_size(width, height)

        def find(css: str):
            return WebDriverWait(driver, 90).until(
                lambda d: d.find_element("css selector", css)
            )

        def click(css: str) -> None:
            driver.execute_script("arguments[0].click()", find(css))

        def save(name: str) -> None:
            time.sleep(1)  # thumbnails appear one after the other
            shot = Image.open(io.BytesIO(driver.get_screenshot_as_png()))
            shot.convert("RGB").quantize(COLOURS).save(HERE / name, optimize=True)

        driver.get(address)
        WebDriverWait(driver, 90).until(
            lambda d: d.find_element("css selector", "#evaluate-badge").text
        )
        find("#try-file").send_keys(str(crops / "pool" / "pagoda-20.png"))
        WebDriverWait(driver, 90).until(
            lambda d: d.find_element("css selector", "#winner").text == "pagoda"
        )
        save("serve-examples.png")
        click("#tab-evaluate")
        find("#evaluate .matrix, #evaluate table, #evaluate [class*=confusion]")
        save("serve-evaluate.png")
        click("#tab-label")
        find("#pool-files").send_keys(str(crops / "pool"))
        find("#label-item canvas, #label-item img")
        save("serve-label.png")
    finally:
        driver.quit()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        crops = Path(folder)
        write_crops(crops / "summer palace")
        os.rename(crops / "summer palace" / "pool", crops / "pool")
        command = [sys.executable, "-m", "imprint", "serve", "--no-open", "--port", "0"]
        environment = {**os.environ, "IMPRINT_HOME": str(crops / "home")}
        with subprocess.Popen(
            [*command, str(crops / "summer palace")],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        ) as server:
            try:
                take(server.stdout.readline().strip(), crops)
            finally:
                server.kill()
