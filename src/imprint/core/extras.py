"""Extras of the distribution: the one place that says how something optional is installed."""

from importlib.util import find_spec

from imprint.core.errors import MissingExtraError

DISTRIBUTION = "weight-imprinting"
"""What this package is called on the package index, where `imprint` is another project."""

OTHER = "imprint"
"""The distribution of that other project."""

PACKAGES = {
    "torch": ("torch", "torchvision"),
    "litert": ("ai_edge_litert",),
    "timm": ("timm",),
    "sentence": ("sentence_transformers",),
    "ray": ("ray",),
    "fast": ("numba",),
    "export": ("onnx",),
    "serve": ("starlette", "uvicorn", "onnx"),
}
"""Of every extra the modules it brings."""


def install_hint(extra: str | None = None, *options: str) -> str:
    """The command that installs this package, with an extra or without.

    >>> install_hint("torch"), install_hint()
    ("pip install 'weight-imprinting[torch]'", 'pip install weight-imprinting')
    """
    what = DISTRIBUTION if extra is None else f"'{DISTRIBUTION}[{extra}]'"
    return " ".join(["pip install", *options, what])


def missing(extra: str | None, what: str, *options: str) -> MissingExtraError:
    """The one sentence for an optional package that is not there.

    >>> str(missing("ray", "The ray engine needs ray"))
    "The ray engine needs ray: pip install 'weight-imprinting[ray]'."
    """
    return MissingExtraError(f"{what}: {install_hint(extra, *options)}.")


def clash() -> str | None:
    """A sentence where the other project that is called `imprint` is installed as well; None where all is well.

    Both bring a package `imprint`, so each overwrites files of the other.
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        other = version(OTHER)
    except PackageNotFoundError:
        return None
    return (
        f"Another project's {OTHER} {other} is installed beside {DISTRIBUTION}, and both are imported as imprint: "
        f"pip uninstall {OTHER}, then {install_hint(None, '--force-reinstall', '--no-deps')}."
    )


def installed(extra: str) -> bool:
    """Whether every module of an extra can be found; none of them is imported."""
    return all(find_spec(module) is not None for module in PACKAGES[extra])
