"""How the command line behaves in shells, pipes, logs and terminals."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

TERMINALS = pytest.mark.skipif(
    sys.platform == "win32", reason="pseudo-terminals are POSIX"
)


def on_a_terminal(words: list[str], **env: str) -> str:
    """The combined output of a command on a terminal."""
    import pty

    ours, theirs = pty.openpty()
    whole = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {
        "TERM": "xterm-256color",
        **env,
    }
    process = subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, env=whole
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # Linux: the other side is closed
            break
        if not chunk:
            break
        seen += chunk
    os.close(ours)
    process.wait(timeout=60)
    return seen.decode()


def words(*args: object) -> list[str]:
    return [sys.executable, "-m", "imprint", *map(str, args)]


@TERMINALS
def test_colours_on_a_terminal_unless_no_color_is_set():
    assert "\x1b[" in on_a_terminal(words("predict", "missing.imprint", "a.png"))
    assert "\x1b[3" not in on_a_terminal(
        words("predict", "missing.imprint", "a.png"), NO_COLOR="1"
    )


@TERMINALS
def test_progress_is_shown_on_a_terminal_and_never_in_a_log(photos, start, finish):
    fit = ("fit", photos, "-o", "m.imprint", "-b", "raw", "--no-cache")
    assert "Embedding" in on_a_terminal(words(*fit))
    logged = finish(start(*fit))
    assert "Embedding" not in logged.err
    assert "\x1b" not in logged.err + logged.out
    assert "\r" not in logged.err


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("what", ["datasets", "normalisers"])
def test_a_closed_pipe_is_not_reported(start, what, unbuffered):
    process = start("list", what, "--json", env={"PYTHONUNBUFFERED": unbuffered})
    process.stdout.close()
    assert process.wait(timeout=60) == 1
    assert process.stderr.read() == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_to_a_full_disk_is_one_line(start, unbuffered):
    with open("/dev/full", "w") as full:
        process = start(
            "list",
            "normalisers",
            "--json",
            stdout=full,
            env={"PYTHONUNBUFFERED": unbuffered},
        )
        assert process.wait(timeout=60) == 1
    (line,) = process.stderr.read().splitlines()
    assert line.startswith("Error: ")
    assert line.endswith("No space left on device.")


def test_help_starts_fast_and_imports_nothing_heavy():
    code = (
        "import sys; from imprint.cli import main; main(['--help']);"
        "heavy = {'numpy', 'scipy', 'sklearn', 'PIL', 'onnxruntime', 'matplotlib', 'torch'};"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"


@pytest.mark.skipif(sys.platform == "win32", reason="the resource module is POSIX")
def test_help_takes_less_than_half_a_second_of_cpu_time():
    import resource

    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    used = []
    for _ in range(3):
        before = spent()
        subprocess.run(words("--help"), capture_output=True, check=True)
        used.append(spent() - before)
    assert min(used) < 0.5


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("imprint fi", "fit"),
        ("imprint fit x --backbone ti", "tinynet"),
        ("imprint list da", "datasets"),
    ],
)
def test_shell_completion_of_commands_and_names(line, expected):
    env = {
        **os.environ,
        "_IMPRINT_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
    }
    done = subprocess.run(words(), env=env, capture_output=True, text=True)
    assert expected in done.stdout.split()


def test_tracebacks_are_shown_on_request_only(imprint):
    plain = imprint("predict", "missing.imprint", "a.png")
    assert (plain.code, plain.out) == (2, "")
    assert plain.err == (
        "Error: missing.imprint: no such file; to fit a model: imprint fit FOLDER -o missing.imprint.\n"
    )
    for place in (["--debug", "predict"], ["predict", "--debug"]):
        with pytest.raises(OSError, match="no such file"):
            imprint(*place, "missing.imprint", "a.png")


def test_an_unforeseen_error_is_one_line_too(photos):
    fault = "import imprint.demo; imprint.demo.explore = lambda *_: 1 / 0"
    code = f"{fault}; import sys; from imprint.cli import main; sys.exit(main(%r))"
    for args, traced in ((["demo"], False), (["demo", "--debug"], True)):
        done = subprocess.run(
            [sys.executable, "-c", code % args], capture_output=True, text=True
        )
        assert done.returncode == 1
        assert ("Traceback" in done.stderr) is traced
        assert "ZeroDivisionError" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1 or traced


def test_names_outside_the_encoding_are_escaped(model, photos, start, finish):
    image = (photos / "dark" / "0.png").rename(photos / "dark" / "größe.png")
    ascii_only = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = finish(start("predict", model, image, env=ascii_only))
    assert done.code == 0
    assert "gr\\xf6\\xdfe.png" in done.out
    (answer,) = json.loads(
        finish(start("predict", model, image, "--json", env=ascii_only)).out
    )
    assert answer["path"] == str(image)


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent as a POSIX signal")
def test_ctrl_c_stops_with_one_line_and_the_next_run_goes_on(
    paint, tmp_path, start, finish
):
    import signal

    paint(tmp_path / "many", ["dark", "light"], n=400)
    fit = (
        "fit",
        tmp_path / "many",
        "-o",
        "m.imprint",
        "--threads",
        1,
        "--backbone",
        "tinynet",
    )
    process = start(*fit)
    store, deadline = tmp_path / "home" / "embeddings", time.monotonic() + 60
    while not any(store.rglob("*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    stopped = finish(process)
    assert (stopped.code, stopped.out) == (130, "")
    assert stopped.err.splitlines()[-1] == "Stopped."
    assert "Error" not in stopped.err
    assert not (tmp_path / "m.imprint").exists()
    assert finish(start(*fit)).code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [
        (">&-", 1, "Error: Cannot write to standard output: it is closed.\n"),
        ("2>&-", 0, ""),
        (">&- 2>&-", 1, ""),
        ("2>/dev/full", 0, ""),
        (">/dev/full 2>/dev/full", 1, ""),
    ],
)
def test_closed_and_full_streams(redirection, code, message):
    if "full" in redirection and not os.path.exists("/dev/full"):
        pytest.skip("only Linux has /dev/full")
    command = f"{sys.executable} -m imprint list normalisers --json {redirection}"
    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (code, message)
    assert bool(done.stdout) == (code == 0)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_closed_streams_do_not_change_what_is_written_or_the_exit_code(photos):
    fit = f"{sys.executable} -m imprint fit {photos} -o m.imprint -b raw"
    command = f"{fit} >&- 2>&- && {sys.executable} -m imprint predict m.imprint gone"
    done = subprocess.run(
        ["sh", "-c", f"{command} 2>/dev/full"], capture_output=True, check=False
    )
    assert done.returncode == 2
    assert done.stdout == b""
    with open("m.imprint", "rb") as file:
        assert b"imprint" in file.read(400), "nothing else was written into the model"


def test_closed_standard_input_is_one_sentence(start, model, finish):
    code = "import os, sys; from imprint.cli import main; sys.exit(main())"
    process = start(
        "predict",
        model,
        "-",
        code=f"import os, sys; os.close(0); sys.stdin = None\n{code}",
    )
    done = finish(process)
    assert done.code == 2
    assert "Cannot read standard input: Bad file descriptor." in done.err


def test_ctrl_c_that_a_library_turns_into_another_error_stops_too(start, finish):
    """Extension modules that are imported report an `ImportError`."""
    code = """
