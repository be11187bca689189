"""A model gives the same predictions on the page, in the terminal and after export, and reports if it is calibrated."""

import io
import json
import threading

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from imprint import Imprinter, backbones
from imprint.cli import main
from imprint.core.errors import FileError
from imprint.serve.evaluation import evaluate
from imprint.serve.project import Project

from .conftest import METHOD, PARTS, image

NEW = [image(1000 + i, shade=i % 2) for i in range(20)]


def fitted(calibrate=True, labels=("top", "bottom"), **parts):
    images = [
        np.array(Image.open(io.BytesIO(image(i, shade=i % 2)))) for i in range(40)
    ]
    model = Imprinter("raw", cache=False, calibrate=calibrate, **{**PARTS, **parts})
    return model.fit((images, [labels[i % 2] for i in range(40)]))


def saved(model, path):
    model.save(path)
    return path.read_bytes()


def answers(client, raws=NEW, query=""):
    return [
        client.json("POST", f"/api/predict?top=9{query}", raw)[1][0] for raw in raws
    ]


def assert_same(client, model):
    """Assert that page and Python agree to 1e-6; rounding may change a p-value by one of the 40 rows."""
    images = [np.array(Image.open(io.BytesIO(raw))) for raw in NEW]
    P, known = model.predict_proba(images), model.known(images)
    for reply, p, value in zip(answers(client), P, known):
        shares = {one["label"]: one["probability"] for one in reply["top"]}
        assert np.allclose(
            [shares[str(k)] for k in model.classes_.tolist()], p, atol=1e-6, rtol=0
        )
        assert reply["known"] == pytest.approx(float(value), abs=1 / 41 + 1e-6)
        assert reply["calibrated"]


@pytest.mark.parametrize(
    "parts",
    [{}, {"generator": "least_squares", "aggregator": "max"}],
    ids=["kernel", "solve"],
)
@pytest.mark.parametrize(
    "labels", [("top", "bottom"), (2, 10)], ids=["texts", "numbers"]
)
def test_an_imported_model_keeps_its_calibration_and_is_exported_with_it(
    client, tmp_path, labels, parts
):
    model = fitted(labels=labels, **parts)
    assert (
        client.json(
            "POST", "/api/import?name=a.imprint", saved(model, tmp_path / "a.imprint")
        )[0]
        == 200
    )
    assert_same(client, model)
    status, _, raw = client.ask("GET", "/api/export/model.imprint")
    assert status == 200
    (tmp_path / "b.imprint").write_bytes(raw)
    again = Imprinter.load(tmp_path / "b.imprint")
    assert again.expected_accuracy_ == pytest.approx(model.expected_accuracy_)
    assert_same(client, again)
    evaluation = client.json("GET", "/api/evaluation")[1]
    assert evaluation["calibrated"]
    assert evaluation["accuracy"] == pytest.approx(model.expected_accuracy_)
    assert client.ask("GET", "/api/export/model.onnx")[0] == 200


def test_an_imported_model_keeps_the_order_in_which_its_classes_were_imprinted(
    client, project, tmp_path
):
    """Quantile normalisation depends on earlier classes; `bottom` was imprinted second but sorts first."""
    top, bottom = (
        [np.array(Image.open(io.BytesIO(image(i, shade=s)))) for i in range(20)]
        for s in (0, 1)
    )
    model = Imprinter(
        "raw",
        cache=False,
        calibrate=True,
        **{**PARTS, "norm_post": "quantile", "aggregator": "max"},
    )
    model.fit((top, ["top"] * 20)).add((bottom, ["bottom"] * 20))
    client.json(
        "POST", "/api/import?name=a.imprint", saved(model, tmp_path / "a.imprint")
    )
    assert_same(client, model)
    client.add("third", 5)
    project.close()
    again = Project(project.folder, "raw", backbones.load("raw"), METHOD)
    assert again.model().head.labels == ("top", "bottom", "third")
    again.close()


def test_a_report_on_an_imported_model_needs_held_out_examples(client, tmp_path):
    """A model file holds no images, so its cross-validation has none to list on the page or in a report."""
    client.json(
        "POST", "/api/import?name=a.imprint", saved(fitted(), tmp_path / "a.imprint")
    )
    for i in range(8):
        client.add("top" if i % 2 == 0 else "bottom", 100 + i, i % 2)
    status, reply = client.json("GET", "/api/export/evaluation.html")
    assert status == 409
    assert "hold out" in reply["error"]
    assert client.json("GET", "/api/evaluation")[1]["listed"] is False
    items = client.json("GET", "/api/state")[1]["classes"][0]["items"]
    client.change(do="hold", ids=[items[0][0], items[1][0]])
    assert client.ask("GET", "/api/export/evaluation.html")[0] == 200
    client.change(do="clear")
    for i in range(8):
        client.add("top" if i % 2 == 0 else "bottom", 100 + i, i % 2)
    assert client.ask("GET", "/api/export/evaluation.html")[0] == 200
    assert client.json("GET", "/api/evaluation")[1]["listed"] is True


