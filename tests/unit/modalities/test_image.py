import io
import os
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from imprint.datasets import UnreadableInput, load_files
from imprint.modalities import image as image_module
from imprint.modalities import read_file
from imprint.modalities.image import MAX_PIXELS, formats, read_image
from imprint.modalities.image import Image as ImageModality

PIXELS = np.random.default_rng(0).integers(0, 256, (24, 17, 3), dtype=np.uint8)
RGB = Image.fromarray(PIXELS)
LOSSLESS = sorted({"PNG", "BMP", "TIFF", "PPM"} & set(formats()))


def saved(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def close(a, b, tolerance):
    assert a.shape == b.shape
    assert np.abs(a.astype(int) - b.astype(int)).mean() < tolerance


@pytest.mark.parametrize("kind", LOSSLESS)
def test_lossless_formats_are_exact(kind):
    np.testing.assert_array_equal(read_image(saved(RGB, kind)), PIXELS)


@pytest.mark.parametrize("kind", sorted(set(formats()) - set(LOSSLESS)))
def test_lossy_formats_are_close(kind):
    smooth = RGB.resize((64, 48), Image.Resampling.BICUBIC)
    image = read_image(
        saved(smooth, kind, **({} if kind == "GIF" else {"quality": 95}))
    )
    assert image.dtype == np.uint8
    assert image.flags.writeable
    close(image, np.asarray(smooth), 16)


def test_a_path_and_its_bytes_are_the_same_image(tmp_path):
    path = tmp_path / "Ärger 猫.PNG"
    RGB.save(path, "PNG")
    (tmp_path / "link.png").symlink_to(path)
    for source in (path, str(path), tmp_path / "link.png"):
        np.testing.assert_array_equal(load_files([source]).inputs[0], PIXELS)


TURNS = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
    8: lambda a: np.rot90(a),
}


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP"])
@pytest.mark.parametrize("turn", TURNS)
def test_exif_rotation_is_applied(kind, turn):
    exif = Image.Exif()
    exif[0x0112] = turn
    options = {"exif": exif} | ({"lossless": True} if kind == "WEBP" else {})
    plain = read_image(saved(RGB, kind, **(options | {"exif": Image.Exif()})))
    np.testing.assert_array_equal(
        read_image(saved(RGB, kind, **options)), TURNS[turn](plain)
    )


def test_cmyk_shows_its_colours():
    red = Image.new("RGB", (8, 8), (200, 30, 40)).convert("CMYK")
    for kind in ("JPEG", "TIFF"):
        close(read_image(saved(red, kind)), np.full((8, 8, 3), (200, 30, 40)), 3)


def test_grey_and_black_and_white_become_three_equal_colours():
    grey, bits = RGB.convert("L"), RGB.convert("1")
    np.testing.assert_array_equal(
        read_image(saved(grey, "PNG")), np.asarray(grey)[:, :, None].repeat(3, 2)
    )
    expected = np.asarray(bits)[:, :, None].repeat(3, 2) * np.uint8(255)
    np.testing.assert_array_equal(read_image(saved(bits, "PNG")), expected)


def test_sixteen_bit_grey_is_scaled():
    wide = np.array([[0, 128, 129, 257, 32768, 65535]], dtype=np.uint16)
    for kind in ("PNG", "TIFF"):
        image = read_image(saved(Image.fromarray(wide), kind))
        assert image[0, :, 0].tolist() == [0, 0, 1, 1, 128, 255]
    pgm = b"P5\n6 1\n65535\n" + wide.astype(">u2").tobytes()
    assert read_image(pgm)[0, :, 2].tolist() == [0, 0, 1, 1, 128, 255]


TWELVE_BITS = np.array([[0, 8, 9, 16, 2048, 4095]], dtype=np.uint16)


