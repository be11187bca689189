"""Scores as arrays, wide and long tables, and mappings give the same comparison; invalid input is refused by name."""

import math
import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from imprint.core.errors import ParameterError
from imprint.stats import compare

METHODS = ["kmeans", "mean", "random"]
TASKS = [f"task {i}" for i in range(12)]
SCORES = np.random.default_rng(0).normal((1.0, 0.5, 0.0), size=(12, 3))
EXPECTED = compare(SCORES, METHODS)

wide = {"task": TASKS} | {
    method: SCORES[:, j].tolist() for j, method in enumerate(METHODS)
}
long_rows = [
    {"method": method, "task": task, "accuracy": SCORES[i, j]}
    for j, method in enumerate(METHODS)
    for i, task in enumerate(TASKS)
]
random.Random(0).shuffle(long_rows)
long_rows.sort(
    key=lambda row: METHODS.index(row["method"])
)  # methods in order, tasks shuffled in each
nested = {
    m: {row["task"]: row["accuracy"] for row in long_rows if row["method"] == m}
    for m in METHODS
}


def columns(rows):
    return {key: [row[key] for row in rows] for key in rows[0]}


def as_rows(table):
    return [dict(zip(table, values)) for values in zip(*table.values())]


@pytest.mark.parametrize(
    ("scores", "options"),
    [
        (SCORES.tolist(), {"names": METHODS}),
        (SCORES, {"names": METHODS, "instances": TASKS}),
        (wide, {"instances": "task"}),
        (as_rows(wide), {"instances": "task"}),
        (as_rows(wide), {"names": METHODS}),
        (pd.DataFrame(wide), {"instances": "task"}),
        (pd.DataFrame(wide).set_index("task"), {}),
        (pd.DataFrame(wide), {"names": METHODS}),
        (pa.table(wide), {"instances": "task"}),
        (pa.table(wide | {"seed": [0] * 12}), {"names": METHODS, "instances": "task"}),
        (nested, {}),
        (nested | {"other": {}}, {"names": METHODS}),
        (long_rows, {"names": "method", "instances": "task"}),
        (columns(long_rows), {"names": "method", "instances": "task"}),
        (pd.DataFrame(long_rows), {"names": "method", "instances": "task"}),
        (pa.Table.from_pylist(long_rows), {"names": "method", "instances": "task"}),
    ],
)
def test_every_shape_of_scores_gives_the_same_comparison(scores, options):
    assert compare(scores, **options) == EXPECTED


def test_shuffled_rows_are_aligned_by_instance():
    """Each method has its rows in a different order; comparing by position would give another result."""
    by_position = np.array([list(nested[method].values()) for method in METHODS]).T
    assert compare(by_position, METHODS).pairs != EXPECTED.pairs
    assert compare(nested).pairs == EXPECTED.pairs


def test_columns_that_are_numbers_become_names():
    assert compare(pd.DataFrame(SCORES, columns=[1, 5, 20])).names == ("1", "5", "20")


def test_float32_columns_keep_their_precision():
    """0.9 - 0.8 and 0.3 - 0.2 are ties in float32, as in exact arithmetic."""
    table = np.array([[0.9, 0.8], [0.3, 0.2], [0.5, 0.7], [0.1, 0.4]])
    frame = pd.DataFrame(table.astype(np.float32), columns=["a", "b"])
    assert compare(frame).pairs == compare(np.rint(10 * table), ["a", "b"]).pairs


