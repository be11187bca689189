"""`beyond/layers` on small made-up packs: its experiments, tables and claims."""

from dataclasses import replace

import numpy as np
import pytest

from imprint import ImprintClassifier, tasks
from imprint.collapse import nc1
from imprint.core.errors import FileError, ParameterError
from imprint.embeddings import read_pack, write_pack
from imprint.study import RunOptions, StudySelection
from imprint_reproduction import layers
from imprint_reproduction.artefact import NotRunError
from imprint_reproduction.beyond import BEYOND, read_run, tables
from imprint_reproduction.layer_claims import CHECKS, judge
from imprint_reproduction.layer_tables import (
    TABLES,
    LayerResults,
    best_alone,
    closed_share,
    collapse_points,
    gap_means,
)
from imprint_reproduction.layers import (
    ALL,
    EQUAL,
    KERNEL,
    LAST,
    LAYERS,
    MOST_ROWS,
    ORACLE,
    PUBLISHED,
    QI,
    QUARTERS,
    ROWS,
    SPREADS,
    WHOLE,
    Column,
    Instance,
    Layout,
    Network,
)
from imprint_reproduction.sections import Verdict

HOLDS, FAILS, UNTESTABLE = Verdict.HOLDS, Verdict.FAILS, Verdict.UNTESTABLE
MAPS = {"last": 8, "b1 mean": 4, "b1 quadrants": 16, "top std": 8}
TOKENS = {"last": 8, "layer 1 mean": 8, "layer 2 mean": 8}
SETS = ("flowers5", "signs")


