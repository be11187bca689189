"""Components from outside the package: found by the entry points of what is installed, never by what a file says."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@cache
def registered(group: str) -> dict[str, "EntryPoint"]:
    """The installed entry points of a group, such as `imprint.generators`, by name."""
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=group)}


def registered_name(cls: type, group: str) -> str | None:
    """Under which name a class is registered in a group; entry points of other packages than its own are not loaded."""
    package = cls.__module__.partition(".")[0]
    near = {name: point for name, point in registered(group).items() if point.module.partition(".")[0] == package}
    return next((name for name, point in near.items() if _loaded(point) is cls), None)


def _loaded(point: "EntryPoint") -> object:
    try:
        return point.load()
    except (ImportError, AttributeError):
        return None
