"""`imprint serve`."""

from pathlib import Path
from typing import Annotated

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal


def command(
    model: Annotated[
        Path | None,
        typer.Argument(
            metavar="[MODEL]",
            help="A model that `imprint fit` wrote, or a folder with one sub-folder of pictures per class.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="The port; unless told, the first free one from 8470 on.", min=0, max=65535)
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
    folder: Annotated[
        Path | None, typer.Option(help="Where to keep what is taught; unless told, in imprint's own folder.")
    ] = None,
    backbone: Annotated[
        str | None, typer.Option("--backbone", "-b", help="The network, see `imprint list backbones`.")
    ] = None,
    recipe: Annotated[
        str | None, typer.Option("--recipe", "-r", help="A method by name, see `imprint list recipes`.")
    ] = None,
    threads: options.Threads = None,
    host: Annotated[str, typer.Option(help="Another address than this machine's own; needs TLS files.")] = "127.0.0.1",
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="TLS certificate, PEM.")] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its private key, PEM.")] = None,
) -> None:
    """Teach and test a model on a page in the browser.

    Nothing leaves this machine. Everything that is taught is kept at once; the next start takes it up again.
    """
    from imprint.cli._files import check_model
    from imprint.core.extras import installed, missing

    if not installed("serve"):
        raise missing("serve", "imprint serve needs starlette and uvicorn")
    from imprint.serve.security import is_loopback
    from imprint.serve.server import bound, serve
    from imprint.serve.start import opened

    if model is not None:
        check_model(model)
    listening = bound(host, port)
    if not is_loopback(host) and certificate is None:
        terminal.note(
            f"Warning: {host} can be reached from other machines, and without --certificate and --key everything, the "
            f"token included, travels readable for all on the way."
        )
    with terminal.bars() as bars:
        found = opened(model, folder, backbone, recipe, threads, lambda done, total: bars.step("Teaching", done, total))
    for sentence in found.unreadable[: terminal.MOST_NAMED]:
        terminal.note(sentence)
    try:
        serve(
            found.classroom,
            listening,
            host,
            lambda address: _ready(address, found.classroom.folder, open_browser),
            certificate,
            key,
        )
    finally:
        found.classroom.close()


def _ready(address: str, folder: Path, open_browser: bool) -> None:
    import sys
    import webbrowser

    terminal.write(f"{address}\n")
    sys.stdout.flush()
    terminal.note(f"Teach and try at that address; what is taught is kept in {folder}. Ctrl-C stops.")
    if open_browser:
        webbrowser.open(address)
