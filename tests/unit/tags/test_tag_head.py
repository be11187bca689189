"""Models of tags: exact additions and removals, thresholds, probabilities, files and errors."""

import copy
import json
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import average_precision_score, f1_score

from imprint import ImprintClassifier
from imprint.aggregators import kernel
from imprint.core.errors import FileError, ParameterError
from imprint.core.files import container
from imprint.export import export
from imprint.gaussian_process.nystroem import Nystroem
from imprint.gaussian_process.posterior import solve
from imprint.tags import calibration as tags

ALL = dict(generator="all", aggregator="kernel(noise=0.5)")
LABELS = np.array(["fear", "joy", "love", "other"])


def data(n=160, seed=0, width=12):
    """Rows that are noisy sums of the directions of their labels; some rows have no label."""
    rng = np.random.default_rng(seed)
    directions = np.random.default_rng(99).normal(size=(len(LABELS), width))
    Y = (rng.random((n, len(LABELS))) < 0.35).astype(int)
    X = Y @ directions + rng.normal(size=(n, width)) * 0.7
    return X.astype(np.float32), Y


def sets(Y, labels=LABELS):
    return [{labels[c] for c in np.flatnonzero(row)} for row in Y]


X, Y = data()
Q, T = data(200, seed=1)


@pytest.fixture(scope="module")
def model():
    return ImprintClassifier(**ALL).fit(X, sets(Y))


def test_the_matrix_is_predicted_and_labels_are_learnt(model):
    P = model.predict(Q)
    assert (P.shape, P.dtype) == (T.shape, np.int64)
    assert model.classes_.tolist() == LABELS.tolist()
    assert f1_score(T, P, average="macro") > 0.75
    assert model.score(Q, sets(T)) == model.score(Q, T) == np.mean((T == P).all(axis=1))


def test_scores_are_those_of_ridge_regression_on_the_matrix(model):
    def unit(rows):
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    ridge = KernelRidge(
        alpha=0.5, kernel="rbf", gamma=1 / model.head_.prepared.scale
    ).fit(unit(X), Y)
    assert np.allclose(model.decision_function(Q), ridge.predict(unit(Q)), atol=1e-4)


def test_sets_and_a_matrix_give_the_same_model(model):
    other = ImprintClassifier(**ALL).fit(X, Y)
    assert other.classes_.tolist() == [0, 1, 2, 3]
    assert np.allclose(
        other.decision_function(Q), model.decision_function(Q), atol=1e-5
    )
    assert (other.predict(Q) == model.predict(Q)).mean() > 0.999


@pytest.mark.parametrize("generator", ["all", "kmeans(k=50)"])
def test_rows_are_added_exactly(generator):
    parameters = {**ALL, "generator": generator}
    whole = ImprintClassifier(**parameters).fit(X, sets(Y))
    order = np.argsort(
        [sorted(s) == ["other"] for s in sets(Y)], kind="stable"
    )  # a new label set comes last
    part = ImprintClassifier(**parameters).fit(X[order[:100]], sets(Y[order[:100]]))
    grown = part.partial_fit(X[order[100:]], sets(Y[order[100:]]))
    exact = (
        1e-5 if generator == "all" else 0.1
    )  # k-means of a known label set is approximate, see KMeans
    assert np.allclose(
        grown.decision_function(Q), whole.decision_function(Q), atol=exact
    )


def test_a_label_is_forgotten_with_the_rows_that_have_no_other(model):
    forgotten = copy.deepcopy(model).forget("joy")
    rest = ~((Y[:, 1] == 1) & (Y.sum(axis=1) == 1))
    never = ImprintClassifier(**ALL).fit(
        X[rest], sets(np.delete(Y, 1, axis=1)[rest], np.delete(LABELS, 1))
    )
    assert (
        forgotten.classes_.tolist()
        == never.classes_.tolist()
        == ["fear", "love", "other"]
    )
    assert not any("joy" in key for key in forgotten.head_.imprinted.labels)
    assert len(forgotten.proxies_.labels) == rest.sum()
    assert np.allclose(
        forgotten.decision_function(Q), never.decision_function(Q), atol=1e-5
    )
    assert np.allclose(forgotten.predict_proba(Q), never.predict_proba(Q), atol=1e-4)
    assert np.allclose(forgotten.known(Q), never.known(Q), atol=0.02)
    assert (forgotten.predict(Q) == never.predict(Q)).mean() > 0.995


