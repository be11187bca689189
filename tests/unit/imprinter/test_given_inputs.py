"""`Imprinter.fit` and `predict` on all kinds of values."""

import copy
import io
import pickle
import wave
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from PIL import Image

from imprint import ImprintClassifier, Imprinter
from imprint.core.component import Component
from imprint.core.errors import (
    DataWarning,
    ImprintError,
    ParameterError,
    UnreadableInput,
)
from imprint.export import export
from imprint.imprinter.items import conflicts, is_foreign

RNG = np.random.default_rng(0)
SHADES = {"dark": 30, "light": 220}
LABELS = [label for label in SHADES for _ in range(4)]
ARRAYS = [
    RNG.integers(shade - 20, shade + 20, (10, 14, 3)).astype(np.uint8)
    for shade in SHADES.values()
    for _ in range(4)
]
TEXTS = [
    "I paid 3.50 euros",
    "refund it. now",
    "a charge of 9.99",
    "money back",
    "lost my card",
    "card is gone.",
    "stolen card",
    "no card",
]
TOPICS = ["money"] * 4 + ["card"] * 4
X = np.concatenate([RNG.normal(0, 1, (6, 5)), RNG.normal(4, 1, (6, 5))])
Y = ["near"] * 6 + ["far"] * 6


@pytest.fixture(autouse=True)
def temporary_home(tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))


def png(array):
    out = io.BytesIO()
    Image.fromarray(array).save(out, "PNG")
    return out.getvalue()


def files(folder):
    for i, array in enumerate(ARRAYS):
        (folder / f"{i}.png").write_bytes(png(array))
    return [folder / f"{i}.png" for i in range(len(ARRAYS))]


@pytest.fixture
def images():
    return Imprinter("raw", recipe="janson2022").fit(ARRAYS, LABELS)


@pytest.fixture
def embeddings():
    return Imprinter().fit(X, Y)


@pytest.mark.parametrize(
    "form",
    [
        "paths",
        "strings",
        "bytes",
        "pillow",
        "arrays",
        "one array",
        "series",
        "undecoded",
    ],
)
def test_images_in_every_form_give_the_same_model(form, tmp_path, images):
    given = {
        "paths": lambda: files(tmp_path),
        "strings": lambda: [str(path) for path in files(tmp_path)],
        "bytes": lambda: [png(array) for array in ARRAYS],
        "pillow": lambda: [Image.fromarray(array) for array in ARRAYS],
        "arrays": lambda: ARRAYS,
        "one array": lambda: np.stack(ARRAYS),
        "series": lambda: pd.Series([str(path) for path in files(tmp_path)]),
        "undecoded": lambda: [{"bytes": png(array), "path": None} for array in ARRAYS],
    }[form]()
    model = Imprinter("raw", recipe="janson2022").fit(given, LABELS)
    np.testing.assert_array_equal(
        model.classifier.proxies_.weights, images.classifier.proxies_.weights
    )
    assert images.predict(given).tolist() == LABELS


@pytest.mark.parametrize(
    "values",
    [
        ARRAYS,
        [png(a) for a in ARRAYS],
        [Image.fromarray(a) for a in ARRAYS],
        [Path("a.png")],
        ["a.JPG", "b.png"],
    ],
)
def test_images_are_recognised_without_a_backbone(values):
    from imprint.imprinter.items import split_of_values

    assert split_of_values(values).modality == "image"


def test_texts_with_dots_are_texts():
    model = Imprinter().fit(TEXTS, TOPICS)
    assert model.modality == "text"
    assert model.predict(["I was charged 3.50.", "my card was lost."]).tolist() == [
        "money",
        "card",
    ]
    assert model.predict(pd.Series(["my card was lost."])).tolist() == ["card"]


def test_one_array_of_an_image_is_one_image(images):
    large = RNG.integers(200, 240, (300, 200, 3)).astype(np.uint8)
    assert images.predict(large).tolist() == ["light"]
    assert images.predict([large, large[:50]]).tolist() == ["light", "light"]
    assert images.predict(Image.fromarray(large)).tolist() == ["light"]
    assert len(images.predict(np.stack([large[..., 0], large[..., 1]]))) == 2
    with pytest.raises(ParameterError, match=r"give one grey image as a list"):
        images.predict(large[..., 0])


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "dict"])
def test_tables_of_texts_and_of_embeddings(kind, embeddings):
    make = {
        "pandas": pd.DataFrame,
        "polars": pl.DataFrame,
        "arrow": pa.table,
        "dict": dict,
    }[kind]
    table = make({"text": TEXTS, "label": TOPICS})
    assert Imprinter().fit(table).predict(["card lost"]).tolist() == ["card"]
    columns = {f"x{j}": X[:, j] for j in range(5)}
    model = Imprinter().fit(make({**columns, "label": Y}))
    np.testing.assert_array_equal(
        model.predict_proba(make(columns)), embeddings.predict_proba(X)
    )
    assert (
        Imprinter().fit(make(columns), Y).predict(X).tolist()
        == embeddings.predict(X).tolist()
    )


