"""Which pictures a person means."""

from collections.abc import Iterable
from pathlib import Path

from imprint.core.errors import FileError
from imprint.datasets.pictures import suffixes


def pictures_in(given: Iterable[str]) -> list[str]:
    """Files as they are, folders as all pictures below them by name."""
    found: list[str] = []
    for text in given:
        place = Path(text).expanduser()
        if place.is_dir():
            inside = [p for p in sorted(place.rglob("*")) if p.suffix.lower() in suffixes() and p.is_file()]
            if not inside:
                raise FileError(f"{place} has no pictures; they end in {', '.join(sorted(suffixes()))}.")
            found += map(str, inside)
        elif not place.exists():
            raise FileError(f"There is no file or folder {text}.")
        else:
            found.append(str(place))
    return found
