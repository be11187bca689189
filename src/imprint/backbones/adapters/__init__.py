"""Adapters, one file each: `load(source, device, threads)` returns a backbone.

`source` is a record, or the name after the colon for models that describe themselves.
`VERSION` is part of the fingerprint: increase it when the embeddings change.
"""
