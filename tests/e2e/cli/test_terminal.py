"""Control characters in labels and file names are escaped on terminals."""

import io
import json
import sys

import pytest
from PIL import Image

from imprint import Imprinter
from imprint.cli import terminal

EVIL = "cat\x1b[2J\x1b]0;owned\x07\x9b31m\u202e\r\n"
OBEYED = "\x1b\x07\x9b\u202e\r"


@pytest.fixture
def evil(tmp_path):
    """A model whose label and image have names that clear screens, and an image with such a name."""
    image = tmp_path / "p\x1b[31m.png"
    Image.new("RGB", (8, 8), "red").save(image)
    Image.new("RGB", (8, 8), "blue").save(tmp_path / "dog.png")
    model = Imprinter("raw", recipe="janson2022")
    model.fit(([image, tmp_path / "dog.png"], [EVIL, "dog"])).save(
        tmp_path / "m.imprint"
    )
    return tmp_path / "m.imprint", image


def test_commands_escape_control_characters(evil, imprint):
    model, image = evil
    (model.parent / "no\x1b[1mimage.png").write_bytes(b"")
    for words in (
        ["predict", model, image, "--why"],
        ["predict", model, model.parent / "no\x1b[1mimage.png"],
        ["forget", model, "no\x1b[2Jsuch"],
        ["predict", model, "no\x1b[2Jfile"],
        ["export", model, "--to", "numpy"],
        ["fit", "fol\x1bder", "-o", "x.imprint"],
    ):
        done = imprint(*words)
        assert not set(OBEYED) & set(done.out + done.err), words
        assert "\\x1b" in done.out + done.err or words[0] == "export"
    (answer,) = json.loads(imprint("predict", model, image, "--json").out)
    assert {g["label"] for g in answer["top"]} == {EVIL, "dog"}, (
        "programs get the exact label"
    )


def test_data_are_escaped_for_people_and_exact_for_programs(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for stream, expected in (
        (Terminal(), "a\\x1b[2J\tb\n"),
        (io.StringIO(), "a\x1b[2J\tb\n"),
    ):
        monkeypatch.setattr(sys, "stdout", stream)
        terminal.write("a\x1b[2J\tb\n")
        assert stream.getvalue() == expected


def test_ordinary_text_is_shown_as_it_is():
    for text in ("Größe 猫 🐝 café", "👩‍👩‍👧", "क्‍ष", "naïve [red] :cat:"):
        assert terminal.printable(text) == text
