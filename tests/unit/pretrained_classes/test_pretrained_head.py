"""New classes next to pre-trained ones: each strategy compared with its formula, exact changes, files, errors."""

import numpy as np
import onnxruntime
import pytest
import torch
from safetensors.torch import load_file

from imprint import ImprintClassifier, Imprinter, backbones
from imprint.calibration import CrossValidation
from imprint.core.errors import FileError, NotFittedError, ParameterError
from imprint.core.files import container
from imprint.export import export, export_file
from imprint.imprinter import Embedded
from imprint.pretrained_classes import STRATEGIES, PretrainedClasses, match_quantiles

HEAD = backbones.head("tinynet")
LABELS = (
    "zzz",
    "aardwolf",
    "m of many",
)  # sorted before, after and among the pre-trained labels


def embedded(labels, n=12, seed=0):
    """Non-negative embeddings of new classes, like those of the network; the rows of a class are always the same."""
    rows = []
    for label in labels:
        rng = np.random.default_rng((seed, *label.encode()))
        centre = np.random.default_rng([*label.encode()]).gamma(0.3, size=512)
        rows.append(centre + 0.3 * rng.gamma(0.3, size=(n, 512)))
    X = np.concatenate(rows).astype(np.float32)
    return Embedded(X, [f"{i}.png" for i in range(len(X))], (), np.repeat(labels, n))


def old_rows():
    """For each pre-trained class, an embedding in the direction of its weights; every second one is shorter."""
    W = HEAD.weights / np.linalg.norm(HEAD.weights, axis=1, keepdims=True)
    return (np.maximum(W, 0) * np.where(np.arange(len(W)) % 2, 3, 30)[:, None]).astype(
        np.float32
    )


def asked():
    X = np.concatenate([embedded(LABELS, 7, seed=1).X, old_rows()])
    return Embedded(X, [str(i) for i in range(len(X))], ())


def between():
    """Embeddings between a pre-trained class and a new class, in 60 steps."""
    t = np.linspace(0, 1, 60, dtype=np.float32)[:, None]
    return t * embedded(LABELS[:1], 1, seed=3).X + (1 - t) * old_rows()[:1]


def fitted(way, labels=LABELS):
    return Imprinter("tinynet", keep_head=way).fit(embedded(labels))


def towards(m):
    """DONE: the values of the mean sorted row of the head, in the order of the values of m."""
    out = np.empty_like(m)
    out[np.argsort(m, kind="stable")] = np.sort(HEAD.weights, axis=1).mean(axis=0)
    return out


def test_ranks_are_kept_and_values_are_those_of_the_mean_sorted_row():
    weights = np.array([[0.0, 1.0, 5.0], [4.0, 2.0, 3.0]])
    assert match_quantiles(weights, np.array([[0.2, 0.9, 0.1]])).tolist() == [
        [2.0, 4.5, 1.0]
    ]


def by_label(model, X):
    """Scores of the pre-trained classes in the order of the head, and of the new classes in the order of LABELS."""
    place = {label: i for i, label in enumerate(model.classes_.tolist())}
    S = model.state.head.scores(X)
    return S[:, [place[name] for name in HEAD.names]], S[
        :, [place[label] for label in LABELS]
    ]


