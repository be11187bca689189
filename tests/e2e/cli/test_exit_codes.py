"""Exit codes of every command: 0 success, 1 some inputs failed, 2 wrong usage or input, 130 interrupted."""

import signal
import sys
import time
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from imprint.cli.commands.study import _show_summary
from imprint.cli.run import SUMMARIES, load_command
from imprint.embeddings import write_pack

RAW = ("--backbone", "raw")
RECIPE = ("--recipe", "janson2022")
POSIX = pytest.mark.skipif(
    sys.platform == "win32", reason="Ctrl-C is sent as a POSIX signal"
)


class Words(NamedTuple):
    """Arguments with which a command succeeds, and arguments that are wrong."""

    done: list[str]
    wrong: list[str]


COMMANDS = {
    "fit": Words(["photos", "-o", "x.imprint", *RAW], ["nowhere", "-o", "x.imprint"]),
    "add": Words(["model.imprint", "photos"], ["nowhere.imprint", "photos"]),
    "forget": Words(["model.imprint", "dark"], ["model.imprint", "zebra"]),
    "merge": Words(
        ["model.imprint", "other.imprint", "-o", "x.imprint"],
        ["model.imprint", "nowhere.imprint", "-o", "x.imprint"],
    ),
    "split": Words(
        ["model.imprint", "--classes", "dark", "-o", "x.imprint"],
        ["model.imprint", "--classes", "zebra", "-o", "x.imprint"],
    ),
    "share": Words(
        ["model.imprint", "-o", "x.imprint"], ["nowhere.imprint", "-o", "x.imprint"]
    ),
    "rename": Words(["model.imprint", "dark", "black"], ["model.imprint", "a", "b"]),
    "predict": Words(
        ["model.imprint", "photos/dark/0.png"], ["nowhere.imprint", "photos"]
    ),
    "evaluate": Words(["model.imprint", "photos"], ["nowhere.imprint", "photos"]),
    "check": Words(["photos", *RAW], ["nowhere"]),
    "card": Words(["model.imprint"], ["nowhere.imprint"]),
    "suggest": Words(["photos", *RAW], ["nowhere"]),
    "watch": Words(
        ["model.imprint", "photos", "--once"], ["nowhere.imprint", "photos"]
    ),
    "serve": Words(
        ["model.imprint", "--no-open", "--port", "0"], ["nowhere.imprint", "--no-open"]
    ),
    "export": Words(
        ["model.imprint", "--to", "numpy"], ["nowhere.imprint", "--to", "numpy"]
    ),
    "embed": Words(
        ["photos", "-o", "x.npz", *RAW], ["photos", "-o", "x.npz", "--engine", "spark"]
    ),
    "collapse": Words(["photos", *RAW], ["nowhere"]),
    "study run": Words(
        ["study.yaml", "--out", "new"], ["nowhere.yaml", "--out", "new"]
    ),
    "study report": Words(["results"], ["nowhere"]),
    "study export": Words(["results"], ["nowhere"]),
    "list": Words(["generators"], ["generators", "--measure"]),
    "sample": Words(["photos", "sampled"], ["photos", "photos"]),
    "api": Words(["model.imprint", "--port", "0"], ["nowhere.imprint"]),
    "demo": Words(["--seeds", "2"], ["--out", "photos/dark/0.png"]),
}
ENDLESS = {"serve", "api"}  # they run until they are interrupted
LONG = {"demo"}  # slow; test_commands.py tests exit code 0
INPUTS = ("fit", "add", "predict", "evaluate", "check", "suggest", "embed", "collapse")
"""The commands that skip inputs which cannot be read."""
EVERY = pytest.mark.parametrize("name", COMMANDS)

AT_WORK = """
import sys, time
from imprint.cli import main

def at_work(frame, event, _):
    inside = frame.f_globals.get("__name__", "").split(".")
    if event == "call" and inside[0] == "imprint" and inside[1:2] not in (["cli"], ["core"]) \\
            and frame.f_code.co_name != "<module>":
        sys.setprofile(None)
        print("At work.", file=sys.stderr, flush=True)
        {happens}

sys.setprofile(at_work)
sys.exit(main())
"""
"""A program that interrupts a command at its first call of the function that does the work."""


@pytest.fixture
def place(tmp_path, model, paint, imprint):
    """A folder with images, their model and another one, a study and its results."""
    others = paint(tmp_path / "others", ["dark", "light"], first=5)
    assert imprint("fit", others, "-o", "other.imprint", *RAW, *RECIPE).code == 0
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 6)
    X = (rng.normal(size=(12, 3)) + y[:, None]).astype(np.float32)
    (tmp_path / "packs").mkdir()
    write_pack(tmp_path / "packs" / "net-data.npz", X, y, X[::2], y[::2])
    (tmp_path / "study.yaml").write_text(
        "{embeddings: packs, backbones: net, datasets: data, recipes: qi2018}"
    )
    assert imprint("study", "run", "study.yaml", "--out", "results").code == 0
    return tmp_path


def kept(place):
    """The content of every file of a folder, except the cache."""
    return {
        p: p.read_bytes()
        for p in place.rglob("*")
        if p.is_file() and "home" not in p.parts and p.name != ".lock"
    }