def test_columns_of_a_hugging_face_data_set():
    class Dataset:  # has the interface of `datasets.Dataset`
        column_names = ("image", "label")

        def __getitem__(self, name):
            return {
                "image": [Image.fromarray(a) for a in ARRAYS],
                "label": [int(y == "light") for y in LABELS],
            }[name]

    assert Imprinter("raw").fit(Dataset()).predict(ARRAYS[:1]).tolist() == [0]


def test_recordings_are_recognised(tmp_path):
    from imprint.imprinter.items import split_of_values

    with wave.open(str(tmp_path / "a.wav"), "wb") as f:
        f.setparams((1, 2, 16000, 0, "NONE", ""))
        f.writeframes(np.zeros(16000, "<i2").tobytes())
    raw = (tmp_path / "a.wav").read_bytes()
    for values in (
        [tmp_path / "a.wav"],
        [str(tmp_path / "a.wav")],
        [raw],
        [(np.zeros(9, np.float32), 16000)],
    ):
        assert split_of_values(values).modality == "sound"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: Imprinter().fit([object()], ["a"]),
            "Cannot tell what object is; name the backbone",
        ),
        (lambda: Imprinter().fit({"words": TEXTS}, TOPICS), "neither a column text"),
        (lambda: Imprinter().fit(TEXTS), "there are no labels"),
        (lambda: Imprinter().fit(TEXTS, TOPICS[:3]), "8 items and 3 labels"),
        (lambda: Imprinter().fit([], []), "nothing|no items|no rows"),
    ],
)
def test_other_values_are_refused_in_a_sentence(call, sentence):
    with pytest.raises(ParameterError, match=sentence):
        call()


def test_embeddings_of_another_width_are_refused(embeddings):
    for call in (
        embeddings.predict,
        embeddings.predict_proba,
        embeddings.known,
        embeddings.top,
    ):
        for width in (1, 4, 6):
            with pytest.raises(
                ParameterError,
                match=f"The embeddings have {width} columns, and the model was fitted on 5",
            ):
                call(np.ones((3, width)))
    with pytest.raises(ParameterError, match="fitted on 5"):
        embeddings.why(np.ones(3))
    with pytest.raises(
        ParameterError,
        match=r"^The embeddings have 4 columns, and the model was fitted on 5",
    ):
        embeddings.add(np.ones((3, 4)), Y[:3])


@pytest.mark.parametrize("kind", ["images", "embeddings"])
def test_a_fitted_model_is_copied_and_pickled(kind, request, tmp_path):
    model = request.getfixturevalue(kind)
    items = ARRAYS if kind == "images" else X
    expected = model.predict_proba(items)
    (tmp_path / "photos").mkdir()
    for copied in (
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        copy.copy(model),
    ):
        np.testing.assert_array_equal(copied.predict_proba(items), expected)
    fresh = pickle.loads(pickle.dumps(Imprinter("tinynet")))
    assert fresh.embedder.spec == "tinynet"


def test_a_model_that_looked_up_its_backbone_is_copied(tmp_path):
    for label in SHADES:
        (tmp_path / "photos" / label).mkdir(parents=True)
    for i, (array, label) in enumerate(zip(ARRAYS, LABELS)):
        (tmp_path / "photos" / label / f"{i}.png").write_bytes(png(array))
    model = Imprinter("tinynet").fit(tmp_path / "photos")
    assert (
        copy.deepcopy(model).predict(ARRAYS[:1]).tolist()
        == pickle.loads(pickle.dumps(model)).predict(ARRAYS[:1]).tolist()
    )


def test_a_notebook_shows_a_table():
    model = Imprinter("raw")
    assert "raw" in model._repr_html_()
    shown = model.fit(ARRAYS, ["<b>dark</b>"] * 4 + ["light"] * 4)._repr_html_()
    assert "&lt;b&gt;dark&lt;/b&gt;, light" in shown
    assert "<b>" not in shown