def write(folder, network, dataset, blocks, seed, classes=5):
    """A pack whose last layer knows little of the classes, and whose others know more."""
    rng = np.random.default_rng(seed)
    width = sum(blocks.values())
    strength = np.r_[np.full(blocks["last"], 0.5), np.full(width - blocks["last"], 1.5)]
    centres = rng.normal(size=(classes, width)) * strength
    y, t = np.repeat(np.arange(classes), 22), np.repeat(np.arange(classes), 10)
    X, Q = (centres[rows] + rng.normal(size=(len(rows), width)) for rows in (y, t))
    write_pack(folder / f"{network}-{dataset}.npz", X, y, Q, t, blocks=blocks)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The packs of two networks, and the folder of a finished run."""
    folder = tmp_path_factory.mktemp("packs")
    out = tmp_path_factory.mktemp("results")
    for seed, dataset in enumerate(SETS):
        write(folder, "net", dataset, MAPS, seed)
        write(folder, "tokens", dataset, TOKENS, seed + 7)
    study = BEYOND.select("beyond/layers", StudySelection(embeddings=folder))
    summary = study.run(out, RunOptions(workers=1))
    assert not summary.failed
    assert summary.experiments == sum(s.points for b in study.batches() for s in b)
    return folder, out, study


def test_selections_follow_the_names_of_blocks():
    net = Network("net", SETS, tuple(MAPS))
    assert net.selections == {
        LAST: ("last",),
        LAYERS: ("last", "b1 mean"),
        QUARTERS: ("last", "b1 quadrants"),
        SPREADS: ("last", "top std"),
        ALL: ("last", "b1 quadrants", "top std"),
    }
    tokens = Network("tokens", SETS, tuple(TOKENS))
    assert list(tokens.selections) == [LAST, LAYERS]
    assert (net.has_places, tokens.has_places) == (True, False)
    assert (net.widest, tokens.widest) == (ALL, LAYERS)
    assert ORACLE in net.methods(LAST)
    assert ORACLE not in net.methods(ALL)
    assert "weights=(1.0, 1.0, 1.0)" in net.methods(ALL)[EQUAL]
    assert list(net.methods("b1 mean")) == [KERNEL]


@pytest.mark.parametrize(
    ("network", "recipe", "selection"),
    [
        ("net", QI, LAST),
        ("net", QI, QUARTERS),
        ("net", KERNEL, ALL),
        ("net", EQUAL, ALL),
        ("net", KERNEL, "b1 quadrants"),
        ("tokens", KERNEL, LAYERS),
    ],
)
def test_accuracies_are_those_of_classifiers(finished, network, recipe, selection):
    folder, out, study = finished
    results = study.read(out)
    at = Instance(network, "signs", MOST_ROWS)
    chosen = next(n for n in study.networks if n.name == network)
    names = chosen.selections.get(selection, (selection,))
    pack = read_pack(folder / f"{network}-signs.npz")
    ends = np.cumsum(pack.blocks)
    columns = np.concatenate(
        [
            np.arange(end - width, end)
            for name, width, end in zip(pack.block_names, pack.blocks, ends)
            if name in names
        ]
    )
    widths = [w for n, w in zip(pack.block_names, pack.blocks) if n in names]
    parts = chosen.methods(selection)[recipe].split(" / ")
    keys = ("norm_pre", "generator", "norm_post", "norm_inf", "aggregator")
    accuracies = []
    for seed in layers.SEEDS:
        drawn = tasks.resolve(f"shots(n={MOST_ROWS})").select(pack.y, seed)
        classifier = ImprintClassifier(
            **dict(zip(keys, parts)), blocks=widths, random_state=seed
        )
        classifier.fit(pack.X[drawn.rows][:, columns], drawn.labels)
        right = classifier.score(pack.X_test[:, columns], pack.y_test)
        accuracies.append(100 * right)
    expected = np.median(accuracies)
    assert results.accuracies[at][Column(recipe, selection)] == pytest.approx(expected)


def test_blocks_that_know_the_classes_help(finished):
    _, out, study = finished
    results = study.read(out)
    for pair in results.pairs():
        assert results.gain(pair) > 5
        assert results.gain(pair, QI) > 5
        assert (
            best_alone(results, pair)[LAST][1] < best_alone(results, pair)[QUARTERS][1]
        )


def test_nc1_is_that_of_unit_blocks_and_of_the_weighted_whole(finished):
    folder, out, study = finished
    layout = study.read(out).layouts["net", "flowers5"]
    assert sum(layout.weights.values()) == pytest.approx(1)
    assert set(layout.weights) == {"last", "b1 quadrants", "top std"}
    pack = read_pack(folder / "net-flowers5.npz")
    parts = layers.blocks_of(pack)
    for name, rows in parts.items():
        assert np.linalg.norm(rows, axis=1) == pytest.approx(1)
        assert layout.collapse[name] == pytest.approx(nc1(rows, pack.y))
    weighted = [np.sqrt(w) * parts[name] for name, w in layout.weights.items()]
    expected = nc1(np.hstack(weighted), pack.y)
    assert layout.collapse[WHOLE] == pytest.approx(expected, rel=1e-5)
    assert layout.collapse["b1 quadrants"] < layout.collapse["last"]


def test_tables_and_claims_are_written_and_read_again(finished, tmp_path):
    _, out, study = finished
    assert BEYOND.is_run(out)
    assert not BEYOND.is_run(tmp_path)
    report = BEYOND.report([out], tmp_path / "page")
    assert [file.name for file in report.files] == ["layers.html", "layers.md"]
    page = report.files[0].read_text("utf-8")
    assert page.count("<table") == len(TABLES) + 1
    text = report.files[1].read_text("utf-8")
    assert "| Qi et al. |" in text
    assert "net, tokens" not in text
    assert len(report.claims) == len(CHECKS)
    found = tables(read_run(out))
    assert list(found) == list(TABLES)
    # a terminal needs a column of texts
    assert not any(table.right_aligned(0) for table in found.values())
    shown = study.results(out)
    assert len(shown) == len(TABLES) + 2


def test_a_second_run_computes_nothing(finished):
    _, out, study = finished
    assert study.run(out, RunOptions(workers=1)).computed == 0


def test_what_cannot_run_is_refused(tmp_path):
    with pytest.raises(ParameterError, match="Did you mean 'beyond/layers'"):
        BEYOND.select("beyond/layer", StudySelection(embeddings=tmp_path))
    with pytest.raises(ParameterError, match="--embeddings DIR"):
        BEYOND.select("beyond/layers", StudySelection())
    with pytest.raises(
        FileError, match=r"has no packs NETWORK-SET\.npz with named blocks"
    ):
        BEYOND.select("beyond/layers", StudySelection(embeddings=tmp_path))
    write(tmp_path, "net", "flowers5", MAPS, 0)
    study = BEYOND.select("beyond/layers", StudySelection(embeddings=tmp_path))
    with pytest.raises(NotRunError, match="no network is finished"):
        study.read(tmp_path / "out")
    assert "no network is finished" in study.results(tmp_path / "out")[0]
    write(tmp_path, "net", "signs", {**MAPS, "b2 mean": 3}, 0)
    with pytest.raises(FileError, match="its blocks are not those of the other packs"):
        BEYOND.select("beyond/layers", StudySelection(embeddings=tmp_path))


# Results whose verdicts are known: 12 data sets of one network.
DATASETS = ("flowers5", "dtd10", "intel6", "rsscn7", *(f"signs{i}" for i in range(8)))
NET = Network("net", DATASETS, tuple(MAPS))
PLAIN = {LAST: 60.0, LAYERS: 62.0, QUARTERS: 64.0, SPREADS: 63.0, ALL: 66.0}


def made_up(change=None, nc1_of_last=1.0):
    """Results with `PLAIN` for every recipe, changed by `change(dataset index, column)`."""
    accuracies, layouts = {}, {}
    for i, dataset in enumerate(DATASETS):
        for rows in ROWS:
            columns = accuracies.setdefault(Instance("net", dataset, rows), {})
            for selection, value in (
                *PLAIN.items(),
                *((b, 55.0) for b in MAPS if b != LAST),
            ):
                for j, recipe in enumerate(NET.methods(selection)):
                    column = Column(recipe, selection)
                    better = {KERNEL: 8.0, ORACLE: 6.0}.get(recipe, -0.5 * j)
                    extra = change(i, column) if change else 0.0
                    columns[column] = value + better + extra
        collapse = dict.fromkeys((*MAPS, WHOLE), 1.0) | {LAST: nc1_of_last + i}
        layouts["net", dataset] = Layout(collapse, {LAST: 0.5, "b1 quadrants": 0.5})
    return LayerResults((NET,), accuracies, layouts)


def verdicts(results):
    return {
        check.__name__: claim.verdict for check, claim in zip(CHECKS, judge(results))
    }


def test_claims_of_plain_results():
    judged = verdicts(made_up())
    expected = {
        "layers_help": HOLDS,
        "places_help": HOLDS,
        "all_help": HOLDS,
        "chosen_help": HOLDS,
        "metric_helps": HOLDS,
        "every_recipe_gains": HOLDS,
        "same_best_recipe": HOLDS,
        "more_proxies": FAILS,  # each recipe is half a point below the one before
        "kernel_first": HOLDS,
        "never_loses": HOLDS,
        "gap_closed": HOLDS,
        "above_oracle": HOLDS,
        "max_above_oracle": HOLDS,
        "collapse_of_last": UNTESTABLE,  # all gains are equal
        "collapse_of_whole": UNTESTABLE,
        "collapse_of_blocks": UNTESTABLE,
        "unlike_imagenet": FAILS,
        "inner_layers_alone": FAILS,
        "last_layer_alone": UNTESTABLE,  # four sets
        "tokens_gain": UNTESTABLE,
    }
    assert judged == expected


def whole(points):
    """Points for `kernel` on all blocks, by the index of the data set."""

    def change(i, column):
        return points(i) if column == Column(KERNEL, ALL) else 0.0

    return change


def test_a_claim_fails_when_its_reason_is_taken_away():
    worse = verdicts(made_up(whole(lambda i: -12.0)))
    for name in (
        "all_help",
        "metric_helps",
        "kernel_first",
        "never_loses",
        "above_oracle",
    ):
        assert worse[name] == FAILS, name
    one_loses = verdicts(made_up(whole(lambda i: -7.5 if i == 3 else 0.0)))
    assert one_loses["never_loses"] == FAILS
    assert one_loses["kernel_first"] == HOLDS
    half_a_point = verdicts(made_up(whole(lambda i: -6.5 if i == 3 else 0.0)))
    assert half_a_point["never_loses"] == HOLDS
    hosoda = list(PUBLISHED)[1]
    other_best = verdicts(
        made_up(lambda i, c: 3.0 if c == Column(hosoda, ALL) else 0.0)
    )
    assert other_best["same_best_recipe"] == FAILS
    inner = verdicts(
        made_up(lambda i, c: 20.0 if i >= 4 and c.selection == "b1 quadrants" else 0.0)
    )
    assert inner["inner_layers_alone"] == HOLDS


def test_gains_follow_nc1():
    rising = made_up(whole(lambda i: 0.1 * i))
    judged = verdicts(rising)
    assert judged["collapse_of_last"] == HOLDS
    assert judged["collapse_of_whole"] == HOLDS
    assert judged["unlike_imagenet"] == HOLDS
    falling = verdicts(made_up(whole(lambda i: -0.1 * i)))
    assert falling["collapse_of_last"] == FAILS
    assert falling["unlike_imagenet"] == FAILS
    points = collapse_points(rising)
    blocks_better = made_up(
        # NC1 of the block over that of the last layer falls with i
        lambda i, c: float(i) if c.selection not in PLAIN else 0.0
    )
    assert verdicts(blocks_better)["collapse_of_blocks"] == HOLDS
    assert len(points["gain of `kernel` against NC1 of the last layer"]) == len(
        DATASETS
    )


def test_the_gap_is_between_one_mean_and_the_oracle():
    results = made_up()
    means = gap_means(results, ROWS)
    assert means == {
        "max, one mean": 60.0,
        "max, k-means": 58.5,
        "oracle": 66.0,
        "kernel, last": 68.0,
        "kernel, all": 74.0,
    }
    assert closed_share(means, "kernel, last") == "133 %"
    assert closed_share(means | {"oracle": 59.0}, "kernel, last") == ""
    below = replace(
        results,
        accuracies={
            at: {**columns, Column(ORACLE, LAST): 50.0}
            for at, columns in results.accuracies.items()
        },
    )
    assert verdicts(below)["gap_closed"] == UNTESTABLE
