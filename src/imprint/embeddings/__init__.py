"""Embeddings: computed in batches, in memory with a cache, or in memory-mapped
stores.
"""

from imprint.embeddings.embed import EmbeddedInputs, embed
from imprint.embeddings.extract import extract
from imprint.embeddings.pack import Pack, read_pack, write_pack
from imprint.embeddings.pipeline import EmbeddingProgress, Skipped
from imprint.embeddings.store import (
    Embeddings,
    Stored,
    list_embeddings,
    open_embeddings,
)

__all__ = [
    "EmbeddedInputs",
    "EmbeddingProgress",
    "Embeddings",
    "Pack",
    "Skipped",
    "Stored",
    "embed",
    "extract",
    "list_embeddings",
    "open_embeddings",
    "read_pack",
    "write_pack",
]