def test_every_command_is_tested():
    """COMMANDS, which the other tests use, contains every command and sub-command that exists."""
    commands = set()
    for name in SUMMARIES:
        commands |= {
            f"{name} {inner}" for inner in getattr(load_command(name), "commands", {})
        } or {name}
    assert commands == set(COMMANDS)


def test_help_lists_the_first_sentence_of_every_command():
    for name, summary in SUMMARIES.items():
        assert load_command(name).get_short_help_str(100).rstrip(".") == summary.rstrip(
            "."
        ), name


@pytest.mark.parametrize("words", [(), ("study",)])
def test_no_command_prints_the_help(imprint, words):
    done = imprint(*words)
    assert (done.code, done.out) == (2, "")
    assert done.err == imprint(*words, "--help").out


def test_a_misspelt_command_is_corrected(imprint):
    done = imprint("fitt")
    assert (done.code, done.err.splitlines()[-1]) == (
        2,
        "Error: No such command 'fitt'. Did you mean 'fit'?",
    )


@EVERY
def test_wrong_usage_is_two(imprint, name):
    done = imprint(*name.split(), "--no-such-option")
    assert (done.code, done.out) == (2, "")
    assert "No such option" in done.err
    assert imprint(*name.split(), "--help").code == 0


@EVERY
def test_wrong_input_is_two_and_one_sentence(imprint, place, name):
    before = kept(place)
    imprint(*name.split(), *COMMANDS[name].wrong).refused()
    assert kept(place) == before


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - ENDLESS - LONG))
def test_success_is_zero(imprint, place, name):
    done = imprint(*name.split(), *COMMANDS[name].done)
    assert done.code == 0, done.err


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_that_cannot_be_read_are_one(imprint, place, photos, name):
    (photos / "dark" / "bad.png").write_bytes(b"nothing")
    words = [
        str(photos) if word.startswith("photos") else word
        for word in COMMANDS[name].done
    ]
    done = imprint(name, *words)
    assert done.code == 1
    assert "bad.png" in done.out + done.err
    if name == "predict":
        assert "dark" in done.out, "the other inputs are predicted"
        assert imprint("predict", "model.imprint", photos / "dark" / "bad.png")[:2] == (
            1,
            "",
        )
    if name == "fit":
        assert imprint("predict", "x.imprint", photos / "dark" / "1.png").code == 0, (
            "the model of the other inputs"
        )


def test_an_experiment_that_fails_is_one(tmp_path, capsys):
    done = SimpleNamespace(
        experiments=3,
        computed=2,
        failed=1,
        seconds=0.1,
        failures=["net-data, mean: broken"],
    )
    assert _show_summary(done, tmp_path, json=False) == 1
    assert "Failed: net-data, mean: broken" in capsys.readouterr().err
    done.failures, done.failed = [], 0
    assert _show_summary(done, tmp_path, json=False) == 0


@EVERY
def test_a_fault_of_imprint_is_one(place, start, finish, name):
    before = kept(place)
    done = finish(
        start(*name.split(), *COMMANDS[name].done, code=AT_WORK.format(happens="1 / 0"))
    )
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[-1].startswith(
        "Error: ZeroDivisionError: division by zero (this may be a fault"
    )
    assert "Traceback" not in done.err
    assert kept(place) == before


@POSIX
@EVERY
def test_interrupted_is_130(place, start, finish, name):
    before = kept(place)
    process = start(
        *name.split(),
        *COMMANDS[name].done,
        code=AT_WORK.format(happens="time.sleep(60)"),
    )
    while process.stderr.readline() not in ("At work.\n", ""):
        pass
    process.send_signal(signal.SIGINT)
    assert finish(process) == (130, "", "Stopped.\n")
    assert kept(place) == before


@POSIX
@pytest.mark.parametrize("name", sorted(ENDLESS))
def test_a_command_that_never_ends_is_interrupted(place, start, finish, name):
    process = start(*name.split(), *COMMANDS[name].done)
    assert process.stdout.readline().startswith("http://127.0.0.1:")
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert (done.code, done.err.splitlines()[-1]) == (130, "Stopped.")


@POSIX
def test_interrupted_while_embedding_is_130(paint, tmp_path, start, finish):
    paint(tmp_path / "many", ["dark", "light"], n=400)
    process = start(
        "embed", "many", "-o", "x.npz", "--threads", 1, "--backbone", "tinynet"
    )
    store, deadline = tmp_path / "home" / "embeddings", time.monotonic() + 60
    while (
        not any(store.rglob("*"))
        and time.monotonic() < deadline
        and process.poll() is None
    ):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    stopped = finish(process)
    assert (stopped.code, stopped.out, stopped.err.splitlines()[-1]) == (
        130,
        "",
        "Stopped.",
    )


@POSIX
def test_interrupted_while_it_starts_is_130(start, finish):
    """Ctrl-C may arrive before a command has parsed its arguments."""
    first = "import sys, signal\nfrom imprint.cli import main\nimport typer\ndel sys.modules['typer']\n"
    hook = "sys.addaudithook(lambda event, args: event == 'import' and args[0] == 'typer' and signal.raise_signal(2))\n"
    assert finish(start("list", code=f"{first}{hook}sys.exit(main())")) == (
        130,
        "",
        "Stopped.\n",
    )
