"""`imprint list backbones`: its table, its JSON, and its imports."""

import json
import subprocess
import sys

import pytest

from imprint.backbones import backbone, names
from imprint.cli import terminal
from imprint.cli.commands import list as listing

WANTED = {
    "name",
    "modality",
    "width",
    "input",
    "size",
    "top1",
    "licence",
    "installed",
    "needs",
    "download",
    "default",
}


def run(*words, code="import sys; from imprint.cli import main; main(sys.argv[1:])"):
    return subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )


def test_programs_get_every_backbone_with_what_the_table_shows():
    objects = json.loads(run("list", "backbones", "--json").stdout)
    assert [o["name"] for o in objects] == names()
    assert all(set(o) >= WANTED for o in objects)
    by_name = {o["name"]: o for o in objects}
    assert by_name["minilm"]["input"] == "128 tokens"
    assert by_name["resnet18"]["download"].startswith("https://")
    assert [n for n in by_name if by_name[n]["default"]] == [
        "efficientnet_lite0",
        "minilm",
        "minirocket",
        "yamnet",
    ]


def test_listing_imports_nothing_heavy():
    code = (
        "import sys; from imprint.cli import main; main(sys.argv[1:])\n"
        "heavy = 'sklearn pandas scipy onnxruntime torch tokenizers PIL safetensors'.split()\n"
        "print('IMPORTED', sorted(set(heavy) & set(sys.modules)))"
    )
    assert run("list", "backbones", code=code).stdout.endswith("IMPORTED []\n")


def test_the_table_fits_eighty_columns(capsys, monkeypatch):
    monkeypatch.setattr(terminal, "PIPE_COLUMNS", 80)
    listing.list_backbones().print()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(names()) + 2  # no row is wrapped
    assert [line.split()[0] for line in lines[2:]] == names()


def test_available_backbones_are_timed(monkeypatch):
    monkeypatch.setattr(backbone.inputs_per_second, "__defaults__", (0.01,))
    listed = listing.list_backbones(measure=True)
    speeds = {o["name"]: o["per_second"] for o in listed.objects}
    assert set(speeds) >= {"efficientnet_lite0", "minilm", "raw", "tinynet"}
    assert speeds["raw"] > speeds["efficientnet_lite0"] > 0


def test_only_backbones_are_measured():
    with pytest.raises(subprocess.CalledProcessError):
        run(
            "list",
            "recipes",
            "--measure",
            code="import sys; from imprint.cli import main; sys.exit(main(sys.argv[1:]))",
        )