def test_twelve_bits_in_sixteen_are_not_read_as_almost_black():
    grey = Image.fromarray(TWELVE_BITS)
    with pytest.raises(UnreadableInput, match=r"below 4,096.*12 bits.*stated"):
        read_image(saved(grey, "TIFF"))
    # a file that states its largest value is scaled by it
    stated = read_image(saved(grey, "TIFF", tiffinfo={281: 4095}))
    assert stated[0, :, 0].tolist() == [0, 0, 1, 1, 128, 255]
    # the definition of PNG allows no other range
    assert read_image(saved(grey, "PNG"))[0, :, 0].tolist() == [0, 0, 0, 0, 8, 16]
    # all black is black in any range
    black = read_image(saved(Image.fromarray(TWELVE_BITS * 0), "TIFF"))
    assert black.max() == 0
    bright = TWELVE_BITS.copy()
    bright[0, 0] = 4096
    assert read_image(saved(Image.fromarray(bright), "TIFF")).max() == 16


def test_a_stated_largest_value_that_cannot_be_is_damage():
    for value in (0, 4000):
        with pytest.raises(UnreadableInput):
            read_image(
                saved(Image.fromarray(TWELVE_BITS), "TIFF", tiffinfo={281: value})
            )


def test_twelve_bits_of_colour_are_refused_too():
    rows = [np.uint16([[0, 0, 0], [4095, 2000, 100]])]
    assert "below 4,096" in reason_of(tiff_of_16_bit_colours(np.array(rows)))
    rows = [np.uint16([[0, 0, 0], [65535, 2000, 100]])]
    assert read_image(tiff_of_16_bit_colours(np.array(rows)))[0, 1, 0] == 255


def reason_of(raw):
    with pytest.raises(UnreadableInput) as caught:
        read_image(raw)
    return caught.value.reason


def tiff_of_16_bit_colours(pixels):
    """A TIFF of three channels of 16 bits, which Pillow reads but does not write."""
    height, width, _ = pixels.shape
    data = pixels.astype("<u2").tobytes()
    entries = [
        (256, 3, 1, width),
        (257, 3, 1, height),
        (258, 3, 3, 8 + len(data)),  # where the three numbers of bits are
        (259, 3, 1, 1),
        (262, 3, 1, 2),
        (273, 4, 1, 8),
        (277, 3, 1, 3),
        (278, 3, 1, height),
        (279, 4, 1, len(data)),
    ]
    bits = struct.pack("<3H", 16, 16, 16)
    directory = struct.pack("<H", len(entries))
    directory += b"".join(struct.pack("<HHII", *entry) for entry in entries)
    start = 8 + len(data) + len(bits)
    header = b"II*\0" + struct.pack("<I", start)
    return header + data + bits + directory + struct.pack("<I", 0)


def test_samples_without_a_range_are_refused():
    for image in (
        Image.new("F", (4, 4), 0.5),
        Image.fromarray(np.array([[0, 70_000]], dtype=np.int32)),
    ):
        with pytest.raises(UnreadableInput, match="no stated range"):
            read_image(saved(image, "TIFF"))


def test_transparency_is_laid_on_white():
    half = Image.new("RGBA", (3, 2), (0, 0, 0, 128))
    clear = Image.new("LA", (3, 2), (0, 0))
    assert np.unique(read_image(saved(half, "PNG"))).tolist() == [127]
    assert np.unique(read_image(saved(clear, "PNG"))).tolist() == [255]
    palette = Image.new("P", (3, 2), 1)
    palette.putpalette([9, 9, 9, 0, 200, 0])
    assert read_image(saved(palette, "PNG"))[0, 0].tolist() == [0, 200, 0]
    assert read_image(saved(palette, "PNG", transparency=1))[0, 0].tolist() == [
        255,
        255,
        255,
    ]
    assert read_image(saved(palette, "GIF", transparency=1))[0, 0].tolist() == [
        255,
        255,
        255,
    ]
    keyed = saved(Image.new("RGB", (3, 2), (1, 2, 3)), "PNG", transparency=(1, 2, 3))
    assert read_image(keyed)[0, 0].tolist() == [255, 255, 255]


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF"])
def test_of_an_animation_the_first_frame_is_taken(kind):
    red, blue = (Image.new("RGB", (16, 16), c) for c in ("red", "blue"))
    image = read_image(saved(red, kind, save_all=True, append_images=[blue]))
    close(image, np.asarray(red), 2)


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "RGBA", "CMYK", "LA", "1", "I;16"])
def test_large_images_are_converted_in_strips_with_the_same_result(mode, monkeypatch):
    image = (
        Image.fromarray(PIXELS[:, :, 0].astype(np.uint16) * 200)
        if mode == "I;16"
        else RGB.convert(mode)
    )
    data = saved(
        image,
        "PNG" if mode == "P" else "TIFF",
        **({"transparency": 3} if mode == "P" else {}),
    )
    whole = read_image(data)
    monkeypatch.setattr(image_module, "STRIP_PIXELS", 17 * 5 + 3)
    np.testing.assert_array_equal(read_image(data), whole)


