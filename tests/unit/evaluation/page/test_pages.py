"""The data of the pages: texts are never read as markup, and nothing is loaded from elsewhere."""

import json
import re

import numpy as np
import pytest

from imprint import Imprinter
from imprint.active import suggest
from imprint.active.suggestions import Suggestions
from imprint.core.errors import printable
from imprint.datasets import Split
from imprint.datasets.split import NO_LABELS
from imprint.embeddings import Skipped
from imprint.evaluation import evaluation, inspect_rows
from imprint.evaluation.labelled_rows import LabelledRows
from imprint.evaluation.page import (
    MAX_PER_CELL,
    MAX_POINTS,
    evaluation_page,
    inspection_page,
    suggestion_page,
)
from imprint.evaluation.tags import tag_evaluation
from imprint.modalities import modality

HOSTILE = "</script><img src=x onerror=alert(1)>&amp;\x1b[31m\u202egnp.exe\udcff\u2028"


def rows(n=30, label=HOSTILE):
    rng = np.random.default_rng(0)
    y = np.array([label, "plain"])[np.arange(n) % 2]
    images = rng.integers(0, 255, (n, 8, 8), dtype=np.uint8)
    X = rng.normal(size=(n, 5)).astype(np.float32)
    X[-1] = X[0]
    skipped = (Skipped(n, f"bad {label}", f"not {label}"),)
    return LabelledRows(
        X,
        y,
        [f"{i}{label}" for i in range(n)],
        skipped,
        images.__getitem__,
        modality("image"),
    )


def data_of(page):
    return json.loads(
        re.search(
            r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL
        )[1]
    )


def pages(given):
    P = np.random.default_rng(1).dirichlet([1, 1], len(given.X))
    classes = np.unique(given.y)
    yield evaluation_page(
        f"On {HOSTILE}", evaluation(P, classes, given.y, given.paths), given
    )
    yield inspection_page(
        f"On {HOSTILE}", inspect_rows(given.X, given.y, given.paths), given
    )
    head = Imprinter().fit(given.X[:-1], [{label} for label in given.y[:-1].tolist()])
    tagged = tag_evaluation(head.state.head, given.X, given.y[::-1], given.paths)
    yield evaluation_page(f"On {HOSTILE}", tagged, given)
    pool = Split(
        [given.inputs(i) for i in range(len(given.X))],
        NO_LABELS,
        given.paths,
        (),
        "image",
    )
    chosen = suggest(given.X, 5)
    unreadable = Suggestions.of(
        chosen, [f"between {HOSTILE} and b"] * len(chosen), given.skipped
    )
    yield suggestion_page(f"On {HOSTILE}", pool, unreadable)


def test_texts_from_data_are_escaped():
    for page in pages(rows()):
        page.encode()
        assert page.count("</script>") == 2
        assert "<img" not in page.replace('element("img"', "")
        assert not set("\x1b\u202e\u2028") & set(page)
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
        data = data_of(page)
        shown = json.dumps(data, ensure_ascii=False)
        assert not set("\x1b\u202e\u2028\udcff") & set(shown)
        assert "\\x1b" in data["unreadable"][0]["path"]
        assert data["items"]
    assert data_of(next(pages(rows())))["classes"][0] == printable(HOSTILE, 60)


def test_a_cell_shows_confident_mistakes_and_doubtful_correct_answers():
    given = rows(60, "a")
    confidence = np.linspace(0.5, 0.99, 60)
    P = np.stack(
        [confidence, 1 - confidence], axis=1
    )  # always predicts "a", the label of every second row
    data = data_of(
        evaluation_page(
            "", evaluation(P, np.array(["a", "plain"]), given.y, given.paths), given
        )
    )
    assert data["cells"]["1,0"] == list(range(59, 35, -2))[:MAX_PER_CELL]
    assert data["cells"]["0,0"] == list(range(0, 24, 2))[:MAX_PER_CELL]
    assert data["mistakes"] == list(range(59, 0, -2))
    assert data["items"]["59"]["predicted"] == "a"
    assert data["items"]["59"]["probability"] == 0.99


