"""Immutable collections compared with dictionaries and lists; histories take time in proportion to their length."""

import time
from hashlib import sha256

import numpy as np
import pytest

from imprint.serve.labelled import History
from imprint.serve.persistent import BRANCHES, PersistentList, PersistentMap
from imprint.serve.project import _with_item

KEYS = {
    "numbers": lambda rng: int(rng.integers(1, 400)),
    "far apart": lambda rng: int(rng.integers(0, 2**62)) & ~0xFFFFFF,
    "texts": lambda rng: f"text {rng.integers(400)}",
}


@pytest.mark.parametrize("kind", KEYS)
def test_every_state_of_a_map_is_that_of_a_dictionary(kind):
    rng = np.random.default_rng(0)
    expected, states = {}, [({}, PersistentMap())]
    for step in range(2000):
        known = list(expected)
        key = KEYS[kind](rng)
        if known and rng.random() < 0.4:
            key = known[rng.integers(len(known))]
        before = states[-1][1]
        if key in expected and rng.random() < 0.7:
            expected = {k: v for k, v in expected.items() if k != key}
            after = before.without(key)
        else:
            expected = {**expected, key: step}
            after = before.having(key, step)
        states.append((expected, after))
    for expected, state in states[::50] + states[-1:]:
        assert len(state) == len(expected)
        assert list(state) == sorted(expected)
        assert dict(state.items()) == expected
        assert list(state.values()) == [expected[key] for key in sorted(expected)]
        assert all(state[key] == value for key, value in expected.items())
        assert all(key in state for key in expected)


def test_a_map_without_a_change_is_itself():
    full = PersistentMap().having("a", 1)
    assert full.having("a", 1) is full
    assert full.having("a", 2) == {"a": 2}
    with pytest.raises(KeyError):
        full.without("b")
    with pytest.raises(KeyError):
        full["b"]


def test_keys_with_one_hash_are_distinguished():
    class Same(str):
        __hash__ = lambda self: 7  # noqa: E731

    keys = [Same(i) for i in range(3 * BRANCHES)]
    full = PersistentMap()
    for i, key in enumerate(keys):
        full = full.having(key, i)
    assert [full[key] for key in keys] == list(range(3 * BRANCHES))


def test_lists_share_their_beginning():
    states = [PersistentList()]
    for i in range(50):
        states.append(states[-1].appended(i))
    for i, state in enumerate(states):
        assert list(state) == list(range(i))
        assert list(reversed(state)) == list(range(i))[::-1]
        assert len(state) == i
        assert bool(state) == (i > 0)
        assert state == PersistentList.of(range(i))
    assert states[3] != states[4]
    assert states[3] != PersistentList.of("abc")


def test_a_long_list_is_freed_without_recursion():
    long = PersistentList.of(range(300_000))
    assert long == PersistentList.of(range(300_000))
    del long


def seconds_to_add(n):
    """The processor time of so many additions to one history."""
    history = History()
    start = time.process_time()
    for i in range(n):
        digest = sha256(str(i).encode()).hexdigest()
        item = {"do": "add", "label": f"c{i % 20}", "name": f"{i}.png"}
        history, _ = _with_item(history, {**item, "digest": digest})
    assert len(history.labelled.items) == len(history.done) == n
    return time.process_time() - start


def test_the_time_of_many_additions_is_proportional_to_their_number():
    """Eight times as many take about eight times as long; 64 times if each copied the others."""
    few = min(seconds_to_add(1_000) for _ in range(3))
    many = min(seconds_to_add(8_000) for _ in range(2))
    assert many < 24 * few


def test_the_same_content_is_found_again():
    history = History()
    add = {"do": "add", "name": "a.png", "digest": "d"}
    for label in ("cat", "dog"):
        history, outcome = _with_item(history, {**add, "label": label})
    assert [item.label for item in outcome.others] == ["cat"]
    same, outcome = _with_item(history, {**add, "label": "dog"})
    assert same is history
    assert (outcome.id, outcome.new) == (2, False)
    # moved into one class they are one item, and none after that is deleted
    moved = history.after({"do": "move", "ids": [1], "label": "dog"})
    assert [item.id for item in moved.labelled.having("d")] == [2]
    gone = moved.after({"do": "delete", "ids": [2]})
    assert gone.labelled.having("d") == []
    assert [item.id for item in history.labelled.having("d")] == [1, 2]
