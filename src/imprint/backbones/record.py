"""Records of backbones, readable without importing the library that runs them."""

import hashlib
import io
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_type_hints

from imprint.backbones import block
from imprint.backbones.block import Block
from imprint.backbones.preprocess import Preprocess
from imprint.core.arrays import digest
from imprint.core.errors import FileError, ParameterError, reporting, unknown
from imprint.core.extras import installed, load_plugin, registered
from imprint.core.files.atomic import expanded, home
from imprint.modalities import modality

PLUGIN_GROUP = "imprint.backbones"  # the group of entry points
RECORDS = Path(__file__).parent / "records"
PREFIXES = dict.fromkeys(("onnx", "tflite"), "FILE")
PREFIXES |= dict.fromkeys(
    ("torchvision", "timm", "sentence", "open_clip", "clip"), "NAME"
)
PREFIXES |= {"minirocket": "CHANNELS"}
"""The adapters of backbones without a record here, such as `onnx:FILE`, and what
follows the colon.
"""
JOIN = "+"  # between the names of backbones: their embeddings side by side
JOINED = "joined"  # in place of an adapter, of several backbones side by side
LAST = ":last"  # after the name of a backbone: its last layer alone, without blocks
NO_WEIGHTS = "no weights"  # instead of a digest, for a backbone that has none
EXTRAS = {
    "torchvision": "torch",
    "tflite": "litert",
    "sound": "litert",
    "open_clip": "clip",
}
EXTRAS |= {name: name for name in ("timm", "sentence", "clip")}
"""The extra that an adapter needs; adapters that are not listed need none."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """One backbone: how to run it, its training data and its source."""

    name: str
    adapter: str  # the file in `adapters/` that runs it
    modality: str = "image"  # `image`, `text`, `sound`, or the modality of a plug-in
    width: int  # numbers in one embedding
    preprocess: Preprocess | None = None  # None for texts and sounds
    tokens: int | None = None  # maximum length of a text; the rest is cut off
    # of the texts that it was trained on, such as `en`; None for several
    language: str | None = None
    # length of a frame of sound; a recording is the average of its frames
    seconds: float | None = None
    # of a time series; None for any number
    channels: int | None = None
    layer: str | None = None  # the output or tensor that is the embedding
    # several tensors that are the embedding side by side, the last layer first
    blocks: tuple[Block, ...] = ()
    # the weights: `weights/...` is part of the package; for a bare name see `location`
    file: str | None = None
    size: int | None = None  # bytes of that file
    # the pre-training classifier inside the package, relative to this folder
    head: str | None = None
    source: str | None = None
    sha256: str | None = None  # of the weights; the first eight digits or more
    licence: str | None = None
    pretraining: str | None = None
    # published top-1 accuracy on the pre-training data's validation set, in %
    top1: float | None = None
    # least-squares regularisation: the weight decay of the pre-training, as in the
    # paper
    reg: float | None = None
    citation: str | None = None

    def __post_init__(self) -> None:
        if not modality(self.modality).needs_backbone:
            raise ParameterError(
                f"Record(modality={self.modality!r}): {self.modality}s need no"
                " backbone."
            )
        if self.width < 1:
            raise ParameterError(
                f"Record(width={self.width!r}): width must be int >= 1."
            )
        is_prepared = self.preprocess is not None or self.adapter == JOINED
        if self.modality == "image" and not is_prepared:
            raise ParameterError(
                "Record(preprocess=None): preprocess must describe the input of the"
                " network."
            )
        if self.sha256 is not None and not re.fullmatch("[0-9a-f]{8,64}", self.sha256):
            raise ParameterError(
                f"Record(sha256={self.sha256!r}): sha256 must be 8 to 64 digits 0-9a-f."
            )
        if self.blocks:
            self._check_blocks()

    def _check_blocks(self) -> None:
        total = sum(b.width for b in self.blocks)
        if self.width != total:
            raise ParameterError(
                f"Record(width={self.width}): width must be the sum of the widths of"
                f" its blocks, {total}; leave it out."
            )
        if self.layer is not None:
            raise ParameterError(
                f"Record(layer={self.layer!r}): with blocks, leave layer out; the first"
                " block is the last layer."
            )
        names = [b.name for b in self.blocks]
        if len(set(names)) < len(names):
            raise ParameterError(
                f"Record(blocks=...): the names of blocks must differ, not"
                f" {', '.join(names)}."
            )

    @property
    def input_size(self) -> tuple[int, int] | None:
        """Height and width of the network's input; None for texts and sounds."""
        return self.preprocess.size if self.preprocess else None

    @property
    def block_widths(self) -> tuple[int, ...]:
        """The widths of the blocks; `()` where the embedding is one layer."""
        return tuple(b.width for b in self.blocks) if len(self.blocks) > 1 else ()

    def last_layer(self) -> "Record":
        """The record of the first block alone, which is the last layer."""
        if not self.blocks:
            return self
        first = self.blocks[0]
        if first.projected_from is None and first.pooling == self._default_pooling:
            # as a record without blocks states it, so both have one fingerprint
            return replace(self, blocks=(), layer=first.tensor, width=first.width)
        return replace(self, blocks=(first,), width=first.width)

    @property
    def _default_pooling(self) -> str:
        """How an adapter pools the layer of a record without blocks."""
        return "tokens" if self.modality == "text" else "none"

    @property
    def download(self) -> str | None:
        """The address of the file of weights; None if it is part of the package or
        unknown.
        """
        address = self.source or ""
        is_file = (
            self.file
            and address.startswith("https://")
            and address.endswith(f"/{Path(self.file).name}")
        )
        return address if is_file else None

    def fingerprint(self, weights: str, version: int, precision: str) -> str:
        """A digest of everything that determines the embeddings; `weights` is the
        digest of the weights.
        """
        preprocess = json.dumps(
            self.preprocess.as_json() if self.preprocess else None, sort_keys=True
        )
        truncation = [] if self.tokens is None else [f"{self.tokens} tokens"]
        channels = [] if self.channels is None else [f"{self.channels} channels"]
        blocks = []
        if self.blocks:
            stated = [b.as_json() for b in self.blocks]
            blocks = [block.VERSION, json.dumps(stated, sort_keys=True)]
        return digest(
            [
                self.adapter,
                str(version),
                weights,
                preprocess,
                self.layer or "",
                precision,
                *truncation,
                *channels,
                *blocks,
            ]
        )

    @classmethod
    def from_json(cls, raw: Any) -> "Record":
        """The record in a JSON object, checked."""
        if not isinstance(raw, Mapping):
            raise ParameterError("A record must be a JSON object.")
        values, types = dict(raw), get_type_hints(cls)
        if values.get("preprocess") is not None:
            values["preprocess"] = Preprocess.from_json(values["preprocess"])
        blocks = _blocks_from_json(values.pop("blocks", []))
        if blocks:
            values.setdefault("width", sum(b.width for b in blocks))
        for key, value in values.items():
            if key not in types:
                raise ParameterError(
                    f"A record has no key {key!r}. It takes: {', '.join(types)}."
                )
            allowed = types[key] | int if types[key] == float | None else types[key]
            if isinstance(value, bool) or not isinstance(value, allowed):
                raise ParameterError(
                    f"Record({key}={value!r}): {key} has the wrong type."
                )
        for key in ("name", "adapter", "width"):
            if key not in values:
                raise ParameterError(f"A record must have {key!r}.")
        return cls(blocks=blocks, **values)

    def as_json(self) -> dict[str, Any]:
        """Plain values that `json.dumps` writes and `from_json` reads; `blocks` only
        where there are some.
        """
        values = vars(self) | {
            "preprocess": self.preprocess.as_json() if self.preprocess else None,
            "blocks": [b.as_json() for b in self.blocks],
        }
        if not self.blocks:
            del values["blocks"]
        return values


