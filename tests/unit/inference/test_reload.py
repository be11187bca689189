"""A model file that is replaced while requests are answered."""

import shutil
import threading
import time

import pytest

from imprint.core.errors import ImprintError, ParameterError
from imprint.inference.repository import named_files

from .conftest import image, image_model, png, serving

PATH = "/models/shades/predict"


@pytest.fixture
def replaceable(model_files, tmp_path):
    shutil.copy(model_files["shades"], tmp_path / "shades.imprint")
    return tmp_path / "shades.imprint"


def test_a_replaced_file_costs_no_request(replaceable):
    with serving({"shades": replaceable}) as client:
        body, answers, stop = png(image(1, 0)), [], threading.Event()

        def ask():
            while not stop.is_set():
                status, answer = client.json("POST", PATH, body)
                answers.append(
                    (status, answer.get("version"), answer.get("predictions"))
                )

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        image_model(labels=("low", "high")).save(replaceable)
        client.service.repository.refresh()
        time.sleep(0.1)
        stop.set()
        for thread in threads:
            thread.join()
        labels = {
            version: predictions[0]["label"] for _, version, predictions in answers
        }
        metrics = client.ask("GET", "/metrics")[2].decode()
    assert {status for status, _, _ in answers} == {200}
    assert list(labels.values()) == ["top", "high"]
    new = list(labels)[1]
    assert f'imprint_model_info{{model="shades",version="{new}"}} 1.0' in metrics
    assert 'imprint_model_reloads_total{model="shades",outcome="loaded"} 1.0' in metrics
    assert metrics.count("imprint_model_info{") == 1


def test_a_damaged_file_leaves_the_model_and_is_reported_once(replaceable, capsys):
    with serving({"shades": replaceable}, log="json") as client:
        before = client.json("GET", "/models")
        replaceable.write_bytes(b"nothing")
        client.service.repository.refresh()
        client.service.repository.refresh()
        assert client.json("GET", "/models") == before
        assert client.json("POST", PATH, png(image(1, 0)))[0] == 200
        replaceable.unlink()
        client.service.repository.refresh()
        assert client.json("GET", "/models") == before
    assert capsys.readouterr().err.count('"event": "reload-failed"') == 1


def test_the_same_content_under_a_new_date_is_not_a_new_version(replaceable):
    with serving({"shades": replaceable}) as client:
        repository = client.service.repository
        before = repository["shades"]
        replaceable.touch()
        repository.refresh()
        assert repository["shades"] is before
        repository.watch()


def test_models_with_one_backbone_share_it(model_files, replaceable):
    files = {
        "a": model_files["shades"],
        "b": replaceable,
        "points": model_files["points"],
    }
    with serving(files) as client:
        repository = client.service.repository
        assert repository["a"].network is repository["b"].network
        assert repository["a"].network is not repository["points"].network


def test_names_of_models(tmp_path):
    path = tmp_path / "a.imprint"
    assert named_files([str(path), f"b={path}"]) == {"a": path, "b": path}
    for arguments in ([str(path)] * 2, ["a/b=x"], ["=x"]):
        with pytest.raises(ParameterError, match="write NAME=FILE"):
            named_files(arguments)


def test_a_model_that_cannot_be_loaded_is_refused_at_the_start(tmp_path):
    (tmp_path / "a.imprint").write_bytes(b"nothing")
    with (
        pytest.raises(ImprintError, match="not an imprint model"),
        serving({"a": tmp_path / "a.imprint"}),
    ):
        pass
