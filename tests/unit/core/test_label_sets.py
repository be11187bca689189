"""Label sets: their text form, and the accepted forms of tags."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from imprint.core.errors import ParameterError
from imprint.core.label_sets import as_text, from_lists, indicator, read_tags, texts_of

LABELS = st.text(min_size=1, max_size=5)


@given(st.lists(LABELS, max_size=4))
def test_a_label_set_survives_its_text(labels):
    assert texts_of(as_text(labels)) == labels


@pytest.mark.parametrize(
    "y",
    [
        np.array([[1, 0, 1], [0, 0, 0]]),
        np.array([[True, False, True], [False] * 3]),
        csr_matrix([[1, 0, 1], [0, 0, 0]]),
        [[1, 0, 1], [0, 0, 0]],
        [np.array([1, 0, 1]), np.array([0, 0, 0])],
    ],
)
def test_an_indicator_matrix_in_every_form(y):
    tagged = read_tags(y)
    assert tagged.sets.tolist() == ["0|2", ""]
    assert tagged.labels == (0, 1, 2)  # includes the label that no row has
    assert indicator(tagged.sets, tagged.labels).tolist() == [[1, 0, 1], [0, 0, 0]]


def test_sets_lists_and_objects_of_labels():
    for y in (
        [{"joy", "love"}, set()],
        [["love", "joy"], []],
        np.array([("joy", "love"), ()], dtype=object),
    ):
        assert read_tags(y).sets.tolist() == ["joy|love", ""]
    assert read_tags([{10, 9}, {9}]).sets.tolist() == ["9|10", "9"]  # numeric order


def test_a_data_frame_names_the_labels():
    pandas = pytest.importorskip("pandas")
    tagged = read_tags(pandas.DataFrame({"joy": [1, 0], "fear": [1, 1]}))
    assert tagged.labels == ("fear", "joy")
    assert tagged.sets.tolist() == ["fear|joy", "fear"]


@pytest.mark.parametrize(
    "y", [["a", "b"], [0, 1], np.zeros((3, 1)), np.array([[0, 2], [1, 0]]), None]
)
def test_one_label_per_row_is_not_tags(y):
    assert read_tags(y) is None


@pytest.mark.parametrize("rows", [[{"a"}, {1}], [{""}], [set()], [{1.5}], [{True}]])
def test_labels_that_cannot_be_kept_are_refused(rows):
    with pytest.raises(
        ParameterError,
        match=r"^tags: labels must be all texts .* or all whole numbers\.$",
    ):
        from_lists(rows)


def test_a_matrix_must_have_the_columns_of_the_model():
    with pytest.raises(
        ParameterError,
        match=r"y has 3 columns; the model has 2 labels\. Give sets of labels\.",
    ):
        read_tags(np.eye(3), ["a", "b"])
    assert read_tags(np.eye(2), ["a", "b"]).labels == ("a", "b")


def test_a_set_of_another_label_has_no_column():
    with pytest.raises(KeyError):
        indicator(["joy|fear"], ["joy"])
