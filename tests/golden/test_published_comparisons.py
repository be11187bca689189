"""Published p-values and ranks, and cases in which other programs are known to be wrong."""

import csv
import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from imprint.stats import compare, wilcoxon

SHARED = Path(
    os.environ.get("IMPRINT_SHARED", Path(__file__).resolve().parents[3] / "shared")
)

K_MEANS_ON_RESNET18 = [  # accuracy for k = 1, 2, 5, 10 on fourteen tasks, published as a figure
    (84.64, 85.41, 88.95, 91.0),
    (77.93, 78.61, 81.18, 82.38),
    (75.2, 75.22, 76.89, 78.56),
    (35.3858, 34.1202, 47.1534, 47.4156),
    (93.5, 93.42, 94.3, 94.0),
    (85.21, 91.06, 90.76, 91.55),
    (78.3533, 84.1467, 88.52, 89.7533),
    (70.84, 77.31, 85.895, 87.405),
    (66.0, 72.032, 84.084, 84.808),
    (60.9767, 66.7333, 79.6667, 83.09),
    (57.0686, 63.2457, 75.94, 81.9457),
    (53.805, 59.5825, 72.675, 80.7175),
    (50.9867, 56.6156, 69.3333, 79.84),
    (48.714, 54.016, 66.458, 78.578),
]


@pytest.mark.parametrize(
    ("lost", "published"),
    [
        (0, 7.105427357601002e-15),  # all 48 instances won
        (5, 7.105427357601002e-14),
        (9, 2.3447910280083306e-13),
        (24, 5.4143356464919634e-12),
        (25, 6.423306331271306e-12),
        (85, 9.271630574403389e-09),
        (101, 3.8551952741272544e-08),
        (328, 0.00696877055073486),
        (571, 0.866842398448064),
    ],
)
def test_published_p_values_over_48_instances_are_reproduced_to_the_last_digit(
    lost, published
):
    """`lost` is the sum of the ranks of the instances that the better method lost."""
    difference = np.arange(48, 0, -1)
    signs = np.ones(48)
    for i, rank in enumerate(difference):
        if rank <= lost:
            signs[i], lost = -1, lost - rank
    assert wilcoxon(signs * difference, np.zeros(48)) == pytest.approx(
        published, rel=1e-14
    )


def test_a_method_that_wins_all_48_instances():
    rng = np.random.default_rng(0)
    others = rng.uniform(60, 90, (48, 4))
    result = compare(
        np.column_stack([others.max(axis=1) + rng.uniform(0.5, 5, 48), others]),
        list("abcde"),
    )
    assert [result.pair("a", other).p for other in "bcde"] == [
        7.105427357601002e-15
    ] * 4
    assert result.rank("a") == 1
    assert result.pair("a", "b").significant


def test_three_identical_methods_are_three_pairs_of_p_1_in_one_group():
    rng = np.random.default_rng(1)
    same, better, worse = (
        rng.uniform(80, 90, 48),
        rng.uniform(91, 95, 48),
        rng.uniform(50, 60, 48),
    )
    result = compare(
        {"max": same, "1-nn": same, "best": better, "nearest": same, "worst": worse}
    )
    for pair in combinations(["max", "1-nn", "nearest"], 2):
        assert result.pair(*pair)[2:] == (1.0, 1.0, False)
    assert result.groups == (("1-nn", "max", "nearest"),)


def test_ranks_are_average_ranks_and_not_dense_ranks():
    scores = np.array([[9, 9, 8, 7]] * 3 + [[8, 8, 9, 7]])
    assert scipy.stats.rankdata(-scores, method="dense", axis=1).mean(
        axis=0
    ).tolist() == [1.25, 1.25, 1.75, 3]
    assert compare(scores, list("abcd")).ranks == (1.75, 1.75, 2.5, 4.0)


def test_three_normalisations_that_do_not_differ_are_one_group():
    scores = np.random.default_rng(2).normal(85.7, 8, (24, 1)) + np.random.default_rng(
        3
    ).normal(0, 0.1, (24, 3))
    result = compare(scores, ["l2/none/l2", "none/none/l2", "l2/l2/l2"])
    assert result.friedman.p > 0.05
    assert result.groups == (result.order,)


