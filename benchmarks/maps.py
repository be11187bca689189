"""Do maps of what speaks for a class show where it is? `python benchmarks/maps.py [FILE]`

FILE holds 200 + 200 images of 37 breeds of cats and dogs, with the outline of the animal (Oxford-IIIT Pet, CC BY-SA 4.0): arrays
`train_jpeg` and `test_jpeg` of bytes with `..._offsets`, `test_mask_png` with 1 for the animal, and `..._file`, the names of files, whose
first part is the breed; breeds of cats begin with a capital letter.

Pointing game: the share of maps whose largest value is on the animal, next to the centre of the image. Occlusion: how much the score
difference falls if the fifth of the places with the largest values is covered by the mean colour, next to a random fifth (mean of three).
"""

import io
import json
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
from PIL import Image

from imprint import Imprinter

DATA = Path(__file__).resolve().parents[2] / "shared/data/masks/pets_trimap.npz"
SHARE, DRAWS = 0.2, 3
ANIMAL = 1


def files(data, kind, offsets):
    raw, ends = data[kind].tobytes(), data[offsets].tolist()
    return [raw[a:b] for a, b in pairwise(ends)]


def read(raw):
    return np.asarray(Image.open(io.BytesIO(raw)).convert("RGB"))


def labels(names, task):
    if task == "breeds":
        return [str(name).rsplit("_", 1)[0] for name in names]
    return ["cat" if str(name)[0].isupper() else "dog" for name in names]


def covered(image, order, grid):
    """The image with the first fifth of the places covered, within what the network sees."""
    places, (top, bottom, left, right) = grid
    rows = np.linspace(top, bottom, places[0] + 1).round().astype(int)
    columns = np.linspace(left, right, places[1] + 1).round().astype(int)
    out = image.copy()
    colour = image.mean(axis=(0, 1)).round().astype(np.uint8)
    for place in order[: round(SHARE * len(order))]:
        i, j = divmod(int(place), places[1])
        out[rows[i] : rows[i + 1], columns[j] : columns[j + 1]] = colour
    return out


def difference(model, images, first, second):
    head = model.state.head
    scores = head.scores(model.look(images).X)
    columns = head.classes.tolist()
    return scores[:, columns.index(first)] - scores[:, columns.index(second)]


def measure(model, images, masks):
    rng = np.random.default_rng(0)
    on_animal, centre, area, falls, random_falls = [], [], [], [], []
    for image, mask in zip(images, masks):
        found = model.explain(image)
        pixels, animal = found.map(), mask == ANIMAL
        height, width = animal.shape
        seen = np.isfinite(pixels)
        row, column = np.unravel_index(np.nanargmax(pixels), pixels.shape)
        on_animal.append(animal[row, column])
        centre.append(animal[height // 2, width // 2])
        area.append(animal[seen].mean())
        inside = np.argwhere(seen)
        (top, left), (bottom, right) = inside.min(0), inside.max(0) + 1
        grid = found.values.shape, (top, bottom, left, right)
        orders = [
            np.argsort(-found.values, axis=None),
            *(rng.permutation(found.values.size) for _ in range(DRAWS)),
        ]
        changed = [covered(image, order, grid) for order in orders]
        whole, most, *others = difference(
            model, [image, *changed], found.label, found.against
        )
        falls.append((whole - most) / whole)
        random_falls.append((whole - np.mean(others)) / whole)
    better = np.mean(np.array(falls) > np.array(random_falls))
    return {
        "images": len(images),
        "map on the animal": round(float(np.mean(on_animal)), 3),
        "centre on the animal": round(float(np.mean(centre)), 3),
        "random place on the animal": round(float(np.mean(area)), 3),
        "median fall, largest fifth covered": round(float(np.median(falls)), 3),
        "median fall, random fifth covered": round(float(np.median(random_falls)), 3),
        "largest fifth falls more": round(float(better), 3),
    }


if __name__ == "__main__":
    data = np.load(sys.argv[1] if len(sys.argv) > 1 else DATA)
    train, test = (
        [read(raw) for raw in files(data, f"{part}_jpeg", f"{part}_offsets")]
        for part in ("train", "test")
    )
    masks = [
        np.asarray(Image.open(io.BytesIO(raw)))
        for raw in files(data, "test_mask_png", "test_mask_offsets")
    ]
    for task in ("species", "breeds"):
        for backbone in ("efficientnet_lite0", "tinynet"):
            model = Imprinter(backbone, cache=False, calibrate=False).fit(
                (train, labels(data["train_file"], task))
            )
            accuracy = np.mean(
                model.predict(test) == np.array(labels(data["test_file"], task))
            )
            result = {
                "task": task,
                "backbone": backbone,
                "accuracy": round(float(accuracy), 3),
            }
            print(json.dumps(result | measure(model, test, masks)), flush=True)
