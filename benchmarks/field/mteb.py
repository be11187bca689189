"""Few-shot text classification: MTEB's protocol, and 1 to 64 rows per class.

    python benchmarks/field/mteb.py [--draws 10]            8 rows per class, ten draws, the whole test split
    python benchmarks/field/mteb.py --curve [--draws 2]     1 to 64 rows per class

As in MTEB, each draw shuffles all training rows and takes the first 8 of every class. BANKING77 is part of
MTEB; the other sets use the same protocol. `names` adds the embedded name of each class as one more row.
"""

import time
from collections.abc import Callable

import numpy as np
from data import Pack, load
from sklearn.linear_model import LogisticRegression
from tables import grid, measured_once, parser_of, print_comparison

from imprint import recipe
from imprint.kernels.rows import unit_rows

SETS = ("banking77", "clinc150", "trec", "goemotions")
SHOTS = (1, 2, 4, 8, 16, 32, 64)
OURS = "kernel"


def kernel(X: np.ndarray, y: np.ndarray, pack: Pack) -> np.ndarray:
    return recipe("kernel", random_state=0).fit(X, y).predict(pack.Q)


def kernel_with_names(X: np.ndarray, y: np.ndarray, pack: Pack) -> np.ndarray:
    present = np.unique(y)
    return kernel(
        np.concatenate([X, pack.names[present]]), np.concatenate([y, present]), pack
    )


def logistic_regression(X: np.ndarray, y: np.ndarray, pack: Pack) -> np.ndarray:
    """As in MTEB: default regularisation, on unit rows, which the published form of this network returns."""
    return (
        LogisticRegression(max_iter=100).fit(unit_rows(X), y).predict(unit_rows(pack.Q))
    )


def logistic_regression_raw(X: np.ndarray, y: np.ndarray, pack: Pack) -> np.ndarray:
    """The same on rows before normalisation, which are longer, so the regularisation is weaker."""
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
    """MTEB's undersampling: shuffle the rows and take the first `shots` of each class."""
    order = rng.permutation(len(pack.y))
    return np.concatenate(
        [order[pack.y[order] == c][:shots] for c in np.unique(pack.y)]
    )


def measure(name: str, shots: int, draws: int) -> dict[str, list[float]]:
    """By method: mean accuracy in % and mean processor seconds over draws; every method gets the same draws."""
    pack, figures = load(name), {}
    for method, predict in METHODS.items():
        correct, start = [], time.process_time()
        for number in range(draws):
            rows = draw(pack, shots, np.random.default_rng([42, number]))
            correct.append(np.mean(predict(pack.X[rows], pack.y[rows], pack) == pack.t))
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
