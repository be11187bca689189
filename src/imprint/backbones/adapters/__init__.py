"""What runs a backbone: one file per adapter, each with `load(source, device, threads)`.

`source` is a record, or the name behind the colon for models that bring their own description.
"""
