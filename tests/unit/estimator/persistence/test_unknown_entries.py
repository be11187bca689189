"""Model files with entries that this version does not know are refused, because their meaning is unknown."""

import numpy as np
import pytest

from imprint import ImprintClassifier, Imprinter
from imprint.core.errors import FileError
from imprint.core.files import container
from imprint.estimator.persistence import head_to_parts

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 4)), np.array(["ant", "bee", "cow"])[np.arange(30) % 3]


def fitted(generator="kmeans(k=2)", calibrate=True):
    return ImprintClassifier(
        generator=generator, calibrate=calibrate, random_state=0
    ).fit(X, Y)


def uncalibrated(document, arrays):
    """An earlier layout, which stored the calibration in the entry `folds`."""
    return {
        ("folds" if k == "calibration" else k): v for k, v in document.items()
    }, arrays


def lost_calibration(document, arrays):
    return {k: v for k, v in document.items() if k != "calibration"}, arrays


def with_array(name):
    return lambda document, arrays: (document, {**arrays, name: np.zeros(3)})


def without_values(document, arrays):
    return document, {**arrays, "state/more/shapes": np.zeros((3, 2), dtype=np.int64)}


CHANGES = {
    "folds": uncalibrated,
    "calibration/below": lost_calibration,
    "margin": lambda d, a: ({**d, "margin": 0.5}, a),
    "norm_out": lambda d, a: ({**d, "parts": {**d["parts"], "norm_out": "l2"}}, a),
    "weights": with_array("weights"),
    "temperature": with_array("temperature"),
    "fold5/classes": with_array("fold5/classes"),
    "state/rows": with_array("state/rows"),
    "images.0.X": with_array("images.0.X"),
    "state/more/shapes": without_values,
}


@pytest.mark.parametrize("name", CHANGES)
def test_unknown_entries_are_refused_with_advice(tmp_path, name):
    document, arrays = CHANGES[name](*head_to_parts(fitted().head_))
    container.write(tmp_path / "m", {**document, "kind": "classifier"}, arrays)
    for load in (ImprintClassifier.load, Imprinter.load):
        with pytest.raises(
            FileError,
            match=rf"m: it holds '{name}', which this version of imprint does not know; fit the model",
        ):
            load(tmp_path / "m")


@pytest.mark.parametrize("calibrate", [False, True])
@pytest.mark.parametrize(
    "generator", ["mean", "kmeans(k=2)", "least_squares", "random(k=2)"]
)
def test_every_written_key_is_known(tmp_path, generator, calibrate):
    aggregator = "max" if generator == "least_squares" else "kernel"
    for post in ("none", "quantile"):
        clf = ImprintClassifier(
            generator=generator,
            aggregator=aggregator,
            norm_post=post,
            calibrate=calibrate,
            random_state=0,
        ).fit(X, Y)
        clf.save(tmp_path / "m")
        assert np.array_equal(
            ImprintClassifier.load(tmp_path / "m").predict_proba(X),
            clf.predict_proba(X),
        )