@pytest.mark.parametrize("generator", ["kmeans(k=3)", "mean", "random(k=3)"])
def test_other_generators_keep_the_proxies_of_the_other_labels(generator, tmp_path):
    model = ImprintClassifier(**{**ALL, "generator": generator}).fit(X, sets(Y))
    without = clone(model).fit(X, sets(Y)).forget("joy")
    assert without.predict(Q).shape == (len(Q), 3)
    if not generator.startswith(
        "random"
    ):  # the proxies of k-means and means represent every remaining row
        rest = ~((Y[:, 1] == 1) & (Y.sum(axis=1) == 1))
        assert without.proxies_.mass.sum() == rest.sum() < len(X)
    without.save(tmp_path / "m.imprint")
    again = ImprintClassifier.load(tmp_path / "m.imprint")
    assert np.array_equal(again.predict_proba(Q), without.predict_proba(Q))


def test_means_of_joined_label_sets_are_those_of_their_rows():
    parameters, rest = (
        {**ALL, "generator": "mean"},
        ~((Y[:, 1] == 1) & (Y.sum(axis=1) == 1)),
    )
    forgotten = ImprintClassifier(**parameters).fit(X, sets(Y)).forget("joy").proxies_
    never = ImprintClassifier(**parameters).fit(
        X[rest], sets(np.delete(Y, 1, axis=1)[rest], np.delete(LABELS, 1))
    )
    for name in ("weights", "labels", "mass", "spread"):
        np.testing.assert_allclose(
            getattr(forgotten, name),
            getattr(never.proxies_, name),
            atol=1e-5,
            err_msg=name,
        )


def test_leave_one_out_predictions_are_those_of_models_without_the_row(model):
    head = (
        copy.deepcopy(model)
        .partial_fit(X[:3], [{"fear"}, set(), {"love", "joy"}])
        .head_
    )  # copies of three rows
    proxies, solved, targets = head.proxies, head.prepared, head.targets
    predictions = tags.leave_one_out(head)
    W, order = (
        proxies.weights.astype(float),
        np.random.default_rng(0).permutation(len(targets)),
    )
    for i in [
        *range(10),
        *(
            order[:, None] == np.flatnonzero([(w == W).all(1).sum() > 1 for w in W])
        ).argmax(0),
    ]:
        others = np.flatnonzero((W[order[i]] != W).any(axis=1))
        noise = head.aggregator.noise_of(proxies, solved.scale)[others]
        without = solve(
            W[others], proxies.labels[others], noise, 1 / solved.scale, targets[others]
        )
        assert np.allclose(
            without.scores(W[[order[i]]])[0], predictions.scores[i], atol=1e-7
        )
        assert np.allclose(
            without.doubt(W[[order[i]]])[0], predictions.doubt[i], atol=1e-7
        )


def test_probabilities_are_calibrated_and_agree_with_scores(model):
    P = model.predict_proba(Q)
    assert ((P > 0) & (P < 1)).all()
    assert (
        np.argsort(P, axis=0) == np.argsort(model.decision_function(Q), axis=0)
    ).mean() > 0.99
    assert np.abs(P.mean(axis=0) - T.mean(axis=0)).max() < 0.08
    for low, high in ((0.0, 0.3), (0.3, 0.7), (0.7, 1.0)):
        chosen = (low <= P) & (high > P)
        assert abs(T[chosen].mean() - P[chosen].mean()) < 0.1


def test_known_flags_rows_unlike_the_training_rows(model):
    p = model.known(Q)
    assert ((p > 0) & (p <= 1)).all()
    assert (p < 0.05).mean() < 0.12
    far = -np.random.default_rng(2).normal(size=(60, 12)).astype(np.float32) * 3
    assert np.median(model.known(far)) < np.median(p)


def test_weights_count_as_copies():
    twice = np.where(np.arange(len(X)) < 40, 2, 1)
    weighted = ImprintClassifier(**ALL).fit(X, sets(Y), sample_weight=twice)
    copies = ImprintClassifier(**ALL).fit(
        np.repeat(X, twice, axis=0), sets(np.repeat(Y, twice, axis=0))
    )
    assert np.allclose(
        weighted.decision_function(Q), copies.decision_function(Q), atol=1e-5
    )
    assert np.allclose(weighted.predict_proba(Q), copies.predict_proba(Q), atol=1e-4)


def test_files_and_copies_give_identical_predictions(model, tmp_path):
    model.save(tmp_path / "m.imprint")
    for again in (
        ImprintClassifier.load(tmp_path / "m.imprint"),
        pickle.loads(pickle.dumps(model)),
    ):
        for call in ("predict", "predict_proba", "known"):
            assert np.array_equal(getattr(again, call)(Q), getattr(model, call)(Q))
        assert again.partial_fit(X[:1], [{"kind"}]).classes_.tolist() == [
            "fear",
            "joy",
            "kind",
            "love",
            "other",
        ]


