"""Tables on terminals of 60, 80 and 120 columns."""

import io
import re
import sys

import pytest
from rich.cells import cell_len

from imprint.cli import terminal
from imprint.cli.commands import list as listing

WIDTHS = (60, 80, 120)
LONG = "photographs/of a long holiday/2024/" + "a" * 60 + "/IMG_20240101_123456.jpeg"
WIDE = "写真/動物/" + "猫" * 40 + ".jpg"


class Screen(io.StringIO):
    def isatty(self):
        return True


def rows_printed(monkeypatch, width, *args, **options):
    """The lines of a table on a terminal of some width."""
    stream = Screen()
    with (
        monkeypatch.context() as patch
    ):  # pytest captures standard output between fixture and test
        patch.setattr(sys, "stdout", stream)
        for name, value in (
            ("COLUMNS", str(width)),
            ("TERM", "xterm"),
            ("NO_COLOR", "1"),
        ):
            patch.setenv(name, value)
        terminal.table(*args, **options)
    lines = stream.getvalue().splitlines()
    assert max(cell_len(line.rstrip()) for line in lines) <= width
    assert "\x1b" not in stream.getvalue()
    return lines


@pytest.fixture(params=WIDTHS)
def printed(request, monkeypatch):
    """The lines of a table on a terminal of some width."""

    def lines(*args, **options):
        return rows_printed(monkeypatch, request.param, *args, **options)

    return lines


@pytest.mark.parametrize("path", [LONG, WIDE, "a.jpg"], ids=["long", "wide", "short"])
@pytest.mark.parametrize(
    "label",
    ["llama", "golden retriever", "金毛寻回犬"],
    ids=["short", "two words", "wide"],
)
def test_the_class_is_shown_next_to_a_long_path(printed, path, label):
    others = "cat 3.2 %, dog 1.1 %"
    columns = ["name", "class", "probability", "known", "others"]
    rows = [[path, label, "98.1 %", "0.423", others]]
    text = "\n".join(printed(columns, rows, right=["probability", "known"]))
    assert label in text
    assert "98.1 %" in text
    assert path[-3:] in text
    assert path[:2] in text


def test_paths_in_a_single_column_lose_the_middle(printed):
    for line, path in zip(
        printed(["name"], [[LONG], [WIDE], ["a.jpg"]])[2:], [LONG, WIDE, "a.jpg"]
    ):
        assert (line[:2], line.rstrip()[-4:]) == (path[:2], path[-4:])


def test_a_number_that_does_not_fit_is_marked_as_cut(monkeypatch):
    columns, row = (
        ["name", "class", "rows", "recall", "precision"],
        ["a.jpg", "cat", "123456", "66.7 %", "100.0 %"],
    )
    lines = rows_printed(monkeypatch, 26, columns, [row], right=columns[2:])
    numbers = re.findall(r"[\d.]+(?: %|…)?", lines[-1].split("cat", 1)[-1])
    assert numbers
    assert all(number in row or number.endswith("…") for number in numbers), lines


def test_no_part_of_a_long_class_name_is_lost(printed):
    label = "balance_not_updated_after_bank_transfer"
    row = ["a.csv, row 2: I paid", label, "98.1 %", "b 3.2 %"]
    lines = printed(
        ["name", "class", "probability", "others"],
        [row],
        right=["probability"],
        names=False,
    )
    start, end = lines[0].index("class"), lines[0].index("probability")
    assert "".join(line[start:end].strip() for line in lines[2:]) == label


def test_texts_in_the_first_column_are_wrapped_unless_they_are_names(printed):
    text = "mails.csv, row 17: I was charged twice for the same purchase, and nobody answers my messages about it"
    lines = printed(
        ["name", "class"], [[text, "a class with a rather long name"]], names=False
    )
    assert (
        " ".join(
            word
            for line in lines[2:]
            for word in line[: lines[0].index("class")].split()
        )
        == text
    )


def test_words_are_not_broken(printed):
    title = "Optical recognition of handwritten digits, merged from several sources and rescaled"
    lines = printed(
        ["name", "classes", "title"], [["digits", 10, title]], right=["classes"]
    )
    words = set(re.findall(r"\w+", " ".join(lines[2:])))
    assert set(re.findall(r"\w+", title)) <= words


NOTE = (
    "known: conformal p-value of belonging to one of the classes; below 0.05 for about"
    " 5 % of inputs that do."
)


def notes_printed(monkeypatch, width, text):
    stream = Screen()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        for name, value in (("COLUMNS", str(width)), ("TERM", "xterm")):
            patch.setenv(name, value)
        terminal.note(text)
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("width", [30, 60, 80, 89, 91])
def test_notes_end_between_words_and_numbers_stay_with_their_unit(monkeypatch, width):
    lines = notes_printed(monkeypatch, width, NOTE)
    assert " ".join(lines) == NOTE
    assert len(lines) > 1
    assert max(map(len, lines)) <= width
    assert not [line for line in lines if line.startswith("%")]