def test_a_hundred_real_images_get_the_same_answer_in_python_terminal_and_api(
    client, tmp_path, capsys
):
    images = (load_digits().images * 15.9375).round().astype(np.uint8)
    model = Imprinter("raw", cache=False, **PARTS).fit(
        (list(images[:300]), list(map(str, load_digits().target[:300])))
    )
    raw = saved(model, tmp_path / "a.imprint")
    assert client.json("POST", "/api/import?name=a.imprint", raw)[0] == 200
    (tmp_path / "new").mkdir()
    for i, one in enumerate(images[300:400]):
        Image.fromarray(one).save(tmp_path / "new" / f"{i:03}.png")
    paths = sorted((tmp_path / "new").iterdir())
    P, known = model.predict_proba(paths), model.known(paths)
    assert (
        main(
            [
                "predict",
                str(tmp_path / "a.imprint"),
                *map(str, paths),
                "--json",
                "--top",
                "10",
            ]
        )
        == 0
    )
    terminal = json.loads(capsys.readouterr().out)
    api = [
        client.json("POST", "/api/predict?top=10", path.read_bytes())[1][0]
        for path in paths
    ]
    for one, other, p, value in zip(terminal, api, P, known):
        for reply in (one, other):
            shares = {guess["label"]: guess["probability"] for guess in reply["top"]}
            assert np.allclose(
                [shares[k] for k in model.classes_.tolist()], p, atol=5e-6, rtol=0
            )  # float32: one row or many
            assert reply["known"] == pytest.approx(float(value), abs=1 / 41 + 1e-6)


def test_after_an_example_is_added_the_model_is_calibrated_on_all_rows(
    client, project, tmp_path
):
    model = fitted()
    client.json(
        "POST", "/api/import?name=a.imprint", saved(model, tmp_path / "a.imprint")
    )
    assert project.model().head.calibrated
    client.add("top", 777, 0)
    assert not project.model().head.calibrated, (
        "the evaluation calibrates it in the background, which takes longer"
    )
    project.evaluated().result(60)
    again = np.array(Image.open(io.BytesIO(image(777))))
    assert_same(client, model.add(([again], ["top"])))
    for entry in (
        {"do": "rename", "label": "top", "to": "upper"},
        {"do": "drop", "label": "bottom"},
        {"do": "undo"},
    ):
        assert client.change(**entry)[0] == 200
        assert (
            project.evaluated().result(60).model.history.revision
            == project.history.revision
        )
    assert {reply["calibrated"] for reply in answers(client)} == {True}
    client.add("third", 5, 1)
    (reply,) = client.json("POST", "/api/predict?unknown=0.5", NEW[0])[1]
    assert reply["calibrated"]


def test_the_cross_validation_of_an_imported_model_uses_its_method(
    client, project, tmp_path
):
    for i in range(4):
        client.add("top", i, 0)
        client.add("bottom", 100 + i, 1)
    before = project.evaluated().result(60)
    model = saved(fitted(generator="mean"), tmp_path / "a.imprint")
    client.change(do="clear")
    client.json("POST", "/api/import?name=a.imprint", model)
    client.add("top", 777, 0)
    folds = evaluate(project.model(), before, project.rows).folds
    assert (
        folds.empty.method == project.model().head.method != before.folds.empty.method
    )


def test_unknown_is_refused_and_not_ignored_where_there_is_no_calibration(
    client, tmp_path
):
    client.json(
        "POST",
        "/api/import?name=a.imprint",
        saved(fitted(calibrate=False), tmp_path / "a.imprint"),
    )
    (reply,) = answers(client, NEW[:1])
    assert (reply["known"], reply["calibrated"]) == (None, False)
    for _ in range(2):
        status, reply = client.json("POST", "/api/predict?unknown=0.9", NEW[0])
        assert (status, reply["error"]) == (
            409,
            "unknown=0.9 cannot be applied, because the model is not calibrated. The imported model was fitted without "
            "calibration, and it has no examples to calibrate it from.",
        )
        client.add("top", 5, 0)
    evaluation = client.json("GET", "/api/evaluation")[1]
    assert (evaluation["calibrated"], evaluation["ready"]) == (False, False)
    assert "fitted without calibration" in evaluation["reason"]
    assert client.json("POST", "/api/predict?unknown=0", NEW[0])[0] == 200