def test_untied_data_agree_with_scikit_posthocs():
    """posthoc_wilcoxon(p_adjust="holm") of scikit-posthocs 0.17.1, friedmanchisquare of scipy 1.17.1."""
    result = compare(K_MEANS_ON_RESNET18, ["k=1", "k=2", "k=5", "k=10"])
    assert result.friedman == pytest.approx(
        (37.457142857142856, 3.682598406028484e-08), rel=1e-9
    )
    raw = [
        0.0023193359375,
        0.0001220703125,
        0.0001220703125,
        0.000244140625,
        0.0001220703125,
        0.0003662109375,
    ]
    assert [pair.p for pair in result.pairs] == raw
    assert [pair.adjusted for pair in result.pairs] == [raw[0]] + [0.000732421875] * 5


def test_tied_data_are_exact_where_scipy_uses_the_normal_approximation():
    """Beyond 13 instances, scipy uses the normal approximation if there is a zero or a tie."""
    first, second = [1, 0, 0, 0] * 5, [0, 0, 0, 0] * 4 + [0, 0, 0, 1]
    one_of_six_the_other_way = 2 * (1 + 6) / 2**6  # by hand: six ties, one of them lost
    assert wilcoxon(first, second) == one_of_six_the_other_way
    approximate = scipy.stats.wilcoxon(first, second, zero_method="pratt").pvalue
    assert abs(approximate - one_of_six_the_other_way) > 0.1


def fixed_alpha(result):
    """The rule that another program calls Holm: every one-sided p against alpha / (methods - 1)."""
    return [
        pair.p / 2 <= result.alpha / (len(result.names) - 1) for pair in result.pairs
    ]


def test_one_fixed_alpha_is_not_holm():
    """One method is better, seven are equal: the rate of false positives among the seven."""
    rng, repeats = np.random.default_rng(5), 200
    mistakes = {"holm": 0, "fixed": 0}
    for _ in range(repeats):
        result = compare(rng.normal(size=(20, 8)) + 3 * np.eye(8)[0], list("abcdefgh"))
        alike = ["a" not in pair[:2] for pair in result.pairs]
        mistakes["holm"] += any(
            pair.significant and same for pair, same in zip(result.pairs, alike)
        )
        mistakes["fixed"] += any(
            significant and same
            for significant, same in zip(fixed_alpha(result), alike)
        )
    assert mistakes["holm"] <= 0.05 * repeats
    assert mistakes["fixed"] >= 0.10 * repeats


def spectral_p(difference):
    """The exact p by another method: the null distribution is the inverse Fourier transform of a product of cosines."""
    ranks = 2 * scipy.stats.rankdata(np.abs(difference))[difference != 0].astype(float)
    seen, whole = ranks[difference[difference != 0] > 0].sum(), int(ranks.sum())
    angle = 2j * np.pi * np.arange(whole + 1) / (whole + 1)
    chance = np.fft.fft(
        np.prod((1 + np.exp(np.outer(ranks, angle))) / 2, axis=0)
    ).real / (whole + 1)
    return min(1.0, 2 * chance[: round(min(seen, whole - seen)) + 1].sum())


@pytest.mark.shared
def test_fifteen_methods_on_56_published_instances():
    source = SHARED / "paper" / "fig11b_kmeans_l2_max.csv"
    if not source.exists():
        pytest.skip(f"{source} is absent")
    with source.open() as file:
        rows = [
            {
                "k": f"k={row['k']}",
                "task": f"{row['backbone']} {row['dataset']}",
                "score": float(row["acc_percent"]),
            }
            for row in csv.DictReader(file)
        ]
    result = compare(rows, names="k", instances="task")
    assert (len(result.names), result.instances) == (15, 56)
    scores = {
        name: np.array([row["score"] for row in rows if row["k"] == name])
        for name in result.names
    }
    assert result.friedman == pytest.approx(
        scipy.stats.friedmanchisquare(*scores.values()), rel=1e-9
    )
    for pair in result.pairs:
        difference = np.round(scores[pair.first] - scores[pair.second], 6)
        assert pair.p == pytest.approx(spectral_p(difference), rel=1e-6, abs=1e-12)
    assert result.order[0] == "k=15"