def png_of(width, height):
    """A PNG header that states a given size."""
    chunk = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + struct.pack(">I", 13)
        + chunk
        + struct.pack(">I", zlib.crc32(chunk))
    )


def test_a_bomb_is_refused_before_it_is_unpacked():
    end = struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))
    with pytest.raises(
        UnreadableInput, match=r"60000 x 60000 pixels; the limit is 67,108,864"
    ):
        read_image(png_of(60_000, 60_000) + end)
    gif = bytearray(saved(RGB, "GIF"))
    gif[6:10] = struct.pack("<HH", 65535, 65535)
    with pytest.raises(UnreadableInput, match="65535 x 65535 pixels"):
        read_image(bytes(gif))


def jpeg_claiming(width, height, components=None, **options):
    """A small JPEG whose header states another size, and whose first scan states another number of colours."""
    data = bytearray(saved(RGB, "JPEG", **options))
    frame = max(data.find(b"\xff\xc0"), data.find(b"\xff\xc2"))
    data[frame + 5 : frame + 9] = struct.pack(">HH", height, width)
    if components is not None:
        data[data.find(b"\xff\xda") + 4] = components
    return bytes(data)


def test_a_huge_jpeg_that_cannot_be_decoded_in_parts_is_refused():
    assert read_image(jpeg_claiming(9_000, 8_000)).shape == (4_000, 4_500, 3)
    for data in (
        jpeg_claiming(9_000, 8_000, progressive=True),
        jpeg_claiming(9_000, 8_000, components=1),
    ):
        with pytest.raises(UnreadableInput, match="9000 x 8000 pixels; the limit is"):
            read_image(data)


def test_a_huge_sequential_jpeg_is_reduced():
    side = 8_400
    assert side**2 > MAX_PIXELS
    image = read_image(saved(Image.new("L", (side, side), 77), "JPEG"))
    assert image.shape == (side // 2, side // 2, 3)
    assert np.unique(image).tolist() == [77]


def test_a_jpeg_may_be_decoded_smaller_but_not_below_the_least_side():
    data = saved(RGB.resize((640, 480)), "JPEG")
    assert read_image(data).shape == (480, 640, 3)
    assert read_image(data, least_side=241).shape == (480, 640, 3)
    assert read_image(data, least_side=240).shape == (240, 320, 3)
    assert read_image(data, least_side=100).shape == (120, 160, 3)
    assert read_image(saved(RGB, "PNG"), least_side=2).shape == PIXELS.shape


@pytest.mark.parametrize("kind", formats())
def test_a_truncated_file_is_refused(kind):
    data = saved(RGB.resize((64, 64)), kind)
    for share in (0.2, 0.6, 0.9):
        with pytest.raises(UnreadableInput):
            read_image(data[: int(len(data) * share)])


def test_other_files_are_refused_with_name_and_reason(tmp_path):
    cases = {
        "empty.jpg": (b"", "the file is empty"),
        "text.jpg": (b"hello, this is not an image", "not an image"),
        "page.png": (
            b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
            "not an image",
        ),
    }
    for name, (content, reason) in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UnreadableInput) as caught:
            load_files([tmp_path / name], "image").inputs[0]
        assert caught.value.name == str(tmp_path / name)
        assert reason in caught.value.reason
        assert (
            str(caught.value)
            == f"Cannot read {caught.value.name}: {caught.value.reason}."
        )


