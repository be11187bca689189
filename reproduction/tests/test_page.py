"""The page of several runs: parts shown once, parts shown next to each other, and no external files."""

import re
from dataclasses import replace

from imprint.report.text_table import TextTable
from imprint_reproduction.page import as_html as page
from imprint_reproduction.page import markdown_pages
from imprint_reproduction.sections import (
    Claim,
    Claims,
    Image,
    Run,
    Section,
    Verdict,
    line_breaks,
    sections_by_artefact,
)

IMAGE = Image(
    "ranks", b'<?xml?><svg width="100pt"><g id="a"/><use href="#a"/></svg>', "Ranks."
)
CLAIM = Claim("Means win.", Verdict.HOLDS, "p 7.1e-15", Verdict.FAILS, "5-nn")
CELLS = TextTable(("", "%"), (("x", "1"),))
TABLE = Section(
    "one",
    "A table",
    "Table 1",
    "48 instances.",
    (CELLS, IMAGE),
    (CLAIM,),
    "Said once.",
)
COUNTS = Section(
    "counts",
    "Counts",
    "Text",
    "Counted.",
    (),
    (Claim("Seven.", Verdict.FAILS, "eight"),),
)
LINES = replace(IMAGE, name="curves")
CURVES = Section(
    "curves",
    "Curves",
    "Figure 2",
    "Seen.",
    (LINES,),
    (Claim("Peaks.", Verdict.HOLDS, "yes"),),
)
NO_CURVES = Section("curves", "Curves", "Figure 2", "No packs.")
SMALL = Run("subset", "four backbones.", (TABLE, COUNTS, CURVES), "four", 10, 60)
OTHER = replace(
    TABLE,
    text="8 instances.",
    claims=(replace(CLAIM, verdict=Verdict.UNTESTABLE, figures="few"),),
)
FULL = Run("full size", "one backbone.", (OTHER, COUNTS, NO_CURVES), "one", 3, 600, 300)


def as_markdown(runs):
    (text,) = markdown_pages(runs).values()
    return text


def test_later_runs_show_only_their_differences():
    table, counts, curves = sections_by_artefact([SMALL, FULL])
    assert [run.name for run, _ in table] == ["subset", "full size"]
    assert [p.name for p in table[1][1].parts if isinstance(p, Image)] == [
        "ranks-full-size"
    ]
    assert [run.name for run, _ in counts] == ["subset"]  # the same in both runs
    assert [run.name for run, _ in curves] == ["subset"]  # nothing to show
    assert len(sections_by_artefact([FULL, SMALL])[2]) == 2
    again = replace(FULL, sections=(replace(OTHER, text=TABLE.text),))
    ((_, (_, later)),) = sections_by_artefact([SMALL, again])[:1]
    assert later.text == "", "the text of the first run is not repeated"


def test_claims_of_several_runs_share_a_row():
    claims = Claims.of(sections_by_artefact([SMALL, FULL]), [SMALL, FULL])
    assert [
        (text, list(verdicts)) for (_, text), verdicts in claims.verdicts.items()
    ] == [
        ("Means win.", ["subset", "published results", "full size"]),
        ("Seven.", ["subset"]),
        ("Peaks.", ["subset"]),
    ]
    cells = claims.table()
    assert cells.head == ("claim", "subset", "full size", "published results")
    assert cells.rows[0][1:] == (
        "✓ holds: p 7.1e-15",
        "– not testable here: few",
        "✗ does not hold: 5-nn",
    )
    assert cells.rows[1][2:] == ("", "")
    assert claims.tally() == (
        "3 claims: the results on subset support 2 and contradict 1; the results on full size support 0, "
        "contradict 0 and cannot test 1; the published results support 0 and contradict 1."
    )


def test_a_single_claim_is_counted_in_the_singular():
    run = replace(SMALL, sections=(COUNTS,))
    assert (
        Claims.of(sections_by_artefact([run]), [run])
        .tally()
        .startswith("1 claim: the results on subset support 0")
    )


def test_numbers_are_not_broken_across_lines():
    html = Claims.of(sections_by_artefact([SMALL]), [SMALL]).html()
    assert "7.1e\N{NON-BREAKING HYPHEN}15" in html
    assert "5\N{NON-BREAKING HYPHEN}nn" in html
    assert (
        line_breaks("deit_tiny/cifar10 < 1 / 2")
        == "deit_<wbr>tiny/<wbr>cifar10 &lt; 1 / 2"
    )


