"""The report of the server when inputs drift away from the training data."""

import logging

from .conftest import image


def test_drift_is_reported_with_the_images_that_show_it(client, project, caplog):
    for i in range(30):
        client.add("top", i, 0)
        client.add("bottom", 100 + i, 1)
    project.evaluated().result()  # a later calibration would reset the evidence
    client.json("POST", "/api/predict", image(500))
    state = client.json("GET", "/api/drift")[1]
    assert (state["alarm"], state["unfamiliar"], state["inputs"]) == (None, [], 1)
    with caplog.at_level(logging.WARNING, "imprint.serve"):
        for i in range(30):
            client.json(
                "POST",
                f"/api/predict?name=odd-{i}.png",
                image(i, kind="jpeg", shade=0, size=(4, 90)),
            )
            if client.json("GET", "/api/drift")[1]["alarm"]:
                break
    state = client.json("GET", "/api/drift")[1]
    assert "look unlike the training data (evidence 1:" in state["alarm"]
    assert state["unfamiliar"][0]["name"].startswith("odd-")
    assert state["unfamiliar"][0]["preview"].startswith("data:image/jpeg;base64,")
    known = [one["known"] for one in state["unfamiliar"]]
    assert known == sorted(known)
    assert "Drift: inputs since" in caplog.text
    reference = project.drift.monitor.reference
    state = client.json("POST", "/api/drift")[1]
    assert (state["alarm"], state["inputs"], state["unfamiliar"]) == (None, 0, [])
    assert project.drift.monitor.reference == reference > 50, (
        "p-values are compared with the training data as before"
    )


def test_the_evidence_starts_again_with_a_new_calibration(client, project):
    def classified():
        project.evaluated().result()
        for i in range(3):
            client.json("POST", "/api/predict", image(500 + i))
        return client.json("GET", "/api/drift")[1]["inputs"]

    for i in range(8):
        client.add("top", i, 0)
        client.add("bottom", 100 + i, 1)
    assert classified() == 3
    client.add("top", 50, 0)
    assert classified() == 3


def test_only_distinct_inputs_that_were_submitted_are_evidence(client, project):
    """Asking again about an input, and frames of a camera, are no new inputs."""

    def counted(path, content):
        client.json("POST", path, content)
        return client.json("GET", "/api/drift")[1]["inputs"]

    for i in range(8):
        client.add("top", i, 0)
        client.add("bottom", 100 + i, 1)
    project.evaluated().result()
    odd = image(1, kind="jpeg", shade=0, size=(4, 90))
    assert [counted("/api/predict?name=odd.png", odd) for _ in range(3)] == [1, 1, 1]
    assert counted("/api/predict?name=copy.png", odd) == 1
    frames = [image(500 + i, kind="jpeg", shade=0) for i in range(4)]
    assert [counted("/api/predict?drift=0", frame) for frame in frames] == [1] * 4
    assert counted("/api/predict", frames[0]) == 2
    client.json("POST", "/api/drift")
    assert counted("/api/predict", odd) == 1
