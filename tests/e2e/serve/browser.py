"""A headless Chromium, from Debian's packages `chromium` and `chromium-driver`, and test images."""

import shutil
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
)
PATIENCE = 60


@contextmanager
def chromium(folder, width=1280, height=900):
    """Start a browser with its own profile and downloads; skip the test if there is none."""
    webdriver = pytest.importorskip("selenium.webdriver")
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip(
            "needs a Chromium with its driver (Debian: apt-get install chromium chromium-driver)"
        )
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (
        *FLAGS,
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={width},{height}",
    ):
        options.add_argument(flag)
    options.add_experimental_option(
        "prefs", {"download.default_directory": str(folder / "downloads")}
    )
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(
        options=options, service=Service(shutil.which("chromedriver"))
    )
    try:
        yield Page(driver)
    finally:
        driver.quit()


class Page:
    """User actions on the page: wait for elements, type and click."""

    def __init__(self, driver):
        self.driver = driver

    def wait(self, found, what):
        """Repeat a function until its result is true, and return it; missing and stale elements are retried."""
        from selenium.common import exceptions as e
        from selenium.webdriver.support.ui import WebDriverWait

        passing = [
            e.StaleElementReferenceException,
            e.NoSuchElementException,
            e.ElementNotInteractableException,
            e.ElementClickInterceptedException,
        ]
        try:
            return WebDriverWait(self.driver, PATIENCE, 0.1, passing).until(
                lambda _: found()
            )
        except e.TimeoutException:
            pytest.fail(
                f"waited {PATIENCE} s for {what}; the page shows: {self.text('body')[:2000]}"
            )

    def find(self, css):
        return self.wait(lambda: self.driver.find_element("css selector", css), css)

    def all(self, css):
        return self.driver.find_elements("css selector", css)

    def text(self, css):
        return self.driver.find_element("css selector", css).text

    def click(self, css):
        def clicked():
            self.driver.find_element("css selector", css).click()
            return True

        self.wait(clicked, f"a click on {css}")

    def type(self, css, text):
        """Send keys, or the name of a file, to an element."""

        def typed():
            self.driver.find_element("css selector", css).send_keys(text)
            return True

        self.wait(typed, f"keys for {css}")

    def until_text(self, css, wanted):
        self.wait(lambda: self.text(css) == wanted, f"{css} to say {wanted!r}")

    def keys(self, *keys):
        """Press keys on the focused element."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def chord(self, held, key):
        """Press a key while another is held down."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).key_down(held).send_keys(key).key_up(held).perform()

    def new_class(self, label):
        self.type("#new-class", label + "\n")
        self.find(column(label))

    def add(self, label, files):
        self.type(f"{column(label)} input[type=file]", "\n".join(map(str, files)))

    def complaints(self):
        """Messages in the browser console, except expected ones about rejected uploads."""
        return [
            e["message"]
            for e in self.driver.get_log("browser")
            if "status of 4" not in e["message"]
        ]


def column(label):
    return f'article[data-label="{label}"]'


def save_coloured(path, colour, rng):
    """Save an image with a rectangle in one colour: red (0), green (1) or blue (2)."""
    pixels = rng.integers(0, 70, (48, 64, 3), dtype=np.uint8)
    pixels[8:40, 8:56, colour] += 160
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
    return path


def save_patterns(folder, labels, n):
    """Save n images of each class, and a copy of one from the first class as wrong.png in the second class."""
    rng = np.random.default_rng(0)
    for c, label in enumerate(labels):
        (folder / label).mkdir(parents=True)
        for i in range(n):
            pixels = rng.integers(0, 60, (12, 12)) + 150 * (
                np.indices((12, 12))[c % 2] // (2 + c) % 2
            )
            Image.fromarray(pixels.astype(np.uint8)).save(folder / label / f"{i}.png")
    shutil.copy(folder / labels[0] / "3.png", folder / labels[1] / "wrong.png")
