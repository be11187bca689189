"""Time to add a class, predict and forget a class on one core: `OMP_NUM_THREADS=1 python benchmarks/device.py`.

TinyNet's embeddings (512 numbers) of scikit-learn's digits, Classes 0 to 8 are known, class 9 is new.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from imprint import ImprintClassifier, backbones, datasets, recipe
from imprint.embeddings import extract

REPEATS = 200


def milliseconds(
    action: Callable[[], object], before: Callable[[], object] = lambda: None
) -> float:
    """The median time of `action`, with `before` run untimed each time."""
    taken = []
    for _ in range(REPEATS):
        before()
        start = perf_counter()
        action()
        taken.append(perf_counter() - start)
    return 1e3 * median(taken)


def main() -> None:
    tinynet = backbones.load("tinynet", threads=1)
    splits = [datasets.load("digits", name) for name in ("train", "test")]
    train, test = (extract(tinynet, split, workers=1) for split in splits)
    X, y, one = np.asarray(train.X), train.y, np.asarray(test.X[:1])
    new, image = X[y == 9][:50], splits[1].inputs[0]
    print("| on one core | `qi2018` | `imprint2025` | `kernel` |\n|---|---:|---:|---:|")
    names = ("qi2018", "imprint2025", "kernel")
    models = {
        name: recipe(name, random_state=0).fit(X[y != 9], y[y != 9]) for name in names
    }
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / f"{name}.imprint" for name in models}
        forget = {
            n: (lambda m=m: m.forget(9) if 9 in m.classes_ else None)
            for n, m in models.items()
        }
        learn = {
            n: (lambda m=m: m.partial_fit(new, [9] * len(new)))
            for n, m in models.items()
        }
        rows = {
            "forget a class": [milliseconds(forget[n], learn[n]) for n in models],
            "add a class of 50 images": [
                milliseconds(learn[n], forget[n]) for n in models
            ],
            "classify the first embedding after a change": [
                milliseconds(
                    lambda m=m: m.predict(one), lambda n=n: (forget[n](), learn[n]())
                )
                for n, m in models.items()
            ],
            "classify one embedding": [
                milliseconds(lambda m=m: m.predict(one)) for m in models.values()
            ],
            "save the model": [
                milliseconds(lambda n=n: models[n].save(paths[n])) for n in models
            ],
            "load the model": [
                milliseconds(lambda n=n: ImprintClassifier.load(paths[n]))
                for n in models
            ],
        }
        for what, values in rows.items():
            print(f"| {what} | " + " | ".join(f"{v:.2f} ms" for v in values) + " |")
        print(
            "| the file, ten classes | "
            + " | ".join(f"{paths[n].stat().st_size / 1e3:.0f} kB" for n in models)
            + " |"
        )
    print(
        "| accuracy, ten digits | "
        + " | ".join(f"{100 * m.score(test.X, test.y):.1f} %" for m in models.values()),
        "|",
    )
    each = milliseconds(lambda: tinynet.embed(np.stack([tinynet.prepare(image)])))
    print(f"\nTinyNet embeds one image in {each:.2f} ms.")


if __name__ == "__main__":
    main()
