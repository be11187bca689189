"""Create a folder of images: scanned digits as PNG files, one sub-folder per class."""

from pathlib import Path

from PIL import Image
from sklearn.datasets import load_digits

NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
KNOWN, ASKED = 12, 5  # images of each class

scans = load_digits()
for label, name in enumerate(NAMES):
    rows = (scans.target == label).nonzero()[0]
    for i, row in enumerate(rows[: KNOWN + ASKED]):
        place = "asked" if i >= KNOWN else "photos" if label < 8 else "more"
        folder = Path(place, name)
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray((scans.images[row] * 15).astype("uint8")).save(
            folder / f"{i}.png"
        )
