"""The commands of the tour in the reference of commands run."""

import re
import shlex
from pathlib import Path

PAGE = (
    Path(__file__).resolve().parents[3] / "docs" / "reference" / "commands.md"
).read_text("utf-8")
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_commands_of_the_page_run(imprint, paint, tmp_path, photos):
    (photos / "dark" / "0.png").rename(tmp_path / "new.png")
    paint(tmp_path / "other", ["light"], n=2)
    paint(tmp_path / "more", ["dark"], n=2, first=50)
    # proxies of several rows, which may be shared
    small = ("--generator", "kmeans(k=1)", "--backbone", "raw")
    for name, folder in (("a", photos), ("b", tmp_path / "more")):
        assert imprint("fit", folder, "-o", f"{name}.imprint", *small).code == 0
    tour = PAGE[PAGE.index("## A tour") :]
    lines = BLOCK.search(tour)[1].splitlines()
    assert len(lines) >= 10
    for line in lines:
        name, *words = shlex.split(line)
        assert name == "imprint"
        done = imprint(*words)
        assert done.code == 0, f"{line}: {done.err}"
