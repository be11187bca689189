"""Families of `hostile.py` about the system: labels of all integer types, copies into prepared folders, memory limits,
closed standard streams, and watched folders that change.
"""

import io
import os
import pickle
import resource
import shutil
import subprocess
import sys
import tempfile
import zipfile
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import numpy as np
from PIL import Image

INTEGER_TYPES = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


def one_sentence(error: Exception) -> str:
    """The kind of an outcome that is a refusal, after a check of its form."""
    text = str(error)
    assert text.endswith("."), text
    assert "\n" not in text, text
    return "refused"


# Labels


def random_labels(rng: np.random.Generator, n: int):
    """n labels of one kind, in a container of a random type; their Python values."""
    kind = rng.integers(6)
    if kind < 3:
        name = str(rng.choice(INTEGER_TYPES))
        limits = np.iinfo(name)
        ends = [limits.min, limits.min + 1, 0, 1, limits.max - 1, limits.max]
        values = [ends[rng.integers(6)] if rng.random() < 0.7 else 2 for _ in range(n)]
        array = np.array(values, dtype=name)
        return array if kind else array.tolist(), values
    if kind == 3:  # beyond every type of NumPy, and beyond the integers of a float
        large = [2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64, -(2**70)]
        values = [large[i] for i in rng.integers(len(large), size=n)]
        return values, values
    if kind == 4:
        words = ["a", "b", "1", "01", "é", "e\u0301", "x" * 300, "a/b", "", "a\0"]
        values = [words[i] for i in rng.integers(len(words), size=n)]
        return (
            np.array(values, dtype=object) if rng.random() < 0.5 else values
        ), values
    values = [[0.5, 2.0, True, False][i] for i in rng.integers(4, size=n)]
    return values, values


def labels(folder: Path):
    """Fits with labels of any type, extended with labels of another one: no two become one."""
    from imprint import ImprintClassifier
    from imprint.core.errors import ImprintError

    path = folder / "model"

    def trial(seed: int) -> str:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(12, 5))
        first, values = random_labels(rng, 6)
        second, more = random_labels(rng, 6)
        parts = dict(generator="all", aggregator="nearest(m=1)")
        model = ImprintClassifier(**parts)
        try:
            model.fit(X[:6], first)
        except ImprintError as e:
            return one_sentence(e)
        expected = list(values)
        extended = True
        try:
            model.partial_fit(X[6:], second)
            expected += more
        except ImprintError as e:
            one_sentence(e)
            extended = False
        rows = X[: len(expected)]
        model.save(path)
        for each in (model, ImprintClassifier.load(path)):
            assert len(each.classes_) == len(set(expected)), each.classes_
            predicted = each.predict(rows).tolist()
            assert predicted == expected, (predicted, expected)
            assert each.score(rows, expected) == 1
        return "answered" if extended else "refused"

    return trial


# Copies


def copies(folder: Path):
    """Copies into folders that somebody prepared with links, folders and files of the same names."""
    from imprint.core.errors import ImprintError
    from imprint.core.files.copies import copy_files, folder_name
    from imprint.core.files.partial import PARTIAL_SUFFIX

    names = ["1.png", "2.png", ".1.png.imprint-partial", "1-1.png", "con", "a:b.png"]
    classes = ["cat", "dog", "a/b", "..", "con", "x" * 400, "x" * 400 + "y", ".hidden"]

    def prepare(rng, place: Path, outside: Path, depth: int) -> None:
        """Fill a folder with traps."""
        for name in rng.permutation([*names, *map(folder_name, classes[:4])])[:5]:
            target = place / str(name)
            kind = rng.integers(6)
            if kind == 0:
                target.symlink_to(outside / "secret")
            elif kind == 1:
                target.symlink_to(outside / "new")
            elif kind == 2:
                target.symlink_to(target.name)  # a circle
            elif kind == 3:
                target.mkdir()
                if depth:
                    prepare(rng, target, outside, depth - 1)
            elif kind == 4:
                target.symlink_to(outside, target_is_directory=True)
            else:
                target.write_bytes(rng.bytes(4))

    def tree(place: Path) -> dict[str, object]:
        found = {}
        for path in sorted(place.rglob("*")):
            name = str(path.relative_to(place))
            if path.is_symlink():
                found[name] = os.readlink(path)
            elif path.is_dir():
                found[name] = None
            else:
                found[name] = path.read_bytes()
        return found

    def trial(seed: int) -> str:
        rng = np.random.default_rng(seed)
        with tempfile.TemporaryDirectory(dir=folder) as name:
            base = Path(name)
            outside, target, sources = (base / n for n in ("outside", "out", "in"))
            for each in (outside, target, sources):
                each.mkdir()
            (outside / "secret").write_bytes(b"secret")
            prepare(rng, target, outside, 1)
            files = []
            for i in range(int(rng.integers(1, 6))):
                (sources / str(i)).mkdir()
                file = sources / str(i) / str(rng.choice(names[:2]))
                file.write_bytes(rng.bytes(int(rng.choice([1, 3000]))))
                parts = str(rng.choice(classes)).split("/")
                files.append((str(file), tuple(map(folder_name, parts))))
            before, elsewhere = tree(target), tree(outside)
            try:
                copied = copy_files(target, files, link=bool(rng.random() < 0.3))
            except ImprintError as e:
                copied = None
                one_sentence(e)
            assert tree(outside) == elsewhere, "something outside was written"
            after = tree(target)
            for name, value in before.items():
                # what a killed process would have left is removed
                is_left_over = name.endswith(PARTIAL_SUFFIX) and type(value) is bytes
                assert is_left_over or after[name] == value, name
            new = {name for name in after if name not in before}
            assert not [n for n in new if n.endswith(PARTIAL_SUFFIX)], new
            if copied is None:
                return "refused"
            for file, parts in files:
                place = target.joinpath(*parts)
                content = Path(file).read_bytes()
                assert any(
                    each.is_file() and each.read_bytes() == content
                    for each in place.iterdir()
                ), (file, parts)
        return "answered"

    return trial


