"""Sounds: WAV files become frames; embeddings of YAMNet depend on pitch."""

import json
import os
import wave
from pathlib import Path

import numpy as np
import pytest

from imprint import Imprinter
from imprint.backbones import load, record
from imprint.backbones.adapters.sound import SAMPLE_RATE, resampled
from imprint.cli import main
from imprint.core.errors import ParameterError, UnreadableInput
from imprint.modalities import modality

SHARED = Path(
    os.environ.get(
        "IMPRINT_SHARED", Path(__file__).resolve().parents[3].parent / "shared"
    )
)
FRAME = 15_600


def tone(seconds, rate, pitch=440.0):
    return 0.5 * np.sin(2 * np.pi * pitch * np.arange(int(seconds * rate)) / rate)


def write(path, samples, rate=SAMPLE_RATE, channels=1, bits=16):
    kind, middle = {8: ("u1", 128), 16: ("<i2", 0), 32: ("<i4", 0)}[bits]
    whole = np.rint(samples * (2 ** (bits - 1) - 1) + middle).astype(kind)
    with wave.open(str(path), "wb") as f:
        f.setnchannels(channels)
        f.setsampwidth(bits // 8)
        f.setframerate(rate)
        f.writeframes(np.repeat(whole[:, None], channels, 1).tobytes())
    return path


@pytest.mark.parametrize(
    ("rate", "channels", "bits"),
    [(16000, 1, 16), (44100, 2, 16), (8000, 1, 8), (48000, 1, 32)],
)
def test_a_wav_file_becomes_samples_at_the_networks_rate(
    tmp_path, rate, channels, bits
):
    sound = modality("sound").read(
        write(tmp_path / "a.wav", tone(0.5, rate), rate, channels, bits).read_bytes()
    )
    samples = resampled(*sound)
    assert (samples.dtype, len(samples)) == (np.dtype(np.float32), SAMPLE_RATE // 2)
    middle = slice(
        SAMPLE_RATE // 8, SAMPLE_RATE // 2 - SAMPLE_RATE // 8
    )  # the resampling filter blurs both ends
    np.testing.assert_allclose(
        samples[middle], tone(0.5, SAMPLE_RATE)[middle], atol=0.02
    )


def test_frequencies_above_half_the_rate_of_the_network_are_filtered_out():
    low, high = (
        resampled(tone(0.5, 48_000, pitch).astype(np.float32), 48_000)
        for pitch in (3_000.0, 11_000.0)
    )
    assert np.abs(low).max() > 0.45
    assert (
        np.abs(high[SAMPLE_RATE // 8 : -SAMPLE_RATE // 8]).max() < 0.01
    )  # otherwise it would alias to 5,000 Hz


@pytest.mark.parametrize("rate", [1, 999, 768_001, 2**32 - 1])
def test_an_implausible_sample_rate_is_unreadable(rate):
    with pytest.raises(
        UnreadableInput, match="samples a second; the rate must be 1,000 to 768,000"
    ):
        resampled(np.zeros(100, np.float32), rate)


@pytest.fixture
def yamnet(tmp_path, monkeypatch):
    pytest.importorskip("ai_edge_litert")
    if not (SHARED / "models").is_dir():
        pytest.skip(f"no networks at {SHARED}")
    (tmp_path / "backbones").mkdir()
    (tmp_path / "backbones" / record("yamnet").file).symlink_to(
        SHARED / "models/yamnet.tflite"
    )
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path))
    return load("yamnet", threads=1)


@pytest.mark.shared
def test_a_recording_is_the_average_of_its_frames(yamnet):
    frames = yamnet.prepare(
        np.concatenate([tone(1.2, SAMPLE_RATE), tone(1.2, SAMPLE_RATE, 2000.0)]).astype(
            np.float32
        )
    )
    assert [len(f) for f in frames] == [FRAME, FRAME]
    assert len(yamnet.prepare(tone(2.5, SAMPLE_RATE).astype(np.float32))) == 3
    assert len(yamnet.prepare(np.zeros(10, np.float32))) == 1
    out = yamnet.embed([frames, frames[:1], frames[1:]])
    assert (out.shape, out.dtype) == ((3, 1024), np.dtype(np.float32))
    assert np.abs(out[1] - out[2]).max() > 0.01
    np.testing.assert_allclose(out[0], (out[1] + out[2]) / 2, rtol=1e-5, atol=1e-6)
    with pytest.raises(
        ParameterError, match="samples of a sound must be finite float32"
    ):
        yamnet.prepare(np.array([np.nan], np.float32))
    with pytest.raises(
        ParameterError,
        match="A sound must be samples, or samples and their rate, not str",
    ):
        yamnet.prepare("a.wav")


@pytest.mark.shared
@pytest.mark.filterwarnings(
    "ignore:Warning. Enabling .experimental_preserve_all_tensors"
)
def test_an_embedding_is_the_values_of_the_layer_not_its_bytes(yamnet):
    runtime = pytest.importorskip("ai_edge_litert.interpreter")
    whole = runtime.Interpreter(
        str(SHARED / "models/yamnet.tflite"), experimental_preserve_all_tensors=True
    )
    whole.allocate_tensors()
    frame = tone(1, SAMPLE_RATE).astype(np.float32)[:FRAME]
    whole.set_tensor(whole.get_input_details()[0]["index"], frame)
    whole.invoke()
    layer = next(
        t
        for t in whole.get_tensor_details()
        if t["name"].split(";")[0] == record("yamnet").layer
    )
    scale, zero = layer["quantization"]
    values = (
        whole.get_tensor(layer["index"]).reshape(-1).astype(np.float64) - zero
    ) * scale
    assert (values >= 0).all()  # behind a ReLU
    np.testing.assert_allclose(yamnet.embed([(frame,)])[0], values, rtol=1e-6)


@pytest.mark.shared
def test_pitches_differ_more_than_recordings_of_one_pitch(yamnet):
    pitches, noise = (220.0, 440.0, 2000.0), np.random.default_rng(0)
    tones = [
        (p, tone(1, SAMPLE_RATE, p) + noise.normal(0, 0.01, SAMPLE_RATE))
        for p in pitches
        for _ in range(2)
    ]
    out = yamnet.embed([yamnet.prepare(x.astype(np.float32)) for _, x in tones])
    far = np.linalg.norm(out[:, None] - out[None], axis=2)
    assert all(np.argsort(far[i])[1] == i ^ 1 for i in range(len(tones)))


@pytest.mark.shared
def test_a_folder_of_recordings_is_fitted_and_new_ones_are_classified(
    yamnet, tmp_path, capsys
):
    rng, kinds = (
        np.random.default_rng(0),
        {"low": 220.0, "middle": 880.0, "high": 3000.0},
    )
    formats = [(8000, 1, 8), (16000, 1, 16), (44100, 2, 16), (48000, 1, 32)]
    for name, pitch in kinds.items():
        for i, (rate, channels, bits) in enumerate(formats):
            folder = tmp_path / ("new" if i == 2 else "sounds") / name
            folder.mkdir(parents=True, exist_ok=True)
            noise = rng.normal(0, 0.01, int(1.2 * rate))
            write(
                folder / f"{i}.wav",
                tone(1.2, rate, pitch) + noise,
                rate,
                channels,
                bits,
            )
    (tmp_path / "sounds/low/broken.wav").write_bytes(b"no sound")
    model = Imprinter(backbone=None).fit(tmp_path / "sounds")
    assert (model.modality, model.embedder.spec) == ("sound", "yamnet")
    new = [tmp_path / "new" / name / "2.wav" for name in kinds]
    assert model.predict(new).tolist() == list(kinds)
    assert model.predict(
        [modality("sound").read(path.read_bytes()) for path in new]
    ).tolist() == list(kinds)
    assert model.predict([tone(1.2, SAMPLE_RATE).astype(np.float32)]).tolist() == [
        "low"
    ]
    with pytest.raises(UnreadableInput, match=r"broken\.wav: not a WAV file"):
        model.predict([tmp_path / "sounds/low/broken.wav"])
    pairs = Imprinter().fit(([str(path) for path in new], list(kinds)))
    assert pairs.predict([tmp_path / "sounds/high/0.wav"]).tolist() == ["high"]
    assert (
        main(["fit", str(tmp_path / "sounds"), "-o", str(tmp_path / "m.imprint")]) == 1
    )  # one file was skipped
    assert main(["predict", str(tmp_path / "m.imprint"), *map(str, new), "--json"]) == 0
    assert [a["label"] for a in json.loads(capsys.readouterr().out)] == list(kinds)
