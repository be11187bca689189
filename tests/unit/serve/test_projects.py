"""Several projects: created, opened, renamed, duplicated, deleted and restored; and projects of earlier versions."""

import io
import os
import time
import zipfile
from contextlib import closing

import pytest

from imprint import backbones
from imprint.core.errors import FileError
from imprint.serve import projects
from imprint.serve.export import archive
from imprint.serve.project import Project
from imprint.serve.store import ProjectStore

from .conftest import METHOD, Client, image, serving


@pytest.fixture(autouse=True)
def _small_networks(tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(
        projects.backbones,
        "default",
        lambda kind: "tinynet" if kind == "image" else "minilm",
    )


def listed(client):
    return {
        one["name"]: one for one in client.json("GET", "/api/projects")[1]["projects"]
    }


def do(client, kind, **entry):
    status, reply = client.json("POST", "/api/projects", {"do": kind, **entry})
    assert status == 200, reply
    return reply


def test_projects_are_created_opened_renamed_duplicated_deleted_and_restored(client):
    client.add("top", 1)
    assert [
        (one["name"], one["open"], one["kind"]) for one in listed(client).values()
    ] == [("room", True, None)]
    do(client, "create", name="Mugs and cups")
    assert client.labels() == {}
    assert client.json("GET", "/api/state")[1]["name"] == "Mugs and cups"
    client.add("mug", 2)
    mugs = listed(client)["Mugs and cups"]
    assert (mugs["open"], mugs["kind"]) == (True, "image")
    do(client, "duplicate", id=mugs["id"])
    copy = listed(client)["Mugs and cups (copy)"]
    do(client, "open", id=copy["id"])
    assert client.labels() == {"mug": 1}
    client.add("cup", 3, 1)
    do(client, "rename", id=copy["id"], name="Crockery")
    status, reply = client.json(
        "POST", "/api/projects", {"do": "delete", "id": copy["id"]}
    )
    assert (status, "open another" in reply["error"]) == (400, True)
    status, reply = client.json("POST", "/api/projects", {"do": "delete", "id": "room"})
    assert (status, "started with this project" in reply["error"]) == (400, True), (
        "it has the token"
    )
    reply = do(client, "delete", id=mugs["id"])
    assert [one["name"] for one in reply["deleted"]] == ["Mugs and cups"]
    assert set(listed(client)) == {"Crockery", "room"}
    do(client, "restore", id=mugs["id"])
    do(client, "open", id=mugs["id"])
    assert client.labels() == {"mug": 1}, "the copy was changed alone"
    assert set(listed(client)) == {"Crockery", "Mugs and cups", "room"}


def test_an_archive_is_complete_if_another_project_is_opened_meanwhile(client, project):
    for i in range(6):
        client.add("top", i)
    parts = archive(project)
    started = next(parts)
    do(client, "create", name="Mugs")
    assert project.closed
    with zipfile.ZipFile(io.BytesIO(started + b"".join(parts))) as z:
        assert [name.split("/")[0] for name in z.namelist()] == ["top"] * 6


def test_wrong_requests_are_refused_in_one_sentence(client):
    for entry, words in (
        ({"do": "burn"}, "Unknown change"),
        ({"do": "open", "id": "../../etc"}, "no such project"),
        ({"do": "open", "id": None}, "no such project"),
        ({"do": "create", "name": "a", "kind": "smell"}, "Unknown kind"),
        ({"do": "create", "name": "a:b"}, "cannot name"),
    ):
        status, reply = client.json("POST", "/api/projects", entry)
        assert (status, words in reply["error"]) == (400, True), reply


def test_a_server_for_label_studio_keeps_its_project(project):
    with serving(project, label_studio=True) as port:
        status, reply = Client(port, "secret").json(
            "POST", "/api/projects", {"do": "create", "name": "a"}
        )
    assert (status, "without --label-studio" in reply["error"]) == (400, True)


def test_a_deleted_project_is_removed_after_a_month(client, tmp_path, monkeypatch):
    do(client, "create", name="first")
    do(client, "create", name="second")
    do(client, "delete", id=listed(client)["first"]["id"])
    assert len(client.json("GET", "/api/projects")[1]["deleted"]) == 1
    now = time.time()
    monkeypatch.setattr(projects.time, "time", lambda: now + 31 * 86400)
    assert client.json("GET", "/api/projects")[1]["deleted"] == []
    assert list((tmp_path / "home" / "serve" / ".deleted").iterdir()) == []


def test_a_deleted_project_gains_no_time_when_the_projects_are_listed(
    client, tmp_path, monkeypatch
):
    do(client, "create", name="first")
    do(client, "create", name="second")
    do(client, "delete", id=listed(client)["first"]["id"])
    (folder,) = (tmp_path / "home" / "serve" / ".deleted").iterdir()
    now = time.time()
    for path in (*folder.iterdir(), folder):
        os.utime(path, (now - 20 * 86400, now - 20 * 86400))
    assert len(client.json("GET", "/api/projects")[1]["deleted"]) == 1
    monkeypatch.setattr(projects.time, "time", lambda: now + 11 * 86400)
    assert client.json("GET", "/api/projects")[1]["deleted"] == []


def test_projects_of_one_name_are_deleted_and_restored_next_to_each_other(
    client, tmp_path
):
    """The folder of a data set has the same name each time, so an earlier deleted project may exist."""
    folder = tmp_path / "home" / "serve" / "photos-0123456789ab"
    for name in ("first", "second"):
        projects.open_project(folder).close()
        with closing(ProjectStore(folder)) as store:
            store.set_facts({"name": name})
        do(client, "delete", id=folder.name)
    deleted = {
        one["name"]: one["id"]
        for one in client.json("GET", "/api/projects")[1]["deleted"]
    }
    assert set(deleted) == {"first", "second"}
    for id in deleted.values():
        do(client, "restore", id=id)
    assert set(listed(client)) == {"first", "second", "room"}
    do(client, "delete", id=listed(client)["first"]["id"])
    projects.open_project(folder.with_name(deleted["first"])).close()
    do(client, "restore", id=deleted["first"])
    assert len(client.json("GET", "/api/projects")[1]["projects"]) == 4


def test_a_project_that_another_process_has_open_is_left_alone(client, tmp_path):
    do(client, "create", name="first")
    do(client, "create", name="second")
    first = listed(client)["first"]["id"]
    other = projects.open_project(tmp_path / "home" / "serve" / first)
    for kind in ("open", "delete"):
        status, reply = client.json("POST", "/api/projects", {"do": kind, "id": first})
        assert (status, "in use" in reply["error"]) == (400, True)
    other.close()
    do(client, "open", id=first)


def test_a_project_of_an_earlier_version_opens_and_keeps_its_network_and_recipe(
    tmp_path,
):
    folder = tmp_path / "home" / "serve" / "project"
    old = Project(folder, "raw", backbones.load("raw"), METHOD)
    old.add(image(1), old.embed(image(1), "1").result(), "top", "1.png").result()
    old.close()
    for backbone, recipe in (("raw", "qi2018"), (None, None)):
        project, _ = projects.start_project(None, backbone=backbone, recipe=recipe)
        assert (project.folder, project.spec, len(project.history.labelled.items)) == (
            folder,
            "raw",
            1,
        )
        assert project.model().basis.empty.method.generator.__class__.__name__ == "Mean"
        project.close()
    texts, _ = projects.start_project(None, backbone="minilm")
    assert texts.folder.name == "project-text", (
        "texts and images do not share a project"
    )
    texts.close()


def test_a_project_names_no_network_that_must_be_downloaded(tmp_path):
    folder = tmp_path / "foreign"
    folder.mkdir()
    store = ProjectStore(folder)
    store.set_facts({"backbone": "timm:vit"})
    store.close()
    with pytest.raises(FileError, match="--backbone timm:vit"):
        projects.open_project(folder)
