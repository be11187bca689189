import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from imprint.core.errors import ParameterError
from imprint.tasks import resolve

DIGITS = np.random.default_rng(1).integers(0, 10, 400)


def test_the_four_tasks_of_the_paper():
    classes = tuple(range(10))
    assert resolve("all").touches(classes) == classes
    assert resolve("even").touches(classes) == (0, 2, 4, 6, 8)
    assert resolve("odd").touches(classes) == (1, 3, 5, 7, 9)
    assert resolve("short").touches(classes) == (0, 1, 2)
    rows, labels = resolve("even").select([4, 1, 0, 3, 4])
    assert rows.tolist() == [0, 2, 4]
    assert labels.tolist() == [4, 0, 4]


def test_classes_keep_the_order_given():
    task = resolve("classes(7, 0, 3)")
    assert task.touches(range(10)) == (7, 0, 3)
    assert task.select([3, 7, 1, 0]).rows.tolist() == [0, 1, 3]
    assert str(task) == "classes(7, 0, 3)"
    assert task != resolve("classes(0, 3, 7)")
    names = resolve("classes('a\\'b', \"c | d\")")
    assert names.labels == ("a'b", "c | d")
    assert resolve(str(names)) == names
    assert resolve("classes(-1, 2)").labels == (-1, 2)
    assert resolve("classes" + str(tuple(f"n{i:08}" for i in range(1000)))).touches(
        [f"n{i:08}" for i in range(1000)]
    )


@pytest.mark.parametrize(
    "text",
    ["classes()", "classes(1, 'a')", "classes(1, 1)", "classes(1.5)", "classes(True)"],
)
def test_a_bad_choice_of_classes_is_refused(text):
    with pytest.raises(
        ParameterError,
        match=r"^Classes\(labels=.*\): labels must be one or more different labels",
    ):
        resolve(text)


def test_a_class_the_data_lack_is_named():
    with pytest.raises(
        ParameterError,
        match=r"classes\(0, 10\): the data have no class 10; they have 0, 1",
    ):
        resolve("classes(0, 10)").select(DIGITS)
    with pytest.raises(
        ParameterError, match=r"classes\('0'\): the data have no class '0'"
    ):
        resolve("classes('0')").select(DIGITS)
    with pytest.raises(ParameterError, match=r"short: the data have no class 2"):
        resolve("short").select([0, 1])
    with pytest.raises(
        ParameterError, match=r"even needs integer labels, not 'a', 'b'"
    ):
        resolve("even").select(["b", "a"])
    with pytest.raises(
        ParameterError, match=r"odd\.select\(\): none of the classes takes part: 0, 2"
    ):
        resolve("odd").select([0, 2])


def test_the_draw_is_that_of_the_published_numbers():
    """The published draw of 100 of 1,000 classes under seed 420 begins and ends with these."""
    drawn = random.Random(420).sample(range(1000), 100)
    assert drawn[:10] == [26, 689, 800, 373, 279, 412, 97, 782, 679, 694]
    assert drawn[-4:] == [213, 3, 885, 681]
    classes = tuple(range(1000))
    for i in range(10):
        touched = resolve(f"d_in_1(d=10, i={i})").touches(classes)
        assert set(touched) == set(drawn)
    # shuffled once for i = 0, and again for each further i
    order = random.Random(420)
    ids = order.sample(range(1000), 100)
    order.shuffle(ids)
    order.shuffle(ids)
    assert resolve("d_in_1(d=10, i=1)").touches(classes) == tuple(ids)
    assert resolve("d_in_1(d=2, i=1)").mapping(classes) == {
        ids[10 * j + k]: j for j in range(10) for k in range(2)
    }
    assert resolve("d_in_1(d=2, i=1, kind='sequential')").mapping(classes) == {
        ids[2 * j + k]: j for j in range(10) for k in range(2)
    }