def test_unknown_waits_for_the_evaluation_of_new_examples(client):
    for i in range(12):
        client.add("top", i, 0)
        client.add("bottom", 100 + i, 1)
    black = io.BytesIO()
    Image.new("RGB", (24, 20), "black").save(black, "PNG")
    reply = answers(client, [*NEW, black.getvalue()], "&unknown=0.5")
    assert all(one["known"] is not None for one in reply)
    assert [one["label"] is None for one in reply] == [
        one["known"] < 0.5 for one in reply
    ]
    assert 0 < sum(one["label"] is None for one in reply) < len(reply)
    client.change(do="clear")
    client.add("one", 1)
    status, reply = client.json("POST", "/api/predict?unknown=0.5", NEW[0])
    assert (
        status,
        "Two classes with two examples each are needed." in reply["error"],
    ) == (409, True)


def test_exports_during_additions_succeed(client, project):
    for i in range(4):
        client.add("top", i, 0)
        client.add("bottom", 100 + i, 1)
    stop = threading.Event()

    def add():
        seed = 1000
        while not stop.is_set():
            seed += 1
            client.add(f"class{seed % 7}", seed, seed % 2)
            if seed % 5 == 0:
                client.change(do="drop", label=f"class{seed % 7}")

    thread = threading.Thread(target=add)
    thread.start()
    try:
        statuses = [client.ask("GET", "/api/export/model.imprint")[0] for _ in range(8)]
    finally:
        stop.set()
        thread.join()
    assert statuses == [200] * 8


def test_a_model_with_images_of_any_name_is_explained(project, client, tmp_path):
    from imprint.core.files import container

    saved(fitted(), tmp_path / "a.imprint")
    document, arrays = container.read(tmp_path / "a.imprint")
    document["images"] = [
        ["²" if i % 2 else str(i) for i, _ in enumerate(names)]
        for names in document["images"]
    ]
    container.write(tmp_path / "b.imprint", document, arrays)
    assert (
        client.json(
            "POST", "/api/import?name=b.imprint", (tmp_path / "b.imprint").read_bytes()
        )[0]
        == 200
    )
    client.add("third", 5, 1)  # the item with the number 1
    status, (reply,) = client.json("POST", "/api/predict?why", NEW[0])
    assert status == 200
    assert {
        (one["id"], one["name"]) for one in reply["why"] if one["label"] != "third"
    } <= {(None, name) for names in document["images"] for name in names}
    assert client.ask("GET", "/api/export/model.imprint")[0] == 200


def test_a_project_with_an_imported_model_refuses_another_backbone_in_a_sentence(
    project, client, tmp_path
):
    client.json(
        "POST", "/api/import?name=a.imprint", saved(fitted(), tmp_path / "a.imprint")
    )
    project.close()
    again = Project(project.folder, "tinynet", backbones.load("tinynet"), METHOD)
    try:
        with pytest.raises(
            FileError,
            match="fitted with the backbone raw, and this page runs with tinynet",
        ):
            again.model()
    finally:
        again.close()


def test_a_restarted_project_with_an_imported_model_answers_as_before(
    project, client, tmp_path
):
    model = fitted()
    client.json(
        "POST", "/api/import?name=a.imprint", saved(model, tmp_path / "a.imprint")
    )
    before = answers(client, NEW[:3])
    project.close()
    again = Project(project.folder, "raw", backbones.load("raw"), METHOD)
    assert again.model().head.calibrated
    assert again.model().head.classes.tolist() == ["bottom", "top"]
    assert len(before) == 3
    again.close()


def test_few_examples_cannot_tell_what_is_unknown(client, project):
    """With 16 examples no p-value is below 0.05, however odd an input is."""
    for i in range(8):
        client.add("top", i, 0)
        client.add("bottom", 100 + i, 1)
    project.evaluated().result()
    odd = image(1, kind="jpeg", shade=0, size=(4, 90))
    (answer,) = client.json("POST", "/api/predict", odd)[1]
    assert answer["known"] >= 1 / 17
    assert answer["missing_rows"] == 4
    for i in range(8, 10):
        client.add("top", i, 0)
        client.add("bottom", 100 + i, 1)
    project.evaluated().result()
    (answer,) = client.json("POST", "/api/predict", odd)[1]
    assert answer["missing_rows"] == 0