def test_the_map_shows_all_marked_rows_last_and_others_evenly():
    given = rows(MAX_POINTS + 500, "a")
    P = np.tile([0.6, 0.4], (len(given.y), 1))
    plane = data_of(
        evaluation_page(
            "", evaluation(P, np.array(["a", "plain"]), given.y, given.paths), given
        )
    )["map"]
    assert len(plane["points"]) == MAX_POINTS
    assert plane["marked"] == (MAX_POINTS + 500) // 2
    assert {point[2] for point in plane["points"][-plane["marked"] :]} == {1}


def test_the_map_of_a_model_does_not_depend_on_the_rows_that_are_evaluated():
    X = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32) + 3 * np.eye(
        2, 5
    ).repeat(20, axis=0)
    model = Imprinter().fit(X, ["a"] * 20 + ["b"] * 20)
    training = Split(X, NO_LABELS, [str(i) for i in range(40)], (), "embedding")
    points = []
    for part in (slice(0, 40), slice(5, 30)):
        y, names = (
            np.array(["a"] * 20 + ["b"] * 20)[part],
            [str(i) for i in range(40)][part],
        )
        given = LabelledRows(
            X[part], y, names, (), X[part].__getitem__, modality("embedding")
        )
        result = evaluation(model.predict_proba(X[part]), model.classes_, y, names)
        shown = data_of(evaluation_page("", result, given, model, training))["map"][
            "points"
        ]
        points.append({tuple(point) for point in shown})
    assert points[1] < points[0]


@pytest.mark.parametrize("copies", [2, 9])
def test_groups_of_copies_are_cut(copies):
    given = rows(40, "a")
    X = np.concatenate([given.X, np.repeat(given.X[5:6], copies - 1, axis=0)])
    y = np.concatenate([given.y, np.repeat("a", copies - 1)])
    names = [str(i) for i in range(len(X))]
    more = LabelledRows(
        X, y, names, (), lambda i: given.inputs(i % 40), modality("image")
    )
    data = data_of(inspection_page("", inspect_rows(X, y, names), more))
    group = next(group for group in data["duplicates"] if 5 in group["items"])
    assert (group["all"], group["items"]) == (copies, [5, *range(40, 39 + copies)][:6])
    assert data["totals"][1] == len(data["duplicates"])


def test_the_page_of_tags_counts_labels_and_not_their_sets():
    given = rows(30, "a")._replace(y=np.array(["a|b", "b", "a"] * 10), tags=("a", "b"))
    assert "30 rows of 2 labels" in inspection_page(
        "", inspect_rows(given.X, given.y, given.paths), given
    )
    one = given._replace(y=np.array(["a"] * 30), tags=None)
    assert "30 rows of 1 class<" in inspection_page(
        "", inspect_rows(one.X, one.y, one.paths), one
    )


def test_suggestions_have_classes_a_map_and_names_relative_to_the_pool():
    given = rows(40, "a")
    model = Imprinter().fit(given.X[:20], given.y[:20])
    embedded = model.look(given.X)._replace(names=given.paths)
    pool = Split(
        [given.inputs(i) for i in range(40)], NO_LABELS, given.paths, (), "image"
    )
    chosen = suggest(given.X, 5, head=model.state.head)
    names = [f"{i}.png" for i in range(40)]
    data = data_of(suggestion_page("t", pool, chosen, embedded, model, names))
    assert [item["name"] for item in data["items"]] == [names[i] for i in chosen]
    top = model.top(given.X[[int(chosen[0])]], 2)[0]
    first = data["items"][0]["top"]
    assert first[0][0] == printable(top[0].label, 60)
    assert first[0][1] == pytest.approx(top[0].probability, abs=1e-4)
    assert (len(data["map"]["points"]), data["map"]["marked"]) == (40, 5)
    assert data["pool"] == 40
    plain = data_of(suggestion_page("t", pool, chosen, embedded))
    assert "top" not in plain["items"][0]
    assert {point[2] for point in plain["map"]["points"]} == {0}