import os, signal, sys, time
from imprint.cli import main

class Finder:
    def find_spec(self, name, path, target=None):
        if name == "imprint.cli.run":
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(5)
            except KeyboardInterrupt:
                raise ImportError("initialization failed") from None

sys.meta_path.insert(0, Finder())
sys.exit(main())
"""
    done = finish(start("list", "normalisers", code=code))
    assert (done.code, done.out, done.err) == (130, "", "Stopped.\n")


def test_a_locale_without_the_letters_of_a_class_names_its_folder(paint, start, finish):
    folder = paint(Path("photos"), ["dark", "light"])
    (folder / "dark").rename(folder / "café")
    finish(start("fit", folder, "-o", "m.imprint", "-b", "raw"))
    posix = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    sort = ("predict", "m.imprint", folder, "--sort-into", "sorted")
    done = finish(start(*sort, env=posix))
    assert (done.code, "10 files copied" in done.err) == (0, True)
    assert sorted(os.listdir("sorted")) == ["caf%C3%A9", "light"]


@TERMINALS
@pytest.mark.parametrize("columns", ["1", "7", "20"])
def test_a_terminal_of_few_columns_shows_something(columns):
    seen = on_a_terminal(words("list", "normalisers"), COLUMNS=columns)
    assert "Error" not in seen


def test_an_interrupted_study_names_what_it_has_stored(
    imprint, tmp_path, monkeypatch, capsys
):
    from imprint.cli import main
    from imprint.embeddings import write_pack
    from imprint.study.store import Store

    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    (tmp_path / "packs").mkdir()
    for dataset in ("one", "two", "three"):
        X, Q = (rng.normal(size=(40, 4)) + 3 * np.eye(2, 4)[y] for _ in range(2))
        write_pack(tmp_path / "packs" / f"a-{dataset}.npz", X, y, Q, y)
    (tmp_path / "s.yaml").write_text(
        "backbones: a\ndatasets: [one, two, three]\nembeddings: packs\n"
        "recipes: [janson2022, qi2018]\n"
    )
    write, finished = Store.write, []

    def write_two(self, *result):
        if len(finished) == 2:
            raise KeyboardInterrupt
        finished.append(result)
        return write(self, *result)

    monkeypatch.setattr(Store, "write", write_two)
    words = ["study", "run", "s.yaml", "--out", "results", "--workers", "1"]
    assert main(words) == 130
    done = capsys.readouterr()
    assert "results has the results of 2 units; the same command" in done.err
    assert done.err.endswith("Stopped.\n")
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert "2 experiments computed" in imprint(*words).err
