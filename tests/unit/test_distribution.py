"""The package is distributed as `weight-imprinting`; one place says how it is installed."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from imprint.core import extras
from imprint.core.errors import MissingExtraError

ROOT = Path(__file__).parents[2]
SENTENCE = re.compile(r"pip install|(?<![\w-])imprint\[\w+\]")
OTHERS = re.compile(
    r"pip install [^\n`]*(?<![\w-])imprint\b(?!/)|(?<![\w-])imprint\[\w+\]"
)
HOME = "src/imprint/core/extras.py"


def sources(*patterns: str) -> list[Path]:
    return [p for pattern in patterns for p in sorted(ROOT.glob(pattern))]


def test_install_messages_come_from_one_module():
    """All install messages come from `core.extras`, and none names the distribution of another project.

    The README of an exported folder is for people who do not have imprint.
    """
    messages = {}
    elsewhere = "src/imprint/export/whole.py"
    for path in sources("src/**/*.py"):
        lines = [
            line for line in path.read_text().splitlines() if SENTENCE.search(line)
        ]
        if lines and path != ROOT / elsewhere:
            messages[path.relative_to(ROOT).as_posix()] = lines
    assert list(messages) == [HOME], messages


def test_pages_name_the_right_distribution():
    for path in sources(
        "*.md", "docs/**/*.md", "examples/**/*", "pretrain/*.md", "src/**/*.json"
    ):
        if path.is_file() and path.name != "CHANGELOG.md":
            wrong = OTHERS.findall(path.read_text())
            assert not wrong, (path, wrong)


def test_the_distribution_and_its_extras():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == extras.DISTRIBUTION == "weight-imprinting"
    assert project["scripts"] == {"imprint": "imprint.cli:main"}
    optional = project["optional-dependencies"]
    assert set(extras.EXTRA_MODULES) <= set(optional)
    imprint_extras = [
        d
        for group in optional.values()
        for d in group
        if d.startswith(("imprint", extras.DISTRIBUTION))
    ]
    assert imprint_extras
    assert all(d.startswith(f"{extras.DISTRIBUTION}[") for d in imprint_extras)


def test_a_missing_extra_is_one_sentence():
    assert isinstance(
        extras.missing("ray", "The ray engine needs ray"), MissingExtraError
    )
    assert (
        str(extras.missing("ray", "The ray engine needs ray"))
        == "The ray engine needs ray: pip install 'weight-imprinting[ray]', or in a clone: pip install '.[ray]'."
    )
    assert (
        str(extras.missing(None, "It needs this"))
        == "It needs this: pip install weight-imprinting."
    )


def test_the_other_imprint_is_named_where_both_are_installed(monkeypatch, tmp_path):
    def absent(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", absent)
    assert extras.conflict_warning() is None
    monkeypatch.undo()
    info = tmp_path / "imprint-4.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: imprint\nVersion: 4.2\n"
    )
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from imprint.cli import main; main(['--version'])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("imprint ")
    assert done.stderr.strip() == (
        "Another project's imprint 4.2 is installed next to weight-imprinting, and both are imported as imprint: "
        "pip uninstall imprint, then pip install --force-reinstall --no-deps weight-imprinting."
    )


@pytest.mark.parametrize(
    ("words", "absent"),
    [
        (
            ["predict", "m.imprint", "p.png"],
            {"sklearn", "pandas", "scipy", "torch", "matplotlib", "pyarrow"},
        ),
        (
            ["predict", "m.imprint", "known.png"],
            {"sklearn", "pandas", "scipy", "PIL", "onnxruntime", "numpy.ma"},
        ),
        (
            ["list", "generators"],
            {"sklearn", "pandas", "scipy", "PIL", "onnxruntime", "pyarrow"},
        ),
        (
            ["list", "aggregators"],
            {"sklearn", "pandas", "scipy", "PIL", "onnxruntime", "pyarrow"},
        ),
        (
            ["list", "backbones"],
            {"sklearn", "pandas", "scipy", "PIL", "onnxruntime", "torch"},
        ),
        (["list", "recipes"], {"sklearn", "pandas", "scipy", "numpy"}),
        (
            ["list", "studies"],
            {"sklearn", "pandas", "scipy.stats", "torch", "matplotlib"},
        ),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_a_command_imports_no_more_than_it_needs(words, absent, tmp_path, monkeypatch):
    """Find culprits with: python -X importtime -m imprint ..."""
    import numpy as np
    from PIL import Image

    from imprint import Imprinter
    from imprint.cli import main

    monkeypatch.chdir(tmp_path)
    if words[0] == "predict":
        images = np.random.default_rng(0).integers(
            0, 255, (4, 16, 16, 3), dtype=np.uint8
        )
        Imprinter("tinynet").fit((images, ["a", "a", "b", "b"])).save("m.imprint")
        Image.fromarray(images[0]).save("p.png")
        Image.fromarray(images[1]).save("known.png")
        main(["predict", "m.imprint", "known.png"])  # so that its embedding is cached
    code = (
        f"import sys; from imprint.cli import main; code = main({words});"
        f"print(sorted(set({sorted(absent)}) & sys.modules.keys()), file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.skipif(sys.platform == "win32", reason="the resource module is POSIX")
def test_a_list_takes_little_time():
    """Less than 0.4 s of CPU time on an idle machine; the limit is twice that for busy machines."""
    import resource

    used = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "imprint", "list", "generators"],
            capture_output=True,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(used) < 0.8


def test_the_bill_of_materials_names_every_shipped_network():
    """The SBOM in the wheel lists all weights with their checksums and licences."""
    import hashlib
    import json

    bill = json.loads((ROOT / "packaging/sbom.cdx.json").read_text())
    weights = ROOT / "src/imprint/backbones/weights"
    listed = {
        part["name"]: part["hashes"][0]["content"]
        for c in bill["components"]
        for part in c["components"]
    }
    shipped = {
        f"imprint/backbones/weights/{p.name}": hashlib.sha256(
            p.read_bytes()
        ).hexdigest()
        for p in weights.iterdir()
    }
    assert listed == shipped
    assert all(c["licenses"] for c in bill["components"])


def test_the_conda_recipe_asks_for_the_same_dependencies():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = (ROOT / "packaging/conda/recipe.yaml").read_text()
    for dependency in project["dependencies"]:
        name, _, lowest = dependency.partition(">=")
        assert re.search(
            rf"- {re.escape(name)}(-base)? >={re.escape(lowest)}\n", recipe
        ), dependency
