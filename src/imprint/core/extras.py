"""What is installed: the extras of this distribution, plug-ins of other packages, and
versions for a bug report.
"""

from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from imprint.core.errors import MissingExtraError, ParameterError, first_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

DISTRIBUTION = "weight-imprinting"  # the name of this package on the package index
NAMESAKE = "imprint"  # another project there, which is imported under the same name
EXTRA_MODULES = {
    "torch": ("torch", "torchvision"),
    "litert": ("ai_edge_litert",),
    "timm": ("timm",),
    "sentence": ("sentence_transformers",),
    "clip": ("open_clip", "transformers", "torchvision"),
    "serve": ("starlette", "uvicorn", "onnx", "prometheus_client"),
}
"""The modules of each extra; it is installed if all of them are found."""


def install_hint(extra: str | None = None, *options: str) -> str:
    """The command that installs this package, with an extra or without."""
    what = DISTRIBUTION if extra is None else f"'{DISTRIBUTION}[{extra}]'"
    return " ".join(["pip install", *options, what])


def missing(extra: str | None, what: str, *options: str) -> MissingExtraError:
    """The error for an optional package that is not installed."""
    command = install_hint(extra, *options)
    if extra is not None:
        # where there is no package index, the clone has the extra too
        command += f", or in a clone: pip install '.[{extra}]'"
    return MissingExtraError(f"{what}: {command}.")


def import_extra(module: str, extra: str | None, user: str) -> Any:
    """Import an optional module for `user`, such as `onnx:FILE`; the error if it is
    missing names its extra.
    """
    top = module.split(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as e:
        if (e.name or "").split(".")[0] != top:
            raise
        raise missing(extra, f"{user} needs {top.replace('_', '-')}") from None
    except RuntimeError as e:  # torchvision for another version of torch
        raise missing(
            extra,
            f"{user} needs compatible packages ({first_line(e)})",
            "--force-reinstall",
        ) from None


def _version(distribution: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def conflict_warning() -> str | None:
    """A warning if the other project that is called `imprint` is installed too, else
    None.

    Both install a package `imprint`, so each overwrites files of the other.
    """
    version = _version(NAMESAKE)
    return version and (
        f"Another project's {NAMESAKE} {version} is installed next to {DISTRIBUTION},"
        f" and both are imported as imprint: pip uninstall {NAMESAKE}, then"
        f" {install_hint(None, '--force-reinstall', '--no-deps')}."
    )


def installed(extra: str) -> bool:
    """Whether every module of an extra can be found; none of them is imported."""
    return all(find_spec(module) is not None for module in EXTRA_MODULES[extra])


@cache
def registered(group: str) -> dict[str, "EntryPoint"]:
    """The installed entry points of a group, such as `imprint.generators`, by name."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=group)}


def load_plugin(group: str, name: str) -> Any:
    """The object that a registered entry point names."""
    point = registered(group)[name]
    try:
        return point.load()
    except (ImportError, AttributeError) as e:
        raise ParameterError(
            f"The entry point {name} = {point.value} of {group} cannot be loaded: {e}."
        ) from e


def registered_name(cls: type, group: str) -> str | None:
    """The name of a class in a group of entry points; only those of the package that
    defines the class are loaded.
    """
    package = cls.__module__.partition(".")[0]
    for name, point in registered(group).items():
        with suppress(ParameterError):  # a broken plug-in is reported when it is used
            if (
                point.module.split(".")[0] == package
                and load_plugin(group, name) is cls
            ):
                return name
    return None


def environment() -> str:
    """What a bug report needs: Python, the platform, cores, versions of dependencies
    and extras, the cache folder.
    """
    import os
    import platform
    import re
    import sys
    from importlib.metadata import requires

    from imprint.core.files.atomic import home

    # none in a source tree
    requirements = requires(DISTRIBUTION) or [] if _version(DISTRIBUTION) else []
    names = dict.fromkeys(
        re.split(r"[^\w-]", requirement)[0] for requirement in requirements
    )
    facts = {
        "python": f"{platform.python_version()} ({sys.executable})",
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "cache folder": home(),
        **{
            name: _version(name) or "not installed"
            for name in names
            if name != DISTRIBUTION
        },
    }
    return "".join(f"{name:<13} {fact}\n" for name, fact in facts.items())
