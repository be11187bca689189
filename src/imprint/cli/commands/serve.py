"""Label examples and test a model in a web app on your own machine.

Nothing leaves this machine. Every change is saved at once, and the next start continues
from there.
"""

import sys
import webbrowser
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from typer import Argument, Option

from imprint.cli import files, options, terminal
from imprint.core.errors import ParameterError
from imprint.core.extras import installed, missing


def command(
    model: Path | None = Argument(
        None,
        metavar="MODEL",
        help=(
            "A model that `imprint fit` wrote, or a folder with one sub-folder of"
            " images per class."
        ),
        callback=files.check_model,
    ),
    port: int | None = Option(
        None,
        envvar="IMPRINT_PORT",
        help="The port. [default: the first free one from 8470 on]",
        min=0,
        max=65535,
        rich_help_panel=options.ADDRESS_SECTION,
    ),
    open_browser: bool = Option(
        True,
        "--open/--no-open",
        envvar="IMPRINT_OPEN",
        help="Open the page in a browser.",
        rich_help_panel=options.ADDRESS_SECTION,
    ),
    folder: Path | None = Option(
        None,
        envvar="IMPRINT_FOLDER",
        help="The folder of the project. [default: one below IMPRINT_HOME]",
        rich_help_panel=options.PROJECT_SECTION,
    ),
    backbone: str | None = options.BACKBONE,
    recipe: str | None = options.RECIPE,
    label_studio: bool = Option(
        False,
        "--label-studio",
        help="Also be a Label Studio backend (LABEL_STUDIO_URL, LABEL_STUDIO_API_KEY).",
        rich_help_panel=options.PROJECT_SECTION,
    ),
    tree: bool | None = options.TREE,
    threads: int | None = options.THREADS,
    host: str = Option(
        "127.0.0.1",
        envvar="IMPRINT_HOST",
        help="Address to listen on; other machines need TLS.",
        rich_help_panel=options.ADDRESS_SECTION,
    ),
    public_name: str | None = Option(
        None,
        metavar="NAME",
        envvar="IMPRINT_PUBLIC_NAME",
        help="Name in the printed address. [default: that of --host]",
        rich_help_panel=options.ADDRESS_SECTION,
    ),
    certificate: Path | None = Option(
        None,
        metavar="FILE",
        envvar="IMPRINT_CERTIFICATE",
        help="TLS certificate, PEM.",
        rich_help_panel=options.ACCESS_SECTION,
    ),
    key: Path | None = Option(
        None,
        metavar="FILE",
        envvar="IMPRINT_KEY",
        help="Its private key, PEM.",
        rich_help_panel=options.ACCESS_SECTION,
    ),
) -> None:
    if not installed("serve"):
        raise missing("serve", "imprint serve needs starlette and uvicorn")
    from imprint.http.listening import is_loopback, listen
    from imprint.serve.projects import Projects, start_project
    from imprint.serve.server import serve

    if (certificate is None) != (key is None):
        raise ParameterError("--certificate and --key are needed together.")
    listening = listen(host, port)
    if not is_loopback(host) and certificate is None:
        unencrypted = (
            "without --certificate and --key, everything, including the token, is sent"
            " unencrypted"
        )
        terminal.note(
            f"Warning: {host} can be reached from other machines, and {unencrypted}."
        )
    with terminal.progress_bars() as bars:
        project, sentences = start_project(
            model,
            folder,
            backbone,
            recipe,
            threads,
            tree,
            lambda done, total: bars.step("Importing", done, total),
        )
    for sentence in sentences[: terminal.MAX_NAMED]:
        terminal.note(sentence)
    announce = partial(
        _announce,
        folder=project.folder,
        open_browser=open_browser,
        label_studio=label_studio,
        public_name=public_name,
    )
    serve(
        Projects(project, label_studio),
        listening,
        host,
        announce,
        *filter(None, (certificate, key)),
    )


def _announce(
    address: str,
    folder: Path,
    open_browser: bool,
    label_studio: bool,
    public_name: str | None = None,
) -> None:
    """Print the address of the page, and open it; its token does not appear in the
    command line of the browser.
    """
    from imprint.serve.security import redirect_file

    if public_name is not None:
        # a container does not know under which name its port is published
        parts = urlsplit(address)
        address = parts._replace(netloc=f"{public_name}:{parts.port}").geturl()
    terminal.write(f"{address}\n")
    sys.stdout.flush()
    terminal.note(
        f"Open that address in a browser; the project is saved in {folder}. Ctrl-C"
        " stops."
    )
    if label_studio:
        terminal.note(
            "Backend URL for Label Studio:"
            f" {address.replace('?token=', 'label-studio/')}"
        )
    elif open_browser:
        webbrowser.open(redirect_file(folder, address).resolve().as_uri())
