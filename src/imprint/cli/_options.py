"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer


def _backbones() -> list[str]:
    from imprint.backbones.record import names

    return names()


def _recipes() -> list[str]:
    from imprint.recipes import names

    return names()


Model = Annotated[Path, typer.Argument(metavar="FILE", help="A model that `imprint fit` wrote.", show_default=False)]
Data = Annotated[
    str,
    typer.Argument(
        metavar="FOLDER",
        help="A folder with one sub-folder of pictures per class; or a data set, see `imprint list datasets`.",
        show_default=False,
    ),
]
Network = Annotated[
    str, typer.Option("--backbone", "-b", help="See `imprint list backbones`.", autocompletion=_backbones)
]
MovedNetwork = Annotated[
    str | None,
    typer.Option("--backbone", "-b", help="Where the model's backbone lies now, if its file has moved."),
]
Recipe = Annotated[
    str, typer.Option("--recipe", "-r", help="A published method, see `imprint list recipes`.", autocompletion=_recipes)
]
Part = Annotated[str | None, typer.Option(help="Replaces this part of the recipe.", rich_help_panel="Parts")]
Seed = Annotated[int, typer.Option(help="The same pictures and seed give the same model.", min=0)]
Device = Annotated[str, typer.Option(help="Where the backbone runs: cpu or cuda.")]
Threads = Annotated[int | None, typer.Option(help="Cores the backbone may use; all, unless told.", min=1)]
Cache = Annotated[bool, typer.Option("--cache/--no-cache", help="Keep the embeddings, so that a repeat is fast.")]
Json = Annotated[bool, typer.Option("--json", help="For programs: JSON on standard output.")]
