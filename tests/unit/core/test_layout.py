"""Class states as arrays in a file, and the arrays that a layout refuses."""

import numpy as np
import pytest

from imprint.core.layout import Entry, to_arrays, to_states

WIDTH = 3
LAYOUT = {
    "rows": Entry("p d"),
    "mass": Entry("p", minimum=0, maximum=9),
    "gram": Entry("t", optional=True),
    "count": Entry("1", integer=True),
    "mean": Entry("d", instead_of="total"),
    "total": Entry("d", instead_of="mean"),
}


def state(p, **changes):
    """The state of a class with p rows; None removes an array."""
    arrays = {
        "rows": np.ones((p, WIDTH)),
        "mass": np.ones(p),
        "count": np.array([p]),
        "mean": np.zeros(WIDTH),
    }
    return {name: a for name, a in {**arrays, **changes}.items() if a is not None}


def read(states, count=None):
    return to_states(
        to_arrays("kind", states),
        "kind",
        LAYOUT,
        len(states) if count is None else count,
        WIDTH,
    )


@pytest.mark.parametrize("sizes", [(2, 2), (2, 5, 1)], ids=["equal", "unequal"])
def test_states_come_back_whatever_their_sizes(sizes):
    states = [state(p, gram=np.arange(6.0) if p == 2 else None) for p in sizes]
    states[0] |= {"total": states[0].pop("mean")}
    for before, after in zip(states, read(states), strict=True):
        assert set(before) == set(after)
        for name, array in before.items():
            np.testing.assert_array_equal(array, after[name])


REFUSED = {
    "fewer masses than rows": state(2, mass=np.ones(3)),
    "another width": state(2, rows=np.ones((2, WIDTH + 1))),
    "another triangle": state(2, gram=np.zeros(5)),
    "two counts": state(2, count=np.array([1, 2])),
    "one more axis": state(2, mass=np.ones((2, 1))),
    "no rows": state(0, rows=np.ones((0, WIDTH))),
    "below the range": state(2, mass=np.array([1, -1.0])),
    "above the range": state(2, mass=np.array([1, 10.0])),
    "not finite": state(2, rows=np.full((2, WIDTH), np.nan)),
    "a fraction": state(2, count=np.array([1.5])),
    "whole numbers instead of fractions": state(2, mass=np.array([1, 2])),
    "neither of two": state(2, mean=None),
    "both of two": state(2, total=np.zeros(WIDTH)),
    "an array is missing": state(2, mass=None),
    "an unknown array": state(2, more=np.zeros(1)),
}


@pytest.mark.parametrize("wrong", REFUSED.values(), ids=REFUSED)
def test_states_without_the_declared_layout_are_refused(wrong):
    with pytest.raises((KeyError, ValueError)):
        read([wrong])


def test_every_class_has_a_state():
    for count in (1, 3):
        with pytest.raises((KeyError, ValueError, IndexError)):
            read([state(2), state(2)], count)


def test_without_a_layout_finite_numbers_suffice():
    arrays = to_arrays("kind", [{"x": np.ones((2, 2))}, {}])
    assert [list(s) for s in to_states(arrays, "kind", None, 2, WIDTH)] == [["x"], []]
    with pytest.raises(ValueError, match=r"^$"):
        to_states(
            to_arrays("kind", [{"x": np.array([np.inf])}]), "kind", None, 1, WIDTH
        )
