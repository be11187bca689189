"""Options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, get_args

import typer

from imprint import recipes


class Way(StrEnum):
    """How pre-trained and new classes compete."""

    margin = "margin"
    qi = "qi"
    done = "done"


def _backbones() -> list[str]:
    from imprint import backbones  # loads NumPy

    return backbones.names()


Model = Annotated[Path, typer.Argument(metavar="FILE", help="A model that `imprint fit` wrote.", show_default=False)]
Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A folder with one sub-folder of pictures or sounds per class; a table of texts or embeddings (.csv .tsv "
        ".jsonl .parquet); embeddings as .npz, or .npy with --labels; or a data set, see `imprint list datasets`.",
        show_default=False,
    ),
]
OptionalData = Annotated[str | None, *get_args(Data)[1:]]
Names = Annotated[
    bool | None,
    typer.Option(
        "--names/--no-names",
        help="Use the name of each class as one more example. [default: for texts, if names and examples agree]",
        show_default=False,
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Classes without examples: their names, separated by commas."),
]
Tree = Annotated[
    bool | None,
    typer.Option(
        "--tree/--flat",
        help="Read sub-folders of classes, and labels such as animal/cat, as a tree of classes, or each top folder as "
        "one class. [default: a tree, unless the sub-folders have numbers as names]",
        show_default=False,
    ),
]
Labels = Annotated[
    Path | None, typer.Option("--labels", metavar="FILE", help="One label per row, for a .npy file of embeddings.")
]
LabelColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The column of labels in a table; several, as NAME,NAME: tags. [default: label]"),
]
Separator = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="Inputs may have several labels (tags): cells of a table are split at TEXT, such as '|', and equal files "
        "in several folders are one input.",
    ),
]
TextColumn = Annotated[str | None, typer.Option(metavar="NAME", help="The column of texts in a table. [default: text]")]
Backbone = Annotated[
    str | None,
    typer.Option(
        "--backbone",
        "-b",
        help="Network, see `imprint list backbones`. [default: efficientnet_lite0 for pictures, minilm for texts, "
        "yamnet for sounds]",
        autocompletion=_backbones,
    ),
]
MovedBackbone = Annotated[
    str | None,
    typer.Option("--backbone", "-b", help="New path of the model's backbone (onnx:FILE), if its file has moved."),
]
Recipe = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        "-r",
        help="A method by name, see `imprint list recipes`. [default: kernel]",
        autocompletion=recipes.names,
    ),
]
KeepHead = Annotated[
    bool,
    typer.Option("--keep-head", help="Keep the classes that the network was pre-trained on, such as ImageNet's."),
]
KeepBy = Annotated[
    Way | None,
    typer.Option(help="How pre-trained and new classes compete. Implies --keep-head. [default: margin]"),
]
Generator = Annotated[
    str | None, typer.Option(help="How proxies are computed, such as 'kmeans(k=5)'. [default: that of the recipe]")
]
Proxies = Annotated[
    int | None,
    typer.Option(min=1, help="Maximum number of proxies per class, a budget of memory and time. [default: 50]"),
]
Aggregator = Annotated[
    str | None, typer.Option(help="How proxies score classes, such as 'nearest(m=3)'. [default: that of the recipe]")
]
Centres = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Maximum number of proxies in the linear system of kernel (Nystroem centres). [default: 4096]",
    ),
]
NormPre = Annotated[str | None, typer.Option(help="Normalisation of training embeddings: none or l2.")]
NormPost = Annotated[str | None, typer.Option(help="Normalisation of proxies: none, l2 or quantile.")]
NormInf = Annotated[str | None, typer.Option(help="Normalisation of the embeddings of new inputs: none or l2.")]
Calibrate = Annotated[
    bool, typer.Option("--calibrate/--no-calibrate", help="Calibrate probabilities, and estimate accuracy and `known`.")
]
Seed = Annotated[int, typer.Option(help="Random seed; the same data and seed give the same model.", min=0)]
Device = Annotated[str, typer.Option(help="Device of the backbone: cpu or cuda.")]
Threads = Annotated[int | None, typer.Option(help="Maximum number of cores for the backbone. [default: all]", min=1)]
Engine = Annotated[str, typer.Option(help="local, or ray: the cluster at RAY_ADDRESS.")]
Cache = Annotated[bool, typer.Option("--cache/--no-cache", help="Cache embeddings, so that repeated runs are fast.")]
Json = Annotated[bool, typer.Option("--json", help="JSON on standard output, for programs.")]
Page = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result as one HTML page.")]
