"""The version of this package and of what it runs on."""

__version__ = "0.1.0"


def environment() -> str:
    """What a bug report needs: Python, the platform, cores, versions of dependencies and extras, the cache folder."""
    import os
    import platform
    import sys
    from importlib.metadata import PackageNotFoundError, requires, version

    from imprint.core.extras import DISTRIBUTION
    from imprint.core.files.home import home

    def version_of(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "not installed"

    try:
        required = [line.split(";")[0].split(">=")[0].split("[")[0].strip() for line in requires(DISTRIBUTION) or []]
    except PackageNotFoundError:  # imported from a source tree that is not installed
        required = []
    lines = [
        f"python        {platform.python_version()} ({sys.executable})",
        f"platform      {platform.platform()}",
        f"cores         {os.cpu_count()}",
        f"cache folder  {home()}",
        *(f"{name:<13} {version_of(name)}" for name in dict.fromkeys(required) if name != DISTRIBUTION),
    ]
    return "\n".join(lines) + "\n"
