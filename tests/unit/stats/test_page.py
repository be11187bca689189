"""Every block of code in the section on statistics runs and prints the output on the page."""

import doctest
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "studies.md"


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8").replace("```", "\n")
    page = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(
        page, out=report.append
    )
    assert results.attempted > 10
    assert results.failed == 0, "".join(report)
