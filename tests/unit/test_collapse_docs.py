"""The code on the page about neural collapse runs, top to bottom."""

import re
from pathlib import Path


def test_the_page_runs():
    page = (Path(__file__).resolve().parents[2] / "docs" / "collapse.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/collapse.md", "exec"), names)
