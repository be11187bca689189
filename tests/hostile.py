"""Ten thousand hostile inputs: models, images, tables, arrays and requests (`make hostile`), and hostile systems (see
`hostile_systems.py`).

Each trial must end with a correct result or an error of one sentence. The script counts failures: raw exceptions,
undetected damage, trials that take too long, and memory leaks. It exits with 1 if there are any.
"""

import argparse
import gc
import importlib.util
import io
import json
import os
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image

HERE = Path(__file__).parent
SECONDS = 10.0  # time limit of one trial
LEAK = 400 << 20  # maximum growth of the process in bytes, per kind of trial


def module(name: str, path: Path):
    """Load a test module as a library."""
    spec = importlib.util.spec_from_file_location(name, path)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def damaged(raw: bytes, rng: np.random.Generator) -> bytes:
    """Bytes with some flipped, removed, repeated or replaced."""
    data, kind = bytearray(raw), rng.integers(5)
    if kind == 0:
        return bytes(data[: rng.integers(len(data))])
    if kind == 1:
        start = int(rng.integers(len(data)))
        return bytes(
            data[:start]
            + data[start : start + int(rng.integers(1, 200))] * 3
            + data[start:]
        )
    if kind == 2:
        start = int(rng.integers(len(data)))
        data[start : start + 16] = rng.bytes(16)
        return bytes(data)
    for _ in range(1 if kind == 3 else 20):
        data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    return bytes(data)


def models(folder: Path):
    """Model files with a valid checksum and changed contents, and with damage that the checksum must reveal."""
    from imprint import ImprintClassifier
    from imprint.core.errors import ImprintError
    from imprint.core.files import container

    library = module(
        "hostile_files",
        HERE / "unit" / "estimator" / "persistence" / "test_hostile_files.py",
    )
    os.fsync = lambda handle: None  # for speed; durability is not tested here
    path = folder / "model"

    def trial(seed: int) -> str:
        rng = np.random.default_rng(seed)
        if seed % 2:
            document, arrays = library.mutant(seed)
            try:
                container.write(path, document, arrays)
            except (TypeError, ValueError, KeyError):
                return "not a file"
            return "answered" if library.live(path) else "refused"
        container.write(path, *library.original(seed))
        whole = path.read_bytes()
        bad = damaged(whole, rng)
        path.write_bytes(bad)
        try:
            ImprintClassifier.load(path)
        except ImprintError as e:
            library.one_sentence(e)
            return "refused"
        assert bad == whole, "the damage was not noticed"
        return "undamaged"

    return trial


def images(folder: Path):
    """Damaged PNG, JPEG, GIF, BMP, TIFF and WebP files."""
    from imprint.core.errors import UnreadableInput
    from imprint.modalities import modality

    rng = np.random.default_rng(0)
    originals = []
    for kind in ("png", "jpeg", "gif", "bmp", "tiff", "webp"):
        for mode in ("RGB", "L", "P"):
            out = io.BytesIO()
            image = Image.fromarray(
                rng.integers(0, 255, (24, 31, 3), dtype=np.uint8)
            ).convert(mode)
            image.convert("RGB" if kind in ("jpeg", "webp") else mode).save(out, kind)
            originals.append(out.getvalue())
    image = modality("image")

    def trial(seed: int) -> str:
        draw = np.random.default_rng(seed)
        try:
            pixels = image.read(damaged(originals[seed % len(originals)], draw))
        except UnreadableInput as e:
            assert "\n" not in str(e)
            return "refused"
        assert pixels.dtype == np.uint8
        assert pixels.ndim in (2, 3)
        return "answered"

    return trial


