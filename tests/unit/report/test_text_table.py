"""One table in all formats."""

import csv
import io
import re

from imprint.report import html
from imprint.report.text_table import TextTable

TABLE = TextTable(
    ("method", "score %", "rank", "note"),
    (("a_1 & b", "90.5 ± 1", "1", "x|y"), ("c#", "7", "12", "<z>, w")),
    1,
    "A caption.",
    remarks=1,
)


def test_text_is_padded_and_only_numbers_are_right_aligned():
    assert TABLE.text() == [
        "method    score %  rank  note",
        "a_1 & b  90.5 ± 1     1  x|y",
        "c#              7    12  <z>, w",
    ]


def test_csv_is_read_back():
    assert list(csv.reader(io.StringIO(TABLE.csv()))) == [
        list(TABLE.head),
        *map(list, TABLE.rows),
    ]


def test_latex_aligns_columns_and_escapes_special_characters():
    lines = TABLE.latex().splitlines()
    assert lines[0] == r"\begin{tabular}{lrrl}"
    assert lines[2] == r"method & score \% & rank & note \\"
    assert lines[4] == r"a\_1 \& b & 90.5 $\pm$ 1 & 1 & x|y \\"
    assert lines[5].startswith(r"c\# & 7 ")


def test_markdown_aligns_columns_and_escapes_the_separator():
    head, rule, first, _, empty, caption, _ = TABLE.markdown()
    assert head == "| method | score % | rank | note |"
    assert rule == "| --- | ---: | ---: | --- |"
    assert first == r"| a_1 & b | 90.5 ± 1 | 1 | x\|y |"
    assert (empty, caption) == ("", "A caption.")


def test_html_escapes_texts_and_aligns_numbers():
    page = TABLE.html()
    assert (
        '<th>method</th><th class="n">score&nbsp;%</th><th class="n">rank</th><th>note</th>'
        in page
    )
    assert (
        '<td>c#</td><td class="n">7</td><td class="n">12</td><td>&lt;z&gt;, w</td>'
        in page
    )
    assert page.endswith("<small>A caption.</small>")


def test_pages_load_nothing_from_elsewhere_and_run_no_scripts():
    page = html.document("a study", "<p>text</p>")
    (policy,) = re.findall(
        r'<meta http-equiv="Content-Security-Policy"\s+content="(.*?)"', page
    )
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules == {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": "'unsafe-inline'",
    }
    assert page.index("Content-Security-Policy") < page.index("<title>")
