"""The frozen MiniRocket: its arithmetic, its invariances and its limits."""

import numpy as np
import pytest

from imprint import Imprinter, backbones
from imprint.backbones.adapters.minirocket import channel_mixtures, dilations, folded
from imprint.core.errors import ParameterError, UnreadableInput
from imprint.kernels import convolutions, cpu
from imprint.kernels.convolutions import KERNELS, RAISED, exceedances


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def embed(*series: np.ndarray, spec: str = "minirocket") -> np.ndarray:
    network = backbones.load(spec)
    return network.embed([network.prepare(one) for one in series])


def test_shares_are_those_of_a_plain_convolution():
    X, threshold = draw(1, 1, 40), 0.7
    thresholds = np.full((1, KERNELS, 1), threshold, np.float32)
    shares = exceedances(X, [2], np.ones((1, 1, 1), np.float32), thresholds)
    for kernel in range(KERNELS):
        weights = np.full(17, 0.0)
        weights[::2] = -1
        weights[2 * RAISED[kernel]] = 2
        response = np.convolve(np.pad(X[0, 0], 8), weights[::-1], "valid")
        counted = response[8:-8] if kernel % 2 else response
        assert shares[0, kernel] == pytest.approx(
            (counted > threshold).mean(), abs=1e-6
        )


@pytest.mark.parametrize(
    ("n", "channels", "length"), [(9, 1, 100), (5, 3, 64), (3, 2, 9)]
)
def test_compiled_loops_equal_the_reference(monkeypatch, n, channels, length):
    X, thresholds = draw(n, channels, length), draw(12, KERNELS, 2)
    arguments = (
        X,
        dilations(length, 12),
        channel_mixtures("shape", 12, channels),
        thresholds,
    )
    monkeypatch.setattr(cpu, "MIN_COMPILED_WORK", 0)
    compiled = exceedances(*arguments)
    monkeypatch.setattr(cpu, "HAS_NUMBA", False)
    monkeypatch.setattr(convolutions, "CHUNK_SAMPLES", 1)
    np.testing.assert_array_equal(exceedances(*arguments), compiled)


def test_blocks_and_the_last_layer():
    network = backbones.load("minirocket:1")
    assert [block.name for block in network.blocks] == ["shape", "differences", "level"]
    whole = embed(draw(1, 50), spec="minirocket:1")
    shape = embed(draw(1, 50), spec="minirocket:1:last")
    np.testing.assert_array_equal(shape, whole[:, : network.blocks[0].width])


def test_shape_ignores_level_and_unit_and_the_level_block_does_not():
    series = draw(3, 80).astype(np.float64)
    network = backbones.load("minirocket")
    shapes = sum(block.width for block in network.blocks[:2])
    plain, moved = embed(series, 1000 * series + 5)
    np.testing.assert_allclose(moved[:shapes], plain[:shapes], atol=0.2)
    assert np.abs(moved[shapes:] - plain[shapes:]).max() > 0.1


def test_channels_are_not_interchangeable():
    series = draw(2, 60)
    first, second = embed(series, series[::-1].copy())
    assert np.abs(first - second).max() > 1


@pytest.mark.parametrize(
    "series",
    [
        np.zeros((1, 1)),
        np.ones((2, 3)),
        np.full((1, 50), 7.0),
        draw(1, 8),
        draw(40, 12),
        1e300 * draw(2, 20).astype(np.float64),
        1e-300 * draw(2, 20).astype(np.float64),
    ],
    ids=["one sample", "short", "constant", "eight", "40 channels", "huge", "tiny"],
)
def test_series_of_any_length_and_size_have_finite_embeddings(series):
    rows = embed(series, series)
    assert np.isfinite(rows).all()
    np.testing.assert_array_equal(rows[0], rows[1])


def test_a_series_of_a_million_samples():
    assert np.isfinite(embed(draw(1, 1_000_000).cumsum(axis=1))).all()


def test_an_embedding_does_not_depend_on_the_batch():
    series = [draw(2, 50), draw(2, 31), 3 * draw(2, 50)]
    together = embed(*series)
    alone = np.concatenate([embed(one) for one in series])
    np.testing.assert_array_equal(together, alone)


def test_a_model_refuses_other_numbers_of_channels(tmp_path):
    X, y = draw(10, 3, 40), ["a", "b"] * 5
    model = Imprinter(cache=False).fit(X, y)
    assert model.embedder.spec == "minirocket:3"
    model.save(tmp_path / "a.imprint")
    again = Imprinter.load(tmp_path / "a.imprint", cache=False)
    assert again.predict(X[:2]).tolist() == model.predict(X[:2]).tolist()
    with pytest.raises(UnreadableInput, match="2 channels instead of 3"):
        again.predict(X[:, :2])


@pytest.mark.parametrize("channels", ["0", "-1", "x", "1.5"])
def test_numbers_of_channels_are_checked(channels):
    with pytest.raises(ParameterError, match="number of channels must be int >= 1"):
        backbones.load(f"minirocket:{channels}")


def test_dilations_fill_the_series():
    assert dilations(9, 3) == [1, 1, 1]
    assert dilations(257, 6) == [1, 2, 4, 8, 16, 32]


def test_folding_keeps_inner_products_up_to_noise():
    X = draw(40, 3000)
    Y = folded(X, 1000, "test")
    assert Y.shape == (40, 1000)
    error = (Y @ Y.T - X @ X.T) / 3000
    assert np.abs(error).mean() < 2 / 1000**0.5


def test_new_classes_leave_the_others_as_they_are():
    X, y = draw(12, 1, 60).cumsum(axis=2), np.array(["a", "b", "c"] * 4)
    whole = Imprinter(cache=False).fit(X, y)
    parts = (
        Imprinter(cache=False)
        .fit(X[y != "c"], y[y != "c"])
        .add(X[y == "c"], y[y == "c"])
    )
    probe = draw(20, 1, 60)
    assert whole.predict(probe).tolist() == parts.predict(probe).tolist()
