"""Files that hold several inputs of one modality and their labels, such as `.ts` files
of time series.
"""

from pathlib import Path

from imprint.core.errors import FileError, UnreadableInput
from imprint.datasets.split import NO_LABELS, SPLITS, Split, classes_of, plain_labels
from imprint.datasets.tables.values import INTEGER
from imprint.modalities import Modality, builtin, read_file


def kind_of_collection(path: Path) -> Modality | None:
    """The modality of a file with several inputs, by its suffix."""
    suffix = path.suffix.lower()
    kinds = [kind for kind in builtin() if suffix in kind.collection_suffixes]
    return kinds[0] if kinds else None


def collection_in(folder: Path, split: str) -> Path | None:
    """The file of a split in a folder: `train.ts`, or `NAME_TRAIN.ts` as in public
    archives. None if there is none, or more than one.
    """
    matches = [
        path
        for path in sorted(folder.iterdir())
        if kind_of_collection(path) and path.stem.lower().rpartition("_")[2] == split
    ]
    return matches[0] if len(matches) == 1 else None


def load_collection_folder(folder: Path, split: str, *, labelled: bool) -> Split:
    """One split of a folder with one file per split."""
    parts = tuple(part for part in SPLITS if collection_in(folder, part) is not None)
    path = collection_in(folder, split)
    if path is None:
        raise FileError(f"{folder} has no {split} split, such as {split}.ts.")
    loaded = load_collection(path, labelled=labelled)
    return Split(
        loaded.inputs,
        loaded.labels,
        loaded.names,
        loaded.classes,
        loaded.modality,
        origin=folder.resolve().name,
        parts=parts,
    )


def load_collection(path: Path, *, labelled: bool) -> Split:
    """The inputs of a file that holds several."""
    kind = kind_of_collection(path)
    if kind is None:
        raise FileError(f"Cannot load {path}: its suffix is not that of a data set.")
    try:
        inputs, labels = kind.collection(read_file(path))
    except UnreadableInput as e:
        raise FileError(f"{path}: {e.reason}.") from None
    if labels is None and labelled:
        raise FileError(f"{path} has no labels.")
    y = NO_LABELS
    if labels is not None and labelled:
        are_numbers = all(INTEGER.fullmatch(label) for label in labels)
        y = plain_labels([int(x) for x in labels] if are_numbers else list(labels))
    names = [f"{path.name}, {kind.noun} {i}" for i in range(1, len(inputs) + 1)]
    return Split(inputs, y, names, classes_of(y), kind.name, origin=path.name)
