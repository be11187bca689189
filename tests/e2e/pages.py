"""Blocks of code on a page, and whether a command prints what the page shows."""

import doctest
import re

import numpy as np

BLOCK = re.compile(r"^```(python|console|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([\w/.-]+\.(?:py|yaml))\n")
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
SOFT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def alike(expected, printed):
    """Whether two outputs have the same words, and numbers that differ by less than 10 % or by at most 3.

    If the page has an ellipsis (`...`), only the numbers before it are compared.
    """
    words = [NUMBER.sub("0", text) for text in (expected, printed)]
    if not doctest.OutputChecker().check_output(*words, SOFT):
        return False
    shown = [
        float(n.replace(",", "")) for n in NUMBER.findall(expected.partition("...")[0])
    ]
    there = [float(n.replace(",", "")) for n in NUMBER.findall(printed)]
    if "..." in expected:
        shown = shown[:-1]  # the last number may be truncated: 9...
    return np.allclose(shown, there[: len(shown)], rtol=0.1, atol=3)
