"""`Imprinter.add(..., max_rows=N)`: each class keeps its newest inputs only."""

import numpy as np
import pytest

from imprint import Imprinter
from imprint.core.errors import ParameterError

PARTS = {"generator": "kmeans(k=3)", "norm_post": "none"}


def images(label, numbers):
    rng = [np.random.default_rng([i, label]) for i in numbers]
    return [(r.random((8, 8)) * 90 + 80 * label).astype("uint8") for r in rng]


def fitted(first, last, **parts):
    model = Imprinter("raw", cache=False, **{**PARTS, **parts})
    return model.fit(batch(first, last))


def batch(first, last):
    numbers = range(first, last)
    return images(0, numbers) + images(1, numbers), [0] * len(numbers) + [1] * len(
        numbers
    )


@pytest.mark.parametrize("generator", ["kmeans(k=3)", "all", "mean"])
def test_the_model_is_that_of_the_newest_inputs(generator):
    model = fitted(0, 10, generator=generator)
    for first in (10, 20, 30):
        model.add(batch(first, first + 10), max_rows=14)
    expected = fitted(26, 40, generator=generator)
    new = images(0, range(90, 95)) + images(1, range(90, 95))
    assert np.array_equal(model.predict_proba(new), expected.predict_proba(new))
    assert model.expected_accuracy_ == expected.expected_accuracy_


def names_of(model):
    return {name for one in model.state.exemplars.values() for name in one.names}


@pytest.mark.parametrize("calibrate", [True, False])
def test_inputs_that_were_dropped_explain_nothing(calibrate, tmp_path):
    model = Imprinter("raw", cache=False, generator="all", calibrate=calibrate)
    for label in (0, 1):
        for i, pixels in enumerate(images(label, range(12))):
            folder = tmp_path / str(i // 4) / str(label)
            folder.mkdir(parents=True, exist_ok=True)
            write(folder / f"{i}.png", pixels)
    model.fit(str(tmp_path / "0"))
    for part in (1, 2):
        model.add(str(tmp_path / str(part)), max_rows=5)
    newest = {f"{label}/{i}.png" for label in (0, 1) for i in range(7, 12)}
    assert names_of(model) == newest
    model.save(tmp_path / "m.imprint")
    assert names_of(Imprinter.load(tmp_path / "m.imprint")) == newest


def write(path, pixels):
    from PIL import Image

    Image.fromarray(pixels).save(path)


def test_what_has_no_rows_or_tags_is_refused():
    model = fitted(0, 10, calibrate=False)
    with pytest.raises(ParameterError, match="does not hold all rows of 0"):
        model.add(batch(10, 12), max_rows=5)
    assert len(model.state.head) == 2
    with pytest.raises(ParameterError, match="max_rows must be int >= 1"):
        model.add(batch(10, 12), max_rows=0)
    tags = Imprinter("raw", cache=False)
    tags.fit((images(0, range(8)), [["a"]] * 4 + [["a", "b"]] * 4))
    with pytest.raises(ParameterError, match="max_rows: tags have no such limit"):
        tags.add((images(0, range(8, 10)), [["a"]] * 2), max_rows=5)
