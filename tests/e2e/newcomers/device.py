"""Add classes on a small device: one thread, a few images, no training, and an exported head."""

import time

import numpy as np

from imprint import Imprinter, datasets
from imprint.export import export_file

SHOTS = 10

digits = datasets.load("digits", "train")
rows = {c: np.flatnonzero(digits.labels == c) for c in range(10)}


def some(classes, start: int = 0, n: int = SHOTS):
    chosen = [i for c in classes for i in rows[c][start : start + n]]
    return [digits.inputs[i] for i in chosen], digits.labels[chosen]


factory = Imprinter("tinynet", recipe="qi2018", threads=1).fit(some(range(8)))
factory.save("model.imprint")
before = factory.classifier.proxies_.weights

started = time.perf_counter()
with Imprinter.change("model.imprint", threads=1) as model:
    model.add(some([8, 9]))
print(f"two classes of {SHOTS} images added in {time.perf_counter() - started:.2f} s")
assert np.array_equal(model.classifier.proxies_.weights[:8], before), (
    "known classes stay as they were, bit for bit"
)

export_file("model.imprint", "head.npz", "numpy")
images, labels = some(range(10), start=SHOTS)
embeddings = model.look(images).X
with np.load("head.npz") as head:  # the device computes one division and one product
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    answers = head["classes"][(unit @ head["weights"].T).argmax(axis=1)]
assert np.array_equal(answers, model.predict(images))
accuracy = float((answers == labels).mean())
print(f"{accuracy:.0%} of {len(labels)} new images right")
assert accuracy > 0.5, "five times chance, from ten images of a class"
