"""How texts become tokens, in terms that programs without `tokenizers` follow."""

import json
from collections.abc import Sequence
from typing import Any

from imprint.backbones import Backbone
from imprint.core.errors import ParameterError

BERT = {
    "normalizer": "BertNormalizer",
    "pre_tokenizer": "BertPreTokenizer",
    "model": "WordPiece",
}
"""The types of the parts of a tokenizer that the exported programs know."""
SURROGATES = range(0xD800, 0xE000)  # no characters of their own
# longer than any text that a network reads
LONG_TEXT = "x" * 2**20
TEXT_PART = 2**13  # characters that are split into words together; even


def facts_of_tokenizer(network: Backbone, tokenizer: Any) -> dict[str, Any]:
    """What `prepare_text` needs next to `tokenizer.json`: the tokens before and after a
    text, the limits of its length, and characters by their kind.

    Which characters are spaces, signs of their own or dropped depends on the version of
    Unicode in `tokenizers`, which is not that of Python or of a browser. So they are
    listed, as pairs of first and last numbers.
    """
    stored = json.loads(tokenizer.to_str())
    kinds = {}
    for part in BERT:
        # a tokenizer may lack a part
        kinds[part] = (stored.get(part) or {}).get("type")
    if kinds != BERT:
        raise ParameterError(
            f"export_whole: the tokenizer of {network.record.name} is not the one of"
            " BERT (WordPiece), which is the only one that the exported programs know."
        )
    before, after = _added_tokens(tokenizer)
    return {
        "tokens": network.record.tokens,
        "characters": len(network.cut([LONG_TEXT])[0]),
        "before": before,
        "after": after,
        **_characters_by_kind(tokenizer),
    }


def _added_tokens(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The tokens that are added before and after every text."""
    text = tokenizer.encode("a b", add_special_tokens=False).ids
    whole = tokenizer.encode("a b").ids
    start = 0
    while whole[start : start + len(text)] != text:
        start += 1
    return whole[:start], whole[start + len(text) :]


def _characters_by_kind(tokenizer: Any) -> dict[str, list[list[int]]]:
    """The ranges of characters that separate words, are words, or are dropped."""
    numbers = [n for n in range(0x110000) if n not in SURROGATES]
    # "0" is a part of no other character, so it separates their normal forms
    text = "0".join(map(chr, numbers))
    normal = tokenizer.normalizer.normalize_str(text).split("0")
    # that of "0" itself is empty twice
    zero = ord("0")
    normal[zero : zero + 2] = ["0"]
    signs = _signs(tokenizer, text)
    space: list[int] = []
    dropped: list[int] = []
    isolated: list[int] = []
    for i, (number, form) in enumerate(zip(numbers, normal, strict=True)):
        if form == " ":
            space.append(number)
        elif not form:
            dropped.append(number)
        # Chinese characters are put between spaces
        elif i in signs or form.startswith(" "):
            isolated.append(number)
    return {
        "space": _ranges(space),
        "dropped": _ranges(dropped),
        "isolated": _ranges(isolated),
    }


def _signs(tokenizer: Any, text: str) -> set[int]:
    """The indices of the characters of a text with zeros between them that are words of
    their own.
    """
    signs = set()
    # the positions in a long text take the tokenizer much longer than in short ones
    for begin in range(0, len(text), TEXT_PART):
        part = text[begin : begin + TEXT_PART]
        for _, (start, end) in tokenizer.pre_tokenizer.pre_tokenize_str(part):
            is_zero = start % 2 == 1
            if end - start == 1 and not is_zero:
                signs.add((begin + start) // 2)
    return signs


def _ranges(numbers: Sequence[int]) -> list[list[int]]:
    """Ascending numbers as pairs of the first and the last of each run."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs
