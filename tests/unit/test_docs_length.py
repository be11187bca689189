"""The documentation stays short: words by section, and the lines of the README."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAX_WORDS = 35_000  # without the reference, which is generated, and the reproduction
MAX_WORDS_OF_METHODS = 1_500
MAX_WORDS_OF_COMING_FROM = 300  # each page
MAX_README_LINES = 130
GENERATED = ("reference", "examples")  # examples are parts of generated pages


def count_words(text: str) -> int:
    """Words of text, tables and code: whatever stands between blanks and has a letter."""
    return sum(1 for word in text.split() if re.search("[A-Za-z]", word))


def words_by_page() -> dict[str, int]:
    folder = ROOT / "docs"
    return {
        page.relative_to(folder).as_posix(): count_words(page.read_text("utf-8"))
        for page in folder.rglob("*.md")
        if page.relative_to(folder).parts[0] not in GENERATED
    }


def test_a_word_has_a_letter():
    assert count_words("| `k` | 20.3 % of 1,000 rows |\n|---|---:|") == 3


def test_the_site_is_short():
    words = words_by_page()
    longest = sorted(words, key=words.get, reverse=True)[:3]
    assert len(words) > 25
    assert sum(words.values()) <= MAX_WORDS, f"the longest pages are {longest}"
    assert words["methods.md"] <= MAX_WORDS_OF_METHODS


def test_pages_for_users_of_other_tools_are_short_and_say_what_we_do_not_do():
    pages = sorted((ROOT / "docs" / "coming-from").glob("*.md"))
    assert len(pages) >= 9
    for page in pages:
        text = page.read_text("utf-8")
        assert count_words(text) <= MAX_WORDS_OF_COMING_FROM, page
        for part in ("**The same.**", "**Better.**", "**What we do not do.**"):
            assert part in text, (page, part)


def test_the_readme_is_short():
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert len(lines) <= MAX_README_LINES