def tables(folder: Path):
    """Damaged tables of texts and embeddings."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    from imprint import datasets
    from imprint.core.errors import ImprintError

    rng = np.random.default_rng(0)
    columns = {f"x{i}": rng.normal(size=40) for i in range(4)} | {
        "label": [f"class {i % 3}" for i in range(40)]
    }
    texts = {
        "text": [f"message number {i}" for i in range(40)],
        "label": columns["label"],
    }
    originals = []
    for name, values in (("rows", columns), ("texts", texts)):
        table = pa.table(values)
        pa.parquet.write_table(table, folder / f"{name}.parquet")
        pa.csv.write_csv(table, folder / f"{name}.csv")
        lines = [
            json.dumps(
                {k: (float(v[i]) if k[0] == "x" else v[i]) for k, v in values.items()}
            )
            for i in range(40)
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
        originals += [
            (suffix, (folder / f"{name}{suffix}").read_bytes())
            for suffix in (".parquet", ".csv", ".jsonl")
        ]

    def trial(seed: int) -> str:
        suffix, raw = originals[seed % len(originals)]
        path = folder / f"damaged{suffix}"
        path.write_bytes(damaged(raw, np.random.default_rng(seed)))
        try:
            split = datasets.load(path, "train")
            list(split.inputs)
        except ImprintError as e:
            assert "\n" not in str(e), e
            return "refused"
        return "answered"

    return trial


def arrays(folder: Path):
    """Rows of extreme scale and offset: probabilities are finite, nearest neighbours exact, or the rows are refused."""
    from imprint import ImprintClassifier
    from imprint.core.errors import ImprintError

    methods = [
        ("mean", "max"),
        ("all", "nearest(m=1)"),
        ("all", "kernel"),
        ("kmeans(k=2)", "nearest(m=3)"),
    ]

    def trial(seed: int) -> str:
        rng = np.random.default_rng(seed)
        generator, aggregator = methods[seed % 4]
        width = int(rng.integers(1, 6))
        X = (
            rng.normal(size=(24, width))
            + 6 * rng.normal(size=(3, width))[np.arange(24) % 3]
        )
        X = (X + rng.choice([0, 0, 1e3])) * 10.0 ** rng.integers(-30, 30)
        X, y = X.astype(rng.choice(["float32", "float64"])), np.arange(24) % 3
        norm = str(rng.choice(["none", "l2"]))
        try:
            clf = ImprintClassifier(
                generator=generator, aggregator=aggregator, norm_pre=norm, norm_inf=norm
            ).fit(X, y)
            P, labels = clf.predict_proba(X), clf.predict(X)
        except ImprintError as e:
            assert "\n" not in str(e)
            return "refused"
        assert np.isfinite(P).all()
        np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-3)
        if aggregator == "nearest(m=1)" and norm == "none":
            exact = X.astype(np.longdouble)
            distances = ((exact[:, None] - exact) ** 2).sum(axis=2)
            ties = distances <= distances.min(axis=1, keepdims=True)
            assert all(label in y[row] for label, row in zip(labels, ties)), (
                "not the nearest row"
            )
        return "answered"

    return trial


def requests(folder: Path):
    """Requests to a running server: wrong methods, paths, bodies, parameters and credentials."""
    import threading

    import uvicorn

    from imprint import backbones
    from imprint.http.listening import listen, server_config
    from imprint.serve.project import Project
    from imprint.serve.projects import Projects
    from imprint.serve.server import application

    library = module("serve_conftest", HERE / "unit" / "serve" / "conftest.py")
    project, listening = (
        Project(folder / "project", "raw", backbones.load("raw"), library.METHOD),
        listen("127.0.0.1", 0),
    )
    port = listening.getsockname()[1]
    server = uvicorn.Server(
        server_config(application(Projects(project), "secret", port))
    )
    threading.Thread(target=server.run, args=([listening],), daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    client = library.Client(port, "secret")
    paths = [
        "/",
        "/api/items",
        "/api/change",
        "/api/predict",
        "/api/health",
        "/api/model",
        "/model.imprint",
        "/%00",
        "/../",
    ]
    bodies = [
        None,
        b"",
        b"{}",
        b"[]",
        b'{"do": []}',
        b'{"do": "add"}',
        b"\xff\xfe",
        b'{"do": {"a": 1}}',
        library.image(1),
    ]
    queries = [
        "",
        "?label=a",
        "?label=" + "x" * 9000,
        "?unknown=0.9",
        "?unknown=nan",
        "?label=%00",
        "?id=²",
        "?n=-1",
    ]

    def trial(seed: int) -> str:
        rng = np.random.default_rng(seed)
        method = str(
            rng.choice(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
        )
        path = paths[rng.integers(len(paths))] + queries[
            rng.integers(len(queries))
        ].replace("²", "%C2%B2")
        body = bodies[rng.integers(len(bodies))]
        token = (
            {}
            if rng.random() < 0.8
            else {
                "Authorization": str(rng.choice(["", "Bearer ", "Bearer x", "Basic x"]))
            }
        )
        status, _, _ = client.ask(method, path, body, **token)
        assert status < 500, (method, path, body, status)
        if token and path.startswith("/api") and "health" not in path:
            assert status in (400, 401, 403, 404, 405, 413), (method, path, status)
        return "answered" if status < 400 else "refused"

    def close() -> None:
        server.should_exit = True
        project.close()

    trial.close = close
    return trial


KINDS = {
    "models": (models, 0.4),
    "images": (images, 0.3),
    "tables": (tables, 0.1),
    "arrays": (arrays, 0.15),
}
KINDS |= module("hostile_systems", HERE / "hostile_systems.py").KINDS
KINDS["requests"] = (requests, 0.05)


def memory() -> int:
    gc.collect()
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--only", choices=KINDS, action="append")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    failures = 0
    for name, (prepare, share) in KINDS.items():
        if arguments.only and name not in arguments.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            trial, outcomes, slowest, before = prepare(Path(folder)), Counter(), 0.0, 0
            for seed in range(max(1, int(arguments.trials * share))):
                start = time.monotonic()
                try:
                    outcomes[trial(seed)] += 1
                except Exception as e:
                    failures += 1
                    print(
                        f"{name} {seed}: {type(e).__name__}: {str(e)[:200]}",
                        file=sys.stderr,
                    )
                slowest = max(slowest, time.monotonic() - start)
                before = memory() if seed == 50 else before
            grown = memory() - before if before else 0
            getattr(trial, "close", lambda: None)()
        failures += slowest > getattr(trial, "seconds", SECONDS)
        failures += grown > LEAK
        counts = ", ".join(
            f"{count:,} {outcome}" for outcome, count in sorted(outcomes.items())
        )
        print(
            f"{name}: {counts}; slowest {slowest:.1f} s, memory +{max(0, grown) >> 20} MB",
            flush=True,
        )
    print(
        f"{failures} failures"
        if failures
        else "no raw error, no unnoticed damage, no hang, no leak"
    )
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