def test_a_model_of_embeddings_is_exported(tmp_path, embeddings):
    for to, suffix in (("numpy", ".npz"), ("onnx", ".onnx")):
        assert export(embeddings, tmp_path / f"head{suffix}", to).backbone is None


def test_a_component_with_a_plain_field_says_how_to_declare_it():
    from dataclasses import dataclass

    @dataclass(frozen=True, kw_only=True)
    class Plain(Component):
        k: int = 3

    with pytest.raises(
        ParameterError, match=r"Plain\.k: declare it as param\(default, meaning\)"
    ):
        Plain()


def test_the_same_image_with_two_labels_is_reported():
    with pytest.warns(
        DataWarning,
        match=r"same image has two labels: image 1 \(dark\) and image 9 \(light\)",
    ):
        Imprinter("raw").fit([*ARRAYS, ARRAYS[0]], [*LABELS, "light"])


def test_cut_blank_and_foreign_texts_are_reported():
    with pytest.warns(
        DataWarning,
        match="1 of 9 texts have more than 128 tokens; minilm ignores the rest",
    ):
        Imprinter().fit([*TEXTS, "word " * 300], [*TOPICS, "card"])
    with pytest.warns(DataWarning, match="Left out 2 blank texts: text 9, text 10"):
        Imprinter().fit([*TEXTS, "", " \n"], [*TOPICS, "card", "card"])
    german = [
        "Wie kann ich die Karte sperren?",
        "Das Geld ist nicht auf dem Konto, und ich weiß nicht wo es ist.",
    ]
    with pytest.warns(
        DataWarning,
        match="2 of 10 texts do not look English, and minilm was trained on English",
    ):
        Imprinter().fit([*TEXTS, *german], [*TOPICS, "card", "money"])


def test_the_label_minus_one_is_reported():
    with pytest.warns(
        DataWarning,
        match="2 embeddings have the label -1, which often means 'no label'",
    ):
        Imprinter().fit(X, [0] * 5 + [1] * 5 + [-1] * 2)


def test_a_missing_file_is_unreadable_not_a_text(images):
    with pytest.raises(UnreadableInput, match=r"nowhere\.png: No such file"):
        images.predict(["nowhere.png"])


def test_a_class_of_blank_texts_is_refused_in_a_sentence():
    with pytest.raises(ImprintError, match="Every text of the class 'a' is blank"):
        Imprinter(cache=False).fit(["", "  ", "hi", "yo"], ["a", "a", "b", "c"])


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("Wie kann ich die Karte sperren?", True),
        ("猫が好き", True),
        ("Ich habe meine Karte verloren", False),  # one frequent word is not enough
        ("I lost my card", False),
    ],
)
def test_foreign_texts_have_other_letters_or_two_frequent_words(text, foreign):
    assert is_foreign(text) == foreign


def test_equal_rows_with_different_labels_are_pairs():
    assert conflicts(
        np.array([[1.0, 2], [3, 4], [1, 2]]), np.array(["a", "b", "b"])
    ) == [(0, 2)]


@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e5])
def test_rows_are_equal_up_to_rounding_at_any_scale(scale):
    X = scale * np.array([[1.0, 2], [3, 4], [1 + 1e-6, 2], [1.01, 2]])
    assert conflicts(X, np.array(["a", "b", "b", "b"])) == [(0, 2)]


@pytest.mark.parametrize("column", ["path", "file", "FileName"])
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_a_column_of_paths(column, make, tmp_path, images):
    paths = [str(path) for path in files(tmp_path)]
    model = Imprinter("raw", recipe="janson2022").fit(
        make({column: paths, "Label": LABELS})
    )
    np.testing.assert_array_equal(
        model.classifier.proxies_.weights, images.classifier.proxies_.weights
    )
    assert model.predict(make({column: paths})).tolist() == LABELS


def test_a_column_of_paths_next_to_numbers(tmp_path, images, embeddings):
    paths = [str(path) for path in files(tmp_path)]
    table = pd.DataFrame({"path": paths, "width": 14.0, "height": 10.0})
    assert images.predict(table).tolist() == LABELS
    with pytest.raises(ParameterError, match=r"both paths, .* and numbers; leave one"):
        Imprinter().fit(table, LABELS)
    columns = {f"x{j}": X[:, j] for j in range(5)}
    named = pd.DataFrame({"path": [f"{i}.png" for i in range(12)], **columns})
    assert embeddings.predict(named).tolist() == embeddings.predict(X).tolist()
    numbered = pd.DataFrame({"id": range(12), **columns})
    assert embeddings.predict(numbered).tolist() == embeddings.predict(X).tolist()


