"""Components of other packages are found only by installed entry points, not by file names."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from tests.contract.minimal import Closest, Corners, Halve

from imprint import ImprintClassifier, Imprinter, aggregators, generators, normalisers
from imprint.core import extras
from imprint.core.errors import FileError, ParameterError
from imprint.core.files import container
from imprint.export import export

X, Y = np.random.default_rng(0).normal(size=(12, 4)), np.repeat(["a", "b", "c"], 4)

GENERATOR = """
    from dataclasses import dataclass
    from imprint.core.component import param
    from imprint.generators._base import PerClassGenerator

    @dataclass(frozen=True, kw_only=True)
    class {name}(PerClassGenerator):
        '''The last rows of a class.'''

        k: int = param(2, "how many", ge=1)

        def summarise(self, X, rng):
            return {{"rows": X[-self.k :].copy()}}

        def extend(self, state, X, rng):
            return self.summarise(X, rng)
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of installed packages: `install(entry points, files)` puts a distribution there."""
    monkeypatch.syspath_prepend(tmp_path / "site")
    families = (generators.family, normalisers.family, aggregators.family)

    def forget():
        extras.registered.cache_clear()
        for family in families:
            family.load.cache_clear()

    def install(points: str, **files: str):
        info = tmp_path / "site" / "mypkg-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: mypkg\nVersion: 1.0\n"
        )
        (info / "entry_points.txt").write_text(textwrap.dedent(points))
        (tmp_path / "site" / "mypkg").mkdir()
        (tmp_path / "site" / "mypkg" / "__init__.py").write_text("")
        for name, text in files.items():
            (tmp_path / "site" / "mypkg" / f"{name}.py").write_text(
                textwrap.dedent(text)
            )
        forget()
        return tmp_path / "site"

    yield install
    for name in [m for m in sys.modules if m.partition(".")[0] == "mypkg"]:
        del sys.modules[name]
    forget()


def load_from(module, name):
    return getattr(__import__(f"mypkg.{module}", fromlist=[name]), name)


def test_an_entry_point_is_a_component_like_any_other(site, tmp_path):
    folder = site(
        "[imprint.generators]\nlast = mypkg.mygen:Last\n",
        mygen=GENERATOR.format(name="Last"),
    )
    assert "last" in generators.family.names()
    clf = ImprintClassifier(
        generator="last(k=1)", aggregator="max", random_state=0
    ).fit(X, Y)
    np.testing.assert_array_equal(clf.proxies_.mass, np.ones(3))
    clf.save(tmp_path / "m")
    back = ImprintClassifier.load(tmp_path / "m")
    assert back.generator == "last(k=1)"
    assert np.array_equal(back.predict(X), clf.predict(X))
    assert back.partial_fit(X[:2], ["d", "d"]).forget("a").classes_.tolist() == [
        "b",
        "c",
        "d",
    ]
    direct = ImprintClassifier(
        generator=load_from("mygen", "Last")(k=1), aggregator="max", random_state=0
    ).fit(X, Y)
    direct.save(tmp_path / "same")
    assert (tmp_path / "same").read_bytes() == (tmp_path / "m").read_bytes()
    listed = subprocess.run(
        [sys.executable, "-m", "imprint", "list", "generators", "--json"],
        env={
            "PYTHONPATH": ":".join([str(folder), *sys.path]),
            "PATH": "",
            "HOME": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert {
        "name": "last",
        "text": "last(k=2)",
        "meaning": "The last rows of a class.",
        "parameters": {"k": 2},
    } in (json.loads(listed.stdout))


def test_a_class_may_be_registered_by_another_module_than_its_own(site, tmp_path):
    both = GENERATOR.format(name="Last")
    site(
        "[imprint.generators]\nlast = mypkg.shop:Last\n",
        mygen=both,
        shop="from mypkg.mygen import Last\n",
    )
    ImprintClassifier(generator=load_from("mygen", "Last")(), aggregator="max").fit(
        X, Y
    ).save(tmp_path / "m")
    assert ImprintClassifier.load(tmp_path / "m").generator == "last(k=2)"


@pytest.mark.parametrize(
    "points", ["", "[imprint.generators]\nmean = mypkg.mean:Mean\n"]
)
def test_a_file_called_mean_is_not_the_builtin_mean(site, tmp_path, points):
    """Unregistered, or registered under a name in use: the built-in component is used, `save` refuses the other."""
    site(points, mean=GENERATOR.format(name="Mean"))
    foreign = load_from("mean", "Mean")(k=1)
    assert generators.family.load("mean").__module__ == "imprint.generators.mean"
    clf = ImprintClassifier(generator=foreign, aggregator="max").fit(X, Y)
    assert np.array_equal(
        clf.proxies_.weights[0],
        ImprintClassifier(generator="all").fit(X, Y).proxies_.weights[3],
    )
    says = (
        r"^save: Mean is not a registered generator, so a file cannot name it; give its package the entry point "
        r"\[project.entry-points.\"imprint.generators\"\] name = \"mypkg.mean:Mean\" with a name that is not taken\.$"
    )
    with pytest.raises(ParameterError, match=says):
        clf.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("points", "says"),
    [
        (
            "last = mypkg.mygen:Nothing",
            r"The entry point last = mypkg.mygen:Nothing .* cannot be loaded",
        ),
        (
            "last = mypkg.nowhere:Last",
            r"The entry point last = .* cannot be loaded: No module named",
        ),
        (
            "last = mypkg.mygen:param",
            r"The entry point last = mypkg.mygen:param .* is not a Generator\.",
        ),
    ],
)
def test_a_broken_entry_point_is_named(site, points, says):
    site(f"[imprint.generators]\n{points}\n", mygen=GENERATOR.format(name="Last"))
    with pytest.raises(ParameterError, match=says):
        generators.family.resolve("last")
    assert str(generators.family.resolve("mean")) == "mean", "the others still work"


def test_a_file_never_decides_what_is_imported(site, tmp_path):
    site("", evil="raise SystemExit('imported')\n")
    ImprintClassifier(generator="mean").fit(X, Y).save(tmp_path / "m")
    document, arrays = container.read(tmp_path / "m")
    for text in (
        "mypkg.evil",
        "mypkg.evil:Evil",
        "evil",
        "__import__('mypkg.evil')",
        "mean(k=__import__('mypkg.evil'))",
    ):
        for part in ("generator", "aggregator", "norm_pre"):
            container.write(
                tmp_path / "m",
                {**document, "parts": {**document["parts"], part: text}},
                arrays,
            )
            with pytest.raises(FileError):
                ImprintClassifier.load(tmp_path / "m")
    assert "mypkg.evil" not in sys.modules


def test_minimal_components_work_everywhere(tmp_path, awkward):
    parts = dict(
        norm_pre=Halve(),
        generator=Corners(),
        norm_post=Halve(),
        norm_inf=Halve(),
        aggregator=Closest(),
    )
    clf = ImprintClassifier(**parts).fit(*awkward)
    assert clf.partial_fit(awkward[0][:3], [7, 7, 7]).forget(0).classes_.tolist() == [
        1,
        2,
        7,
    ]
    assert "Corners(share=0.5)" in str(clf.head_.method)
    rows = Imprinter("embeddings", **parts).fit((awkward[0], awkward[1]))
    reasons = rows.why(awkward[0][:1][0], 2)
    assert len(reasons) == 2
    assert rows.measure == "distance"
    assert rows.classifier.get_params()["generator"] == Corners()
    for part, kind in (
        ("generator", "Corners"),
        ("aggregator", "Closest"),
        ("norm_inf", "Halve"),
    ):
        one = ImprintClassifier(
            **{"generator": "mean", "aggregator": "max", part: parts[part]}
        ).fit(*awkward)
        with pytest.raises(
            ParameterError, match=rf"^save: {kind} is not a registered .*entry-points"
        ):
            one.save(tmp_path / "m")
        if part != "generator":
            with pytest.raises(
                ParameterError,
                match=rf"^export: {kind} does not describe itself as arrays, so it cannot be exported\.$",
            ):
                export(one, tmp_path / "m.npz", "numpy")
    assert not list(tmp_path.iterdir())
