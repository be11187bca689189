"""Explanations: exact where pooling is linear, measured elsewhere."""

import io
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from imprint import Imprinter
from imprint.backbones import load
from imprint.backbones.block import projection
from imprint.backbones.places import BlockMap, averaged_tensor
from imprint.backbones.preprocess import Preprocess
from imprint.core.errors import ParameterError
from imprint.explanation import Explanation
from imprint.explanation.drawing import AGAINST, FOR
from imprint.explanation.explanation import CLOSED_FORM, LEFT_OUT
from imprint.modalities import modality
from imprint.normalisers import family as normalisers
from imprint.normalisers._blocks import Blockwise
from imprint.normalisers.l2 import L2


def pooled(pooling, values):
    """A map of an image, pooled as blocks define it."""
    if pooling == "mean":
        return values.mean(axis=(1, 2))
    if pooling == "std":
        return values.std(axis=(1, 2))
    sizes = [-(-side // 2) for side in values.shape[1:]]
    strides = [side // 2 for side in values.shape[1:]]
    windows = [
        values[:, r * strides[0] :, c * strides[1] :][:, : sizes[0], : sizes[1]]
        for r in (0, 1)
        for c in (0, 1)
    ]
    means = np.stack([window.mean(axis=(1, 2)) for window in windows], axis=1)
    return means.ravel()


@pytest.mark.parametrize("side", [4, 7])
@pytest.mark.parametrize("pooling", ["mean", "std", "quadrants"])
def test_contributions_of_places_add_up_to_the_pooled_numbers(pooling, side):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(6, side, side + 1))
    values[2] = 3.0  # a channel that does not vary
    numbers = pooled(pooling, values)
    weights = rng.normal(size=len(numbers))
    shares = BlockMap(pooling, values).contributions(weights)
    assert shares.shape == (side, side + 1)
    assert shares.sum() == pytest.approx(weights @ numbers)
    narrow = BlockMap(pooling, values, 5)
    matrix = projection(len(numbers), 5)
    shares = narrow.contributions(weights[:5])
    assert shares.sum() == pytest.approx(weights[:5] @ (numbers @ matrix), rel=1e-5)


def test_a_bright_place_contributes_where_it_is():
    values = np.zeros((2, 4, 4))
    values[1, 3, 0] = 8
    for pooling, size in (("mean", 2), ("std", 2), ("quadrants", 8)):
        shares = BlockMap(pooling, values).contributions(np.ones(size))
        assert np.unravel_index(shares.argmax(), shares.shape) == (3, 0)


def test_the_map_behind_a_mean_is_found_in_the_graph():
    nodes = {
        "map": ("Conv", ["x"]),
        "mean": ("ReduceMean", ["map"]),
        "row": ("Flatten", ["mean"]),
        "product": ("MatMul", ["row"]),
    }
    assert averaged_tensor(nodes, "row") == "map"
    assert averaged_tensor(nodes, "product") is None
    assert averaged_tensor(nodes, "map") is None


@pytest.mark.parametrize("name", ["tinynet", "efficientnet_lite0"])
def test_the_maps_of_a_network_give_its_embedding(name):
    backbone = load(name)
    image = np.random.default_rng(1).integers(0, 256, (90, 120, 3), dtype=np.uint8)
    prepared = backbone.prepare(image)
    x = backbone.embed(prepared[None])[0].astype(np.float64)
    weights = np.random.default_rng(2).normal(size=len(x))
    maps = backbone.maps(prepared)
    ends = np.cumsum([0, *(block.width for block in backbone.blocks)])
    assert len(maps) == len(backbone.blocks)
    for found, (start, end) in zip(maps, pairwise(ends.tolist())):
        shares = found.contributions(weights[start:end])
        expected = weights[start:end] @ x[start:end]
        assert shares.sum() == pytest.approx(expected, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("scaling", [L2(), Blockwise(L2(), (2, 3))], ids=str)
def test_a_normaliser_takes_gradients_back(scaling):
    x, weights, step = np.random.default_rng(3).normal(size=(2, 5)), None, 1e-6
    x, weights = x
    moved = np.concatenate([x + step * np.eye(5), x - step * np.eye(5)])
    values = scaling.apply(moved) @ weights
    measured = (values[:5] - values[5:]) / (2 * step)
    np.testing.assert_allclose(scaling.pullback(x, weights), measured, atol=1e-6)
    assert normalisers.resolve("none").pullback(x, weights) is weights


def scene(rng, left, size=96):
    """Noise with a coloured square on the left or the right."""
    image = rng.integers(90, 130, (size, size, 3), dtype=np.uint8)
    columns = slice(8, 40) if left else slice(size - 40, size - 8)
    image[32:64, columns] = (220, 30, 30)
    return image


@pytest.fixture(scope="module")
def squares():
    """A model of images with a red square, anywhere, and of plain ones."""
    rng = np.random.default_rng(0)
    plain = [rng.integers(90, 130, (96, 96, 3), dtype=np.uint8) for _ in range(12)]
    images = [scene(rng, i % 2 == 0) for i in range(12)]
    model = Imprinter("tinynet", cache=False, calibrate=False)
    return model.fit((images + plain, ["square"] * 12 + ["plain"] * 12)), rng


@pytest.mark.parametrize("left", [True, False])
def test_a_map_is_largest_on_the_side_of_what_makes_the_class(squares, left):
    model, rng = squares
    image = scene(rng, left)
    explanation = model.explain(image, label="square")
    assert explanation.method == CLOSED_FORM
    assert (explanation.label, explanation.against) == ("square", "plain")
    assert explanation.unmapped == ()
    pixels = explanation.map()
    assert pixels.shape == image.shape[:2]
    halves = np.nansum(pixels[:, :48]), np.nansum(pixels[:, 48:])
    assert (halves[0] > halves[1]) == left
    reverse = model.explain(image, label="plain", against="square")
    np.testing.assert_allclose(reverse.values, -explanation.values)


def test_places_are_covered_where_a_network_has_no_maps():
    rng = np.random.default_rng(0)
    dark, light = np.zeros((8, 8), np.uint8), np.full((8, 8), 250, np.uint8)
    half = dark.copy()
    half[:, 4:] = 250
    images = [dark, dark + 3, light, light - 3, half]
    labels = ["dark", "dark", "light", "light", "half"]
    model = Imprinter("raw", cache=False, calibrate=False).fit((images, labels))
    explanation = model.explain(half + rng.integers(0, 4, (8, 8), dtype=np.uint8))
    assert (explanation.method, explanation.label) == (LEFT_OUT, "half")
    assert explanation.values.shape == (7, 7)
    assert explanation.figure().size == (8, 8)


def test_words_contribute_what_their_absence_costs(tmp_path):
    texts = ["where is my parcel", "the parcel has not come", "money back", "a refund"]
    labels = ["delivery", "delivery", "refund", "refund"]
    model = Imprinter("minilm", cache=False, calibrate=False).fit((texts, labels))
    text = "hello I want a refund please"
    explanation = model.explain(text)
    assert explanation.names == tuple(text.split())
    assert explanation.names[explanation.values.argmax()] == "refund"
    without = model.explain("hello I want a please", label="refund")
    head = model.state.head
    S = head.scores(model.look([text, "hello I want a please"]).X)
    refund, delivery = (head.classes.tolist().index(c) for c in ("refund", "delivery"))
    difference = S[:, refund] - S[:, delivery]
    expected = difference[0] - difference[1]
    assert explanation.values[4] == pytest.approx(expected, rel=1e-3)
    assert without.label == "refund"
    explanation.save(tmp_path / "why.html")
    page = (tmp_path / "why.html").read_text()
    assert page.count("<mark") == 6
    assert "for refund, against delivery" in page
    with pytest.raises(ParameterError, match="no parts"):
        model.explain("refund")


@pytest.mark.parametrize("kind", ["sound", "series"])
def test_times_are_left_out_one_by_one(kind):
    kind = modality(kind)
    item = np.arange(1.0, 65.0, dtype=np.float32)
    item = kind.convert(item if kind.name == "series" else item / 64)
    parts = kind.parts(item)
    assert parts.shape == (32,)
    assert len(parts.names) == 32
    flat = np.asarray(
        parts.without(0) if kind.name == "series" else parts.without(3)[0]
    )
    original = np.asarray(item if kind.name == "series" else item[0])
    assert flat.shape == original.shape
    changed = np.flatnonzero((flat != original).ravel())
    assert set(changed) <= ({0, 1} if kind.name == "series" else {6, 7})


def test_the_overlay_has_two_colours_and_leaves_out_what_is_not_seen():
    values = np.array([[2.0, -1.0]])
    image = np.zeros((10, 40, 3), np.uint8)
    box = (0.25, 0.0, 0.75, 1.0)
    explanation = Explanation(
        values=values, label="a", against="b", method=CLOSED_FORM, box=box, image=image
    )
    pixels = explanation.map()
    assert np.isnan(pixels[:, :10]).all()
    assert np.isnan(pixels[:, 30:]).all()
    overlay = explanation.overlay()
    assert tuple(overlay[5, 11, :3]) == FOR
    assert tuple(overlay[5, 28, :3]) == AGAINST
    assert overlay[5, 11, 3] > overlay[5, 28, 3] > 0
    assert overlay[5, 5, 3] == 0
    assert explanation.overlay_uri().startswith("data:image/png;base64,")
    stored = io.BytesIO()
    explanation.figure().save(stored, "png")
    assert Image.open(stored).size == (40, 10)
    with pytest.raises(ParameterError, match="image"):
        Explanation(values=np.ones(2), label="a", against=None, method=LEFT_OUT).map()


@pytest.mark.parametrize(
    ("rule", "box"),
    [
        ({"size": 224}, (0, 0, 1, 1)),
        ({"size": 224, "crop": 0.5}, (0.375, 0.25, 0.625, 0.75)),
        ({"size": 100, "resize": 100}, (0.25, 0, 0.75, 1)),
    ],
)
def test_the_part_of_an_image_that_a_network_sees(rule, box):
    assert Preprocess.from_json(rule).seen(400, 200) == pytest.approx(box)
