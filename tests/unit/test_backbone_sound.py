"""Sounds: WAV files become frames; YAMNet hears a pitch."""

import os
import wave
from pathlib import Path

import numpy as np
import pytest

from imprint.backbones import load, record
from imprint.backbones.adapters.sound import RATE, read_wav
from imprint.core.errors import ParameterError, UnreadableInput

SHARED = Path(os.environ.get("IMPRINT_SHARED", Path(__file__).resolve().parents[2].parent / "shared"))
FRAME = 15_600


def tone(seconds, rate, pitch=440.0):
    return 0.5 * np.sin(2 * np.pi * pitch * np.arange(int(seconds * rate)) / rate)


def write(path, samples, rate=RATE, channels=1, bits=16):
    kind, middle = {8: ("u1", 128), 16: ("<i2", 0), 32: ("<i4", 0)}[bits]
    whole = np.rint(samples * (2 ** (bits - 1) - 1) + middle).astype(kind)
    with wave.open(str(path), "wb") as f:
        f.setnchannels(channels)
        f.setsampwidth(bits // 8)
        f.setframerate(rate)
        f.writeframes(np.repeat(whole[:, None], channels, 1).tobytes())
    return path


@pytest.mark.parametrize(("rate", "channels", "bits"), [(16000, 1, 16), (44100, 2, 16), (8000, 1, 8), (48000, 1, 32)])
def test_a_wav_file_becomes_mono_samples_at_the_networks_rate(tmp_path, rate, channels, bits):
    found = read_wav(write(tmp_path / "a.wav", tone(0.5, rate), rate, channels, bits))
    assert (found.dtype, len(found)) == (np.dtype(np.float32), RATE // 2)
    middle = slice(RATE // 8, RATE // 2 - RATE // 8)  # the filter of a resampling blurs the ends
    np.testing.assert_allclose(found[middle], tone(0.5, RATE)[middle], atol=0.02)


@pytest.mark.parametrize("content", [b"", b"RIFF", b"no sound at all" * 9], ids=["empty", "cut", "text"])
def test_what_is_no_wav_file_is_said(tmp_path, content):
    (tmp_path / "a.wav").write_bytes(content)
    with pytest.raises(UnreadableInput, match=r"Cannot read .*a\.wav: it is no WAV file"):
        read_wav(tmp_path / "a.wav")
    with pytest.raises(UnreadableInput, match="No such file"):
        read_wav(tmp_path / "b.wav")


@pytest.fixture
def yamnet(tmp_path, monkeypatch):
    pytest.importorskip("ai_edge_litert")
    if not (SHARED / "models").is_dir():
        pytest.skip(f"no networks at {SHARED}")
    (tmp_path / "backbones").mkdir()
    (tmp_path / "backbones" / record("yamnet").file).symlink_to(SHARED / "models/yamnet.tflite")
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path))
    return load("yamnet", threads=1)


@pytest.mark.shared
def test_a_recording_is_the_average_of_its_frames(yamnet, tmp_path):
    frames = yamnet.prepare(write(tmp_path / "a.wav", np.concatenate([tone(1.2, RATE), tone(1.2, RATE, 2000.0)])))
    assert [len(f) for f in frames] == [FRAME, FRAME]
    assert len(yamnet.prepare(tone(2.5, RATE).astype(np.float32))) == 3
    assert len(yamnet.prepare(np.zeros(10, np.float32))) == 1
    out = yamnet.embed([frames, frames[:1], frames[1:]])
    assert (out.shape, out.dtype) == ((3, 1024), np.dtype(np.float32))
    assert np.abs(out[1] - out[2]).max() > 0.01
    np.testing.assert_allclose(out[0], (out[1] + out[2]) / 2, rtol=1e-5, atol=1e-6)
    with pytest.raises(ParameterError, match="samples must be finite float32"):
        yamnet.prepare(np.array([np.nan], np.float32))


@pytest.mark.shared
def test_pitches_differ_more_than_recordings_of_one_pitch(yamnet):
    pitches, noise = (220.0, 440.0, 2000.0), np.random.default_rng(0)
    heard = [(p, tone(1, RATE, p) + noise.normal(0, 0.01, RATE)) for p in pitches for _ in range(2)]
    out = yamnet.embed([yamnet.prepare(x.astype(np.float32)) for _, x in heard])
    far = np.linalg.norm(out[:, None] - out[None], axis=2)
    assert all(np.argsort(far[i])[1] == i ^ 1 for i in range(len(heard)))
