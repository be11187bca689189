"""`Imprinter`: from folders and images to labels, reasons and files."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from imprint import ImprintClassifier, Imprinter, backbones
from imprint.core.errors import FileError, ImprintError, ParameterError, UnreadableInput
from imprint.core.files import container

SHADES = {"dark": 20, "middle": 120, "light": 230}


@pytest.fixture(autouse=True)
def temporary_home(tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))


def image(shade: int, seed: int) -> np.ndarray:
    """A grey gradient of a shade with noise; `raw` separates shades by distance."""
    noise = np.random.default_rng(seed).integers(-15, 15, (12, 12, 3))
    return np.clip(shade + noise, 0, 255).astype(np.uint8)


def make_folder(root: Path, labels, n: int = 6, first: int = 0) -> Path:
    for label in labels:
        (root / label).mkdir(parents=True, exist_ok=True)
        for i in range(first, first + n):
            Image.fromarray(image(SHADES[label], i)).save(root / label / f"{i}.png")
    return root


@pytest.fixture
def photos(tmp_path) -> Path:
    return make_folder(tmp_path / "photos", SHADES)


def raw(**changes) -> Imprinter:
    return Imprinter("raw", **{"recipe": "janson2022", **changes})


def weights(model: Imprinter) -> np.ndarray:
    return model.classifier.proxies_.weights


def test_fits_a_folder_and_predicts_paths_and_arrays(photos):
    model = raw().fit(photos)
    assert model.classes_.tolist() == ["dark", "light", "middle"]
    new = [image(shade, 99) for shade in SHADES.values()]
    assert model.predict(new).tolist() == list(SHADES)
    assert model.predict(
        [photos / "light" / "0.png", str(photos / "dark" / "1.png")]
    ).tolist() == ["light", "dark"]
    assert model.predict(np.stack(new)).tolist() == list(SHADES)


def test_calls_that_the_model_cannot_answer_are_refused(photos, tmp_path):
    model = Imprinter("raw").fit(photos)
    with pytest.raises(
        ParameterError,
        match=r"^tags\(items\): the model has one label per input; use predict or top\.$",
    ):
        model.tags([image(20, 99)])
    (tmp_path / "bad.png").write_bytes(b"no image")
    with pytest.raises(UnreadableInput, match=r"bad\.png"):
        model.likely_nodes([image(20, 99), tmp_path / "bad.png"])
    for n in (0, -1, 1.5, True):
        with pytest.raises(
            ParameterError, match=rf"^top\(n={n}\): n must be int >= 1\.$"
        ):
            model.top([image(20, 99)], n)
        with pytest.raises(
            ParameterError, match=rf"^why\(n={n}\): n must be int >= 1\.$"
        ):
            model.why(image(20, 99), n)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("calibrate", "no", "True or False"),
        ("tree", "yes", "True, False or None"),
        ("cache", 3, "True, False or a folder"),
    ],
)
def test_switches_of_another_type_are_refused(name, value, rule):
    with pytest.raises(
        ParameterError,
        match=rf"^Imprinter\({name}={value!r}\): {name} must be {rule}\.$",
    ):
        raw(**{name: value})


def test_top_agrees_with_predict_and_with_the_probabilities(photos):
    model = Imprinter(
        "raw", recipe="qi2018", norm_pre="none", norm_post="none", norm_inf="none"
    ).fit(photos)
    items = [image(shade, seed) for shade in range(0, 250, 35) for seed in range(2)]
    P, top = model.predict_proba(items), model.top(items, 2)
    assert P.shape == (len(items), 3)
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-6)
    assert [guesses[0].label for guesses in top] == model.predict(items).tolist()
    for p, guesses in zip(P, top):
        assert [g.probability for g in guesses] == sorted(p, reverse=True)[:2]
    assert len(model.top(items, 99)[0]) == 3


@pytest.mark.parametrize("recipe", ["qi2018", "janson2022", "imprint2025", "oracle"])
def test_adding_classes_equals_fitting_them_all_and_forgetting_undoes_it(
    tmp_path, photos, recipe
):
    two = make_folder(tmp_path / "two", ["dark", "light"])
    extra = {"generator": "least_squares(reg=1.0)"} if recipe == "oracle" else {}
    whole, grown = (
        raw(recipe=recipe, **extra).fit(photos),
        raw(recipe=recipe, **extra).fit(two),
    )
    before, taken = weights(grown), grown.classifier
    grown.add(make_folder(tmp_path / "one", ["middle"]))
    np.testing.assert_array_equal(weights(grown), weights(whole))
    grown.forget("middle")
    np.testing.assert_array_equal(weights(grown), before)
    assert taken.classes_.tolist() == ["dark", "light"], (
        "a classifier obtained earlier does not change"
    )
    assert taken is not grown.classifier


def test_adding_images_of_a_known_class_moves_its_mean_alone(tmp_path, photos):
    model = raw().fit(photos)
    before = weights(model)
    model.add(make_folder(tmp_path / "more", ["dark"], first=50))
    changed = [
        c
        for c, (a, b) in enumerate(zip(before, weights(model)))
        if not np.array_equal(a, b)
    ]
    assert [model.classes_[c] for c in changed] == ["dark"]


def test_a_refused_addition_changes_nothing(photos):
    model = raw().fit(photos)
    before, names = weights(model), [r.image for r in model.why(image(20, 0), 3)]
    with pytest.raises(FileError, match="no file or folder"):
        model.add(photos / "missing")
    with pytest.raises(ParameterError, match="integer labels"):
        model.add(([image(3, 3)], [7]))
    assert weights(model) is before
    assert [r.image for r in model.why(image(20, 0), 3)] == names


def test_a_saved_model_answers_the_same_without_the_folder(tmp_path, photos):
    model = raw(
        recipe="imprint2025", generator="kmeans(k=2)", aggregator="nearest(m=2)"
    ).fit(photos)
    items = [image(s, 7) for s in (10, 70, 130, 250)]
    model.save(tmp_path / "a.imprint")
    expected = model.predict_proba(items), [model.why(item, 4) for item in items]
    for file in sorted(photos.rglob("*.png")):
        file.unlink()
    loaded = Imprinter.load(tmp_path / "a.imprint")
    np.testing.assert_array_equal(loaded.predict_proba(items), expected[0])
    assert [loaded.why(item, 4) for item in items] == expected[1]
    loaded.save(tmp_path / "b.imprint")
    assert (tmp_path / "b.imprint").read_bytes() == (
        tmp_path / "a.imprint"
    ).read_bytes()
    assert str(tmp_path).encode() not in (tmp_path / "a.imprint").read_bytes(), (
        "the file names no folder of this machine"
    )


def test_refitting_a_loaded_model_keeps_its_method(tmp_path, photos):
    model = raw(recipe="imprint2025", generator="kmeans(k=3)", random_state=4).fit(
        photos
    )
    model.save(tmp_path / "a.imprint")
    again = Imprinter.load(tmp_path / "a.imprint").fit(photos)
    np.testing.assert_array_equal(weights(again), weights(model))


def test_a_model_of_another_backbone_is_refused(tmp_path, photos):
    path = tmp_path / "a.imprint"
    raw().fit(photos).save(path)
    document, arrays = container.read(path)
    document["backbone"]["fingerprint"] = "f" * 64
    container.write(path, document, arrays)
    with pytest.raises(
        FileError, match="fitted with the backbone raw of fingerprint ffffffff; raw has"
    ):
        Imprinter.load(path)
    with pytest.raises(FileError, match="tinynet has"):
        Imprinter.load(path, backbone="tinynet")


def test_a_file_does_not_load_a_backbone_that_the_user_did_not_name(
    tmp_path, photos, monkeypatch
):
    path = tmp_path / "a.imprint"
    model = raw().fit(photos)
    model.save(path)
    monkeypatch.setattr(backbones, "stated_fingerprint", lambda spec, device: None)
    monkeypatch.setattr(
        backbones, "load", lambda *given: pytest.fail("the backbone was loaded")
    )
    with pytest.raises(
        FileError,
        match="has to be loaded before it can be trusted; if you want that, name it",
    ):
        Imprinter.load(path)
    monkeypatch.setattr(backbones, "load", lambda *given: model.backbone)
    assert Imprinter.load(path, backbone="raw").predict([image(230, 9)]).tolist() == [
        "light"
    ]


def test_a_backbone_whose_file_has_moved_can_be_pointed_at(tmp_path, photos):
    weights_file = Path(backbones.__file__).parent / "weights" / "tinynet.onnx"
    record = json.dumps(
        {"width": 512, "preprocess": backbones.record("tinynet").preprocess.as_json()}
    )
    for name in ("old.onnx", "new.onnx"):
        (tmp_path / name).write_bytes(weights_file.read_bytes())
        (tmp_path / f"{name}.json").write_text(record)
    model = Imprinter(f"onnx:{tmp_path / 'old.onnx'}", threads=1).fit(photos)
    model.save(tmp_path / "a.imprint")
    (tmp_path / "old.onnx").unlink()
    with pytest.raises(FileError, match=r"no such file.* needs it; give its new path"):
        Imprinter.load(tmp_path / "a.imprint")
    moved = Imprinter.load(
        tmp_path / "a.imprint", backbone=f"onnx:{tmp_path / 'new.onnx'}"
    )
    assert (
        moved.predict([image(230, 3)]).tolist()
        == model.predict([image(230, 3)]).tolist()
    )


def test_a_classifier_of_embeddings_is_an_imprinter_without_a_backbone(tmp_path):
    path = tmp_path / "a.imprint"
    clf = ImprintClassifier(generator="mean").fit(np.eye(3), [0, 1, 2])
    clf.save(path)
    model = Imprinter.load(path)
    assert model.modality == "embedding"
    assert model.predict(np.eye(3)).tolist() == [0, 1, 2]
    assert [r.image for r in model.why(np.eye(3)[0], 2)] == [None, None]
    model.add((np.ones((2, 3)), [7, 7])).save(path)
    assert ImprintClassifier.load(path).classes_.tolist() == [0, 1, 2, 7]


def test_a_foreign_document_is_refused(tmp_path, photos):
    path = tmp_path / "a.imprint"
    raw(calibrate=False).fit(photos).save(path)
    with pytest.raises(FileError, match=r"with a backbone: use Imprinter\.load"):
        ImprintClassifier.load(path)
    document, arrays = container.read(path)
    for broken in (
        {"images": [["a"], [], []]},
        {"images": [["a", "b"], ["c"], ["d"]]},
        {"images": []},
        {"images": 3},
        {"backbone": {}},
    ):
        container.write(path, {**document, **broken}, arrays)
        with pytest.raises(FileError, match="not an imprint model"):
            Imprinter.load(path)
    for name, values in (
        ("images.0.beside", arrays["images.0.beside"] + 99),
        ("images.0.X", np.full_like(arrays["images.0.X"], np.nan)),
    ):
        container.write(path, document, {**arrays, name: values})
        with pytest.raises(FileError, match="not an imprint model"):
            Imprinter.load(path)


@pytest.mark.parametrize(
    ("aggregator", "measure", "value"),
    [("max", "similarity", 1.0), ("nearest(m=1)", "distance", 0.0)],
)
def test_a_training_image_is_explained_by_itself(photos, aggregator, measure, value):
    model = raw(recipe="imprint2025", generator="all", aggregator=aggregator).fit(
        photos
    )
    assert model.measure == measure
    first, second, *_ = model.why(photos / "middle" / "3.png", 5)
    assert (first.label, first.image) == ("middle", "middle/3.png")
    assert first.value == pytest.approx(value, abs=1e-3)
    assert (
        (second.value <= first.value)
        if measure == "similarity"
        else (second.value >= first.value)
    )


def test_positive_contributions_come_before_negative_ones(photos):
    model = raw(recipe="kernel", generator="kmeans(k=3)").fit(photos)
    values = [r.value for r in model.why(photos / "middle" / "3.png", 99)]
    signs = [v > 0 for v in values]
    assert model.measure == "weight"
    assert signs == sorted(signs, reverse=True)
    assert set(signs) == {True, False}
    split = signs.index(False)
    assert values[:split] == sorted(values[:split], reverse=True)
    assert values[split:] == sorted(values[split:])
    assert (
        abs(values[split]) > values[split - 1]
    )  # ordered by absolute value, this one would come earlier


def test_reasons_name_the_training_image_nearest_to_the_proxy(photos):
    model = raw().fit(photos)
    rows = model.embed(photos)
    for reason in model.why(image(100, 5), 3):
        mean = rows.X[rows.y == reason.label].mean(axis=0)
        distances = [
            (np.linalg.norm(x - mean), n)
            for x, n, y in zip(rows.X, rows.names, rows.y)
            if y == reason.label
        ]
        assert reason.image == min(distances)[1]


def test_why_takes_one_item(photos):
    model = raw().fit(photos)
    with pytest.raises(ParameterError, match="one at a time"):
        model.why(model.look([image(1, 1), image(2, 2)]))


def test_unreadable_images_are_skipped_in_fit_and_refused_in_predict(photos):
    (photos / "dark" / "bad.png").write_bytes(b"not an image")
    model = raw()
    rows = model.embed(photos)
    assert [s.name for s in rows.skipped] == ["dark/bad.png"]
    assert len(rows.X) == len(rows.y) == len(rows.names) == 18
    model.fit(rows)
    with pytest.raises(UnreadableInput, match=r"bad\.png: not an image"):
        model.predict([photos / "dark" / "0.png", photos / "dark" / "bad.png"])
    seen = model.look([photos / "dark" / "bad.png", photos / "light" / "0.png"])
    assert [s.index for s in seen.skipped] == [0]
    assert model.predict(seen).tolist() == ["light"]


def test_a_class_without_a_readable_image_is_an_error(photos):
    (photos / "empty").mkdir()
    (photos / "empty" / "bad.png").write_bytes(b"")
    with pytest.raises(
        ImprintError,
        match=r"Nothing of the class 'empty' can be read; .*empty/bad\.png",
    ):
        raw().fit(photos)


def test_images_with_labels_need_no_folder(photos):
    images = [image(s, i) for s in SHADES.values() for i in range(6)]
    labels = [label for label in SHADES for _ in range(6)]
    by_pair, by_folder = raw().fit((images, labels)), raw().fit(photos)
    np.testing.assert_array_equal(weights(by_pair), weights(by_folder))
    assert by_pair.why(images[0], 1)[0].image.startswith("image ")


def test_labels_follow_the_images_that_can_be_read(tmp_path, photos):
    (tmp_path / "bad.png").write_bytes(b"")
    paths = [
        tmp_path / "bad.png",
        photos / "dark" / "0.png",
        photos / "light" / "0.png",
    ]
    rows = raw().embed((paths, ["dark", "dark", "light"]))
    assert rows.y.tolist() == ["dark", "light"]
    assert list(rows.names) == [str(p) for p in paths[1:]]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda m, f: m.fit((["a.png"], [1, 2])), "1 items and 2 labels"),
        (lambda m, f: m.fit((1, 2, 3)), "must be a pair"),
        (
            lambda m, f: m.fit(([np.zeros((4, 4))], ["a"])),
            "uint8 array .* not float64 array",
        ),
        (lambda m, f: m.fit(f).predict("dark/0.png"), "give a list of them"),
        (
            lambda m, f: m.fit(f).predict(np.zeros((8, 8), np.uint8)),
            r"not of shape \(8, 8\)",
        ),
        (lambda m, f: m.fit(f).predict([3]), "not int"),
        (lambda m, f: m.fit(f).predict([]), "no items"),
        (lambda m, f: m.fit(f).forget("drak"), "Did you mean 'dark'"),
        (lambda m, f: Imprinter(recipe="qi2019"), "Did you mean 'qi2018'"),
        (lambda m, f: Imprinter(generatr="mean"), "there is no such part"),
        (lambda m, f: Imprinter("tinynt").fit(f), "Unknown backbone 'tinynt'"),
    ],
)
def test_mistakes_are_refused_in_a_sentence(photos, call, sentence):
    with pytest.raises(ParameterError, match=sentence) as caught:
        call(raw(), photos)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_texts_are_refused_by_a_backbone_of_images(tmp_path):
    table = tmp_path / "train.csv"
    table.write_text("text,label\nhello,a\nbye,b\n")
    with pytest.raises(ParameterError, match="raw reads images and the data are texts"):
        raw().fit(table)


def test_the_cache_is_where_it_is_asked_to_be(tmp_path, photos):
    home = tmp_path / "home" / "embeddings"
    raw(cache=False).fit(photos)
    assert not home.exists()
    raw(cache=tmp_path / "cache").fit(photos)
    assert not home.exists()
    assert any((tmp_path / "cache").iterdir())
    raw().fit(photos)
    assert any(home.iterdir())


def test_a_change_that_fails_leaves_the_file_alone(tmp_path, photos):
    path = tmp_path / "a.imprint"
    raw().fit(photos).save(path)
    before = path.read_bytes()
    with (
        pytest.raises(ParameterError, match="Unknown class 'drak'"),
        Imprinter.change(path) as model,
    ):
        model.forget("dark").forget("drak")
    assert path.read_bytes() == before
    with Imprinter.change(path) as model:
        model.forget("dark")
    assert Imprinter.load(path).classes_.tolist() == ["light", "middle"]
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["a.imprint"], (
        "locks and leftovers are gone"
    )


def test_a_model_has_one_lock_by_whatever_name_it_is_changed(tmp_path, photos):
    (tmp_path / "links").mkdir()
    raw().fit(photos).save(tmp_path / "a.imprint")
    (tmp_path / "links" / "b.imprint").symlink_to(tmp_path / "a.imprint")
    with Imprinter.change(tmp_path / "links" / "b.imprint") as model:
        assert (tmp_path / ".a.imprint.lock").exists()
        model.forget("dark")
    assert Imprinter.load(tmp_path / "a.imprint").classes_.tolist() == [
        "light",
        "middle",
    ]
    assert [p.name for p in (tmp_path / "links").iterdir()] == ["b.imprint"]


def test_too_few_proxies_are_refused_when_fitted(photos):
    with pytest.raises(
        ParameterError, match=r"nearest\(m=5\): m must not exceed the 3 proxies\."
    ):
        raw(generator="mean", aggregator="nearest(m=5)").fit(photos)


def test_the_default_separates_digits():
    from imprint.datasets import Split, load

    train, test = load("digits"), load("digits", "test")
    few = np.concatenate([np.flatnonzero(train.labels == c)[:10] for c in (0, 1, 4)])
    part = Split(
        train.inputs[few],
        train.labels[few],
        [train.names[i] for i in few],
        (0, 1, 4),
        "image",
    )
    rows = np.flatnonzero(np.isin(test.labels, (0, 1, 4)))
    model = Imprinter(threads=1).fit(part)
    assert np.mean(model.predict(test.inputs[rows]) == test.labels[rows]) > 0.9
    assert "efficientnet_lite0" in repr(model)
    assert json.dumps(model.classes_.tolist()) == "[0, 1, 4]"


@pytest.mark.parametrize(
    "call",
    [
        lambda model, item: model.predict_proba([item], level=1).tolist(),
        lambda model, item: model.top([item], 2, level=1),
        lambda model, item: model.likely_nodes([item], unknown=1.0),
        lambda model, item: model.why(item, 3),
    ],
)
def test_a_call_uses_one_state_while_another_thread_changes_the_model(call):
    shades = {"animal/cat": 20, "animal/dog": 120, "tool": 230}
    items = [image(shade, i) for shade in shades.values() for i in range(20)]
    model, item = (
        Imprinter("raw").fit(items, np.repeat(list(shades), 20)),
        image(110, 99),
    )
    before, expected = model.state, call(model, item)
    after = model.forget("animal/dog").state

    class Changing(Imprinter):
        states = iter([before])
        state = property(lambda self: next(self.states, after))

    model.__class__ = Changing
    assert call(model, item) == expected


def test_the_card_in_a_file_describes_the_classes_in_it(photos, tmp_path):
    model = raw().fit(photos)
    before, after = model.state, model.forget("light").state

    class Changing(Imprinter):
        states = iter([before])
        state = property(lambda self: next(self.states, after))

    model.__class__ = Changing
    model.save(tmp_path / "a.imprint")
    document, _ = container.read(tmp_path / "a.imprint")
    assert "light" in document["labels"]
    assert "light" in document["card"]


def test_flat_classes_stay_flat_in_the_classifier(tmp_path):
    """With tree=False, the classifier of a model, loaded or not, has no nodes either."""
    X, y = (
        np.eye(4, dtype=np.float32),
        np.array(["animal/cat", "animal/dog", "sky", "tree"]),
    )
    model = Imprinter(tree=False, calibrate=False).fit((X, y))
    model.save(tmp_path / "m")
    for flat in (
        model.classifier,
        ImprintClassifier.load(tmp_path / "m"),
        Imprinter.load(tmp_path / "m"),
    ):
        assert (flat.tree if isinstance(flat, Imprinter) else flat.tree_).depth == 1
        with pytest.raises(ParameterError, match="Unknown class 'animal/'"):
            flat.forget("animal/")
    nested = Imprinter(calibrate=False, tree=True).fit((X, y)).classifier
    assert nested.forget("animal/").classes_.tolist() == ["sky", "tree"]


def test_a_model_from_a_head_uses_the_loaded_backbone(monkeypatch):
    backbone = backbones.load("raw")
    fitted = Imprinter("raw", recipe="janson2022", calibrate=False).fit(
        ([image(20, 1), image(230, 1)], ["dark", "light"])
    )
    monkeypatch.setattr("imprint.backbones.load", None)
    model = Imprinter.of_head("raw", backbone, fitted.state.head, {})
    assert model.predict([image(25, 2)]).tolist() == ["dark"]
    assert model.backbone is backbone
