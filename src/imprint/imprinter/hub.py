"""Models on the Hugging Face hub: one repository holds one model file and its card."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from imprint.core.errors import FileError, first_line
from imprint.core.extras import import_extra

MODEL_FILE = "model.imprint"
CARD_FILE = "README.md"  # the hub reads the metadata at its beginning


def upload(
    files: dict[str, bytes], repo: str, call: str, message: str, **options: Any
) -> str:
    """Create a repository if there is none, and write files to it in one commit.

    Parameters
    ----------
    files : dict
        Contents by name.
    repo : str
        `owner/name`.
    call : str
        What the user called, for errors.
    message : str
        That of the commit.
    **options
        `token`, `endpoint` and `private`, as the hub's client takes them.

    Returns
    -------
    str
        The address of the repository.
    """
    hub = import_extra("huggingface_hub", "hub", call)
    private = options.pop("private", None)
    api = hub.HfApi(**options)
    with _reporting(call, repo), tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        address = api.create_repo(repo, private=private, exist_ok=True)
        api.upload_folder(repo_id=repo, folder_path=folder, commit_message=message)
    return str(address)


def download(
    repo: str, file: str, revision: str | None, call: str, **options: Any
) -> Path:
    """The path of a file of a repository in the cache of the hub's client, downloaded
    if it is not there.
    """
    hub = import_extra("huggingface_hub", "hub", call)
    api = hub.HfApi(**options)
    with _reporting(call, repo):
        return Path(api.hf_hub_download(repo, file, revision=revision))


@contextmanager
def _reporting(call: str, repo: str) -> Iterator[None]:
    """Report an error of the hub or of the network in one sentence."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        yield
    except FileError:
        raise
    # the client raises errors of the system for networks and missing files
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as e:
        raise FileError(f"{call}: {repo}: {first_line(e).rstrip('.')}.") from None
