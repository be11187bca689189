"""Programs that run an exported model without imprint.

`export_whole` copies them next to the model. They import nothing from this package.
"""
