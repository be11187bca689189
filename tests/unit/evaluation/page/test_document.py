"""The structure of a page: scripts in order, and a limited number of images."""

import re

import numpy as np
import pytest

from imprint.core.errors import UnreadableInput
from imprint.evaluation.page.document import (
    MAX_CONTENTS,
    MAX_PATH_LENGTH,
    MAX_TEXT_LENGTH,
    WEB,
    bundle,
    content,
    shortened,
    with_contents,
)
from imprint.modalities import modality


def test_the_number_of_images_is_limited():
    items = with_contents(
        {i: {"name": str(i)} for i in range(500, 450, -1)},
        lambda i: f"text {i}",
        modality("text"),
    )
    assert list(items) == list(range(500, 450, -1))
    many = with_contents(
        {i: {} for i in range(MAX_CONTENTS + 50)}, lambda i: "a text", modality("text")
    )
    assert [i for i, item in many.items() if "text" in item] == list(
        range(MAX_CONTENTS)
    )


def test_an_input_that_was_deleted_is_shown_by_its_facts():
    def inputs(i):
        if i == 1:
            raise UnreadableInput("b.png", "No such file")
        return np.zeros((8, 8), np.uint8)

    items = with_contents(
        {0: {"name": "a"}, 1: {"name": "b"}}, inputs, modality("image")
    )
    assert ("image" in items[0], items[1]) == (True, {"name": "b"})


def test_contents_are_short_texts_and_small_images():
    assert (
        content("x" * 999, modality("text"))["text"]
        == "x" * (MAX_TEXT_LENGTH - 1) + "…"
    )
    assert content(np.zeros((20, 30, 3), np.uint8), modality("image"))[
        "image"
    ].startswith("data:image/png;base64,")
    large = content(np.zeros((400, 600, 3), np.uint8), modality("image"))["image"]
    assert large.startswith("data:image/jpeg;base64,")
    assert len(large) < 5000
    assert content(np.zeros(9), modality("embedding")) == {}


def test_a_long_path_loses_its_middle():
    assert shortened("a/b.png") == "a/b.png"
    long = shortened("start/" + "x" * 500 + "/end.png")
    assert (len(long), long[:6], long[-8:]) == (MAX_PATH_LENGTH, "start/", "/end.png")


@pytest.mark.parametrize("script", ["evaluate", "tags", "check", "suggest"])
def test_a_module_comes_after_the_modules_that_it_imports(script):
    whole = bundle(script)
    assert "import " not in re.sub(r"//.*", "", whole)
    assert "export " not in whole
    starts = {}
    for path in WEB.iterdir():
        if (
            path.name.endswith(".js")
            and (first := path.read_text("utf-8").splitlines()[0]) in whole
        ):
            assert whole.count(first) == 1
            starts[path.name.removesuffix(".js")] = whole.index(first)
    assert max(starts, key=starts.get) == script
    for name, start in starts.items():
        for imported in re.findall(
            r'from "\./(\w+)\.js"', (WEB / f"{name}.js").read_text("utf-8")
        ):
            assert starts[imported] < start


@pytest.mark.parametrize("script", ["evaluate", "check", "suggest", "tags"])
def test_the_modules_of_a_page_share_no_names(script):
    declared = re.findall(
        r"^(?:async )?(?:const|let|function) (\w+)", bundle(script), re.MULTILINE
    )
    assert declared
    assert sorted(declared) == sorted(set(declared))
