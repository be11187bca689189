"""Preprocessing of images, described as data so that it can be read, compared and
hashed.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from imprint.core.arrays import Array, is_torch, like, namespace
from imprint.core.errors import ParameterError, UnreadableInput
from imprint.modalities.image import MAX_SIDE, is_image

# of a resized image before the crop; beyond, only the crop is computed
MAX_INTERMEDIATE_PIXELS = 1 << 24
FILTERS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
"""Resampling filters, by their numbers in Pillow."""
CHOICES = {
    "filter": FILTERS,
    "colour": ("rgb", "grey"),
    "layout": ("NHWC", "NCHW"),
    "dtype": ("uint8", "float32"),
}


@dataclass(frozen=True, kw_only=True)
class Preprocess:
    """Resize with Pillow, optionally with a central crop, then `(pixel / divide - mean)
    / std`.
    """

    size: tuple[int, int]  # height and width of the network's input
    resize: int | None = None
    """Shorter side before the centre is cropped to `size`; None resizes straight to
    `size` without a crop.
    """
    crop: float | None = None
    """Share of the shorter side: a square in the middle that is cropped before it is
    resized to `size`.
    """
    filter: str = "bilinear"
    colour: str = "rgb"
    divide: float = 1.0
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    layout: str = "NHWC"
    dtype: str = "uint8"

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            self._require(
                name,
                getattr(self, name) in choices,
                f"one of {', '.join(map(repr, choices))}",
            )
        is_valid = len(self.size) == 2 and all(map(_is_positive_int, self.size))
        self._require("size", is_valid, "two ints >= 1, height and width")
        is_valid = self.resize is None or (
            _is_positive_int(self.resize) and self.resize >= max(self.size)
        )
        self._require("resize", is_valid, "null or an int >= the larger side of size")
        is_valid = self.crop is None or (
            0 < self.crop <= 1 and self.resize is None and len(set(self.size)) == 1
        )
        self._require(
            "crop",
            is_valid,
            "null or a number in (0, 1], with a square size and without resize",
        )
        self._require("divide", self.divide > 0, "a number > 0")
        for name, values in (("mean", self.mean), ("std", self.std)):
            is_valid = values is None or len(values) == self.channels
            self._require(
                name, is_valid, f"null or {self.channels} numbers, one per channel"
            )
        self._require(
            "std", self.std is None or all(s > 0 for s in self.std), "numbers > 0"
        )
        is_scaled = self.divide != 1 or self.mean or self.std
        is_valid = self.dtype == "float32" or not is_scaled
        self._require(
            "dtype", is_valid, "'float32' where divide, mean or std are given"
        )

    def _require(self, name: str, is_valid: bool, rule: str) -> None:
        if not is_valid:
            raise ParameterError(
                f"Preprocess({name}={getattr(self, name)!r}): {name} must be {rule}."
            )

    @classmethod
    def from_json(cls, raw: Any) -> "Preprocess":
        """The rule in a JSON object; `size` may be one number."""
        if not isinstance(raw, Mapping) or "size" not in raw:
            raise ParameterError(
                f"preprocess={raw!r}: it must be an object with at least a size."
            )
        allowed = [f.name for f in fields(cls)]
        for key in raw:
            if key not in allowed:
                raise ParameterError(
                    f"preprocess has no key {key!r}. It takes: {', '.join(allowed)}."
                )
        values: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()
        }
        if _is_positive_int(values["size"]):
            values["size"] = (values["size"], values["size"])
        try:
            return cls(**values)
        except TypeError:
            raise ParameterError(
                f"preprocess={raw!r}: a value has the wrong type."
            ) from None

    def as_json(self) -> dict[str, Any]:
        """Plain values that `json.dumps` writes and `from_json` reads; `crop` only
        where there is one.

        Fingerprints depend on this, so a key without effect must be absent.
        """
        values = {
            name: value
            for name, value in asdict(self).items()
            if (name, value) != ("crop", None)
        }
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }

    @classmethod
    def planes(cls, **rule: Any) -> "Preprocess":
        """The rule of a network in PyTorch: float32, one plane per channel, pixels
        divided by 255 by default.
        """
        return cls.from_json(
            {"divide": 255.0, "layout": "NCHW", "dtype": "float32", **rule}
        )

    @property
    def channels(self) -> int:
        """3 for RGB, 1 for grey."""
        return 3 if self.colour == "rgb" else 1

    def image(self, item: Array) -> Array:
        """One image, uint8 (H, W, 3) or (H, W), brought to size: uint8 (height,
        width, channels).
        """
        from PIL import Image

        if not is_image(item):
            what = (
                f"{item.dtype} {item.shape}"
                if isinstance(item, np.ndarray)
                else type(item).__name__
            )
            raise ParameterError(
                f"prepare({what}): an image must be a uint8 array (H, W, 3) or (H, W),"
                " not empty."
            )
        if max(item.shape) > MAX_SIDE:
            size = f"{item.shape[1]:,} x {item.shape[0]:,} pixels"
            raise UnreadableInput(
                "an image", f"{size}; the limit of a side is {MAX_SIDE:,}"
            )
        image = Image.fromarray(item)
        image = self._resize_and_crop(
            image if self.colour == "rgb" else image.convert("L")
        )
        # after resizing, because a grey image is then resized as one channel
        if self.colour == "rgb":
            image = image.convert("RGB")
        return np.asarray(image).reshape(*self.size, self.channels)

    def seen(self, width: int, height: int) -> tuple[float, float, float, float]:
        """The part of an image that the network sees: left, top, right, bottom as
        shares of its width and height.
        """
        shorter = min(width, height)
        if self.resize is not None:
            sides = [shorter * side / self.resize for side in self.size[::-1]]
        elif self.crop is not None:
            sides = [self.crop * shorter] * 2
        else:
            sides = [width, height]
        x, y = sides[0] / width / 2, sides[1] / height / 2
        return 0.5 - x, 0.5 - y, 0.5 + x, 0.5 + y

    def _resize_and_crop(self, image: Any) -> Any:
        height, width = self.size
        if self.resize is None:
            side = max(1, int((self.crop or 1) * min(image.size)))
            left, top = (image.width - side + 1) // 2, (image.height - side + 1) // 2
            box = None if self.crop is None else (left, top, left + side, top + side)
            return self._resize_box(image, (width, height), box)
        columns, rows = (
            int(self.resize * side / min(image.size)) for side in image.size
        )
        left, top = round((columns - width) / 2), round((rows - height) / 2)
        crop = (left, top, left + width, top + height)
        if columns * rows <= MAX_INTERMEDIATE_PIXELS:
            return self._resize_box(image, (columns, rows), None).crop(crop)
        x_scale, y_scale = image.width / columns, image.height / rows
        scales = (x_scale, y_scale, x_scale, y_scale)
        return self._resize_box(
            image,
            (width, height),
            tuple(side * scale for side, scale in zip(crop, scales)),
        )

    def _resize_box(
        self, image: Any, size: tuple[int, int], box: tuple[float, ...] | None
    ) -> Any:
        """Resize the part in `box` to `size`, (width, height).

        Pillow scales columns before rows; where the image in between would be too
        large, rows are scaled first.
        """
        from PIL import Image

        resample = Image.Resampling[self.filter.upper()]
        left, top, right, bottom = box or (0, 0, *image.size)
        right, bottom = min(right, image.width), min(bottom, image.height)
        if size[0] * (bottom - top) > MAX_INTERMEDIATE_PIXELS:
            image = image.resize(
                (image.width, size[1]), resample, box=(0, top, image.width, bottom)
            )
            top, bottom = 0, size[1]
        return image.resize(size, resample, box=(left, top, right, bottom))

    def arrange(self, batch: Any) -> Any:
        """A batch of images as the network's input: layout, type and scale. A tensor
        stays on its device.
        """
        x = namespace(batch).moveaxis(batch, 3, 1) if self.layout == "NCHW" else batch
        if self.dtype == "float32":
            shape = (-1, 1, 1) if self.layout == "NCHW" else (-1,)
            x = x.float() if is_torch(x) else x.astype(np.float32, order="C")
            if self.divide != 1:
                x /= self.divide
            if self.mean is not None:
                x -= like(np.array(self.mean, np.float32).reshape(shape), x)
            if self.std is not None:
                x /= like(np.array(self.std, np.float32).reshape(shape), x)
        if is_torch(x):
            # on a GPU, channels last is faster
            return x if x.is_cuda else x.contiguous()
        return np.ascontiguousarray(x)


def _is_positive_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
