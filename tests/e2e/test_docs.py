"""Every Python block of the README and the docs runs, page by page, in an empty folder."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_blocks_run(page, tmp_path, monkeypatch):
    """Blocks of one page share their names; one that cannot run here is marked "python skip", and the text says why."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    text, names = page.read_text(encoding="utf-8"), {"__name__": "page"}
    for match in BLOCK.finditer(text):
        line = text[: match.start(1)].count("\n")
        exec(compile("\n" * line + match[1], str(page), "exec"), names)