# Memory limits


def limits(folder: Path):
    """Intact files in little memory: they are read, or the lack of memory is reported; no file is called damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from imprint import ImprintClassifier, datasets
    from imprint.modalities.image import formats, read_image

    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 64)).astype(np.float32)
    y = np.arange(len(X)) % 3
    np.savez(folder / "a.npz", X=X, y=y)
    np.save(folder / "a.npy", X)
    columns = {f"x{i}": X[:, i] for i in range(64)} | {"label": y}
    pq.write_table(pa.table(columns), folder / "a.parquet")
    lines = [f"a sentence of row {i},{i % 3}" for i in range(50_000)]
    (folder / "a.csv").write_text("text,label\n" + "\n".join(lines) + "\n")
    model = ImprintClassifier(generator="mean").fit(X[:3000], y[:3000])
    model.save(folder / "m")
    image = Image.fromarray(
        rng.integers(0, 200, (750, 1000, 3), dtype=np.uint8).repeat(6, 0).repeat(4, 1)
    )
    raw = {}
    for name in set(formats()) & {"PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF"}:
        out = io.BytesIO()
        (image.convert("P") if name == "GIF" else image).save(out, name)
        raw[name] = out.getvalue()
        read_image(raw[name])  # loads the decoder
    with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("cat/1.png", raw["PNG"])
        archive.writestr("dog/1.png", raw["PNG"])
    actions = {
        **{name: lambda name=name: read_image(raw[name]) for name in sorted(raw)},
        "npz": lambda: datasets.load(folder / "a.npz"),
        "npy": lambda: datasets.load(folder / "a.npy", labelled=False),
        "parquet": lambda: datasets.load(folder / "a.parquet"),
        "csv": lambda: datasets.load(folder / "a.csv"),
        "zip": lambda: [*datasets.load(folder / "a.zip").inputs],
        "model": lambda: ImprintClassifier.load(folder / "m"),
        "fit": lambda: ImprintClassifier(generator="mean").fit(X, y),
        "predict": lambda: model.predict_proba(X),
    }

    def outcome(action: str, extra: int) -> tuple[str, str]:
        """In a child process: what an action gives in so much more memory."""
        status = Path("/proc/self/status").read_text()
        used = int(status.split("VmSize:")[1].split()[0]) << 10
        resource.setrlimit(resource.RLIMIT_AS, (used + extra, used + extra))
        try:
            actions[action]()
        except MemoryError:
            return "refused", ""
        except Exception as e:
            resource.setrlimit(resource.RLIMIT_AS, (used + extra, -1))
            return "failed", f"{type(e).__name__}: {e}"
        return "answered", ""

    def trial(seed: int) -> str:
        draw = np.random.default_rng(seed)
        action = sorted(actions)[int(draw.integers(len(actions)))]
        # with less than the stacks of its threads, Arrow ends the process
        extra = int(2 ** draw.uniform(25, 28))
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            with suppress(BaseException):
                os.write(writing, pickle.dumps(outcome(action, extra)))
            os._exit(0)
        os.close(writing)
        with open(reading, "rb") as pipe:
            raw = pipe.read()
        _, status = os.waitpid(child, 0)
        assert status == 0, (action, extra, f"status {status}")
        kind, message = pickle.loads(raw) if raw else ("refused", "")
        assert kind != "failed", (action, extra >> 20, message)
        return kind

    return trial


# Standard streams


def streams(folder: Path):
    """Commands with closed, full or broken standard streams: one sentence at most, and the documented exit codes."""
    from imprint import Imprinter

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4)) + 3 * np.eye(2, 4)[np.arange(40) % 2]
    Imprinter().fit(X, [f"class {i % 2}" for i in range(40)]).save(folder / "m")
    np.save(folder / "a.npy", X)
    commands = [
        ["list", "recipes"],
        ["predict", folder / "m", folder / "a.npy"],
        ["predict", folder / "m", folder / "a.npy", "--csv"],
        ["predict", folder / "m", "-"],
        ["predict", folder / "m", folder / "gone.npy"],
        ["card", folder / "m"],
        ["suggest", folder / "a.npy", "--json"],
        ["fit", folder / "gone", "-o", folder / "n"],
        ["--version"],
        ["nonsense"],
    ]
    states = ["open", "closed", "full", "broken"]
    environment = {
        **os.environ,
        "IMPRINT_HOME": str(folder / "home"),
        "OMP_NUM_THREADS": "1",
    }

    def trial(seed: int) -> str:
        draw = np.random.default_rng(seed)
        words = [str(word) for word in commands[int(draw.integers(len(commands)))]]
        out, err = (str(draw.choice(states)) for _ in range(2))
        stdin = str(draw.choice(["open", "closed"]))
        redirections = [{"closed": "<&-", "open": "</dev/null"}[stdin]]
        forms = {"closed": "{}>&-", "full": "{}>/dev/full", "open": "", "broken": ""}
        redirections += [forms[out].format(1), forms[err].format(2)]
        line = f'exec "$@" {" ".join(redirections)}'
        process = subprocess.Popen(
            ["sh", "-c", line, "sh", sys.executable, "-m", "imprint", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        if out == "broken":
            process.stdout.close()
        if err == "broken":
            process.stderr.close()
        text = "" if err == "broken" else process.stderr.read().decode()
        if out != "broken":
            process.stdout.read()
            process.stdout.close()
        process.stderr.close()
        code = process.wait(300)
        assert code in (0, 1, 2), (words, out, err, code, text)
        assert "Traceback" not in text, (words, out, err, text)
        assert "may be a fault in imprint" not in text, (words, out, err, text)
        errors = [each for each in text.splitlines() if each.startswith("Error: ")]
        assert len(errors) <= 1, text
        return "answered" if code == 0 else "refused"

    trial.seconds = 60  # each starts a process, which imports everything
    return trial


# Watched folders


def watching(folder: Path):
    """Folders that change between and during scans: in the end every file was classified as it is."""
    from imprint import Imprinter
    from imprint.active.drift import DriftMonitor
    from imprint.cli.commands.watch import _Watcher

    shades = {"dark": 20, "light": 230}

    def image(label: str, seed: int) -> bytes:
        noise = np.random.default_rng(seed).integers(-15, 15, (12, 12))
        out = io.BytesIO()
        Image.fromarray((shades[label] + noise).astype(np.uint8)).save(out, "PNG")
        return out.getvalue()

    pixels = [
        np.asarray(Image.open(io.BytesIO(image(label, i))))
        for label in shades
        for i in range(20)
    ]
    names = [label for label in shades for _ in range(20)]
    model = Imprinter("raw", recipe="janson2022", cache=False).fit(pixels, names)

    def change(rng, root: Path) -> None:
        """One change that a person or a program may make."""
        places = [root, *(root / name for name in "ab")]
        place = places[int(rng.integers(3))]
        path = place / f"{rng.integers(4)}.png"
        content = image(str(rng.choice(list(shades))), int(rng.integers(100)))
        kind = rng.integers(9)
        with suppress(OSError):
            if kind == 0 and place != root:
                shutil.rmtree(place)
            elif kind == 1:
                path.unlink()
            elif kind == 2:
                path.write_bytes(content[: int(rng.integers(len(content)))])
            elif kind == 3:
                path.rename(place / f"{rng.integers(4)}.png")
            elif kind == 4:
                path.symlink_to(root)
            elif kind == 5:
                path.mkdir()
            elif kind == 6:
                (place / "notes.txt").write_text("not an image")
            else:
                place.mkdir(exist_ok=True)
                path.write_bytes(content)

    def trial(seed: int) -> str:
        rng = np.random.default_rng(seed)
        said = io.StringIO()
        scandir = os.scandir

        def scan(path=".", *rest):
            if rng.random() < 0.3:  # while the folder is being scanned
                os.scandir = scandir
                change(rng, root)
                os.scandir = scan
            return scandir(path, *rest)

        with tempfile.TemporaryDirectory(dir=folder) as name:
            root = Path(name)
            monitor = DriftMonitor.of(model.state.head)
            watcher = _Watcher(model, monitor, root, json=False)
            with redirect_stdout(said), redirect_stderr(io.StringIO()):
                os.scandir = scan
                try:
                    for _ in range(int(rng.integers(1, 8))):
                        change(rng, root)
                        watcher.classify(settled=True)
                finally:
                    os.scandir = scandir
                for _ in range(3):
                    watcher.classify(settled=True)
            last = {}
            for line in said.getvalue().splitlines():
                path, label, *_ = line.split("\t")
                last[path] = label
            files = [path for path in root.rglob("*.png") if path.is_file()]
            readable = 0
            for path in files:
                try:
                    shade = np.asarray(Image.open(path)).mean()
                except OSError:
                    assert path in watcher._unreadable, path
                    continue
                readable += 1
                assert last[str(path)] == ("light" if shade > 120 else "dark")
            assert monitor.inputs == len(said.getvalue().splitlines())
        return "answered" if readable else "refused"

    return trial


KINDS = {
    "labels": (labels, 0.05),
    "copies": (copies, 0.05),
    "limits": (limits, 0.03),
    "streams": (streams, 0.006),
    "watching": (watching, 0.03),
}
"""Each family, and its number of trials as a share of those of `hostile.py`."""