def _blocks_from_json(raw: Any) -> tuple[Block, ...]:
    if not isinstance(raw, list):
        raise ParameterError(f"blocks={raw!r}: it must be a list of JSON objects.")
    return tuple(Block.from_json(entry) for entry in raw)


def names() -> list[str]:
    """The named backbones, including those of plug-ins."""
    return sorted({*builtin_names(), *registered(PLUGIN_GROUP)})


def builtin_names() -> list[str]:
    return sorted(path.stem for path in RECORDS.glob("*.json"))


def named(name: object) -> Record:
    """The record of one of `names()`."""
    if name in builtin_names():
        return _read(RECORDS / f"{name}.json", {"name": name})
    return plugin(name).RECORD


def find(spec: object) -> Record | str:
    """The record of a backbone, or its name in another library if the loaded model
    describes itself.
    """
    parts = specs(spec)
    if len(parts) > 1:
        sources = [find(part) for part in parts]
        records = [source for source in sources if isinstance(source, Record)]
        return joined_record(records) if records == sources else str(spec)
    if isinstance(spec, str) and spec.endswith(LAST):
        source = find(spec.removesuffix(LAST))
        return source.last_layer() if isinstance(source, Record) else source
    prefix, _, rest = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    if prefix not in PREFIXES or not rest:
        return named(spec)
    if PREFIXES[prefix] == "CHANNELS":
        return _with_channels(prefix, rest)
    return (
        of_file(Path(os.path.expanduser(rest)), prefix)
        if PREFIXES[prefix] == "FILE"
        else rest
    )


