"""Pages: nothing from data is read as markup, and nothing is fetched."""

import json
import re

import numpy as np
import pytest

from imprint.core.errors import printable
from imprint.evaluation import inspect_rows
from imprint.evaluation.labelled_rows import LabelledRows
from imprint.evaluation.page import inspection_page
from imprint.evaluation.page.document import MAX_CONTENTS, WEB, PageItems, bundle

HOSTILE = "</script><img src=x onerror=alert(1)>&amp;\x1b[31m\u202egnp.exe\udcff\u2028"


def rows(n=30, label=HOSTILE):
    rng = np.random.default_rng(0)
    y = np.array([label, "plain"])[np.arange(n) % 2]
    pictures = rng.integers(0, 255, (n, 8, 8), dtype=np.uint8)
    X = rng.normal(size=(n, 5)).astype(np.float32)
    X[-1] = X[0]
    return LabelledRows(X, y, [f"{i}{label}" for i in range(n)], (), lambda i: pictures[i], "image")


def test_what_comes_from_data_is_inert():
    given = rows()
    text = inspection_page(f"On {HOSTILE}", inspect_rows(given.X, given.y, given.paths), given)
    text.encode()
    assert text.count("</script>") == 2
    assert "<img" not in text.replace('element("img"', "")
    assert not set("\x1b\u202e\u2028") & set(text)
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])
    assert data["classes"][0] == printable(HOSTILE, 60)
    assert "\\x1b" in data["classes"][0]
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)


def test_the_number_of_pictures_is_bounded():
    given = rows(n=MAX_CONTENTS + 50, label="a")
    shown = PageItems(given)
    for i in range(MAX_CONTENTS + 50):
        assert shown.index(i) == i
    assert shown.index(3) == 3
    assert sum("picture" in item for item in shown.items) == MAX_CONTENTS
    assert len(shown.items) == MAX_CONTENTS + 50


@pytest.mark.parametrize("scripts", [["dom", "numbers", "cards", "map", "check"]])
def test_scripts_are_put_together_in_the_order_of_their_imports(scripts):
    whole = bundle(scripts)
    assert "import " not in re.sub(r"//.*", "", whole)
    assert "export " not in whole
    for position, name in enumerate(scripts):
        needed = re.findall(r'from "\./(\w+)\.js"', (WEB / f"{name}.js").read_text("utf-8"))
        assert set(needed) <= set(scripts[:position])