def test_texts_in_files_by_a_column_of_paths(tmp_path):
    for i, text in enumerate(TEXTS):
        (tmp_path / f"{i}.txt").write_text(text)
    table = pd.DataFrame(
        {"file": [str(tmp_path / f"{i}.txt") for i in range(8)], "topic": TOPICS}
    )
    model = Imprinter().fit(table[["file"]], table["topic"])
    assert model.predict(["my card was lost."]).tolist() == ["card"]


@pytest.mark.parametrize("make", [pd.Series, pl.Series, list])
def test_a_column_whose_cells_are_embeddings(make, embeddings):
    cells = make([row.astype(np.float32) for row in X])
    model = Imprinter().fit(cells, Y)
    assert model.predict(cells).tolist() == embeddings.predict(X).tolist()
    frame = {"embedding": [row.tolist() for row in X], "label": Y}
    for table in (pd.DataFrame(frame), pl.DataFrame(frame), pa.table(frame)):
        assert Imprinter().fit(table).predict(X).tolist() == model.predict(X).tolist()
    classifier = ImprintClassifier().fit(cells, Y)
    assert classifier.predict(cells).tolist() == embeddings.predict(X).tolist()
    assert classifier.n_features_in_ == 5
    with pytest.raises(ParameterError, match=r"fit.*rows of one width"):
        ImprintClassifier().fit(make([X[0], X[1, :3]]), ["a", "b"])


def test_a_table_with_a_column_of_embeddings_is_refused_with_the_remedy():
    frame = pd.DataFrame({"embedding": list(X)})
    with pytest.raises(ParameterError, match=r"np\.stack\(df\['embedding'\]\)"):
        ImprintClassifier().fit(frame, Y)


def test_weights_of_inputs(embeddings):
    twice = np.where(np.arange(12) % 3 == 0, 2, 1)
    repeated = Imprinter().fit(np.repeat(X, twice, axis=0), np.repeat(Y, twice))
    weighted = Imprinter().fit(X, Y, sample_weight=twice)
    np.testing.assert_allclose(
        weighted.classifier.decision_function(X),
        repeated.classifier.decision_function(X),
        rtol=1e-6,
        atol=1e-9,
    )
    classifier = ImprintClassifier(calibrate=True).fit(X, Y, sample_weight=twice)
    np.testing.assert_array_equal(
        weighted.classifier.decision_function(X), classifier.decision_function(X)
    )
    first = np.arange(12) % 2 == 0
    model = Imprinter().fit(X[first], np.array(Y)[first], sample_weight=twice[first])
    model.add(X[~first], np.array(Y)[~first], sample_weight=twice[~first])
    assert model.predict(X).tolist() == Y


def test_inputs_of_weight_zero_are_left_out(tmp_path, images):
    odd = np.full((10, 14, 3), 120, np.uint8)
    model = Imprinter("raw", recipe="janson2022")
    model.fit([*ARRAYS, odd], [*LABELS, "light"], sample_weight=[1] * 8 + [0])
    np.testing.assert_array_equal(
        model.classifier.proxies_.weights, images.classifier.proxies_.weights
    )
    assert "image 9" not in str(model.state.exemplars)


def test_weights_belong_to_inputs_also_where_some_are_left_out():
    texts = ["", *TEXTS]
    weights = [7, *range(1, 9)]
    with pytest.warns(DataWarning, match="Left out 1 blank text"):
        model = Imprinter(names=False).fit(
            texts, ["card", *TOPICS], sample_weight=weights
        )
    alone = Imprinter(names=False).fit(TEXTS, TOPICS, sample_weight=weights[1:])
    np.testing.assert_array_equal(
        model.classifier.proxies_.mass, alone.classifier.proxies_.mass
    )
    assert model.classifier.proxies_.mass.sum() == 36


@pytest.mark.parametrize(
    ("weight", "rule"),
    [
        ([1.0] * 11, "11 weights and 12 inputs"),
        ([[1.0]] * 12, "one number per input"),
        (["a"] * 12, "one number per input"),
        ([-1.0] * 12, "must be 0, or"),
        ([np.nan] * 12, "must be 0, or"),
        ([0.0] * 12, "must be 0, or"),
    ],
)
def test_unusable_weights_are_refused(weight, rule):
    with pytest.raises(ParameterError, match=rf"sample_weight.*{rule}"):
        Imprinter().fit(X, Y, sample_weight=weight)