def specs(spec: object) -> list[str]:
    """The backbones that a text names, of which `+` joins several.

    In the path of a file, a plus that no name follows belongs to the path.

    >>> specs("tinynet+onnx:c++/net.onnx+raw")
    ['tinynet', 'onnx:c++/net.onnx', 'raw']
    """
    if not isinstance(spec, str) or JOIN not in spec:
        return [str(spec)]
    known = {*names(), *PREFIXES}
    parts: list[str] = []
    for word in spec.split(JOIN):
        is_name = word.partition(":")[0] in known
        if parts and ":" in parts[-1] and not is_name:
            parts[-1] += JOIN + word
        else:
            parts.append(word)
    return parts


def joined_record(records: Sequence[Record]) -> Record:
    """The record of several backbones side by side; each must be another network that
    reads the same inputs.
    """
    names_of_parts = [record.name for record in records]
    name = JOIN.join(names_of_parts)
    first = records[0]
    for record in records:
        if record.modality != first.modality:
            raise ParameterError(
                f"{name}: {first.name} reads {modality(first.modality).plural}, and"
                f" {record.name} reads {modality(record.modality).plural}."
            )
        if names_of_parts.count(record.name) > 1:
            raise ParameterError(
                f"{name}: it names {record.name} more than once; name each once."
            )
    blocks: list[Block] = []
    for record in records:
        blocks += _blocks_in_a_joined_record(record)
    languages = {record.language for record in records}
    tokens = [record.tokens for record in records if record.tokens is not None]
    return Record(
        name=name,
        adapter=JOINED,
        modality=first.modality,
        width=sum(record.width for record in records),
        blocks=tuple(blocks),
        tokens=max(tokens, default=None),
        language=languages.pop() if len(languages) == 1 else None,
        source=_each(record.source for record in records),
        licence=_each(record.licence for record in records),
        pretraining=_each(record.pretraining for record in records),
        citation=_each(record.citation for record in records),
    )


def _blocks_in_a_joined_record(record: Record) -> list[Block]:
    whole = Block(name="last", tensor=record.layer or "output", width=record.width)
    blocks = record.blocks or (whole,)
    return [replace(b, name=f"{record.name} {b.name}") for b in blocks]


def _each(facts: Iterable[str | None]) -> str | None:
    """What records state, each once."""
    stated = dict.fromkeys(fact for fact in facts if fact is not None)
    return "; ".join(stated) or None


def _with_channels(name: str, channels: str) -> Record:
    """The record of a named backbone for series of one number of channels."""
    if not re.fullmatch("[1-9][0-9]{0,4}", channels):
        raise ParameterError(
            f"{name}:{channels}: the number of channels must be int >= 1, such as"
            f" {name}:3."
        )
    return replace(named(name), channels=int(channels))


def last_layer(spec: str) -> str:
    """The text that loads the last layer of a backbone alone."""
    source = find(spec)
    has_layers = isinstance(source, Record) and source.blocks
    if not has_layers or len(specs(spec)) > 1:
        return spec
    return f"{spec}{LAST}"


def adapter(name: object) -> Any:
    """The module that runs a backbone: a file in `adapters/`, or that of a plug-in."""
    is_builtin = find_spec(f"imprint.backbones.adapters.{name}") is not None
    return (
        import_module(f"imprint.backbones.adapters.{name}")
        if is_builtin
        else plugin(name)
    )


def plugin(name: object) -> Any:
    """The module of an installed entry point: it has `RECORD`, `VERSION` and
    `load(record, device, threads)`.
    """
    if not isinstance(name, str) or name not in registered(PLUGIN_GROUP):
        raise unknown(
            "backbone",
            name,
            [*names(), *(f"{prefix}:{what}" for prefix, what in PREFIXES.items())],
        )
    return load_plugin(PLUGIN_GROUP, name)


