"""The site builds without a warning; generated pages, the tree in CONTRIBUTING.md and the links are up to date."""

import ast
import doctest
import inspect
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import quote

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
GENERATE = runpy.run_path(str(ROOT / "docs" / "generate.py"))
TREE = re.search(r"^```text\n(.*?)^```$", CONTRIBUTING, re.MULTILINE | re.DOTALL)[1]
CODE_PATHS = re.search(
    r"^## Three paths through the code\n(.*?)^## ",
    CONTRIBUTING,
    re.MULTILINE | re.DOTALL,
)[1]


@pytest.mark.parametrize("name", GENERATE["PAGES"])
def test_generated_page_is_current(name):
    assert (GENERATE["FOLDER"] / name).read_text("utf-8") == GENERATE["PAGES"][
        name
    ](), "run `make docs`"


@pytest.mark.parametrize(
    "file", sorted((ROOT / "docs" / "examples").glob("*.txt")), ids=lambda f: f.stem
)
def test_examples_of_the_reference_run(file, tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path))
    failed, tried = doctest.testfile(str(file), module_relative=False)
    assert (failed, tried > 0) == (0, True)


def test_every_public_name_has_an_example_that_runs():
    api = GENERATE["api"]
    for module in api["MODULES"]:
        examples = api["read_examples"](module)
        assert set(examples) <= set(api["public"](module)), (
            "an example of a name that does not exist"
        )
        for name, found in api["public"](module).items():
            called = inspect.isclass(found) or inspect.isfunction(found)
            assert (
                not called or ">>>" in (inspect.getdoc(found) or "") or name in examples
            ), f"{module}.{name}"


def test_drawings_are_current():
    drawings = runpy.run_path(str(ROOT / "docs" / "images" / "drawings.py"))
    for name, svg in drawings["drawn"]().items():
        file = drawings["HERE"] / name
        assert file.read_text("utf-8") == svg, "run `python docs/images/drawings.py`"


