"""0 done, 1 some inputs failed, 2 wrong usage or input, 130 interrupted: for every command there is."""

import signal
import sys
import time
from types import SimpleNamespace

import pytest
import typer

from imprint.cli._run import application
from imprint.cli._studying import show_summary

RAW = ("--backbone", "raw")


def commands() -> list[list[str]]:
    """Every command and sub-command, found and not listed."""
    root = typer.main.get_command(application())
    found = []
    for name, command in root.commands.items():
        inner = getattr(command, "commands", None)
        found += [[name, n] for n in inner] if inner else [[name]]
    return found


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_wrong_usage_is_two(imprint, words):
    done = imprint(*words, "--no-such-option")
    assert (done.code, done.out) == (2, "")
    assert "No such option" in done.err
    assert imprint(*words, "--help").code == 0


WRONG = {
    "fit": ["fit", "nowhere", "-o", "x.imprint"],
    "add": ["add", "nowhere.imprint", "photos"],
    "forget": ["forget", "MODEL", "zebra"],
    "predict": ["predict", "nowhere.imprint", "photos"],
    "evaluate": ["evaluate", "nowhere.imprint", "photos"],
    "check": ["check", "nowhere"],
    "serve": ["serve", "nowhere.imprint", "--no-open"],
    "export": ["export", "nowhere.imprint", "--to", "numpy"],
    "embed": ["embed", "photos", "-o", "x.npz", "--engine", "spark"],
    "collapse": ["collapse", "nowhere"],
    "study run": ["study", "run", "nowhere.yaml", "--out", "out"],
    "study report": ["study", "report", "nowhere"],
    "study export": ["study", "export", "nowhere"],
    "list": ["list", "generators", "--measure"],
    "demo": ["demo", "--out", "photos/dark/0.png"],
}
DONE = {
    "fit": ["fit", "photos", "-o", "x.imprint", *RAW],
    "add": ["add", "MODEL", "photos"],
    "forget": ["forget", "MODEL", "dark"],
    "predict": ["predict", "MODEL", "photos/dark/0.png"],
    "evaluate": ["evaluate", "MODEL", "photos"],
    "check": ["check", "photos", *RAW],
    "export": ["export", "MODEL", "--to", "numpy"],
    "embed": ["embed", "photos", "-o", "x.npz", *RAW],
    "collapse": ["collapse", "photos", *RAW],
    "list": ["list", "generators"],
}


def test_every_command_is_tried():
    assert {" ".join(words) for words in commands()} == set(WRONG)


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_wrong_input_is_two_and_one_sentence(imprint, model, words):
    imprint(*(model if w == "MODEL" else w for w in words)).refused()


@pytest.mark.parametrize("words", DONE.values(), ids=DONE)
def test_done_is_zero(imprint, model, words):
    done = imprint(*(model if w == "MODEL" else w for w in words))
    assert done.code == 0, done.err


def test_inputs_that_cannot_be_read_are_one(imprint, model, photos):
    (photos / "bad.png").write_bytes(b"nothing")
    some, none = (imprint("predict", model, *inputs) for inputs in ([photos], [photos / "bad.png"]))
    assert (some.code, none.code) == (1, 1)
    assert "dark" in some.out
    assert none.out == ""
    (photos / "bad.png").rename(photos / "dark" / "bad.png")
    for words in (
        ["evaluate", model, photos],
        ["check", photos, *RAW],
        ["fit", photos, "-o", "x.imprint", *RAW],
        ["add", model, photos],
        ["embed", photos, "-o", "x.npz", *RAW],
        ["collapse", photos, *RAW],
    ):
        done = imprint(*words)
        assert done.code == 1, words
        assert "bad.png" in done.out + done.err
    assert imprint("predict", "x.imprint", photos / "dark" / "1.png").code == 0


def test_an_experiment_that_fails_is_one(tmp_path, capsys):
    done = SimpleNamespace(experiments=3, computed=2, failed=1, seconds=0.1, failures=["net-data, mean: broken"])
    with pytest.raises(typer.Exit) as e:
        show_summary(done, tmp_path, json=False)
    assert e.value.exit_code == 1
    assert "Failed: net-data, mean: broken" in capsys.readouterr().err
    done.failures, done.failed = [], 0
    show_summary(done, tmp_path, json=False)


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent as a POSIX signal")
@pytest.mark.parametrize("words", [["fit", "many", "-o", "x.imprint"], ["embed", "many", "-o", "x.npz"]])
def test_interrupted_is_130(paint, tmp_path, start, finish, words):
    paint(tmp_path / "many", ["dark", "light"], n=400)
    process = start(*words, "--threads", 1, "--backbone", "tinynet")
    store, deadline = tmp_path / "home" / "embeddings", time.monotonic() + 60
    while not any(store.rglob("*")) and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    stopped = finish(process)
    assert (stopped.code, stopped.out, stopped.err.splitlines()[-1]) == (130, "", "Stopped.")