def of_file(path: Path, adapter: str) -> Record:
    """The record of a model file: `FILE.json` next to it, or the named one with the
    same SHA-256.
    """
    if not os.path.isfile(path):
        raise FileError(
            f"{adapter}:{path}: there is no such file; put the model there."
        )
    sidecar = path.with_name(f"{path.name}.json")
    if sidecar.is_file():
        record = _read(sidecar, {"name": path.stem, "adapter": adapter})
        if record.adapter != adapter:
            raise FileError(
                f"{sidecar}: adapter must be {adapter!r}, as in"
                f" '{adapter}:{path.name}'."
            )
        return replace(record, file=str(path.resolve()))
    sha256 = verified_sha256(path)
    for record in map(named, builtin_names()):
        if (record.adapter, record.sha256) == (adapter, sha256):
            return replace(record, file=str(path.resolve()))
    example = (
        '{"width": 192, "layer": "NAME OF THE OUTPUT", "preprocess": {"size": 224}}'
    )
    raise FileError(
        f"{path} has no record: write {sidecar}, such as {example}; docs/backbones.md"
        " has the keys."
    )


def location(record: Record) -> Path:
    """The path of the weights: in torch's download cache, in the package, as stated, or
    in the home folder.
    """
    file = Path(record.file or "")
    if record.adapter == "torchvision":
        cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
        return (
            expanded(os.environ.get("TORCH_HOME", f"{cache}/torch"))
            / "hub"
            / "checkpoints"
            / file
        )
    return (
        RECORDS.parent / file
        if file.parts[:1] == ("weights",)
        else home() / "backbones" / file
    )


def weights_digest(record: Record) -> str | None:
    """The digest of the weights, from the record or from the file; None if neither has
    it.
    """
    if record.file is None:
        return NO_WEIGHTS
    # all digits of a SHA-256
    if record.sha256 is not None and len(record.sha256) == 64:
        return record.sha256
    path = location(record)
    return verified_sha256(path, record.sha256) if path.is_file() else None


def verified_sha256(
    path: Path, expected: str | None = None, content: bytes | None = None
) -> str:
    """The SHA-256 of a file, or of its content if that was read already; it must begin
    with `expected`.
    """
    with (
        reporting("read", path),
        path.open("rb") if content is None else io.BytesIO(content) as f,
    ):
        sha256 = hashlib.file_digest(f, "sha256").hexdigest()
    if expected and not sha256.startswith(expected):
        raise FileError(f"{path} has SHA-256 {sha256}, its record says {expected}.")
    return sha256


def read_weights(record: Record) -> tuple[bytes, str]:
    """The bytes of the weights, read once, and their SHA-256, which is checked against
    the record's.
    """
    path = location(record)
    if not path.is_file():
        origin = (
            f"download {record.download}"
            if record.download
            else f"they come from {record.source}"
        )
        size = f" ({record.size / 1e6:.1f} MB)" if record.size else ""
        raise FileError(
            f"The weights of {record.name} are missing: {origin}{size}; put the file at"
            f" {path}."
        )
    with reporting("read", path):
        content = path.read_bytes()
    return content, verified_sha256(path, record.sha256, content)


def _read(path: Path, defaults: dict[str, Any]) -> Record:
    """The record in a JSON file, with defaults for keys that it lacks."""
    try:
        with reporting("read", path):
            raw = json.loads(path.read_text(encoding="utf-8"))
        return Record.from_json({**defaults, **raw} if isinstance(raw, dict) else raw)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as e:
        raise FileError(f"{path} is not JSON: {e}.") from None
    except ParameterError as e:
        raise FileError(f"{path}: {e}") from None


def missing_extra(record: Record) -> str | None:
    """The extra that this backbone needs and that is not installed."""
    extra = EXTRAS.get(record.adapter)
    return extra if extra and not installed(extra) else None


def lacks_weights(record: Record) -> bool:
    """Whether the file of weights is missing."""
    return record.file is not None and not location(record).is_file()


def is_installed(record: Record) -> bool:
    """Whether `load` needs nothing more, neither a package nor a download."""
    return missing_extra(record) is None and not lacks_weights(record)
