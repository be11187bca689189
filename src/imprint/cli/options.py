"""Options that several commands share: single ones, and groups that a command receives
as one value.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any

from typer import Argument, Option

from imprint import recipes
from imprint.cli.files import check_model, check_page
from imprint.cli.help import with_placeholder

# The sections of the help. An option of several commands is in the same one in each.
DATA_SECTION = "Data"
METHOD_SECTION = "Method"
CLASSES_SECTION = "Classes"
STORED_SECTION = "What the model holds"
ANSWER_SECTION = "Answers"
WINDOW_SECTION = "Windows of recordings"
BACKBONE_SECTION = "Backbone"
OUTPUT_SECTION = "Output"
ADDRESS_SECTION = "Address"
ACCESS_SECTION = "Access"
LIMIT_SECTION = "Limits"
WATCHING_SECTION = "Watching"
PROJECT_SECTION = "Project"
RUNNING_SECTION = "Running"
PAPER_SECTION = "Studies of the paper"

MODEL = Argument(
    metavar="FILE", help="A model that `imprint fit` wrote.", callback=check_model
)
DATA_HELP = (
    "A folder with one sub-folder of images or sounds per class; a table of texts or"
    " embeddings (.csv .tsv .jsonl .parquet); embeddings as .npz, or .npy with"
    " --labels; or a data set, see `imprint list datasets`."
)
DATA = Argument(metavar="DATA", help=DATA_HELP)
TREE = Option(
    None,
    "--tree/--flat",
    help=(
        "Read sub-folders of classes, and labels such as animal/cat, as a tree of"
        " classes, or each top folder as one class. [default: a tree for folders,"
        " unless the sub-folders have numbers as names; --flat for other data]"
    ),
    rich_help_panel=DATA_SECTION,
)
TEXT_COLUMN = Option(
    None,
    metavar="NAME",
    help="The column of texts in a table. [default: text]",
    rich_help_panel=DATA_SECTION,
)
ENCODING = Option(
    None,
    metavar="NAME",
    help="The encoding of a table of text, such as latin-1. [default: utf-8]",
    rich_help_panel=DATA_SECTION,
)
BACKBONE = Option(
    None,
    "--backbone",
    "-b",
    help=(
        "Network, see `imprint list backbones`. NAME:last is its last layer alone,"
        " NAME+NAME several networks side by side. [default: efficientnet_lite0 for"
        " images, minilm for texts, yamnet for sounds]"
    ),
    autocompletion=lambda: import_module("imprint.backbones").names(),  # loads NumPy
    rich_help_panel=BACKBONE_SECTION,
)
MOVED_BACKBONE = Option(
    None,
    "--backbone",
    "-b",
    help="New path of the model's backbone (onnx:FILE), if its file has moved.",
    rich_help_panel=BACKBONE_SECTION,
)
RECIPE_HELP = "A method by name, see `imprint list recipes`. [default: kernel]"
RECIPE = Option(
    None,
    "--recipe",
    "-r",
    help=RECIPE_HELP,
    autocompletion=recipes.names,
    rich_help_panel=METHOD_SECTION,
)
DEVICE = Option(
    "cpu",
    metavar="DEVICE",
    help="Device of the backbone: cpu or cuda.",
    rich_help_panel=BACKBONE_SECTION,
)
THREADS = Option(
    None,
    min=1,
    help="Maximum number of cores for the backbone. [default: all]",
    rich_help_panel=BACKBONE_SECTION,
)
ENGINE = Option(
    "local",
    metavar="ENGINE",
    help="local, or ray: the cluster at RAY_ADDRESS.",
    rich_help_panel=BACKBONE_SECTION,
)
CACHE = Option(
    True,
    help="Cache embeddings, so that repeated runs are fast.",
    rich_help_panel=BACKBONE_SECTION,
)
JSON = Option(
    False,
    "--json",
    help="JSON on standard output, for programs.",
    rich_help_panel=OUTPUT_SECTION,
)
PAGE = Option(
    None,
    metavar="FILE",
    help="Write the result as one HTML page.",
    callback=check_page,
    rich_help_panel=OUTPUT_SECTION,
)


def output(help: str, default: Any = ...) -> Any:
    """The option `--output`, which is required if it has no default."""
    return Option(
        default,
        "--output",
        "-o",
        metavar="FILE",
        help=help,
        rich_help_panel=OUTPUT_SECTION,
    )


# the answer for an input whose p-value is too small
NONE_OF_THESE = "none of these"


@dataclass
class UnlabelledColumns:
    """Where the texts of a table without labels are, and how they are encoded."""

    text_column: str | None = TEXT_COLUMN
    encoding: str | None = ENCODING


@dataclass
class DataColumns:
    """Where the labels and the texts of data are, and how these are encoded."""

    labels: Path | None = Option(
        None,
        metavar="FILE",
        help="One label per row, for a .npy file of embeddings.",
        rich_help_panel=DATA_SECTION,
    )
    label_column: str | None = Option(
        None,
        metavar="NAME",
        help="The column of labels in a table. [default: label]",
        rich_help_panel=DATA_SECTION,
    )
    text_column: str | None = TEXT_COLUMN
    encoding: str | None = ENCODING


@dataclass
class TagColumns(DataColumns):
    """Where the labels and the texts of data are, if an input may have several
    labels.
    """

    label_column: str | None = Option(
        None,
        metavar="NAME",
        help=(
            "The column of labels in a table; several (tags) as NAME,NAME. [default:"
            " label]"
        ),
        rich_help_panel=DATA_SECTION,
    )
    separator: str | None = Option(
        None,
        metavar="TEXT",
        help=(
            "Inputs may have several labels (tags): cells of a table are split at TEXT,"
            " such as '|', and equal files in several folders are one input."
        ),
        rich_help_panel=DATA_SECTION,
    )


@dataclass
class Network:
    """A backbone and what it runs on."""

    backbone: str | None = BACKBONE
    device: str = DEVICE
    threads: int | None = THREADS


@dataclass
class CachedNetwork(Network):
    """A backbone whose embeddings may be cached."""

    cache: bool = CACHE


@dataclass
class NetworkOfModel(CachedNetwork):
    """The backbone of a model file."""

    backbone: str | None = MOVED_BACKBONE


def expand_groups(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command for typer: each parameter that is a group, a dataclass, is replaced
    by the options of the group.
    """
    groups: dict[str, Any] = {
        name: p.annotation
        for name, p in signature(command).parameters.items()
        if is_dataclass(p.annotation)
    }

    @wraps(command)
    def call(**values: Any) -> Any:
        for name, group in groups.items():
            values[name] = group(
                **{field.name: values.pop(field.name) for field in fields(group)}
            )
        return command(**values)

    parameters = []
    for name, p in signature(command).parameters.items():
        if name not in groups:
            parameters.append(p)
            continue
        for field in fields(groups[name]):
            parameters.append(
                p.replace(name=field.name, annotation=field.type, default=field.default)
            )
    keywords = [
        with_placeholder(p).replace(kind=Parameter.KEYWORD_ONLY) for p in parameters
    ]
    call.__signature__ = Signature(keywords)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in keywords}
    return call
