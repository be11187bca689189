"""Texts as tokens: WordPiece, as the package `tokenizers` does it for BERT."""

import json
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Facts = dict[str, Any]  # "text" in model.json, and the JSON of a tokenizer


def read(text: str) -> str:
    """A text from the command line."""
    return text


def preparation(facts: Facts, folder: Path) -> Callable[[str], NDArray[np.int64]]:
    """The function from a text to the input of the graph."""
    content = (folder / "tokenizer.json").read_text("utf-8")
    tokenizer = Tokenizer(json.loads(content), facts["text"])
    return lambda text: np.array(tokenizer.encode(text), np.int64)


class Ranges:
    """A set of characters, as pairs of their first and last numbers."""

    def __init__(self, pairs: list[list[int]]):
        self.firsts = [first for first, _ in pairs]
        self.lasts = [last for _, last in pairs]

    def __contains__(self, character: str) -> bool:
        i = bisect_right(self.firsts, ord(character)) - 1
        return i >= 0 and ord(character) <= self.lasts[i]


class Tokenizer:
    """A WordPiece tokenizer, from `tokenizer.json` and the facts about its text."""

    def __init__(self, stored: Facts, facts: Facts):
        model = stored["model"]
        self.vocabulary: dict[str, int] = model["vocab"]
        self.unknown = self.vocabulary[model["unk_token"]]
        self.prefix: str = model["continuing_subword_prefix"]
        self.longest: int = model["max_input_chars_per_word"]
        self.special = {t["content"]: t["id"] for t in stored["added_tokens"]}
        names = sorted(self.special, key=len, reverse=True)
        self.split = re.compile(f"({'|'.join(map(re.escape, names))})")
        self.before: list[int] = facts["before"]
        self.after: list[int] = facts["after"]
        # of the text itself
        self.length = facts["tokens"] - len(self.before) - len(self.after)
        self.characters: int = facts["characters"]
        self.space = Ranges(facts["space"])
        self.dropped = Ranges(facts["dropped"])
        self.isolated = Ranges(facts["isolated"])

    def encode(self, text: str) -> list[int]:
        """The numbers of the tokens of a text; the end of a long one is cut off."""
        ids: list[int] = []
        for part in self.split.split(text[: self.characters]):
            if part in self.special:
                ids.append(self.special[part])
            else:
                for word in self.words(part):
                    ids += self.pieces(word)
        return [*self.before, *ids[: self.length], *self.after]

    def words(self, text: str) -> Iterator[str]:
        """The words and signs of a text, in small letters and without accents."""
        word = ""
        for character in unicodedata.normalize("NFD", text):
            if character in self.dropped:
                continue
            is_space = character in self.space
            is_sign = character in self.isolated
            if (is_space or is_sign) and word:
                yield word
                word = ""
            if is_sign:
                yield character
            elif not is_space:
                word += character.lower()
        if word:
            yield word

    def pieces(self, word: str) -> list[int]:
        """The longest pieces of a word in the vocabulary, from left to right."""
        if len(word) > self.longest:
            return [self.unknown]
        ids: list[int] = []
        start = 0
        while start < len(word):
            prefix = self.prefix if start else ""
            end = len(word)
            # the longest piece that the vocabulary has
            while prefix + word[start:end] not in self.vocabulary:
                end -= 1
                if end == start:
                    return [self.unknown]
            piece = prefix + word[start:end]
            ids.append(self.vocabulary[piece])
            start = end
        return ids
