"""Threads can read a model while others change it, and no concurrent change is lost."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from imprint import ImprintClassifier, Imprinter

WIDTH = 24
DIRECTIONS = np.eye(WIDTH)  # class i is direction i, so every known class is recognised
LABELS = np.array([f"class {i:02}" for i in range(WIDTH)])
SECONDS = 2.0


def rows_of(i: int):
    return DIRECTIONS[[i]] + 0.01 * np.random.default_rng(i).normal(size=(3, WIDTH))


def reader(clf, path, stop):
    """Predict, save and load until `stop` is set; return the number of rounds and the errors."""
    rounds, wrong = 0, []
    while not stop.is_set() and not wrong:
        rounds += 1
        try:
            labels = clf.predict(DIRECTIONS)
            for i, label in enumerate(
                labels
            ):  # the first eight classes are always known
                if label != LABELS[i] and i < 8:
                    wrong.append(f"{LABELS[i]} is called {label}")
            P = clf.predict_proba(DIRECTIONS)
            if not np.allclose(P.sum(axis=1), 1):
                wrong.append("probabilities of two models")
            clf.save(path)
            back = ImprintClassifier.load(path)
            number = {str(label): i for i, label in enumerate(LABELS)}
            for label, weights in zip(back.classes_, back.proxies_.weights):
                if weights.argmax() != number[label]:
                    wrong.append(
                        f"saved: the proxy of {label} is that of {LABELS[weights.argmax()]}"
                    )
        except Exception as e:  # the test reports every error
            wrong.append(repr(e))
    return rounds, wrong


@pytest.mark.parametrize("aggregator", ["max", "kernel"])
def test_eight_readers_never_see_an_inconsistent_model(
    tmp_path, aggregator, monkeypatch
):
    monkeypatch.setattr("os.fsync", lambda handle: None)
    clf = ImprintClassifier(
        generator="mean", aggregator=aggregator, norm_post="l2", random_state=0
    )
    clf.fit(np.concatenate([rows_of(i) for i in range(8)]), np.repeat(LABELS[:8], 3))
    stop = threading.Event()
    timer = threading.Timer(SECONDS, stop.set)
    with ThreadPoolExecutor(8) as pool:
        readers = [pool.submit(reader, clf, tmp_path / str(i), stop) for i in range(8)]
        timer.start()
        draw, changes = np.random.default_rng(0), 0
        while not stop.is_set() and not any(r.done() for r in readers):
            i = int(draw.integers(8, WIDTH))
            if LABELS[i] in clf.head_:
                clf.forget(LABELS[i])
            else:
                clf.partial_fit(rows_of(i), np.repeat(LABELS[i], 3))
            changes += 1
        stop.set()
        timer.cancel()
        results = [r.result() for r in readers]
    assert [wrong for _, wrong in results if wrong] == []
    assert changes > 20
    assert sum(rounds for rounds, _ in results) >= 8


def test_concurrent_additions_are_not_lost():
    """Each of eight threads adds its own classes and extends a shared class; nothing is lost."""
    clf = ImprintClassifier(
        generator="all", aggregator="max", random_state=0
    ).partial_fit(rows_of(0), ["common"] * 3)
    start = threading.Barrier(8)

    def write(t):
        start.wait()
        for i in range(25):
            clf.partial_fit(rows_of(t), [f"{t} {i}"] * 3)
            clf.partial_fit(rows_of(i % WIDTH)[:1], ["common"])
            if i % 5 == 0:
                clf.forget(f"{t} {i}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert len(clf.classes_) == 1 + 8 * 20
    assert (clf.classes_[clf.proxies_.labels] == "common").sum() == 3 + 8 * 25


def test_concurrent_first_additions_are_not_lost():
    clf, start = (
        ImprintClassifier(generator="mean", random_state=0),
        threading.Barrier(8),
    )

    def write(t):
        start.wait()
        clf.partial_fit(rows_of(t), [t] * 3)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert clf.classes_.tolist() == list(range(8))


def test_concurrent_additions_to_an_imprinter_are_not_lost():
    model, start = (
        Imprinter("embeddings", generator="mean").fit((rows_of(0), ["first"] * 3)),
        threading.Barrier(8),
    )

    def write(t):
        start.wait()
        for i in range(10):
            model.add((rows_of(t), [f"{t} {i}"] * 3))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert len(model.classes_) == 81
    assert len(model.state.exemplars) == 81


def test_the_thread_limit_holds_for_a_blas_loaded_later():
    """SciPy has its own BLAS, which compiled loops call; it is imported when first needed."""
    code = """if True:
        import sys
        import numpy
        from threadpoolctl import threadpool_info
        from imprint.kernels import cpu
        def threads():
            return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
        with cpu.one_blas_thread():
            assert "scipy" not in sys.modules
            cpu.load_scipy_blas()
            assert "scipy.linalg" in sys.modules
            with cpu.one_blas_thread():
                print(*threads())
            print(*threads())
        print(*threads())
        with cpu.one_blas_thread():
            print(*threads())
    """
    two = {
        **os.environ,
        **dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2"
        ),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=two
    )
    assert done.returncode == 0, done.stderr
    nested, inside, after, again = (
        set(line.split()) for line in done.stdout.splitlines()
    )
    assert (nested, inside, again) == ({"1"}, {"1"}, {"1"})
    assert after <= {"1", "2"}  # as before; a machine with one core has no more
