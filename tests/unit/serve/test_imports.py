"""The first import of a folder: interruptions, and files that are not inputs."""

import os
import shutil
import threading

import pytest

from imprint import Imprinter
from imprint.serve import projects
from imprint.serve.project import Project
from imprint.serve.projects import start_project

from .conftest import image


@pytest.fixture
def photos(tmp_path):
    for label, shade in (("top", 0), ("bottom", 1)):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for i in range(6):
            (tmp_path / "photos" / label / f"{i}.png").write_bytes(
                image(100 * shade + i, shade=shade)
            )
    return tmp_path / "photos"


def sizes(project):
    return {
        label: len(items)
        for label, items in project.history.labelled.by_class().items()
    }


def begin(photos, tmp_path):
    project, unreadable = start_project(photos, tmp_path / "project", "raw")
    try:
        return sizes(project), unreadable
    finally:
        project.close()


def test_an_interrupted_import_is_resumed(photos, tmp_path, monkeypatch):
    (photos / "top").rename(photos / "very  top")  # white space is normalised
    calls = iter(range(100))
    add = Project.add

    def dying(self, *arguments):
        if next(calls) == 5:
            raise KeyboardInterrupt
        return add(self, *arguments)

    monkeypatch.setattr(projects, "IMPORT_THREADS", 1)
    monkeypatch.setattr(Project, "add", dying)
    with pytest.raises(KeyboardInterrupt):
        begin(photos, tmp_path)
    monkeypatch.undo()
    assert begin(photos, tmp_path) == ({"bottom": 6, "very top": 6}, [])


def test_images_below_test_are_held_out(photos, tmp_path):
    for part in ("train", "test"):
        for label in ("top", "bottom"):
            (photos / part / label).mkdir(parents=True)
    for i, file in enumerate(sorted(photos.glob("*/?.png"))):
        file.rename(
            photos / ("test" if i % 3 == 0 else "train") / file.parent.name / file.name
        )
    (photos / "top").rmdir()
    (photos / "bottom").rmdir()
    project, _ = start_project(photos, tmp_path / "project", "raw")
    items = project.history.labelled.items.values()
    assert sizes(project) == {"bottom": 6, "top": 6}
    assert sorted(item.label for item in items if item.held_out) == [
        "bottom",
        "bottom",
        "top",
        "top",
    ]
    assert not project.history.after({"do": "undo"}).labelled.classes, "one step"
    project.close()


def test_an_import_that_ends_before_the_held_out_images_goes_on(
    photos, tmp_path, monkeypatch
):
    for part in ("train", "test"):
        for label in ("top", "bottom"):
            shutil.copytree(photos / label, photos / part / label)
    for label in ("top", "bottom"):
        shutil.rmtree(photos / label)
        for file in (photos / "test" / label).iterdir():
            file.write_bytes(image(int(file.stem) + 1000, shade=label == "bottom"))
    load = projects.load_folder

    def interrupted(root, split, **options):
        if split == "test":
            raise KeyboardInterrupt
        return load(root, split, **options)

    monkeypatch.setattr(projects, "load_folder", interrupted)
    with pytest.raises(KeyboardInterrupt):
        begin(photos, tmp_path)
    monkeypatch.undo()
    assert begin(photos, tmp_path) == ({"bottom": 12, "top": 12}, [])


def test_a_finished_import_is_not_repeated(photos, tmp_path):
    project, _ = start_project(photos, tmp_path / "project", "raw")
    project.change({"do": "delete", "ids": [1]}).result()
    left = sizes(project)
    project.close()
    assert begin(photos, tmp_path) == (left, [])


def test_files_of_another_kind_are_reported(photos, tmp_path):
    (photos / "top" / "notes.txt").write_text("The top")
    labels, sentences = begin(photos, tmp_path)
    assert (labels, sentences) == (
        {"bottom": 6, "top": 6},
        ["12 images of 2 classes (photos); ignored: 1 .txt."],
    )


@pytest.mark.skipif(os.name != "posix", reason="needs FIFOs and symbolic links")
def test_pipes_devices_and_dangling_links_are_reported_and_the_rest_is_imported(
    photos, tmp_path
):
    os.mkfifo(photos / "top" / "pipe.png")
    (photos / "top" / "endless.png").symlink_to("/dev/zero")
    (photos / "top" / "dangling.png").symlink_to(tmp_path / "nowhere")
    outcome = []
    thread = threading.Thread(
        target=lambda: outcome.append(begin(photos, tmp_path)), daemon=True
    )
    thread.start()
    thread.join(60)
    ((labels, unreadable),) = outcome
    assert labels == {"bottom": 6, "top": 6}
    assert sorted(
        sentence.split(":")[0].rsplit("/", 1)[-1] for sentence in unreadable
    ) == [
        "dangling.png",
        "endless.png",
        "pipe.png",
    ]


def test_a_model_is_imported_once(photos, tmp_path):
    Imprinter("raw", cache=False).fit(str(photos)).save(tmp_path / "model.imprint")
    for _ in range(2):
        project, _ = start_project(tmp_path / "model.imprint", tmp_path / "project")
        assert project.history.revision == 1
        assert sizes(project) == {"bottom": 0, "top": 0}
        project.close()
