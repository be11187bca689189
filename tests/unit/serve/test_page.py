"""The tests of the JavaScript modules, run by node if it is installed; the page loads nothing from elsewhere."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

import imprint.serve

SHARED = ("matrix.js", "matrix.css")  # with the page of `imprint evaluate`
STATIC = Path(imprint.serve.__file__).parent / "static"
TESTS = Path(__file__).resolve().parents[2] / "js"


def test_the_modules_pass_their_own_tests():
    if shutil.which("node") is None:
        pytest.skip("needs node")
    done = subprocess.run(
        ["node", "--test", *map(str, sorted(TESTS.glob("*.mjs")))],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("file", sorted(STATIC.iterdir()), ids=lambda f: f.name)
def test_the_page_loads_nothing_from_elsewhere_and_every_import_exists(file):
    text = file.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(
        r"https?://|\beval\(|innerHTML|insertAdjacentHTML|document\.write", text
    )
    for name in re.findall(r'from "\./([\w.]+)"', text) + re.findall(
        r'"/static/([\w.]+)"', text
    ):
        assert (STATIC / name).is_file() or name in SHARED, name


def test_text_has_enough_contrast():
    """WCAG AA in both colour schemes: a contrast of 4.5 to 1 for all text."""
    light, dark = (
        dict(re.findall(r"--(\w[\w-]*): (#[0-9a-f]{6})", block))
        for block in re.findall(
            r":root \{(.*?)\}", (STATIC / "style.css").read_text("utf-8"), re.DOTALL
        )
    )
    for scheme in (light, dark):
        for ink in ("ink", "muted", "good", "bad"):
            for paper in ("paper", "card", "soft"):
                if (ink, paper) not in {("good", "soft"), ("bad", "soft")}:
                    assert contrast(scheme[ink], scheme[paper]) >= 4.5, (ink, paper)
        assert contrast(scheme["on-accent"], scheme["accent"]) >= 4.5


def contrast(a, b):
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
