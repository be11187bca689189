"""`beyond/layers`: the recipes of the paper, `kernel` and the oracle on the last layer,
on several layers, and on places and spreads of their maps.

A pack states its blocks by name: `last`, the means of inner layers (`b10 mean`), the
quarters of their maps (`b10 quadrants`) and deviations over maps (`top std`).
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from imprint import tasks
from imprint.collapse import nc1
from imprint.core.errors import FileError
from imprint.embeddings import Pack
from imprint.extend import Array, open_pack, unit_rows
from imprint.study import Packs, Store, Study
from imprint_reproduction.artefact import NotRunError, read_json, write_json
from imprint_reproduction.setting import MAX, cosine, method_text, unnormalised

NAME = "layers"  # of the artefact, and of the file of its measurements
SEEDS = (0, 1, 2)
ROWS = (1, 5, 20)  # per class
MOST_ROWS = max(ROWS)

LAST = "last"
LAYERS = "layers"
QUARTERS = "quarters"
SPREADS = "spreads"
ALL = "all"
SELECTIONS = (
    LAST,
    LAYERS,
    QUARTERS,
    SPREADS,
    ALL,
)
SUFFIXES = {LAYERS: " mean", QUARTERS: " quadrants", SPREADS: " std"}
"""How the names of the blocks of a kind end."""

QI = "Qi et al."
HOSODA = "Hosoda et al."
JANSON = "Janson et al."
WESTERHOFF = "Westerhoff et al."
# five neighbours, as in the paper, need five rows; one row of four classes has four
NEAREST = "all rows, 3 nearest"
KERNEL = "kernel"
ORACLE = "oracle"
FIXED_METRIC = "kernel, weights chosen, no metric"
EQUAL = "kernel, equal weights, no metric"
PUBLISHED = {
    QI: cosine("mean"),
    HOSODA: f"none / mean / quantile / none / {MAX}",
    JANSON: "none / mean / none / none / nearest(m=1)",
    WESTERHOFF: cosine("kmeans(k=20)"),
    NEAREST: cosine("all", "nearest(m=3)"),
}
"""The recipes of the paper by label."""
KERNEL_METHOD = "l2 / all / none / l2 / kernel"
ORACLE_METHOD = unnormalised("least_squares(reg={reg})")


class Instance(NamedTuple):
    """Some rows per class of a data set, embedded by a network."""

    network: str
    dataset: str
    rows: int


class Column(NamedTuple):
    """A recipe on some blocks."""

    recipe: str
    selection: str  # one of `SELECTIONS`, or the name of a block alone


@dataclass(frozen=True)
class Network:
    """A network, its blocks, and the data sets that it has packs of."""

    name: str
    datasets: tuple[str, ...]
    blocks: tuple[str, ...]

    @property
    def selections(self) -> dict[str, tuple[str, ...]]:
        """The blocks of each selection; those that would be the same are left out."""
        chosen: dict[str, tuple[str, ...]] = {LAST: (LAST,)}
        for kind in SUFFIXES:
            names = self.of_kind(kind)
            if names:
                chosen[kind] = (LAST, *names)
        quarters = self.of_kind(QUARTERS)
        spreads = self.of_kind(SPREADS)
        if quarters and spreads:
            chosen[ALL] = (LAST, *quarters, *spreads)
        return chosen

    def of_kind(self, kind: str) -> tuple[str, ...]:
        """The names of the blocks of a kind."""
        suffix = SUFFIXES[kind]
        return tuple(name for name in self.blocks if name.endswith(suffix))

    @property
    def has_places(self) -> bool:
        """Whether there are quarters of maps; networks of tokens have none."""
        return QUARTERS in self.selections

    @property
    def widest(self) -> str:
        """The selection with the most blocks."""
        return ALL if ALL in self.selections else LAYERS

    def methods(self, selection: str) -> dict[str, str]:
        """The recipes on a selection, by label.

        The oracle solves a system as wide as the embedding; it runs on the last layer.
        Single blocks, and last and spreads, are compared with `kernel` alone.
        """
        found = {KERNEL: KERNEL_METHOD}
        is_alone = selection not in self.selections
        if not is_alone and selection != SPREADS:
            found = PUBLISHED | found
        if selection == LAST:
            found[ORACLE] = ORACLE_METHOD
        if selection == self.widest:
            count = len(self.selections[selection])
            weights = (1.0,) * count
            found[FIXED_METRIC] = f"{KERNEL_METHOD}(shrinkage='none')"
            found[EQUAL] = f"{KERNEL_METHOD}(weights={weights}, shrinkage='none')"
        texts = {}
        for label, method in found.items():
            texts[label] = method_text(method, self.name)
        return texts

    def study(self, folder: str, selection: str) -> Study:
        """The study of one selection, or of a block by its name."""
        names = self.selections.get(selection, (selection,))
        is_alone = selection not in self.selections
        return Study(
            name=self.name,
            embeddings=folder,
            backbones=(self.name,),
            blocks=("+".join(names),),
            datasets=self.datasets,
            shots=(MOST_ROWS,) if is_alone else ROWS,
            recipes=tuple(self.methods(selection).values()),
            seeds=SEEDS,
        )

    def studies(self, folder: str) -> dict[str, Study]:
        """The studies of all selections, and of every block alone."""
        alone = [name for name in self.blocks if name != LAST]
        every = [*self.selections, *alone]
        return {selection: self.study(folder, selection) for selection in every}


def find_networks(
    folder: Path, backbones: Sequence[str] = (), datasets: Sequence[str] = ()
) -> list[Network]:
    """The networks with packs of named blocks in a folder.

    Parameters
    ----------
    folder : Path
        Holds packs `NETWORK-SET.npz`.
    backbones, datasets : sequence of str
        Only these; all if empty.
    """
    sets: dict[str, list[str]] = {}
    blocks: dict[str, tuple[str, ...]] = {}
    for path in sorted(folder.glob("*-*.npz")):
        network, dataset = path.stem.rsplit("-", 1)
        if network not in (backbones or [network]):
            continue
        if dataset not in (datasets or [dataset]):
            continue
        names = _block_names(path)
        # packs without blocks may lie in the same folder
        if len(names) < 2:
            continue
        if blocks.setdefault(network, names) != names:
            raise FileError(f"{path}: its blocks are not those of the other packs.")
        sets.setdefault(network, []).append(dataset)
    if not sets:
        raise FileError(
            f"{folder} has no packs NETWORK-SET.npz with named blocks, as"
            " benchmarks/layer_packs.py writes them."
        )
    return [Network(name, tuple(found), blocks[name]) for name, found in sets.items()]


def _block_names(path: Path) -> tuple[str, ...]:
    with open_pack(path) as pack:
        if "block_names" not in pack.files:
            return ()
        return tuple(pack["block_names"].tolist())


Accuracies = Mapping[Instance, Mapping[Column, float]]
"""Accuracies in percent, the median over seeds."""


def read_accuracies(folder: str, out: Path, networks: Sequence[Network]) -> Accuracies:
    """The results of all networks of which every experiment is finished."""
    values: dict[Instance, dict[Column, float]] = {}
    for network in networks:
        finished = _medians(network, folder, out)
        for selection, medians in finished.items():
            study = network.study(folder, selection)
            recipes = network.methods(selection)
            for at, row in zip(_instances(network, study), medians):
                columns = values.setdefault(at, {})
                for recipe, value in zip(recipes, row.tolist()):
                    column = Column(recipe, selection)
                    columns[column] = value
    if not values:
        raise NotRunError(f"{out}: the study of no network is finished.")
    return values


def _medians(network: Network, folder: str, out: Path) -> dict[str, Array]:
    """Accuracies in percent by selection, the median over seeds; empty if some
    experiments of the network are missing.  # each (instances, methods)
    """
    store = out / network.name
    if not Store(store).exists():
        return {}
    medians = {}
    for selection, study in network.studies(folder).items():
        table = study.results(store)
        # a table of some networks on some selections would compare unequal sets
        if len(table) < study.points:
            return {}
        accuracy = 100 * table["accuracy"].to_numpy()
        by_seed = accuracy.reshape(-1, len(study.methods), len(SEEDS))
        medians[selection] = np.median(by_seed, axis=2)
    return medians


def _instances(network: Network, study: Study) -> Iterator[Instance]:
    """The instances of a study, in its order."""
    for dataset in network.datasets:
        for rows in study.shots:
            yield Instance(network.name, dataset, rows)


@dataclass(frozen=True)
class Layout:
    """What was measured of a network on a data set besides accuracies."""

    collapse: Mapping[str, float]  # NC1 by block, and of the weighted `WHOLE`
    weights: Mapping[str, float]  # mean shares of the blocks that `kernel` chose


WHOLE = "whole"
Layouts = Mapping[tuple[str, str], Layout]
"""By network and data set."""


def measure(
    folder: str,
    out: Path,
    networks: Sequence[Network],
    report: Callable[[str, int, int], object],
) -> None:
    """Measure the weights that `kernel` chooses and NC1 where they are missing."""
    path = out / f"{NAME}.json"
    values = read_json(path)
    source = Packs(folder)
    total = sum(len(network.datasets) for network in networks)
    done = 0
    for network in networks:
        selected = network.selections[network.widest]
        for dataset in network.datasets:
            data = source.open(network.name, dataset)
            key = json.dumps([network.name, dataset])
            known = values.get(key, {})
            if known.get("fingerprint") != data.fingerprint:
                layout = measure_layout(data, selected)
                values[key] = {"fingerprint": data.fingerprint, **vars(layout)}
                write_json(path, values)
            done += 1
            report("Weights and neural collapse", done, total)


def read_layouts(out: Path) -> Layouts:
    """The measurements in a folder."""
    layouts = {}
    for key, values in read_json(out / f"{NAME}.json").items():
        network, dataset = json.loads(key)
        layouts[network, dataset] = Layout(
            values["collapse"],
            values["weights"],
        )
    return layouts


def measure_layout(data: Pack, selected: Sequence[str]) -> Layout:
    """The weights that `kernel` chooses for the selected blocks, and NC1 of all blocks.

    NC1 is that of the training rows, each block of length one; `WHOLE` has the selected
    blocks with their weights side by side.
    """
    parts = blocks_of(data)
    y = np.asarray(data.y)
    names = [name for name in parts if name in selected]
    X = np.hstack([parts[name] for name in names])
    widths = [parts[name].shape[1] for name in names]
    chosen = [_chosen_shares(X, y, widths, seed) for seed in SEEDS]
    shares = np.mean(chosen, axis=0)
    weights = dict(zip(names, shares.tolist()))
    collapse = {name: nc1(rows, y) for name, rows in parts.items()}
    scaled = [np.sqrt(weights[name]) * parts[name] for name in names]
    collapse[WHOLE] = nc1(np.hstack(scaled), y)
    return Layout(collapse, weights)


def blocks_of(data: Pack) -> dict[str, Array]:
    """The training rows of each block, of length one."""
    X = np.asarray(data.X)
    ends = np.cumsum(data.blocks)
    parts = np.split(X, ends[:-1], axis=1)
    units = [unit_rows(np.ascontiguousarray(part)) for part in parts]
    return dict(zip(data.block_names, units))


def _chosen_shares(X: Array, y: Array, widths: Sequence[int], seed: int) -> Array:
    """The weights of blocks that `kernel` chooses with the most rows per class; their
    sum is one.
    """
    task = tasks.resolve(f"shots(n={MOST_ROWS})")
    drawn = task.select(y, seed)
    from imprint import ImprintClassifier  # takes a moment, and lists need it not

    classifier = ImprintClassifier(
        norm_pre="l2",
        generator="all",
        norm_post="none",
        norm_inf="l2",
        aggregator="kernel",
        blocks=widths,
    )
    classifier.fit(X[drawn.rows], np.asarray(drawn.labels))
    # the weights are part of what the aggregator solved, not of the state
    prepared: Any = classifier.head_.prepared
    weights = np.asarray(prepared.metric.weights)
    return np.asarray(weights / weights.sum())