def test_done_is_the_formula_of_its_paper():
    rows, Q = embedded(LABELS), asked().X
    means = np.stack([rows.X[rows.y == label].mean(axis=0) for label in LABELS])
    W = np.stack([towards(m) for m in means])
    old, new = by_label(fitted("done"), Q)
    np.testing.assert_allclose(
        old, Q @ HEAD.weights.T + HEAD.bias, rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(
        new, Q @ W.T + np.median(HEAD.bias), rtol=1e-4, atol=1e-4
    )


def test_qi_compares_cosines_of_all_classes():
    rows, Q = embedded(LABELS), asked().X

    def unit(A):
        return A / np.linalg.norm(A, axis=-1, keepdims=True)

    means = np.stack([unit(rows.X[rows.y == label]).mean(axis=0) for label in LABELS])
    old, new = by_label(fitted("qi"), Q)
    np.testing.assert_allclose(old, unit(Q) @ unit(HEAD.weights).T, atol=1e-5)
    np.testing.assert_allclose(new, unit(Q) @ unit(means).T, atol=1e-5)


def test_margin_keeps_old_answers_unless_a_new_class_wins_by_it():
    model, rows = fitted("margin"), embedded(LABELS)
    head, Q = model.state.head, np.concatenate([asked().X, between()])
    unit = rows.X / np.linalg.norm(rows.X, axis=1, keepdims=True)
    W = np.stack([towards(unit[rows.y == label].mean(axis=0)) for label in LABELS])
    logits = Q @ HEAD.weights.T + HEAD.bias
    gap = (Q @ W.T).max(axis=1) + np.median(HEAD.bias) - logits.max(axis=1)
    alone = head.imprinted.classes[head.imprinted.winners(Q)]
    expected = np.where(
        gap > head.margin, alone, np.array(HEAD.names)[logits.argmax(axis=1)]
    )
    assert ((gap > 0) & (gap < head.margin)).sum() > 3
    assert (gap < 0).any()
    assert (gap[:21] > head.margin).any()
    assert model.predict(Embedded(Q, [""] * len(Q), ())).tolist() == expected.tolist()


def test_the_margin_is_a_low_quantile_of_held_out_images():
    model = fitted("margin")
    folds = model.state.head.imprinted.folds
    gaps = []
    for f in range(5):
        others = [s.rows[s.fold != f] for s in folds.held.values()]
        W = np.stack(
            [
                towards((o / np.linalg.norm(o, axis=1, keepdims=True)).mean(axis=0))
                for o in others
            ]
        )
        X = np.concatenate([s.rows[s.fold == f] for s in folds.held.values()])
        logits = X @ HEAD.weights.T + HEAD.bias
        gaps += (
            (X @ W.T).max(axis=1) + np.median(HEAD.bias) - logits.max(axis=1)
        ).tolist()
    assert len(gaps) == 36
    assert model.state.head.margin == pytest.approx(
        min(gaps), rel=1e-6
    )  # the minimum of 36 is the 1 % quantile
    assert (
        Imprinter("tinynet", keep_head=True).fit(embedded(LABELS, 1)).state.head.margin
        == 0
    )


def test_the_margin_is_not_negative_for_images_that_look_like_pretrained_classes():
    X = old_rows()[:24:2]
    alike = Embedded(X, [str(i) for i in range(len(X))], (), np.repeat(LABELS[:2], 6))
    head = Imprinter("tinynet", keep_head="margin").fit(alike).state.head
    assert head.imprinted.folds.predictions.assessed.all()
    assert head.margin == 0


@pytest.mark.parametrize("way", STRATEGIES)
def test_classes_are_added_and_removed_exactly_also_after_loading(way, tmp_path):
    def answers(model):
        return model.classes_.tolist(), model.predict_proba(asked()).tolist()

    both, whole = fitted(way, LABELS[:2]), fitted(way)
    assert answers(fitted(way, LABELS[:1]).add(embedded(LABELS[1:2]))) == answers(both)
    assert answers(fitted(way).forget("m of many")) == answers(both)
    assert answers(fitted(way).forget("goldfish").forget("m of many")) == answers(
        fitted(way, LABELS[:1]).forget("goldfish").add(embedded(LABELS[1:2]))
    )
    assert "goldfish" not in whole.forget("goldfish").classes_
    whole.save(tmp_path / "m.imprint")
    again = Imprinter.load(tmp_path / "m.imprint")
    assert answers(again) == answers(whole)
    assert [
        again.why(Embedded(asked().X[i : i + 1], ["q"], ()), 4) for i in (0, 30)
    ] == [whole.why(Embedded(asked().X[i : i + 1], ["q"], ()), 4) for i in (0, 30)]
    assert (
        tmp_path / "m.imprint"
    ).stat().st_size < 700_000  # the pre-trained weights are not stored in the file
    assert answers(again.forget("zzz")) == answers(whole.forget("zzz"))
    assert answers(again.fit(embedded(LABELS))) == answers(
        fitted(way)
    )  # a new fit has all pre-trained classes again


@pytest.mark.parametrize("way", ["qi", "done"])
def test_it_is_exported_as_a_linear_layer(way, tmp_path):
    model, Q = fitted(way), asked().X
    expected = model.state.head.scores(Q)
    export(model, tmp_path / "m.onnx", head_only=True)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    S, P = session.run(None, {"embeddings": Q})
    np.testing.assert_allclose(S, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(P, model.predict_proba(asked()), atol=1e-4)
    model.save(tmp_path / "m.imprint")
    export_file(tmp_path / "m.imprint", tmp_path / "m.safetensors", "torch")
    layer = torch.nn.Linear(512, 203)
    layer.load_state_dict(load_file(tmp_path / "m.safetensors"))
    X = Q if way == "done" else Q / np.linalg.norm(Q, axis=1, keepdims=True)
    np.testing.assert_allclose(
        layer(torch.from_numpy(X)).detach().numpy(), expected, rtol=1e-4, atol=1e-4
    )


def test_explanations_name_training_images_of_new_classes_only():
    model = fitted("margin")
    new = model.why(Embedded(asked().X[:1], ["q"], ()), 3)
    assert (new[0].label, new[0].image[-4:], model.measure) == (
        "zzz",
        ".png",
        "similarity",
    )
    old = model.why(Embedded(asked().X[21:22], ["q"], ()), 1)
    assert (old[0].label, old[0].image) == (HEAD.names[0], None)


def test_equal_class_names_are_made_distinct():
    labels = set(PretrainedClasses.of(backbones.head("efficientnet_lite0")).labels)
    assert len(labels) == 1000
    assert labels & {"crane", "crane (n02012849)", "crane (n03126707)"} == {
        "crane (n02012849)",
        "crane (n03126707)",
    }


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: Imprinter("minilm", keep_head=True), "no pre-training head"),
        (
            lambda: Imprinter("embeddings", keep_head=True),
            "embeddings come without a network",
        ),
        (
            lambda: Imprinter(keep_head="quantile"),
            "Unknown way to keep the head 'quantile'",
        ),
        (lambda: Imprinter(keep_head="qi", recipe="kernel"), "takes no recipe"),
        (lambda: Imprinter(keep_head="done", norm_inf="l2"), "takes no norm_inf"),
        (lambda: Imprinter(keep_head=True, calibrate=False), "needs calibrate=True"),
        (lambda: Imprinter(keep_head=True, recipe="oracle"), "points, not directions"),
        (
            lambda: Imprinter("tinynet", keep_head=True).fit(
                embedded(["goldfish", "zzz"])
            ),
            "'goldfish' is a class of",
        ),
        (
            lambda: Imprinter("tinynet", keep_head=True).fit(
                embedded(["zzz"])._replace(y=np.zeros(12, int))
            ),
            "text",
        ),
        (
            lambda: fitted("qi", ["zzz"]).forget("zzz"),
            "the only class next to the network's own",
        ),
        (lambda: fitted("qi").forget("zzzz"), "Did you mean 'zzz'"),
        (lambda: fitted("qi").classifier, "use predict"),
        (
            lambda: export(fitted("margin"), "m.npz", "numpy"),
            "LogitsWithMargin does not describe itself",
        ),
    ],
)
def test_invalid_combinations_are_refused_in_one_sentence(build, sentence):
    with pytest.raises(ParameterError, match=sentence):
        build()


