"""The files in this folder are scripts, which `test_newcomers.py` runs."""

collect_ignore_glob = ["*.py"]
