from dataclasses import dataclass
from typing import Any, ClassVar

from imprint.core.errors import ParameterError
from imprint.modalities._base import InputParts, Modality, refused

MAX_PARTS = 128  # of one text: each is one pass of the network
SENTENCE = "where is the card that i ordered two weeks ago and why has nobody told me"


@dataclass(frozen=True, kw_only=True)
class Text(Modality):
    """Texts in UTF-8: sentences, titles, messages."""

    noun: ClassVar[str] = "text"
    backbone: ClassVar[str | None] = "minilm"
    typed: ClassVar[bool] = True
    rank: ClassVar[int] = 0

    def suffixes(self) -> frozenset[str]:
        return frozenset({".txt"})

    def read(self, raw: bytes) -> str:
        try:
            text = raw.decode("utf-8-sig").strip()
        except UnicodeDecodeError:
            raise refused("it is not UTF-8") from None
        if not text:
            raise refused("the text is empty")
        return text

    def convert(self, value: Any) -> str:
        if not isinstance(value, str):
            raise ParameterError(f"A text must be a str, not {type(value).__name__}.")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ParameterError(
                f"{value[:40]!r}: a text must be whole Unicode, without surrogates."
            ) from None
        return value

    def show(self, item: Any) -> str:
        return str(item)

    def parts(self, item: Any) -> InputParts | None:
        """The words; of a long text, groups of words."""
        words = str(item).split()
        if len(words) < 2:
            return None
        size = -(-len(words) // MAX_PARTS)
        groups = [words[i : i + size] for i in range(0, len(words), size)]

        def without(left_out: int) -> str:
            kept = [group for i, group in enumerate(groups) if i != left_out]
            return " ".join(word for group in kept for word in group)

        names = tuple(" ".join(group) for group in groups)
        return InputParts((len(groups),), names, without)

    def sample(self, size: int) -> list[Any]:
        """Texts of 3 to 16 words."""
        words = SENTENCE.split()
        return [" ".join(words[: 3 + i % (len(words) - 2)]) for i in range(size)]