SITES = {"docs": "", "reproduction/docs": "reproduction"}
"""The folders of both sites, and where they are built below the first one."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Both sites, as `make docs` builds them: any warning is an error."""
    place = tmp_path_factory.mktemp("site")
    for folder, below in SITES.items():
        trees = place.parent / f"trees{below}"
        words = ["-W", "--keep-going", "-q", "-d", trees, ROOT / folder, place / below]
        done = subprocess.run(
            [sys.executable, "-m", "sphinx", *words],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        assert not done.stderr
    return place


def test_the_site_links_to_the_repository_that_builds_it(monkeypatch):
    conf = str(ROOT / "docs" / "conf.py")
    for name in ("IMPRINT_REPOSITORY", "GITHUB_REPOSITORY", "GITHUB_SERVER_URL"):
        monkeypatch.delenv(name, raising=False)
    assert "source_edit_link" not in runpy.run_path(conf)["html_theme_options"]
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://example.org")
    monkeypatch.setenv("GITHUB_REPOSITORY", "us/imprint")
    repository = "https://example.org/us/imprint"
    for folder in SITES:
        options = runpy.run_path(str(ROOT / folder / "conf.py"))["html_theme_options"]
        assert options["footer_icons"][0]["url"] == repository
        page = options["source_edit_link"].format(filename="index.md")
        assert page == f"{repository}/edit/main/{folder}/index.md"


def test_the_sites_have_every_page(site):
    for folder, below in SITES.items():
        for page in (ROOT / folder).rglob("*.md"):
            if page.parent.name == "examples":
                continue  # parts of generated pages
            file = page.relative_to(ROOT / folder).with_suffix(".html")
            assert (site / below / file).exists()


def test_the_search_index_has_the_words_of_the_field(site):
    index = (site / "searchindex.js").read_text("utf-8")
    stems = (
        "prototyp",
        "knn",
        "licenc",
        "quickstart",
        "increment",
        "abstain",
        "ood",
        "shot",
    )  # as Sphinx stems words
    assert [stem for stem in stems if f'"{stem}":' not in index] == []


def test_no_link_of_the_sites_is_broken(site):
    """Links within a page, between pages, and between the two sites."""
    anchors = {
        page: set(re.findall(r'\bid="([^"]+)"', page.read_text("utf-8")))
        for page in site.rglob("*.html")
    }
    broken = []
    for page in anchors:
        links = set(re.findall(r'(?:href|src)="([^"]*)"', page.read_text("utf-8")))
        for link in links:
            path, _, anchor = link.partition("#")
            if re.match(r"\w+:", path):
                continue  # elsewhere
            target = (page.parent / path.partition("?")[0]).resolve() if path else page
            if not target.exists() or (anchor and anchor not in anchors[target]):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert len(anchors) > 40
    assert broken == []


SEARCHES = {
    "active learning": "label-next",
    "abstain": "trust",
    "audio": "start/sounds",
    "augmentation": "benchmarks",
    "calibration": "trust",
    "class imbalance": "benchmarks/kernel",
    "CLIP": "coming-from/clip",
    "confusion matrix": "evaluate",
    "continual learning": "methods",
    "CSV": "datasets",
    "docker": "start/deploy",
    "drift": "label-next",
    "duplicates": "find-data-errors",
    "encoder": "backbones",
    "exit code": "reference/commands",
    "federated": "start/several-sites",
    "few-shot": "quickstart",
    "fine-tune": "coming-from/setfit",
    "GPU memory": "performance",
    "guardrails": "coming-from/routing",
    "hierarchy": "trees",
    "image": "start/images",
    "install": "quickstart",
    "JSON": "reference/commands",
    "kNN": "coming-from/faiss",
    "kubernetes": "start/deploy",
    "label errors": "find-data-errors",
    "licence": "quickstart",
    "license": "quickstart",
    "multi-label": "tags",
    "neural collapse": "collapse",
    "onnx": "export",
    "OOD": "trust",
    "pipeline": "scikit-learn",
    "privacy": "start/several-sites",
    "prototype": "glossary",
    "Raspberry Pi": "start/device",
    "REST API": "start/deploy",
    "teachable machine": "coming-from/teachable-machine",
    "text classification": "start/texts",
    "threshold": "trust",
    "time series": "start/series",
    "unlearning": "methods",
    "webcam": "serve",
    "zero-shot": "coming-from/clip",
}
"""What people search for, and the page that must be among the first three results."""


def test_search_finds_the_right_page(site, browser_page):
    first = {term: search(site, browser_page, term) for term in SEARCHES}
    wrong = {t: found for t, found in first.items() if SEARCHES[t] not in found[:3]}
    assert wrong == {}


def test_the_search_knows_existing_pages(site):
    pages = tomllib.loads((ROOT / "docs" / "search.toml").read_text("utf-8"))
    assert not [p for p in pages.values() if not (site / f"{p}.html").exists()]


def search(site, page, term):
    """The pages that the search of the site shows for a term, in its order."""
    page.driver.get(f"{(site / 'search.html').as_uri()}?q={quote(term)}")
    summary = "#search-results .search-summary"
    page.wait(lambda: " found " in page.text(summary), f"results for {term}")
    links = page.driver.find_elements("css selector", "#search-results li > a")
    found = [link.get_attribute("href").partition("?")[0] for link in links]
    prefix = f"{site.as_uri()}/"
    pages = [link.partition("#")[0].removeprefix(prefix) for link in found]
    return list(dict.fromkeys(page.removesuffix(".html") for page in pages))


def tree_paths():
    """The paths that the tree in CONTRIBUTING.md names, from its indentation."""
    stack: list[str] = []
    for line in TREE.splitlines():
        indent, names = re.match(r"( *)(\S+(?: \S+)*)", line).groups()
        stack[len(indent) // 2 :] = []
        for name in names.split():
            yield Path(*stack, name)
        stack.append(names)


def test_the_tree_lists_existing_paths():
    paths = list(tree_paths())
    assert not [str(p) for p in paths if not (ROOT / p).exists()]
    package = {
        p.name
        for p in (ROOT / "src" / "imprint").iterdir()
        if not p.name.startswith("_") and p.name != "py.typed"
    }
    assert package == {p.name for p in paths if p.parent == Path("src/imprint")}
    folders = {
        p.name for p in ROOT.iterdir() if p.is_dir() and not p.name.startswith(".")
    }
    assert {"src", "tests", "docs", "benchmarks"} <= {
        p.name for p in paths if len(p.parts) == 1
    } & folders


def definitions():
    """The names that each module of the package defines: functions, classes and `Class.member`."""
    for file in (ROOT / "src" / "imprint").rglob("*.py"):
        module = str(file.relative_to(ROOT / "src" / "imprint"))
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield module, node.name
            if isinstance(node, ast.ClassDef):
                for member in node.body:
                    if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                        yield module, f"{node.name}.{member.name}"


@pytest.mark.parametrize(
    "path", re.findall(r"^\*\*.*?(?=\n\n)", CODE_PATHS, re.MULTILINE | re.DOTALL)
)
def test_paths_through_the_code_are_short_and_accurate(path):
    """Each hop names a file, a definition in a file, or a class or function that exists."""
    by_module = set(definitions())
    names = {name for _, name in by_module} | {
        f"{Path(module).parts[0]}.{name}" for module, name in by_module
    }
    modules = {module for module, _ in by_module}
    _, hops = re.split(r"\*\*:", path)
    assert 5 < len(hops.split("→")) <= 12
    for hop in re.findall(r"`([^`]+)`", hops):
        module, _, name = hop.partition(": ")
        assert (module, name) in by_module if name else module in modules | names, hop


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_have_existing_targets(page):
    links = re.findall(
        r"\]\((?!https?:)([^)#]+)(?:#[\w-]+)?\)", (ROOT / page).read_text("utf-8")
    )
    assert links or page == "CHANGELOG.md"
    assert not [link for link in links if not (ROOT / link).exists()]
