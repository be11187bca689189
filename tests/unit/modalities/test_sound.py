"""Sounds in WAV files, compared with the writer and reader of scipy."""

import struct

import numpy as np
import pytest
from scipy.io import wavfile

from imprint.core.errors import FileError, ParameterError
from imprint.datasets import UnreadableInput, load, load_files
from imprint.modalities import modality

read_sound = modality("sound").read
WAVE = np.sin(np.arange(800) / 7)


def scaled(kind):
    if np.dtype(kind).kind == "f":
        return WAVE.astype(kind)
    if kind == np.uint8:
        return np.rint(WAVE * 127 + 128).astype(kind)
    return np.rint(WAVE * (2.0 ** (8 * np.dtype(kind).itemsize - 1) - 1)).astype(kind)


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int32, np.float32, np.float64])
def test_samples_of_every_width_are_the_same_sound(tmp_path, kind):
    path = tmp_path / "a.wav"
    wavfile.write(path, 8000, np.stack([scaled(kind), scaled(kind)], axis=1))
    sound = read_sound(path.read_bytes())
    assert (sound.rate, sound.samples.dtype, sound.samples.shape) == (
        8000,
        np.float32,
        (800,),
    )
    np.testing.assert_allclose(
        sound.samples, WAVE, atol=0.02 if kind == np.uint8 else 1e-4
    )


def wav(data, bits, kind=1, channels=1, extra=b""):
    frame = channels * bits // 8
    head = (
        struct.pack("<HHIIHH", kind, channels, 16000, 16000 * frame, frame, bits)
        + extra
    )
    body = b"WAVE" + b"fmt " + struct.pack("<I", len(head)) + head
    body += (
        b"LIST"
        + struct.pack("<I", 3)
        + b"odd\0"
        + b"data"
        + struct.pack("<I", len(data))
        + data
    )
    return b"RIFF" + struct.pack("<I", len(body)) + body


@pytest.mark.parametrize(
    ("bits", "raw"),
    [
        (8, b"\x80\0\xff"),
        (16, b"\0\0\0\x80\xff\x7f"),
        (24, b"\0\0\0\0\0\x80\xff\xff\x7f"),
    ],
)
def test_silence_and_the_extremes_are_exact(bits, raw):
    assert read_sound(wav(raw, bits)).samples.tolist() == [0, -1, 1 - 2.0 ** (1 - bits)]


def test_a_truncated_file_is_read_up_to_its_last_whole_frame():
    whole = wav(scaled(np.int16).repeat(2).tobytes(), 16, channels=2)
    np.testing.assert_array_equal(
        read_sound(whole[:-5]).samples, read_sound(whole).samples[:-2]
    )


def test_24_bits_and_other_chunks():
    values = np.rint(WAVE * (2**23 - 1)).astype("<i4")
    packed = values[:, None].view(np.uint8)[:, :3].tobytes()
    np.testing.assert_allclose(read_sound(wav(packed, 24)).samples, WAVE, atol=1e-6)
    extensible = struct.pack("<HHIH14s", 22, 24, 0, 1, bytes(14))
    np.testing.assert_allclose(
        read_sound(wav(packed, 24, 0xFFFE, extra=extensible)).samples, WAVE, atol=1e-6
    )


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "the file is empty"),
        (b"RIFF\0\0\0\0AVI ", "not a WAV file"),
        (wav(b"", 16), "has no samples"),
        (wav(b"\1", 16), "has no samples"),
        (wav(b"\1\2", 16, channels=0), "damaged"),
        (wav(b"\1\2", 16).replace(b"\2\0\x10\0", b"\0\0\x10\0"), "damaged"),
        (wav(b"\1\2", 4), "damaged"),  # a frame size of zero bytes
        (
            wav(b"\1\2", 8, kind=7),
            "samples of 8 bits in format 7 are not read; save it as 16-bit PCM",
        ),
        (wav(np.float32([np.nan]).tobytes(), 32, kind=3), "not finite"),
        (wav(np.float64([1e300]).tobytes(), 64, kind=3), "not finite"),
        (wav(b"\1\2", 16)[:30], "has no samples"),
    ],
)
def test_files_that_are_not_sounds_are_refused(raw, reason):
    with pytest.raises(
        UnreadableInput, match=rf"Cannot read the given bytes: .*{reason}"
    ):
        read_sound(raw)


def test_no_damage_raises_a_raw_error():
    whole, rng = wav(scaled(np.int16).tobytes(), 16), np.random.default_rng(0)
    refused = 0
    for _ in range(500):
        raw = bytearray(whole)
        for at in rng.integers(0, 60, 3):
            raw[at] = rng.integers(256)
        try:
            assert np.isfinite(read_sound(bytes(raw)).samples).all()
        except UnreadableInput:
            refused += 1
    assert 100 < refused < 500


def test_a_folder_of_sounds(tmp_path):
    for name in ("dog/1.wav", "dog/2.WAV", "cat/1.wav"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        wavfile.write(tmp_path / name, 8000, scaled(np.int16))
    split = load(tmp_path)
    assert (split.modality, split.classes) == ("sound", ("cat", "dog"))
    assert split.inputs[0].rate == 8000
    assert split.found == f"3 sounds of 2 classes ({tmp_path.name})"
    (tmp_path / "dog" / "a.png").write_bytes(b"")
    with pytest.raises(FileError, match=r"has 3 sounds and 1 image; keep one kind"):
        load(tmp_path)


def test_sounds_given_one_by_one(tmp_path):
    one, other = tmp_path / "1.wav", tmp_path / "2.WAV"
    for path in (one, other):
        wavfile.write(path, 8000, scaled(np.int16))
    split = load_files([one, other])
    assert split.modality == "sound"
    np.testing.assert_allclose(split.inputs[1].samples, WAVE, atol=1e-4)
    (tmp_path / "a.png").touch()
    with pytest.raises(FileError, match="images and sounds cannot be read together"):
        load_files([one, tmp_path / "a.png"])


def test_samples_as_arrays_are_checked():
    convert, samples = modality("sound").convert, WAVE.astype(np.float32)
    assert convert(samples).rate == 16_000
    recording = convert((samples, 8000))
    np.testing.assert_array_equal(recording.samples, samples)
    assert recording.rate == 8000
    with pytest.raises(
        ParameterError,
        match="A sound must be samples, or samples and their rate, not str",
    ):
        convert("a.wav")
    for wrong in (
        WAVE,
        samples[:0],
        samples.reshape(2, -1),
        np.full(3, np.nan, np.float32),
    ):
        with pytest.raises(
            ParameterError,
            match=r"samples of a sound must be finite float32 \(n,\), n >= 1, not float",
        ):
            convert(wrong)
