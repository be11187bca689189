"""Few-shot text classification: MTEB's protocol, and 1 to 64 rows per class.

    python benchmarks/field/mteb.py [--draws 10]            8 rows per class, ten draws, the whole test split
    python benchmarks/field/mteb.py --curve [--draws 2]     1 to 64 rows per class

As in MTEB, each draw shuffles all training rows and takes the first 8 of every class. BANKING77 is part of
MTEB; the other sets use the same protocol. Peers see the last layer, and those that come closest all blocks.
"""

import time
from collections.abc import Callable

import numpy as np
from data import LAST, Pack, texts_with_blocks
from images import lda, logistic, unit_blocks
from sklearn.linear_model import LogisticRegression
from tables import grid, measured_once, parser_of, print_comparison

from imprint import ImprintClassifier
from imprint.kernels.rows import unit_rows

SETS = ("banking77", "clinc150", "trec", "goemotions")
SHOTS = (1, 2, 4, 8, 16, 32, 64)
OURS = "imprint, blocks"
NAMED = "imprint with class names, blocks"  # the name of each class is one more row


BLOCKS = (LAST,) * 6
Predict = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def with_blocks(X: np.ndarray, y: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """The default method."""
    return ImprintClassifier(blocks=BLOCKS).fit(X, y).predict(Q)


def on_last_layer(predict: Predict) -> Predict:
    """A method that sees unit rows of the last layer, which the published form of this network returns."""
    return lambda X, y, Q: predict(unit_rows(X[:, :LAST]), y, unit_rows(Q[:, :LAST]))


def on_blocks(predict: Predict) -> Predict:
    """A method that sees all blocks, each at unit length."""
    return lambda X, y, Q: predict(unit_blocks(X, BLOCKS), y, unit_blocks(Q, BLOCKS))


def ours(X: np.ndarray, y: np.ndarray, Q: np.ndarray) -> np.ndarray:
    return ImprintClassifier().fit(X, y).predict(Q)


def as_in_mteb(X: np.ndarray, y: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Logistic regression with default regularisation."""
    return LogisticRegression(max_iter=100).fit(X, y).predict(Q)


def prototypes(X: np.ndarray, y: np.ndarray, Q: np.ndarray) -> np.ndarray:
    means = np.stack([X[y == c].mean(axis=0) for c in np.unique(y)])
    return np.unique(y)[(Q @ unit_rows(means).T).argmax(axis=1)]


def nearest_neighbour(X: np.ndarray, y: np.ndarray, Q: np.ndarray) -> np.ndarray:
    return y[(Q @ X.T).argmax(axis=1)]


METHODS: dict[str, Predict] = {
    OURS: with_blocks,
    NAMED: with_blocks,
    "imprint, last layer": on_last_layer(ours),
    "logistic regression (MTEB), last layer": on_last_layer(as_in_mteb),
    "logistic regression, C = 10, last layer": on_last_layer(logistic(10)),
    "logistic regression, C = 10, blocks": on_blocks(logistic(10)),
    "LDA, shrinkage by folds, blocks": on_blocks(lda),
    "prototypes (class means), last layer": on_last_layer(prototypes),
    "1-NN, last layer": on_last_layer(nearest_neighbour),
}


def draw(pack: Pack, shots: int, rng: np.random.Generator) -> np.ndarray:
    """MTEB's undersampling: shuffle the rows and take the first `shots` of each class."""
    order = rng.permutation(len(pack.y))
    return np.concatenate(
        [order[pack.y[order] == c][:shots] for c in np.unique(pack.y)]
    )


def measure(name: str, shots: int, draws: int) -> dict[str, list[float]]:
    """By method: mean accuracy in % and mean processor seconds over draws; every method gets the same draws."""
    pack, figures = texts_with_blocks(name), {}
    for method, predict in METHODS.items():
        correct, start = [], time.process_time()
        for number in range(draws):
            rows = draw(pack, shots, np.random.default_rng([42, number]))
            X, y = pack.X[rows], pack.y[rows]
            if method == NAMED:
                present = np.unique(y)
                X = np.concatenate([X, pack.names[present]])
                y = np.concatenate([y, present])
            correct.append(np.mean(predict(X, y, pack.Q) == pack.t))
        figures[method] = [
            100 * float(np.mean(correct)),
            (time.process_time() - start) / draws,
        ]
    return figures


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument(
        "--rows", type=int, default=8, help="rows per class [default: 8, as in MTEB]"
    )
    parser.add_argument("--curve", action="store_true", help="1 to 64 rows per class")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    options = parser.parse_args()
    figures = {}
    for name in options.sets:
        for shots in SHOTS if options.curve else (options.rows,):
            key, call = (
                f"{name} @ {shots}",
                lambda name=name, shots=shots: measure(name, shots, options.draws),
            )
            figures[key if options.curve else name] = measured_once(
                f"mteb-{options.draws}", key, call
            )
    scores = {
        method: {key: figures[key][method][0] for key in figures} for method in METHODS
    }
    print("\n".join(grid(scores)))
    title = (
        "Few-shot texts, 1 to 64 rows per class"
        if options.curve
        else f"Few-shot texts, {options.rows} rows per class"
    )
    print_comparison(scores, OURS, "accuracy, %", options.diagram, title)
    seconds = {
        method: np.mean([figures[key][method][1] for key in figures])
        for method in METHODS
    }
    print(
        "\nProcessor seconds per draw, fit and predict:",
        ", ".join(f"{m} {s:.1f}" for m, s in seconds.items()),
    )


if __name__ == "__main__":
    main()
