"""`imprint serve`."""

import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal
from imprint.cli._files import check_model
from imprint.cli._progress import progress_bars
from imprint.core.extras import installed, missing


def command(
    model: Annotated[
        Path | None,
        typer.Argument(
            metavar="MODEL",
            help="A model that `imprint fit` wrote, or a folder with one sub-folder of pictures per class.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="The port. [default: the first free one from 8470 on]", min=0, max=65535)
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
    folder: Annotated[
        Path | None, typer.Option(help="The folder of the project. [default: one below IMPRINT_HOME]")
    ] = None,
    backbone: options.Backbone = None,
    recipe: options.Recipe = None,
    label_studio: Annotated[
        bool,
        typer.Option(
            "--label-studio",
            help="Also serve as a machine-learning backend of Label Studio (LABEL_STUDIO_URL, LABEL_STUDIO_API_KEY).",
        ),
    ] = False,
    tree: options.Tree = None,
    threads: options.Threads = None,
    host: Annotated[str, typer.Option(help="Address to listen on; other machines need TLS.")] = "127.0.0.1",
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="TLS certificate, PEM.")] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its private key, PEM.")] = None,
) -> None:
    """Label examples and test a model on a page in the browser.

    Nothing leaves this machine. Every change is saved at once, and the next start continues from there.
    """
    if not installed("serve"):
        raise missing("serve", "imprint serve needs starlette and uvicorn")
    from imprint.serve.security import is_loopback
    from imprint.serve.server import bound, serve
    from imprint.serve.start import started

    if model is not None:
        check_model(model)
    listening = bound(host, port)
    if not is_loopback(host) and certificate is None:
        terminal.note(
            f"Warning: {host} can be reached from other machines, and without --certificate and --key everything, "
            f"including the token, is sent unencrypted."
        )
    with progress_bars() as bars:
        project, sentences = started(
            model, folder, backbone, recipe, threads, tree, lambda done, total: bars.step("Importing", done, total)
        )
    for sentence in sentences[: terminal.MOST_NAMED]:
        terminal.note(sentence)
    try:
        serve(
            project,
            listening,
            host,
            lambda address: _ready(address, project.folder, open_browser and not label_studio, label_studio),
            certificate,
            key,
            label_studio,
        )
    finally:
        project.close()


def _ready(address: str, folder: Path, open_browser: bool, label_studio: bool) -> None:
    from imprint.serve.security import redirect_file

    terminal.write(f"{address}\n")
    sys.stdout.flush()
    terminal.note(f"Open that address in a browser; the project is saved in {folder}. Ctrl-C stops.")
    if label_studio:
        terminal.note(f"Backend URL for Label Studio: {address.replace('?token=', 'label-studio/')}")
    if open_browser:
        webbrowser.open(redirect_file(folder, address).resolve().as_uri())
