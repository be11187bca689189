"""Blocks as an axis of studies: which layers and places of an embedding take part."""

import numpy as np

from imprint.core.arrays import digest
from imprint.core.blocks import column_slices
from imprint.core.errors import ParameterError, unknown
from imprint.study.study import ALL, LAST, SELECTS, Data, Source

JOINS = "+"  # names of blocks in a selection


def open_data(source: Source, backbone: str, dataset: str) -> Data:
    """The embeddings of a data set, with the blocks that the text of the backbone
    selects, such as `efficientnet_lite0:last`.

    Parameters
    ----------
    source : Source
        Opens whole embeddings.
    backbone : str
        A name and perhaps a selection: `last`, `all`, or names of blocks joined by `+`.
    dataset : str
        The data set.
    """
    name, mark, selection = backbone.partition(SELECTS)
    data = source.open(name, dataset)
    if not mark:
        return data
    return select_blocks(data, selection, f"{backbone}, {dataset}")


def select_blocks(data: Data, selection: str, where: str) -> Data:
    """Embeddings with some of their blocks only.

    Embeddings without blocks are one block, the last layer.
    """
    widths = data.blocks or (data.X.shape[1],)
    names = data.block_names or (LAST, *map(str, range(2, len(widths) + 1)))
    chosen = _positions(selection, names, where)
    if chosen == list(range(len(widths))):
        return data
    slices = column_slices(widths)
    columns = np.concatenate(
        [np.arange(slices[i].start, slices[i].stop) for i in chosen]
    )
    remaining = tuple(widths[i] for i in chosen)
    is_several = len(remaining) > 1
    return data._replace(
        X=np.ascontiguousarray(data.X[:, columns]),
        X_test=np.ascontiguousarray(data.X_test[:, columns]),
        fingerprint=digest([data.fingerprint, *(names[i] for i in chosen)]),
        blocks=remaining if is_several else (),
        block_names=tuple(names[i] for i in chosen) if is_several else (),
    )


def _positions(selection: str, names: tuple[str, ...], where: str) -> list[int]:
    """The positions of the selected blocks, in the order of the embedding."""
    if selection == ALL:
        return list(range(len(names)))
    chosen = []
    for name in selection.split(JOINS):
        if name == LAST:
            chosen.append(0)  # whatever a network calls its first block
        elif name in names:
            chosen.append(names.index(name))
        else:
            raise unknown("block", name, names)
    if len(set(chosen)) < len(chosen):
        raise ParameterError(f"{where}: a block is selected twice.")
    return sorted(chosen)