def test_a_command_to_copy_stays_on_one_line(monkeypatch):
    command = f"Next: imprint predict '{LONG}' IMAGE"
    assert notes_printed(monkeypatch, 40, command) == [command]


def test_paths_of_one_folder_keep_their_names(monkeypatch):
    paths = [LONG.replace("123456", str(n)) for n in (111111, 222222)]
    rows = [
        [path, "llama", "98.1 %", "0.423", "cat 3.2 %, dog 1.1 %"] for path in paths
    ]
    columns = ["name", "class", "probability", "known", "others"]
    lines = rows_printed(monkeypatch, 80, columns, rows, right=["probability", "known"])
    text = "\n".join(lines)
    for path in paths:
        assert path.rpartition("/")[2] in text
    assert not re.search(r"\n +%", text), "a number is not cut from its unit"


def test_a_path_loses_its_start_before_its_file_name():
    path = "/srv/photographs of a long holiday/2024/IMG_0001.jpeg"
    assert terminal.shortened_path(path, 30) == "/srv/photograph…/IMG_0001.jpeg"
    assert terminal.shortened_path(path, 14) == terminal.shortened(path, 14)
    assert terminal.shortened_path("a/b.jpg", 30) == "a/b.jpg"


def test_optional_columns_are_left_out_before_a_word_is_cut(printed, request):
    listed = listing.list_datasets()
    rows = [[str(one[column]) for column in listed.columns] for one in listed.objects]
    lines = printed(
        listed.columns,
        rows,
        right=["classes", "train", "test"],
        optional=listed.optional,
    )
    assert "…" not in "".join(lines)
    words = set(" ".join(lines).split())
    assert {
        word for one in listed.objects for word in (one["name"], *one["title"].split())
    } <= words
    left_out = {"test"} if request.node.callspec.params["printed"] == 60 else set()
    assert {column for column in listed.columns if column not in words} == left_out


def test_thirty_classes_with_long_names_fit(printed):
    names = [
        f"{i:02d} class with quite a long name of {'many' * i} words" for i in range(30)
    ]
    rows = [[name, 40, f"{'█' * 16} 100.0 %", "99.9 %"] for name in names]
    lines = printed(
        ["class", "rows", "recall", "precision"],
        rows,
        right=["rows", "recall", "precision"],
    )
    assert len(lines) == 32
    assert all(line.startswith(f"{i:02d} class") for i, line in enumerate(lines[2:]))


def test_colours_need_a_terminal_without_no_color(monkeypatch):
    for stream, environment, coloured in (
        (Screen(), {}, True),
        (Screen(), {"NO_COLOR": "1"}, False),
        (io.StringIO(), {}, False),
    ):
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.delenv("NO_COLOR", raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        terminal.heading("Labels to check: 1")
        terminal.table(["name", "label"], [["a.jpg", terminal.marked("cat")]])
        assert ("\x1b[" in stream.getvalue()) is coloured


def test_a_pipe_gets_complete_lines(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    terminal.table(["name", "class"], [[LONG, "llama"]])
    assert LONG in stream.getvalue()


def test_errors_name_options(imprint, tmp_path, photos):
    (tmp_path / "t.csv").write_text("text,kind\nhello,a\n")
    done = imprint("fit", "t.csv", "-o", "m.imprint")
    assert "--label-column" in done.err
    assert "label_column" not in done.err
    done = imprint("fit", photos, "-o", "m.imprint", "--label-column", "kind")
    done.refused("Error: --label-column kind: columns go with a table.")
    assert imprint("forget", "no-model", "a").err.startswith(
        "Error: no-model: no such file"
    )


def test_a_missing_option_says_what_to_write(imprint, model):
    done = imprint("fit", "photos")
    assert done.code == 2
    assert done.err.splitlines()[-1].startswith("Error: --output FILE is missing: ")
    assert "Error: Choose --to onnx, --to torch or" in imprint("export", model).err
    done = imprint("predict", model, "a.png", "-o", "out.csv")
    assert (
        done.err.splitlines()[-1]
        == "Error: No such option: -o. To write a table: imprint predict ... --csv > FILE."
    )


def test_the_progress_bar_is_there_from_the_start():
    class Shown:
        tasks: list = []  # noqa: RUF012

        def add_task(self, title, total):
            self.tasks.append((title, total))
            return 0

        def update(self, *_, **__): ...

    terminal.Bars(Shown()).embedding()
    assert Shown.tasks == [("Embedding", None)]
