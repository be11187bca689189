"""`imprint sample`: data to start with, and the command that uses them."""

import json
import shlex


def test_a_fresh_folder_is_fitted_with_the_printed_command(imprint, tmp_path):
    done = imprint("sample", "messages", "inbox")
    assert done.code == 0
    assert done.out == ""
    printed = done.err.splitlines()[-1].removeprefix("Next: imprint ")
    assert printed == "fit inbox -o messages.imprint"
    fitted = imprint(*shlex.split(printed))
    assert fitted.code == 0
    assert "on the test part" in fitted.err
    assert imprint("add", "messages.imprint", "inbox/more.csv").code == 0
    answers = json.loads(
        imprint("predict", "messages.imprint", "inbox/new.csv", "--json").out
    )
    assert [one["label"] for one in answers] == ["delivery", "praise", "refund"]


def test_wrong_uses_are_refused(imprint, tmp_path):
    imprint("sample", "photo", "x").refused("Unknown sample 'photo'.", "photos")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    imprint("sample", "photos", "full").refused("full", "not an empty folder")
    facts = json.loads(imprint("sample", "photos", "new", "--json").out)
    assert facts["kind"] == "photos"
    assert facts["files"] > 200
