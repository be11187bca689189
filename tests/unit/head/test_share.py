"""Files without training rows."""

import re

import numpy as np
import pytest
from tests.unit.head.test_merging import classifier, data

from imprint import ImprintClassifier, Imprinter
from imprint.core.errors import DataWarning, ParameterError

COMPUTED = ["mean", "kmeans(k=3)", "least_squares", "k_least_squares(k=3)"]


def rows_in(path, X):
    """How many of the rows are in a file, as they are or at unit length."""
    content = path.read_bytes()
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    return sum(
        row.tobytes() in content
        for rows in (X, unit.astype("float32"), unit.astype("float64"))
        for row in rows
    )


@pytest.mark.parametrize("generator", COMPUTED)
@pytest.mark.parametrize("calibrate", [False, True])
@pytest.mark.parametrize("norm_pre", ["l2", "none"])
def test_a_shared_file_predicts_the_same_and_holds_no_row(
    generator, calibrate, norm_pre, tmp_path
):
    X, y = data(rows=150, width=8)
    model = classifier(generator, calibrate=calibrate, norm_pre=norm_pre).fit(X, y)
    whole, shared = tmp_path / "whole.imprint", tmp_path / "shared.imprint"
    model.save(whole)
    model.save(shared, rows=False)
    assert rows_in(shared, X) == 0
    if calibrate:
        assert rows_in(whole, X) >= 150
        digests = np.array([int(d, 16) for d in model.row_digests_["ant"]], np.uint64)
        assert digests[0].tobytes() in whole.read_bytes()
        assert digests[0].tobytes() not in shared.read_bytes()
    again = ImprintClassifier.load(shared)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    if calibrate:
        assert np.array_equal(again.known(X), model.known(X))
        assert again.expected_accuracy_ == model.expected_accuracy_
    # a shared model that is shared again is the same file
    again.save(tmp_path / "again.imprint", rows=False)
    assert (tmp_path / "again.imprint").read_bytes() == shared.read_bytes()


def test_a_calibrated_shared_model_refuses_what_it_cannot_do_exactly(tmp_path):
    X, y = data(rows=150)
    classifier(calibrate=True).fit(X, y).save(tmp_path / "m.imprint", rows=False)
    model = ImprintClassifier.load(tmp_path / "m.imprint")
    before = model.head_
    for change in (
        lambda: model.partial_fit(X[:2], y[:2]),
        lambda: model.partial_fit(X[:2], ["yak", "yak"]),
        lambda: model.forget("ant"),
        lambda: model.split(["ant", "bee"]),
        lambda: model.forget_rows(X[:1], y[:1]),
    ):
        with pytest.raises(ParameterError, match="shared without rows"):
            change()
    assert model.head_ is before
    model.rename("ant", "yak").save(tmp_path / "renamed.imprint")
    again = ImprintClassifier.load(tmp_path / "renamed.imprint")
    assert again.expected_accuracy_ == model.expected_accuracy_
    with pytest.warns(DataWarning, match="The merged model is not calibrated"):
        again.merge(classifier(calibrate=True).fit(X[:60] + 1, y[:60]))
    assert not again.head_.calibrated


def test_shared_sites_merge_to_one_fit_up_to_rounding(tmp_path):
    X, y = data(rows=400, dtype="float64")
    for i, part in enumerate((slice(0, 150), slice(150, 400))):
        site = classifier(calibrate=True).fit(X[part], y[part])
        site.save(tmp_path / f"{i}.imprint", rows=False)
    one, two = (ImprintClassifier.load(tmp_path / f"{i}.imprint") for i in range(2))
    with pytest.warns(DataWarning, match="not calibrated"):
        one.merge(two)
    whole = classifier().fit(X, y)
    np.testing.assert_allclose(
        one.decision_function(X), whole.decision_function(X), rtol=1e-8, atol=1e-10
    )
    one.partial_fit(X[:3], y[:3])  # without calibration, it learns on


@pytest.mark.parametrize(
    "generator", ["all", "random", "kmedoids(k=3)", "fps", "covmax"]
)
def test_proxies_that_are_rows_are_not_shared(generator, tmp_path):
    X, y = data(rows=150)
    model = classifier(generator).fit(X, y)
    with pytest.raises(ParameterError, match="its proxies are training rows"):
        model.save(tmp_path / "m.imprint", rows=False)
    with pytest.raises(ParameterError, match="every proxy of the class 'yak' is a"):
        classifier("kmeans(k=5)").fit(X, y).partial_fit(X[:3] + 1, ["yak"] * 3).save(
            tmp_path / "m.imprint", rows=False
        )
    assert not (tmp_path / "m.imprint").exists()


def test_the_card_says_what_a_file_reveals(tmp_path):
    X, y = data(rows=150)
    model = Imprinter(generator="kmeans(k=3)").fit(X, y)
    assert model.card().reveals == "It holds the embeddings of 150 training inputs."
    model.save(tmp_path / "m.imprint", rows=False)
    again = Imprinter.load(tmp_path / "m.imprint")
    assert again.state.exemplars == {}
    assert again.why(X[0], 1)[0].image is None
    assert again.card().reveals == "No proxy in it is a single training input."
    single = classifier("kmeans(k=25)").fit(X, y)
    single.save(tmp_path / "k.imprint", rows=False)
    card = Imprinter.load(tmp_path / "k.imprint").card()
    found = int(re.search(r"(\d+) training inputs, as proxies", card.reveals)[1])
    # rows that this test normalises to other last bits are not found
    assert 0 < rows_in(tmp_path / "k.imprint", X) <= found
    assert "## What the file reveals" in card.markdown()