@pytest.mark.parametrize("n", [7, 14, 20, 21])
def test_models_without_errors_are_saved(n, tmp_path):
    """Rounding once moved the interval outside of [0, 1], and the files were refused."""
    one = np.eye(2, dtype=int)[np.arange(n) % 2]
    model = ImprintClassifier(**ALL).fit(
        one + np.random.default_rng(0).normal(size=(n, 2)) / 50, one
    )
    assert (model.expected_accuracy_, round(model.expected_interval_[1], 9)) == (1, 1)
    model.save(tmp_path / "m.imprint")
    assert (
        ImprintClassifier.load(tmp_path / "m.imprint").expected_interval_
        == model.expected_interval_
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda d, a: d["tags"].update(labels=["fear", "joy", "love"]),
        lambda d, a: d["tags"].update(labels=["joy", "fear", "love", "other"]),
        lambda d, a: d["tags"].update(labels=[1, 2, 3, 4]),
        lambda d, a: d["tags"].update(expected=2.0),
        lambda d, a: d["tags"].pop("heaviest"),
        lambda d, a: a.update({"tags/slopes": np.full(4, np.inf)}),
        lambda d, a: a.update({"tags/thresholds": np.full(3, 0.5)}),
        lambda d, a: a.update({"tags/thresholds": np.full(4, np.nan)}),
        lambda d, a: a.update(
            {
                name: v[:3]
                for name, v in a.items()
                if name.startswith("tags/") and len(v) == 4
            }
        ),
        lambda d, a: a.pop("tags/below"),
        lambda d, a: d.pop("tags"),
    ],
)
def test_an_altered_file_is_refused(model, tmp_path, change):
    model.save(tmp_path / "m.imprint")
    document, arrays = container.read(tmp_path / "m.imprint")
    document.pop("written_by")
    change(document, arrays)
    container.write(tmp_path / "bad.imprint", document, arrays)
    with pytest.raises(FileError):
        ImprintClassifier.load(tmp_path / "bad.imprint")


def test_a_label_without_rows_is_never_predicted():
    empty = np.hstack([Y, np.zeros((len(Y), 1), int)])
    model = ImprintClassifier(**ALL).fit(X, empty)
    assert model.predict(Q).shape == (len(Q), 5)
    assert not model.predict(Q)[:, 4].any()
    assert (model.predict_proba(Q)[:, 4] < 0.05).all()


REFUSED = [
    (
        "max",
        lambda: ImprintClassifier(aggregator="max").fit(X, Y),
        r"max: it predicts one class; for tags, use",
    ),
    (
        "norms",
        lambda: ImprintClassifier(norm_pre="none").fit(X, Y),
        r"tags need norm_pre and norm_inf to be equal",
    ),
    (
        "class_weight",
        lambda: ImprintClassifier(class_weight="balanced").fit(X, Y),
        r"class_weight is not available",
    ),
    (
        "rows",
        lambda: ImprintClassifier().fit(X, Y[:9]),
        r"fit\(X, y\): X and y must have .* rows, not 160 and 9\.",
    ),
    (
        "tags later",
        lambda: ImprintClassifier().fit(X, Y[:, 0]).partial_fit(X, Y),
        r"one label per row, and y has tags",
    ),
    (
        "columns",
        lambda: ImprintClassifier().fit(X, Y).partial_fit(X, Y[:, :3]),
        r"y has 3 columns; the model has 4",
    ),
    (
        "kinds",
        lambda: ImprintClassifier().fit(X, Y).partial_fit(X, sets(Y)),
        r"must be all texts",
    ),
    (
        "unknown",
        lambda: ImprintClassifier().fit(X, sets(Y)).forget("jo"),
        r"Unknown label 'jo'\. Did you mean 'joy'",
    ),
    (
        "last",
        lambda: ImprintClassifier().fit(X, [{"a"}] * len(X)).forget("a"),
        r"forget\('a'\): no row has another",
    ),
]


@pytest.mark.parametrize(
    ("call", "message"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED]
)
def test_refusals_in_one_sentence(call, message):
    with pytest.raises(ParameterError, match=message):
        call()


def test_one_label_per_row_may_be_added(model):
    grown = copy.deepcopy(model).partial_fit(X[:2], ["joy", "new"])
    assert "new" in grown.classes_
    assert grown.predict(X[:2]).shape == (2, 5)


def test_figures_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    S, weight = rng.integers(0, 6, size=(50, 3)) / 5, rng.random(50)
    truth = rng.integers(0, 2, size=(50, 3))
    expected = average_precision_score(truth, S, average=None, sample_weight=weight)
    assert np.allclose(tags.average_precision(S, truth, weight), expected)
    expected = f1_score(truth, S > 0.5, average=None, sample_weight=weight)
    assert np.allclose(tags.f1_scores(S > 0.5, truth, weight), expected)