def test_a_pipe_a_folder_and_a_dead_link_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "dead.jpg").symlink_to(tmp_path / "gone.jpg")
    for name, reason in {
        "pipe.jpg": "not a file",
        ".": "not a file",
        "dead.jpg": "No such file",
    }.items():
        with pytest.raises(UnreadableInput, match=reason):
            read_file(tmp_path / name)


EXIF = Image.Exif()
EXIF[0x0112] = 6
WHOLE = [saved(RGB, kind) for kind in formats()] + [
    saved(RGB, "JPEG", exif=EXIF),
    saved(RGB.convert("CMYK"), "JPEG", progressive=True),
    saved(ImageOps.posterize(RGB, 2).convert("P"), "PNG", transparency=1),
]


@settings(max_examples=300, deadline=None)
@given(
    whole=st.sampled_from(WHOLE),
    changes=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=6
    ),
    end=st.floats(0, 1),
)
def test_damaged_files_give_an_image_or_the_one_error(whole, changes, end):
    data = bytearray(whole)
    for place, value in changes:
        data[int(place * len(data))] = value
    try:
        image = read_image(bytes(data[: int(end * len(data))]))
    except UnreadableInput:
        return
    assert image.dtype == np.uint8
    assert image.shape[2] == 3


def test_the_list_of_endings_is_what_pillow_can_read():
    assert {
        ".jpg",
        ".jpeg",
        ".png",
        ".gif",
        ".bmp",
        ".tiff",
        ".webp",
    } <= ImageModality().suffixes()
    known = Image.registered_extensions()
    assert all(
        known[s] in (*formats(), "MPO")
        for s in ImageModality().suffixes() - {".heic", ".heif", ".hif"}
    )


def test_the_reason_is_about_the_file_and_not_about_python():
    with pytest.raises(
        UnreadableInput, match=r"not a readable image \(the file is damaged\)\.$"
    ):
        read_image(b"\x89PNG\r\n\x1a\n")


def chunk(kind, body):
    return (
        struct.pack(">I", len(body))
        + kind
        + body
        + struct.pack(">I", zlib.crc32(kind + body))
    )


def test_any_exception_of_a_decoder_is_an_unreadable_image(tmp_path, monkeypatch):
    header = struct.pack(">IIBBBBB", 1, 1, 8, 3, 0, 0, 0)
    small = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0\0"))
        + chunk(b"IEND", b"")
    )
    assert len(small) <= 68, (
        "colour type 3, and no palette: Pillow raises AssertionError"
    )
    with pytest.raises(UnreadableInput, match="not a readable image"):
        read_image(small)

    def fail(*args):
        raise ZeroDivisionError

    monkeypatch.setattr(image_module, "_rgb", fail)
    with pytest.raises(UnreadableInput, match="not a readable image"):
        read_image(saved(RGB, "PNG"))


def test_heic_without_its_extra_names_the_command(monkeypatch):
    monkeypatch.setattr(image_module, "formats", lambda: ("JPEG", "PNG"))
    with pytest.raises(
        UnreadableInput,
        match=r"HEIC images need an extra: pip install 'weight-imprinting\[heic\]'",
    ):
        read_image(b"\0\0\0\x18ftypheic" + bytes(40))
    assert ".heic" in ImageModality().suffixes()


def test_an_extremely_long_side_is_refused_before_decoding():
    for size in ((1, (1 << 18) + 1), ((1 << 18) + 1, 1)):
        file = io.BytesIO()
        Image.new("L", size).save(file, "PNG")
        with pytest.raises(
            UnreadableInput, match=r"262145.* pixels; the limit of a side is 262,144"
        ):
            read_image(file.getvalue())
