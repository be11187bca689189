"""Where downloads and computed files live."""

import os
from pathlib import Path


def home() -> Path:
    """The folder for data and embeddings: `IMPRINT_HOME`, else `imprint` in the user's cache folder.

    The cache folder is `$XDG_CACHE_HOME` or `~/.cache`, on Windows `%LOCALAPPDATA%`. Nothing is created.
    """
    if folder := os.environ.get("IMPRINT_HOME"):
        return Path(folder).expanduser().absolute()
    if os.name == "nt":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "imprint"
    cache = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(cache) if os.path.isabs(cache) else Path.home() / ".cache") / "imprint"
