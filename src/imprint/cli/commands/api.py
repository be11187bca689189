"""Serve predictions of models to programs.

An HTTP server that answers and changes nothing: the Open Inference Protocol (version
2), plain endpoints, metrics for Prometheus, and an OpenAPI document at /openapi.json. A
model file that is replaced is loaded without losing a request; SIGTERM finishes what
has begun.
"""

import sys
from enum import StrEnum
from pathlib import Path

from typer import Argument, Option

from imprint.cli import options, terminal
from imprint.core.errors import FileError, ParameterError
from imprint.core.extras import installed, missing

LogFormat = StrEnum("LogFormat", ["text", "json", "none"])
MIB = 1 << 20


def command(
    arguments: list[str] = Argument(
        metavar="MODEL",
        help="Models that `imprint fit` wrote: files, or NAME=FILE.",
    ),
    port: int | None = Option(
        None,
        envvar="IMPRINT_PORT",
        help="The port. [default: the first free one from 8470 on]",
        min=0,
        max=65535,
        rich_help_panel=options.ADDRESS_SECTION,
    ),
    host: str = Option(
        "127.0.0.1",
        envvar="IMPRINT_HOST",
        help="Address to listen on; other machines need --token-file or --no-token.",
        rich_help_panel=options.ADDRESS_SECTION,
    ),
    token_file: Path | None = Option(
        None,
        metavar="FILE",
        envvar="IMPRINT_TOKEN_FILE",
        help="A file with the token that clients must send as a bearer token.",
        rich_help_panel=options.ACCESS_SECTION,
    ),
    no_token: bool = Option(
        False,
        "--no-token",
        envvar="IMPRINT_NO_TOKEN",
        help="Answer everyone who can reach the address.",
        rich_help_panel=options.ACCESS_SECTION,
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
    unknown: float | None = Option(
        None,
        metavar="P",
        min=0,
        max=1,
        help="Answer 'none of these' below this p-value, unless a request states one.",
        rich_help_panel=options.ANSWER_SECTION,
    ),
    log: LogFormat = Option(
        LogFormat.text,
        envvar="IMPRINT_LOG",
        help="Access log on standard error.",
        rich_help_panel=options.OUTPUT_SECTION,
    ),
    max_body: int = Option(
        32,
        min=1,
        help="Maximum size of a request, in MiB.",
        rich_help_panel=options.LIMIT_SECTION,
    ),
    max_pixels: int = Option(
        1 << 25,
        min=1,
        help="Maximum number of pixels of an image.",
        rich_help_panel=options.LIMIT_SECTION,
    ),
    max_inputs: int = Option(
        256,
        min=1,
        help="Maximum number of inputs in a request.",
        rich_help_panel=options.LIMIT_SECTION,
    ),
    max_queue: int = Option(
        1024,
        min=1,
        help="Maximum number of inputs that wait.",
        rich_help_panel=options.LIMIT_SECTION,
    ),
    timeout: float = Option(
        60.0,
        min=0.1,
        help="Maximum time of an answer, seconds.",
        rich_help_panel=options.LIMIT_SECTION,
    ),
    drain: int = Option(
        30,
        min=0,
        help="Time to finish requests after SIGTERM, seconds.",
        rich_help_panel=options.LIMIT_SECTION,
    ),
    device: str = options.DEVICE,
    threads: int | None = options.THREADS,
) -> None:
    if not installed("serve"):
        reason = "imprint api needs starlette, uvicorn and prometheus-client"
        raise missing("serve", reason)
    from imprint.http.listening import in_address, is_loopback, listen
    from imprint.inference.batching import PredictOptions
    from imprint.inference.limits import Limits
    from imprint.inference.metrics import Metrics
    from imprint.inference.records import AccessLog
    from imprint.inference.repository import ModelRepository, named_files
    from imprint.inference.server import application, read_token, serve
    from imprint.inference.service import Service

    if (certificate is None) != (key is None):
        raise ParameterError("--certificate and --key are needed together.")
    if token_file is not None and no_token:
        raise ParameterError("--token-file and --no-token exclude each other.")
    token = None if token_file is None else read_token(token_file)
    if not is_loopback(host) and token is None and not no_token:
        raise ParameterError(
            f"--host {host}: other machines can reach that address; name a"
            " --token-file, or state --no-token."
        )
    if not is_loopback(host) and token is not None and certificate is None:
        terminal.note(
            "Warning: without --certificate and --key, the token is sent unencrypted."
        )
    files = named_files(arguments)
    for path in files.values():
        if not path.is_file():
            raise FileError(f"{path}: no such file; imprint fit writes models.")
    metrics = Metrics()
    repository = ModelRepository(
        files, metrics.batches.observe, device=device, threads=threads
    )
    limits = Limits(
        body=max_body * MIB,
        pixels=max_pixels,
        inputs=max_inputs,
        queue=max_queue,
        seconds=timeout,
    )
    service = Service(
        repository,
        metrics,
        AccessLog(log),
        limits,
        PredictOptions(unknown=unknown),
        threads,
    )
    for model in repository.models.values():
        service.check(model, service.options)
    listening = listen(host, port)
    scheme = "http" if certificate is None else "https"
    actual_port = listening.getsockname()[1]

    def ready() -> None:
        names = ", ".join(f"{m.name} {m.version}" for m in repository.models.values())
        terminal.write(f"{scheme}://{in_address(host)}:{actual_port}\n")
        sys.stdout.flush()
        terminal.note(f"Ready: {names}. SIGTERM or Ctrl-C stops.")

    serve(
        service,
        application(service, host, token),
        listening,
        ready,
        (certificate, key),
        drain,
    )
