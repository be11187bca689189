"""The page on the command line: its commands run, and it names every option."""

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from imprint.cli._run import application

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "cli.md").read_text("utf-8")
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
ELSEWHERE = {"study"}  # commands with a page of their own


def test_the_commands_of_the_page_run(imprint, paint, tmp_path, photos):
    (photos / "dark" / "0.png").rename(tmp_path / "new.png")
    paint(tmp_path / "other", ["light"], n=2)
    paint(tmp_path / "more", ["dark"], n=2, first=50)
    lines = [line for block in BLOCK.findall(PAGE) for line in block.splitlines()]
    assert len(lines) >= 10
    for line in lines:
        name, *words = shlex.split(line)
        assert name == "imprint"
        done = imprint(*words)
        assert done.code == 0, f"{line}: {done.err}"


@pytest.mark.parametrize("name", sorted(set(get_command(application()).commands) - ELSEWHERE))
def test_the_page_names_every_option(name):
    (row,) = re.findall(rf"^\| `{name}[ `].*?\|(.*)\|$", PAGE.split("## Options")[1].split("##")[0], re.MULTILINE)
    command = get_command(application()).commands[name]
    options = {o for p in command.params for o in (*p.opts, *p.secondary_opts) if o.startswith("--")}
    assert set(re.findall(r"--[a-z-]+", row)) == options - {"--json", "--help"}
