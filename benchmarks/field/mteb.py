"""Few-shot text classification: MTEB's protocol, and 1 to 64 rows per class.

    python benchmarks/field/mteb.py [--draws 10]            8 rows per class, ten draws, the whole test split
    python benchmarks/field/mteb.py --curve [--draws 2]     1 to 64 rows per class on BANKING77

As in MTEB, each draw shuffles all training rows and takes the first 8 of every class. Of the sets here, MTEB contains
BANKING77; the others are run by the same protocol. `names` adds the embedded name of each class as one more row.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from data import Pack, load
from sklearn.linear_model import LogisticRegression
from tables import grid, ranked

from imprint import recipe
from imprint.kernels.rows import unit_rows

SETS = ("banking77", "clinc150", "trec", "goemotions")
SHOTS = (1, 2, 4, 8, 16, 32, 64)
OURS = "kernel"


def kernel(X: np.ndarray, y: np.ndarray, pack: Pack) -> np.ndarray:
    return recipe("kernel", random_state=0).fit(X, y).predict(pack.Q)


def kernel_with_names(X: np.ndarray, y: np.ndarray, pack: Pack) -> np.ndarray:
    present = np.unique(y)
    return kernel(np.concatenate([X, pack.names[present]]), np.concatenate([y, present]), pack)


def logistic_regression(X: np.ndarray, y: np.ndarray, pack: Pack) -> np.ndarray:
    """As MTEB: default strength, on unit rows, which this network's published form returns."""
    return LogisticRegression(max_iter=100).fit(unit_rows(X), y).predict(unit_rows(pack.Q))


def logistic_regression_raw(X: np.ndarray, y: np.ndarray, pack: Pack) -> np.ndarray:
    """The same on the rows before normalisation, which are longer and so are regularised less."""
    return LogisticRegression(max_iter=100).fit(X, y).predict(pack.Q)


def prototypes(X: np.ndarray, y: np.ndarray, pack: Pack) -> np.ndarray:
    return recipe("qi2018", random_state=0).fit(X, y).predict(pack.Q)


def nearest_neighbour(X: np.ndarray, y: np.ndarray, pack: Pack) -> np.ndarray:
    return y[(unit_rows(pack.Q) @ unit_rows(X).T).argmax(axis=1)]


METHODS: dict[str, Callable[[np.ndarray, np.ndarray, Pack], np.ndarray]] = {
    OURS: kernel,
    "kernel with names": kernel_with_names,
    "logistic regression (MTEB)": logistic_regression,
    "logistic regression, raw rows": logistic_regression_raw,
    "prototypes (class means)": prototypes,
    "1-NN": nearest_neighbour,
}


def draw(pack: Pack, shots: int, rng: np.random.Generator) -> np.ndarray:
    """MTEB's undersampling: the first `shots` rows of each class in a random order."""
    order = rng.permutation(len(pack.y))
    return np.concatenate([order[pack.y[order] == c][:shots] for c in np.unique(pack.y)])


def accuracy(pack: Pack, shots: int, draws: int, method: str) -> tuple[float, float]:
    """Mean accuracy in % and mean processor seconds over draws; every method gets the same draws."""
    right, start = [], time.process_time()
    for number in range(draws):
        rows = draw(pack, shots, np.random.default_rng([42, number]))
        right.append(np.mean(METHODS[method](pack.X[rows], pack.y[rows], pack) == pack.t))
    return 100 * float(np.mean(right)), (time.process_time() - start) / draws


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--curve", action="store_true")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    given = parser.parse_args()
    packs = [load(name) for name in (["banking77"] if given.curve else given.sets)]
    instances = [(f"{n} rows", packs[0], n) for n in SHOTS] if given.curve else [(p.name, p, 8) for p in packs]
    scores: dict[str, dict[str, float]] = {method: {} for method in METHODS}
    seconds = dict.fromkeys(METHODS, 0.0)
    for name, pack, shots in instances:
        for method in METHODS:
            scores[method][name], spent = accuracy(pack, shots, given.draws, method)
            seconds[method] += spent / len(instances)
    for line in (*grid(scores), "", *ranked(scores, OURS), ""):
        print(line)
    print("Processor seconds per draw, fit and predict:", ", ".join(f"{m} {s:.1f}" for m, s in seconds.items()))


if __name__ == "__main__":
    main()
