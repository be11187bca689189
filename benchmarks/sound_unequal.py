"""`balance` on sounds: recall of classes with few rows, next to classes with 32 rows.

    imprint embed ESC50 -b yamnet -o yamnet-esc50.npz    # a folder from benchmarks/sound_folders.py
    python benchmarks/sound_unequal.py yamnet-esc50.npz

Ten of the 50 classes are drawn ten times; one or five of them have two or five training rows. The test rows are the
fifth fold of ESC-50. Prints the mean recall of the few-row classes / of the others / of all, in per cent.
"""

import sys

import numpy as np

from imprint import ImprintClassifier

DRAWS, CLASSES = 10, 10


def recalls(pack, balance, few, rows, draw):
    """Mean recall of the few-row classes, of the others and of all."""
    X, y, Q, truth = (
        pack[name] for name in ("train", "train_labels", "test", "test_labels")
    )
    rng = np.random.default_rng(draw)
    classes = rng.choice(np.unique(y), CLASSES, replace=False)
    sizes = [rows] * few + [len(y)] * (CLASSES - few)
    kept = np.concatenate(
        [rng.permutation(np.flatnonzero(y == c))[:n] for c, n in zip(classes, sizes)]
    )
    model = ImprintClassifier(aggregator=f"kernel(balance={balance})").fit(
        X[kept], y[kept]
    )
    values = np.array([(model.predict(Q[truth == c]) == c).mean() for c in classes])
    return values[:few].mean(), values[few:].mean(), values.mean()


if __name__ == "__main__":
    with np.load(sys.argv[1]) as f:
        pack = dict(f)
    for few, rows in ((1, 2), (1, 5), (5, 2), (5, 5)):
        for balance in (0, 0.35):
            means = np.mean(
                [recalls(pack, balance, few, rows, draw) for draw in range(DRAWS)],
                axis=0,
            )
            print(
                f"{few} x {rows} rows, balance={balance}: "
                + " / ".join(f"{100 * value:.1f}" for value in means)
            )
    for balance in (0, 0.35):
        model = ImprintClassifier(aggregator=f"kernel(balance={balance})").fit(
            pack["train"], pack["train_labels"]
        )
        accuracy = model.score(pack["test"], pack["test_labels"])
        print(f"50 x 32 rows, balance={balance}: {100 * accuracy:.1f}")
