"""Unlabelled inputs on the page: order, skipping, and labels by the model."""

import pytest

from .conftest import image


@pytest.fixture
def pool(client):
    """Forty unlabelled images: the digests and which half is bright."""
    shades = {}
    for i in range(40):
        status, answer = client.json(
            "POST", f"/api/pool?name={i}.png", image(i, shade=i % 2)
        )
        assert status == 201
        shades[answer["digest"]] = i
    return shades


def follow(client, n=20):
    return client.json("GET", f"/api/pool/next?n={n}")[1]


def test_the_first_two_are_of_both_kinds_and_answers_leave_the_pool(client, pool):
    entries = follow(client, 2)
    assert {pool[e["digest"]] % 2 for e in entries} == {0, 1}
    assert all(
        e["top"] == [] and e["reason"] == "nothing like it is labelled yet"
        for e in entries
    )
    for e in entries:
        seed = pool[e["digest"]]
        client.add(("top", "bottom")[seed % 2], seed, seed % 2)
    assert client.json("GET", "/api/pool")[1] == {"inputs": 40, "left": 38}
    after = follow(client)
    assert not {e["digest"] for e in entries} & {e["digest"] for e in after}
    assert [list(one) for e in after for one in e["top"]] == [
        ["label", "probability"]
    ] * 40
    assert after[0]["top"][0]["probability"] >= after[0]["top"][1]["probability"]
    client.change(do="undo")
    assert client.json("GET", "/api/pool")[1]["left"] == 39


def test_skipped_inputs_come_back_only_when_that_is_undone(client, pool):
    digest = follow(client, 1)[0]["digest"]
    assert client.json("POST", "/api/pool/skip", {"digest": digest}) == (
        200,
        {"left": 39},
    )
    assert digest not in {e["digest"] for e in follow(client, 40)}
    assert client.json("POST", "/api/pool/skip", {"digest": digest, "skip": False}) == (
        200,
        {"left": 40},
    )
    assert client.json("POST", "/api/pool/skip", {"digest": "x"})[0] == 400


def test_the_model_labels_what_it_is_certain_of(client, pool):
    assert client.json("GET", "/api/pool/confident")[1] == []
    for i in range(100, 112):
        client.add(("top", "bottom")[i % 2], i, i % 2)
    everything = client.json("GET", "/api/pool/confident?probability=0")[1]
    assert len(everything) == 40
    assert all(
        e["label"] == ("top", "bottom")[pool[e["digest"]] % 2] for e in everything
    )
    certain = [e["probability"] for e in everything]
    assert certain == sorted(certain)
    limit = certain[20]
    assert all(
        e["probability"] >= limit
        for e in client.json("GET", f"/api/pool/confident?probability={limit}")[1]
    )
    assert client.json("GET", "/api/pool/confident?probability=2")[0] == 400


def test_a_pool_that_grows_and_one_that_is_used_up(client, pool):
    follow(client)
    for i in range(40, 60):
        client.json("POST", "/api/pool", image(i, shade=i % 2))
    assert len(follow(client, 60)) == 60
    assert client.json("POST", "/api/pool", b"no image")[0] == 400
    for i in range(60):
        client.add("any", i, i % 2)
    assert follow(client) == []