hole = {"a": {"x": 1.0, "y": 2.0}, "b": {"x": 1.0}}
LONG = {"names": "m", "instances": "i"}


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        (hole, {}, "method 'b' has no score for instance 'y'"),
        (
            {"m": ["a", "a", "b"], "i": ["x", "y", "x"], "s": [1, 2, 3]},
            LONG,
            "method 'b' has no score for instance 'y'",
        ),
        (
            {"m": ["a", "a", "b"], "i": ["x", "x", "x"], "s": [1, 1, 3]},
            LONG,
            "method 'a' has two scores for instance 'x'",
        ),
        (
            {"m": ["a", None], "i": ["x", "x"], "s": [1, 2]},
            LONG,
            "a score does not name its method or its instance",
        ),
        (
            {"m": ["a"], "i": ["x"], "s": [1], "seed": [0]},
            LONG,
            "next to 'm' and 'i', a long table has one column of scores, not ['s', 'seed']",
        ),
        (
            {"m": ["a"], "s": [1]},
            {"names": "m"},
            "`names` is the column 'm', so `instances` must name a column too",
        ),
        (
            pd.DataFrame({"i": ["x", "y"], "a": [1, 2], "b": [3, None]}),
            {"instances": "i"},
            "method 'b' has nan for instance 'y'; a score must be a finite number",
        ),
        (
            pd.DataFrame(
                {"a": [1, 2], "b": pd.Series([3, pd.NA], ["x", "y"], object)},
                index=["x", "y"],
            ),
            {},
            "method 'b' has <NA> for instance 'y'; a score must be a finite number",
        ),
        (
            pa.table({"i": ["x", "y"], "a": [1, None], "b": [3, 4]}),
            {"instances": "i"},
            "method 'a' has nan for instance 'y'; a score must be a finite number",
        ),
        (
            [{"i": "x", "a": 1, "b": 2}, {"i": "y", "a": 1}],
            {"instances": "i"},
            "method 'b' has None for instance 'y'; a score must be a finite number",
        ),
        (
            [[1, 2], [math.inf, 3]],
            {"names": ["a", "b"]},
            "method 'a' has inf for instance 1; a score must be a finite number",
        ),
        (
            [[1, 2], [True, 3.5]],
            {"names": ["a", "b"], "instances": ["x", "x"]},
            "method 'a' has two scores for instance 'x'",
        ),
        (
            {"a": [1, 2], "b": [True, False]},
            {},
            "method 'b' has True for instance 0; a score must be a finite number",
        ),
        (
            {"a": [1, 2], "b": ["1", "2"]},
            {},
            "method 'b' has '1' for instance 0; a score must be a finite number",
        ),
        (
            {"i": ["x", "x"], "a": [1, 2], "b": [3, 4]},
            {"instances": "i"},
            "method 'a' has two scores for instance 'x'",
        ),
        (
            {"i": ["x", None], "a": [1, 2], "b": [3, 4]},
            {"instances": "i"},
            "a score does not name its method or its instance",
        ),
        (
            {"a": [1, 2], "b": [3, 4]},
            {"instances": ["x"]},
            "1 instances for 2 rows of scores",
        ),
        (
            {"a": [1, 2], "b": [3]},
            {},
            "method 'b' has no score for instance 1",
        ),
        ({"a": 1, "b": 2}, {}, "method 'a' has 1; give one score per instance"),
        (
            {"a": [1, 2], "b": [[1, 2], [3, 4]]},
            {},
            "method 'b' has [1, 2] for instance 0; a score must be a finite number",
        ),
        (
            {"a": {"x": 1}, "b": [1]},
            {},
            "method 'a' has no score for instance 0",
        ),
        (
            {"a": {"x": 1}, "b": {"x": 2}},
            {"instances": ["x"]},
            "1 instances for 0 rows of scores",
        ),
        ([[1, 2]], {"names": ["a", "a"]}, "method 'a' appears twice"),
        ({1: [1, 2], "1": [1, 3]}, {}, "method '1' appears twice"),
        (
            [[1, 2]],
            {"names": ["a"]},
            "2 columns of scores and names ['a']; an array needs a name per column",
        ),
        (
            [[1, 2]],
            {},
            "2 columns of scores and names None; an array needs a name per column",
        ),
        (
            [1, 2],
            {"names": ["a", "b"]},
            "scores of shape (2,); an array must be instances x methods",
        ),
        (
            [[1, 2], [3]],
            {"names": ["a", "b"]},
            "the rows of scores have different lengths; an array must be instances x methods",
        ),
        (
            [[1], [2]],
            {"names": ["a"]},
            "1 methods on 2 instances; give at least two methods and one instance",
        ),
        (
            np.empty((0, 2)),
            {"names": ["a", "b"]},
            "2 methods on 0 instances; give at least two methods and one instance",
        ),
        (
            {},
            {},
            "0 methods on 0 instances; give at least two methods and one instance",
        ),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, "column 'a' appears twice"),
    ],
)
def test_invalid_scores_are_refused_by_name(scores, options, message):
    with pytest.raises(ParameterError) as caught:
        compare(scores, **options)
    assert str(caught.value) == f"compare: {message}."


def test_an_unknown_column_gets_a_suggestion():
    with pytest.raises(
        ParameterError, match=r"Unknown column of scores 'tusk'\. Did you mean 'task'\?"
    ):
        compare(wide, instances="tusk")
    with pytest.raises(
        ParameterError,
        match=r"Unknown column of scores 'task'\. Known: kmeans, mean, random\.",
    ):
        compare(SCORES, METHODS, instances="task")