def test_it_is_not_calibrated():
    model = fitted("margin")
    assert not model.calibrated
    for question in (lambda: model.known(asked()), lambda: model.expected_accuracy_):
        with pytest.raises(NotFittedError, match="has no images of the network"):
            question()


def test_a_forgotten_pretrained_class_can_be_imprinted_again():
    model = fitted("done").forget("goldfish").add(embedded(["goldfish"]))
    assert model.predict(embedded(["goldfish"], seed=2)).tolist() == ["goldfish"] * 12


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda kept: kept.update(way="max"), "not an imprint model"),
        (lambda kept: kept.update(way="margin"), "not an imprint model"),
        (lambda kept: kept["classes"].append("zzz"), "not an imprint model"),
        (lambda kept: kept.update(classes=[]), "not an imprint model"),
        (lambda kept: kept.update(digest="0"), "another head of tinynet"),
    ],
)
def test_a_file_that_claims_another_head_is_refused(change, sentence, tmp_path):
    fitted("qi").save(tmp_path / "m.imprint")
    document, arrays = container.read(tmp_path / "m.imprint")
    container.write(tmp_path / "c.imprint", {**document, "kind": "classifier"}, arrays)
    for name in ("m.imprint", "c.imprint"):
        with pytest.raises(FileError, match=r"use Imprinter\.load"):
            ImprintClassifier.load(tmp_path / name)
    change(document["kept"])
    container.write(tmp_path / "n.imprint", document, arrays)
    with pytest.raises(FileError, match=sentence):
        Imprinter.load(tmp_path / "n.imprint")


def test_only_margin_stores_folds():
    assert isinstance(fitted("margin").state.head.imprinted.folds, CrossValidation)
    assert fitted("done").state.head.imprinted.folds is None