@given(
    labels=st.integers(1, 6),
    block=st.integers(1, 5),
    more=st.integers(0, 9),
    i=st.integers(0, 3),
    seed=st.integers(0, 99),
)
def test_d_in_1_for_any_number_of_classes(labels, block, more, i, seed):
    pool = labels * block
    classes = tuple(f"c{n}" for n in range(pool + more))
    setting = f"i={i}, labels={labels}, pool={pool}, seed={seed}"
    previous = set()
    for d in range(1, block + 1):
        nested = resolve(f"d_in_1(d={d}, {setting})").mapping(classes)
        sequential = resolve(f"d_in_1(d={d}, {setting}, kind='sequential')").mapping(
            classes
        )
        for mapping in (nested, sequential):
            assert sorted(mapping.values()) == sorted(list(range(labels)) * d)
        assert previous <= set(nested.items())  # a larger d only adds
        previous = set(nested.items())
    assert nested == sequential  # all of the pool, in the same order


def test_d_in_1_refuses_impossible_parameters_and_data():
    with pytest.raises(
        ParameterError,
        match=r"DIn1\(d=11, labels=10, pool=100\): d must be int <= pool / labels = 10",
    ):
        resolve("d_in_1(d=11)")
    with pytest.raises(
        ParameterError,
        match=r"d_in_1\(d=2, i=0, kind='nested'\): the data have 10 classes",
    ):
        resolve("d_in_1(d=2)").select(DIGITS)
    assert len(resolve("d_in_1(d=2, labels=5, pool=10)").select(DIGITS).rows) == len(
        DIGITS
    )


def by_class(selection):
    return {
        label: selection.rows[selection.labels == label].tolist()
        for label in selection.labels.tolist()
    }


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**40))
def test_fewer_shots_are_a_prefix_of_more_shots(n, more, seed):
    few = by_class(resolve(f"shots(n={n})").select(DIGITS, seed))
    many = by_class(resolve(f"shots(n={n + more})").select(DIGITS, seed))
    for label, rows in few.items():
        assert len(rows) == n
        assert rows == many[label][:n]
        assert (DIGITS[rows] == label).all()


def test_shots_of_a_class_depend_on_nothing_else():
    every = by_class(resolve("shots(n=5)").select(DIGITS, 7))
    kept = np.flatnonzero(np.isin(DIGITS, (2, 8)))
    alone = by_class(resolve("shots(n=5)").select(DIGITS[kept], 7))
    assert {label: kept[rows].tolist() for label, rows in alone.items()} == {
        c: every[c] for c in (2, 8)
    }
    renamed = by_class(resolve("shots(n=5)").select(DIGITS + 1, 7))
    assert renamed[3] != every[2]
    assert by_class(resolve("shots(n=5)").select(DIGITS, 8)) != every


def test_shots_are_drawn_evenly():
    draws = np.concatenate(
        [resolve("shots(n=2)").select([0] * 10, seed).rows for seed in range(2000)]
    )
    counts = np.bincount(draws, minlength=10)
    assert abs(counts - 400).max() < 100  # five standard deviations and a half


def test_a_small_class_gives_all_its_rows():
    rows, labels = resolve("shots(n=3)").select([1, 0, 1, 1, 1, 1])
    assert sorted(labels.tolist()) == [0, 1, 1, 1]
    assert 1 in rows


def test_the_order_of_a_choice_and_a_draw_does_not_matter():
    for choice in ("even", "short", "classes(9, 4)"):
        one = resolve(f"{choice} | shots(n=3)").select(DIGITS, 11)
        two = resolve(f"shots(n=3) | {choice}").select(DIGITS, 11)
        assert by_class(one) == by_class(two)


def test_shots_after_a_merge_count_the_new_labels():
    task = resolve("d_in_1(d=2, labels=5, pool=10) | shots(n=6)")
    rows, labels = task.select(DIGITS, 2)
    assert np.bincount(labels).tolist() == [6] * 5
    mapping = task.mapping(tuple(range(10)))
    assert [mapping[v] for v in DIGITS[rows].tolist()] == labels.tolist()


def test_chains_join():
    even, shots = resolve("even"), resolve("shots(n=2)")
    assert (
        (resolve("all") | even) | shots
        == resolve("all") | (even | shots)
        == resolve("all | even | shots(n=2)")
    )
    assert str((even | shots).queries()) == "even"
    assert str(resolve("shots(n=9) | shots(n=2)").queries()) == "all"
    assert str(resolve("all | even | shots(n=2)").queries()) == "all | even"
