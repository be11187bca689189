"""The fit of gains to NC1, and the figure in the paper."""

import csv
import dataclasses
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from imprint.collapse import gain_fit


def test_agrees_with_ranks_and_normal_equations():
    rng = np.random.default_rng(0)
    x = 10 ** rng.uniform(-1, 2, 40)
    gain = 3 * np.log10(x) + 1 + rng.normal(size=40)
    fit = gain_fit(x, gain)
    ranks = np.corrcoef(stats.rankdata(x), stats.rankdata(gain))[0, 1]
    design = np.column_stack([np.log10(x), np.ones(40)])
    (slope, intercept), residual, *_ = np.linalg.lstsq(design, gain, rcond=None)
    assert fit.n == 40
    assert fit.spearman == pytest.approx(ranks)
    assert (fit.slope, fit.intercept) == pytest.approx((slope, intercept))
    assert fit.r2 == pytest.approx(1 - residual[0] / ((gain - gain.mean()) ** 2).sum())
    t = ranks * np.sqrt(38 / (1 - ranks**2))
    assert fit.p_value == pytest.approx(2 * stats.t.sf(t, 38))
    assert fit.predict(10) == pytest.approx(intercept + slope)


def test_ties_share_their_rank():
    assert gain_fit([1, 1, 2, 3], [0, 0, 1, 2]).spearman == pytest.approx(1)


def test_a_fit_is_a_value():
    fit = gain_fit([1, 2, 3, 5], [1, 2, 2, 3])
    assert fit == gain_fit([1, 2, 3, 5], [1, 2, 2, 3])
    with pytest.raises(dataclasses.FrozenInstanceError):
        fit.slope = 0


NC1 = {  # published values; those with two decimals were read from a figure
    "resnet18": [
        1.92,
        4.58,
        2.34,
        14.04,
        0.39,
        0.83,
        1.22,
        1.65,
        2.15,
        2.52,
        2.89,
        3.34,
        3.74,
        4.33,
    ],
    "resnet50": [
        5.42,
        2.86,
        1.58,
        27.2,
        0.30,
        0.58,
        0.85,
        1.17,
        1.46,
        1.77,
        2.02,
        2.36,
        2.61,
        3.00,
    ],
    "vit_b_16": [
        2.80,
        1.954377,
        0.427542,
        10.668107,
        0.15,
        0.22,
        0.26,
        0.32,
        0.36,
        0.41,
        0.44,
        0.48,
        0.52,
        0.55,
    ],
    "swin_b": [
        7.510301,
        2.043176,
        0.431034,
        36.962592,
        0.12,
        0.17,
        0.21,
        0.26,
        0.31,
        0.35,
        0.38,
        0.41,
        0.45,
        0.47,
    ],
}
TASKS = [
    "MNIST",
    "FashionMNIST",
    "CIFAR-10",
    "CombiDigits",
    *(f"ImageNet_{d}_in_1" for d in range(1, 11)),
]


@pytest.mark.shared
def test_the_figure_of_the_paper():
    root = (
        os.environ.get("IMPRINT_SHARED")
        or Path(__file__).resolve().parents[3].parent / "shared"
    )
    path = Path(root) / "paper" / "fig11b_kmeans_l2_max.csv"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    with path.open() as file:
        accuracy = {
            (r["backbone"], r["dataset"], r["k"]): float(r["acc_percent"])
            for r in csv.DictReader(file)
        }
    pairs = [(b, task) for b in NC1 for task in TASKS]
    fit = gain_fit(
        np.concatenate(list(NC1.values())),
        [accuracy[*p, "5"] - accuracy[*p, "1"] for p in pairs],
    )
    assert fit.n == 56
    assert fit.spearman == pytest.approx(0.8179, abs=2e-3)
    assert fit.p_value < 1e-13
    assert fit.r2 == pytest.approx(0.3559, abs=5e-3)
    assert fit.slope == pytest.approx(6.8186, rel=0.03)
