"""What is known about a backbone, readable without importing whatever runs it."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from imprint.backbones.preprocess import Preprocess
from imprint.core.errors import FileError, ParameterError

RECORDS = Path(__file__).parent / "records"
FILES = RECORDS / "files"


@dataclass(frozen=True, kw_only=True)
class Record:
    """One backbone: how it is run, what it was trained on, where it comes from."""

    name: str
    adapter: str
    """The file in `adapters/` that runs it."""
    modality: str = "image"
    """`image` or `text`."""
    width: int
    """Numbers in one embedding."""
    preprocess: Preprocess | None = None
    """None for texts, which the network's own tokeniser reads."""
    layer: str | None = None
    """The output or tensor that is the embedding."""
    file: str | None = None
    """The weights' file, relative to this folder where it ships with the package."""
    head: str | None = None
    """The pre-training classifier inside the package, relative to this folder."""
    source: str | None = None
    sha256: str | None = None
    """Of the weights; the first eight digits or more."""
    licence: str | None = None
    pretraining: str | None = None
    top1: float | None = None
    """Published top-1 accuracy on the pre-training data's validation set, in %."""
    reg: float | None = None
    """Least-squares regularisation: the weight decay of the pre-training, as in the paper."""
    citation: str | None = None

    def __post_init__(self) -> None:
        if self.modality not in ("image", "text"):
            raise ParameterError(f"Record(modality={self.modality!r}): modality must be one of 'image', 'text'.")
        if self.width < 1:
            raise ParameterError(f"Record(width={self.width!r}): width must be int >= 1.")
        if self.modality == "image" and self.preprocess is None:
            raise ParameterError("Record(preprocess=None): preprocess must say how a picture reaches the network.")
        if self.sha256 is not None and not re.fullmatch("[0-9a-f]{8,64}", self.sha256):
            raise ParameterError(f"Record(sha256={self.sha256!r}): sha256 must be 8 to 64 digits 0-9a-f.")

    @property
    def input_size(self) -> tuple[int, int] | None:
        """Height and width the network sees."""
        return self.preprocess.size if self.preprocess else None

    @classmethod
    def from_json(cls, raw: Any) -> "Record":
        """Check and take the keys of a JSON object."""
        if not isinstance(raw, Mapping):
            raise ParameterError("A record must be a JSON object.")
        hints, given = get_type_hints(cls), dict(raw)
        for key in given:
            if key not in hints:
                raise ParameterError(f"A record has no key {key!r}. It takes: {', '.join(hints)}.")
        if given.get("preprocess") is not None:
            given["preprocess"] = Preprocess.from_json(given["preprocess"])
        for key, value in given.items():
            legal = hints[key] | int if hints[key] == float | None else hints[key]
            if isinstance(value, bool) or not isinstance(value, legal):
                raise ParameterError(f"Record({key}={value!r}): {key} has the wrong type.")
        missing = [f.name for f in fields(cls) if f.name in ("name", "adapter", "width") and f.name not in given]
        if missing:
            raise ParameterError(f"A record must have {missing[0]!r}.")
        return cls(**given)

    def as_json(self) -> dict[str, Any]:
        """Plain values that `json.dumps` writes and `from_json` reads."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return values | {"preprocess": self.preprocess.as_json() if self.preprocess else None}


def names() -> list[str]:
    """Every backbone with a name of its own."""
    return sorted(path.stem for path in RECORDS.glob("*.json"))


def named(name: str) -> Record:
    """The record of one of `names()`."""
    return _read(RECORDS / f"{name}.json", {"name": name})


def of_file(path: Path, adapter: str) -> Record:
    """The record of a model file: `FILE.json` beside it, or a shipped one with the same SHA-256."""
    if not path.is_file():
        raise FileError(f"{adapter}:{path}: there is no such file; put the model there.")
    beside = path.with_name(f"{path.name}.json")
    given: dict[str, Any] = {"name": path.stem, "adapter": adapter}
    record = _read(beside, given) if beside.is_file() else _shipped(path, given)
    if record is None:
        example = '{"width": 192, "layer": "NAME OF THE OUTPUT", "preprocess": {"size": 224}}'
        raise FileError(f"{path} has no record: write {beside}, such as {example}; docs/backbones.md has the keys.")
    if record.adapter != adapter:
        raise FileError(f"{beside}: adapter must be {adapter!r}, as in '{adapter}:{path.name}'.")
    return replace(record, file=str(path.resolve()))


def _shipped(path: Path, given: dict[str, Any]) -> Record | None:
    digest = verified(path)
    records = (_read(known, given) for known in sorted(FILES.glob("*.json")))
    return next((r for r in records if r.sha256 == digest), None)


def verified(path: Path, expected: str | None = None) -> str:
    """The SHA-256 of a file, which must begin with what is expected."""
    try:
        with path.open("rb") as f:
            digest = hashlib.file_digest(f, "sha256").hexdigest()
    except OSError as e:
        raise FileError(f"Cannot read {path}: {e.strerror}.") from None
    if expected and not digest.startswith(expected):
        raise FileError(f"{path} has SHA-256 {digest}, its record says {expected}.")
    return digest


def weights(record: Record) -> tuple[bytes, str]:
    """The bytes of the weights and their SHA-256, which is checked against the record's."""
    path = RECORDS.parent / (record.file or "")
    digest = verified(path, record.sha256)
    return path.read_bytes(), digest


def _read(path: Path, given: dict[str, Any]) -> Record:
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return Record.from_json({**given, **raw} if isinstance(raw, dict) else raw)
    except OSError as e:
        raise FileError(f"Cannot read {path}: {e.strerror}.") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as e:
        raise FileError(f"{path} is not JSON: {e}.") from None
    except ParameterError as e:
        raise FileError(f"{path}: {e}") from None
