"""A folder that runs without imprint: one graph from prepared inputs to labels, the
tokenizer, and short programs in Python and JavaScript that prepare inputs and run it.
"""

import json
import os
import shutil
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from imprint.backbones import Backbone, Preprocess
from imprint.core.errors import FileError, ParameterError, reporting
from imprint.core.extras import import_extra
from imprint.core.files.atomic import atomic_write
from imprint.export.portable import Portable, portable
from imprint.export.programs import prepare_image
from imprint.export.tokens import facts_of_tokenizer
from imprint.imprinter import Imprinter

FACTS, GRAPH, TOKENIZER = "model.json", "model.onnx", "tokenizer.json"
FORMAT = "imprint whole export"
README = """# An exported model

`model.onnx` leads from prepared inputs to labels, scores, probabilities and, if the
model is calibrated, the p-values `known`. `model.json` says how inputs are prepared,
and the programs here do it. They need no imprint.

```sh
pip install onnxruntime{pillow}   # Python
python classify.py INPUT

npm install                       # JavaScript: Node, and index.html in a browser
node classify.mjs INPUT
```

{card}"""


class Whole(NamedTuple):
    """The contents of a written folder.

    >>> Whole._fields
    ('path', 'modality', 'model')
    """

    path: Path
    modality: str
    model: Portable


def export_whole(model: Imprinter, folder: str | os.PathLike[str]) -> Whole:
    """Write a fitted model as a folder that runs without imprint.

    It holds `model.onnx`, `model.json`, the tokenizer of a text model, programs in
    Python (onnxruntime) and JavaScript (onnxruntime-web, in Node and browsers), and the
    model card. It is complete or absent. A folder that this wrote before is replaced,
    and any other is refused.

    Parameters
    ----------
    model : Imprinter
        Its backbone must be a network that ONNX Runtime runs, or `raw`. A model of
        embeddings needs none.
    folder : path

    Returns
    -------
    Whole

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from imprint import Imprinter
    >>> X = np.eye(2, dtype=np.float32)
    >>> model = Imprinter("embeddings", calibrate=False).fit(X, ["cat", "dog"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     whole = export_whole(model, f"{folder}/cats")
    ...     (whole.path / "model.onnx").exists()
    True
    """
    import_extra("onnx", "export", "export_whole")
    _check_modality(model)
    target = Path(folder)
    check_folder(target)
    network = model.backbone if model.embedder.kind.needs_backbone else None
    origin = (network.record, network.fingerprint) if network else None
    content = portable(model.state.head, origin)
    texts = _programs(model.modality) | _texts(model, content, network)
    _write(target, content, network, texts)
    return Whole(target, model.modality, content)


def _check_modality(model: Imprinter) -> None:
    """Refuse a model of inputs that no program of an export prepares."""
    program = files("imprint.export.programs") / f"prepare_{model.modality}.py"
    if not program.is_file():
        raise ParameterError(
            f"export --whole: no program prepares {model.embedder.kind.plural} without"
            " imprint; --to numpy writes the head, which takes embeddings."
        )


def _texts(
    model: Imprinter, content: Portable, network: Backbone | None
) -> dict[str, str]:
    """The card, the facts and the tokenizer of a model, by the names of their files."""
    facts = {
        **content.about,
        "format": FORMAT,
        "modality": model.modality,
    }
    texts: dict[str, str] = {}
    preprocess = network.record.preprocess if network else None
    if preprocess is not None:
        facts["preprocess"] = preprocess.as_json() | {"rows_first": _rows_first()}
    # a network of texts in an ONNX file has one
    tokenizer = getattr(network, "tokenizer", None)
    if network is not None and tokenizer is not None:
        facts["text"] = facts_of_tokenizer(network, tokenizer)
        texts[TOKENIZER] = tokenizer.to_str()
    pillow = " pillow" if preprocess is not None else ""
    card = model.card().markdown()
    texts["README.md"] = README.format(pillow=pillow, card=card)
    texts[FACTS] = json.dumps(facts, ensure_ascii=False)
    return texts


def check_folder(folder: Path) -> None:
    """Refuse a folder at which nothing can be written, and one that has other
    contents.
    """
    if not folder.parent.is_dir():
        raise FileError(f"Cannot write {folder}: there is no folder {folder.parent}.")
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise FileError(f"Cannot write {folder}: it exists and is not a folder.")
    if folder.is_dir() and any(folder.iterdir()) and not is_export(folder):
        raise FileError(
            f"Cannot write {folder}: it holds other files; choose another name."
        )


def is_export(folder: Path) -> bool:
    """Whether `export_whole` wrote a folder."""
    try:
        facts = json.loads((folder / FACTS).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(facts, dict) and facts.get("format") == FORMAT


def _programs(modality: str) -> dict[str, str]:
    """The programs, by the names of their files."""
    folder = files("imprint.export.programs")
    names = ["classify.py", "classify.mjs", "imprint.mjs", "index.html", "package.json"]
    names += [f"prepare_{modality}.py", f"prepare_{modality}.mjs"]
    return {name: (folder / name).read_text("utf-8") for name in names}


def _write(
    target: Path, content: Portable, network: Backbone | None, texts: dict[str, str]
) -> None:
    """Write the files to a new folder, which then takes the place of the old one."""
    from imprint.export.onnx import write_onnx

    with (
        reporting("write", target),
        tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as t,
    ):
        new, old = Path(t) / "new", Path(t) / "old"
        new.mkdir()
        with atomic_write(new / GRAPH) as f:
            write_onnx(f, content, network, labels=True)
        for name, text in texts.items():
            (new / name).write_text(text, "utf-8")
        if target.exists():
            target.rename(old)
            # packages that npm installed there stay
            if (old / "node_modules").exists():
                shutil.move(old / "node_modules", new / "node_modules")
        new.rename(target)


def _rows_first() -> bool:
    """Whether the installed Pillow scales the rows of an image before its columns if
    many fewer of them remain, as it does since version 13. The results differ in their
    rounding.
    """
    rule = Preprocess(size=(2, 7), filter="bilinear")
    rng = np.random.default_rng(0)
    # so tall that the rule of version 13 begins with the rows
    image = rng.integers(0, 256, (40, 9, 3), dtype=np.uint8)
    expected = rule.image(image)
    for rows_first in (True, False):
        stated = rule.as_json() | {"rows_first": rows_first}
        if np.array_equal(prepare_image.prepared(image, stated), expected):
            return rows_first
    raise ParameterError(
        "export_whole: the installed Pillow resizes images in a way that the exported"
        " programs do not know; use Pillow 11 to 13."
    )
