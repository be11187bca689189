"""`benchmarks/other_weights.py`: a published architecture with other weights, value by value."""

import sys
from pathlib import Path

import numpy as np
import pytest
from reproduction.tests.packs import write_pack

from imprint import ImprintClassifier
from imprint_reproduction.modes import KMEANS_OVER_K
from imprint_reproduction.setting import SEEDS


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import other_weights

    return other_weights


def test_every_value_is_compared_with_the_published_one(
    script, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    pack = tmp_path / "packs" / "resnet50_keras-mnist.npz"
    pack.parent.mkdir()
    write_pack(pack, 10, 16, 2, distance=1.5)
    image = tmp_path / "curves.svg"
    words = [
        "other_weights.py",
        str(pack.parent),
        str(tmp_path / "out"),
        "--svg",
        str(image),
    ]
    monkeypatch.setattr(sys, "argv", words)
    script.main()
    rows = [
        line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()
    ]
    shown = {name: values for name, *values in rows if values}
    d, medians = np.load(pack), []
    for k in (1, 5):
        parts = {"generator": f"kmeans(k={k})", "norm_post": "l2", "aggregator": "max"}
        fitted = (
            ImprintClassifier(**parts, random_state=s).fit(
                d["train"], d["train_labels"]
            )
            for s in SEEDS
        )
        medians.append(
            np.median([100 * c.score(d["test"], d["test_labels"]) for c in fitted])
        )
    theirs = KMEANS_OVER_K["resnet50", "mnist"][4]
    assert shown["5"] == [
        f"{theirs:.2f}",
        f"{medians[1]:.2f}",
        f"{medians[1] - theirs:+.2f}",
    ]
    assert shown["NC1 by the published computation, mnist"][0] == "5.42"
    assert (
        shown["points gained by k = 5 over k = 1, mnist"][1]
        == f"{medians[1] - medians[0]:.2f}"
    )
    assert shown["k-medoids, k = 3 (alternate), mnist"][0] == "76.55"
    assert image.read_bytes().count(b"<svg") == 1


def findings(script, shift, nc1):
    """The findings on two data sets whose curves are the published ones moved by some points, with another NC1."""
    published = {
        d: script.published_values("resnet50", d) for d in ("mnist", "cifar10")
    }
    moved = {d: KMEANS_OVER_K["resnet50", d] + shift for d in published}
    by_claim = script.findings(
        published, {d: script.values_by_name(moved[d], nc1[d], 50.0) for d in moved}
    )
    return list(by_claim.values())


def test_findings_can_fail(script):
    near = findings(script, 0.5, {"mnist": 5, "cifar10": 1})
    assert [holds for holds, _ in near] == [True] * 3
    far = findings(script, 9.0, {"mnist": 1, "cifar10": 5})
    assert [holds for holds, _ in far] == [False, False, True]
    assert "mnist 0.50 against" in near[0][1]
