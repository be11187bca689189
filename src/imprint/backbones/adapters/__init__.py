"""Adapters, one file each, run backbones by `load(source, device, threads)`.

`source` is a record, or the name after the colon for models that describe themselves.
"""