def test_thresholds_reach_the_largest_f1():
    rng = np.random.default_rng(1)
    S, truth, weight = (
        rng.integers(0, 8, size=(40, 3)) / 8,
        rng.integers(0, 2, size=(40, 3)),
        np.ones(40),
    )
    limit = truth.sum(axis=0)
    best = tags.best_thresholds(S, truth, weight, limit)
    for c in range(3):  # where the probabilities are 0 and 1, the expected F1 is the F1
        allowed = [
            t
            for t in np.unique(S)
            if (S[:, c] >= t).sum() <= tags.MAX_PREDICTED_RATIO * limit[c]
        ]
        every = [tags.f1_scores(S[:, [c]] >= t, truth[:, [c]])[0] for t in allowed]
        assert tags.f1_scores(S[:, [c]] >= best[c], truth[:, [c]])[0] == max(every)


def test_exported_models_agree_with_the_library(model, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    export(model, tmp_path / "m.onnx", "onnx")
    session = runtime.InferenceSession(
        tmp_path / "m.onnx", providers=["CPUExecutionProvider"]
    )
    scores, P, known = session.run(
        ["scores", "probabilities", "known"], {"embeddings": Q}
    )
    assert np.allclose(scores, model.decision_function(Q), atol=1e-5)
    assert np.allclose(P, model.predict_proba(Q), atol=1e-4)
    assert np.allclose(known, model.known(Q), atol=0.02)
    about = json.loads(session.get_modelmeta().custom_metadata_map["imprint.export"])
    assert about["classes"] == LABELS.tolist()
    assert (
        (scores >= np.array(about["tags"]["thresholds"])) == model.predict(Q)
    ).mean() > 0.999
    export(model, tmp_path / "m.npz", "numpy")
    with np.load(tmp_path / "m.npz") as arrays:
        unit = Q / np.linalg.norm(Q, axis=1, keepdims=True)
        distances = np.square(unit[:, None] - arrays["weights"]).sum(axis=2)
        about = json.loads(str(arrays["imprint.export"]))
        S = np.exp(-about["rate"] * distances) @ arrays["coefficients"]
    assert np.allclose(S, model.decision_function(Q), atol=1e-4)
    assert "every label whose score reaches its threshold" in about["use"]


def test_many_rows_are_solved_through_centres(model, monkeypatch):
    assert (
        model.head_.calibration.thresholds.shape == LABELS.shape
    )  # computed before the limits change
    monkeypatch.setattr(kernel, "MAX_EXACT_PROXIES", 100)
    monkeypatch.setattr(tags, "MAX_ASSESSED_PROXIES", 120)
    large = ImprintClassifier(
        generator="all", aggregator="kernel(noise=0.5, centres=120)"
    ).fit(X, sets(Y))
    assert isinstance(large.head_.prepared.system, Nystroem)
    assert np.abs(large.decision_function(Q) - model.decision_function(Q)).mean() < 0.05
    assert (large.predict(Q) == model.predict(Q)).mean() > 0.95
    assert np.abs(large.predict_proba(Q) - model.predict_proba(Q)).mean() < 0.05


def test_ties_do_not_depend_on_how_the_rows_arrived():
    """Small sets of points on a grid, and copies, tie by symmetry."""
    rng = np.random.default_rng(213)
    for case in range(40):
        n, d = int(rng.integers(6, 13)), int(rng.integers(1, 4))
        X = rng.integers(-2, 3, size=(n, d)).astype(float)
        if case % 2:
            X = rng.normal(size=(n, d))[rng.integers(n, size=n)]
        Y = rng.integers(0, 2, size=(n, 2))
        split, order = int(rng.integers(1, n)), rng.permutation(n)
        options = dict(generator="all", aggregator="kernel(noise=1)")
        expected = ImprintClassifier(**options).fit(X, Y).head_.calibration
        later = ImprintClassifier(**options).fit(X[:split], Y[:split])
        later.partial_fit(X[split:], Y[split:])
        shuffled = ImprintClassifier(**options).fit(X[order], Y[order])
        for clf in (later, shuffled):
            calibration = clf.head_.calibration
            assert calibration.thresholds == pytest.approx(
                expected.thresholds, abs=1e-6
            )
            assert calibration.expected_accuracy == pytest.approx(
                expected.expected_accuracy, abs=1e-9
            )
            assert calibration.f1 == pytest.approx(expected.f1, abs=1e-9)
