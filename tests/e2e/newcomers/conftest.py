"""The files here are scripts; `test_newcomers.py` runs them."""

collect_ignore_glob = ["*.py"]