def test_one_page_shows_both_runs_and_says_how_each_was_made():
    html, text = page([SMALL, FULL]), as_markdown([SMALL, FULL])
    for found in (html, text):
        assert (
            "imprint study run paper/all --embeddings PACKS-full size --out RESULTS-full size"
            not in found
        )
        assert (
            "study report RESULTS-subset RESULTS-full-size --to reproduction/docs"
            in found
        )
        assert (
            "subset: four backbones. 10 experiments (60 seconds of CPU time)." in found
        )
        assert (
            "full size: one backbone. 3 experiments in 5.0 minutes (10.0 minutes of CPU time)."
            in found
        )
        assert found.count("Said once.") == 1
        assert found.count("8 instances.") == 2  # 48 and 8
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert "results/ranks.svg" in text
    assert "results/ranks-full-size.svg" in text


def test_the_versions_of_all_runs_are_named_once():
    runs = [
        replace(SMALL, versions="imprint 1"),
        replace(FULL, versions="imprint 2"),
        replace(FULL, versions="imprint 1"),
    ]
    assert "<footer><small>imprint 1; imprint 2</small></footer>" in page(runs)
    assert "Computed with imprint 1; imprint 2." in as_markdown(runs)


def test_a_complete_run_has_one_markdown_page_per_topic():
    run = replace(
        SMALL,
        sections=(replace(TABLE, topic="Some tables"), replace(CURVES, topic="Curves")),
    )
    pages = markdown_pages([run])
    assert list(pages) == ["results.md", "results/some-tables.md", "results/curves.md"]
    assert (
        "| [Some tables](results/some-tables.md) | Table 1 | 1 of 1 | 0 of 1 |"
        in pages["results.md"]
    )
    overview = pages["results.md"]
    assert overview.index("claims: ") < overview.index("## Runs")
    assert overview.index("## Runs") < overview.index("four backbones. 10 experiments")
    assert "Means win." in pages["results/some-tables.md"]
    assert "Means win." not in pages["results/curves.md"]
    assert "](ranks.svg)" in pages["results/some-tables.md"]
    assert (
        "Part of [reproduction of the paper](../results.md)."
        in pages["results/curves.md"]
    )
    assert list(markdown_pages([replace(run, complete=False)])) == ["results.md"]


def test_a_single_run_is_called_here():
    run = replace(SMALL, name="here", options=" --maps 3", cpu_seconds=0.7)
    text = as_markdown([run])
    assert "Here: four backbones. 10 experiments (1 second of CPU time)." in text
    assert "the results here support" in as_markdown(
        [run, replace(run, name="here, kernel", beside="kernel")]
    )
    assert (
        "--embeddings PACKS --out RESULTS --maps 3\nimprint study report RESULTS --to reproduction/docs"
        in text
    )
    assert '<table class="claims">' in text
    assert "<th>claim</th><th>here</th><th>published results</th>" in text


def test_a_page_of_one_artefact_names_only_what_it_shows():
    run = replace(SMALL, name="here", sections=(TABLE,), complete=False)
    html, text = page([run]), as_markdown([run])
    for found in (html, text):
        assert "Table 1 of the paper, side by side" in found
        assert "Every table and figure" not in found
        assert "imprint study run paper/one --embeddings PACKS" in found
    assert "<nav>" not in html
    assert html.count('<table class="claims">') == 1
    assert "Table 1 and Figure 2 of J. Westerhoff" in as_markdown(
        [replace(run, sections=(TABLE, CURVES))]
    )


def test_an_image_scrolls_in_its_own_box_unless_it_is_small():
    def shown(width):
        image = replace(
            IMAGE, svg=f'<?xml?><svg width="{width}pt">drawing</svg>'.encode()
        )
        return page([replace(SMALL, sections=(replace(TABLE, parts=(image,)),))])

    box = '<div class="wide" tabindex="0" role="group" aria-label="Figure"><svg width='
    assert f"<figure>{box}" in shown(500)
    assert f'<figure class="small">{box}' in shown(300)
