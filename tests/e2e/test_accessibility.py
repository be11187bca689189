"""No page violates an accessibility rule of axe: wide and narrow, light and dark, in a real browser."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from imprint.cli import main
from imprint.embeddings import write_pack

from .serve.browser import save_patterns
from .serve.conftest import serving  # noqa: F401 - a fixture

ROOT = Path(__file__).resolve().parents[2]
LOOKS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
TABS = ("try", "examples", "label", "evaluate", "export")
SITE = ("index", "trust", "methods", "choosing")
STUDY = "{embeddings: packs, backbones: net, datasets: [a, b, c, d, e, f], recipes: [qi2018, janson2022, kernel]}"
RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"]}).then((found) => done(found.violations.map(
  (one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.html} ${node.failureSummary}`).join("; ")}`)));
"""


@pytest.fixture(scope="module")
def page(browser_page):
    return browser_page


@pytest.fixture(scope="module")
def axe():
    if find_spec("selenium_axe_python") is None:
        pytest.skip("needs axe: pip install selenium-axe-python")
    folder = Path(find_spec("selenium_axe_python").origin).parent
    return next(folder.rglob("axe.min.js")).read_text("utf-8")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The pages of `evaluate`, `check` and `study report`."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    save_patterns(folder / "data", ["one", "two", "three"], 8)
    (folder / "packs").mkdir()
    for name in "abcdef":
        y = np.arange(30) % 3
        X = (rng.normal(size=(30, 4)) + y[:, None]).astype(np.float32)
        write_pack(folder / "packs" / f"net-{name}.npz", X, y, X[::2], y[::2])
    (folder / "study.yaml").write_text(STUDY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IMPRINT_HOME", str(folder / "home"))
        data, model = str(folder / "data"), str(folder / "m.imprint")
        assert main(["fit", data, "-o", model, "-b", "raw"]) == 0
        assert (
            main(["evaluate", model, data, "--page", str(folder / "evaluate.html")])
            == 0
        )
        assert (
            main(["check", data, "-b", "raw", "--page", str(folder / "check.html")])
            == 0
        )
        suggested = str(folder / "suggest.html")
        assert main(["suggest", model, f"{data}/one", "--page", suggested]) == 0
        patch.chdir(folder)
        assert (
            main(["study", "run", "study.yaml", "--out", "results", "--workers", "1"])
            == 0
        )
        assert main(["study", "report", "results", "--to", "."]) == 0
    return folder


def violations(page, axe, width, scheme):
    """The violations that axe finds on the open page."""
    size = {
        "width": width,
        "height": 900,
        "deviceScaleFactor": 1,
        "mobile": width < 500,
    }
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    if not page.driver.execute_script("return 'axe' in window"):
        page.driver.execute_script(axe)
    return page.driver.execute_async_script(RUN)


@pytest.mark.parametrize(
    "name", ["evaluate.html", "check.html", "suggest.html", "report.html"]
)
def test_pages_that_are_files(page, axe, files, name):
    page.driver.get((files / name).as_uri())
    for look in LOOKS:
        assert violations(page, axe, *look) == [], (name, look)


def test_every_tab_of_the_page_of_serve(page, axe, files, serving, tmp_path):  # noqa: F811
    with serving(files / "data", "--backbone", "raw") as server:
        page.driver.get(server.address)
        page.wait(lambda: page.text("#evaluate-badge"), "the evaluation")
        page.type("#try-file", str(files / "data" / "one" / "1.png"))
        page.find("#winner")
        page.click("#show-where")
        page.click("#tab-label")
        (tmp_path / "unlabelled").mkdir()
        for i in range(3):
            pixels = np.random.default_rng(i).integers(0, 255, (12, 12), np.uint8)
            Image.fromarray(pixels).save(tmp_path / "unlabelled" / f"{i}.png")
        page.type("#pool-files", str(tmp_path / "unlabelled"))
        page.find("#label-stage canvas")
        page.wait(lambda: page.all(".slot.choice"), "the classes")
        for look in LOOKS:
            for tab in (
                TABS[1:] if look[0] > 1000 else TABS
            ):  # on wide screens, "Try it" is next to every tab
                page.driver.execute_script(
                    f"document.getElementById('tab-{tab}').click()"
                )
                assert violations(page, axe, *look) == [], (tab, look)
        page.click("#tab-examples")
        page.click("#select")
        page.click(".thumb")
        page.click("#project")
        page.find("#projects[open] li")
        assert violations(page, axe, *LOOKS[-1]) == []


def test_the_documentation(page, axe, tmp_path):
    others = {
        p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")
    } - {f"{s}.md" for s in SITE}
    words = [
        "-q",
        "-d",
        tmp_path / "trees",
        "-D",
        f"exclude_patterns={','.join(others)}",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *words, ROOT / "docs", tmp_path / "site"],
        timeout=300,
        capture_output=True,
    )
    assert done.returncode == 0
    for name in SITE:
        page.driver.get((tmp_path / "site" / f"{name}.html").as_uri())
        for look in LOOKS:
            assert violations(page, axe, *look) == [], (name, look)
