"""How a class is made and a function called, as the reference writes it."""

import inspect
import re
from typing import Any

SHORTER = (
    (re.compile(r".*_SupportsArray\[.*"), "ArrayLike"),
    (re.compile(r"numpy\.ndarray\[tuple\[.*?\], numpy\.dtype\[.*?\]\]"), "Array"),
    (re.compile(r"<class '([^']+)'>"), r"\1"),
    (
        re.compile(
            r"\b(?:imprint|collections|typing|pathlib|enum|os|numpy|pyarrow)\.(?:\w+\.)*(\w+)"
        ),
        r"\1",
    ),
    (re.compile(r"'([\w.\[\], |]+)'(?=[,)\] |]|$)"), r"\1"),
)


def opening(cls: type) -> str:
    """How an object is made; of an error or a protocol, what it is a kind of."""
    if issubclass(cls, Exception) and "__init__" not in vars(cls):
        return f"class {cls.__name__}({', '.join(base.__name__ for base in cls.__bases__)})"
    if getattr(cls, "_is_protocol", False):
        return f"class {cls.__name__}(Protocol)"
    return signature(cls.__name__, cls)


def annotation(kind: Any) -> str:
    return shorter(kind if isinstance(kind, str) else inspect.formatannotation(kind))


def shorter(text: str) -> str:
    for pattern, by in SHORTER:
        text = pattern.sub(by, text)
    return text


def shown_parameters(function: Any, own: bool = False) -> list[inspect.Parameter]:
    found = list(inspect.signature(function).parameters.values())[1 if own else 0 :]
    return [p for p in found if not p.name.startswith("_")]


def signature(name: str, function: Any, own: bool = False) -> str:
    """A call as it is written; one parameter a line where the call is long."""
    found, texts, starred = inspect.signature(function), [], False
    for p in shown_parameters(function, own):
        if p.kind is p.KEYWORD_ONLY and not starred:
            texts.append("*")
        starred |= p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        kind = "" if p.annotation in (p.empty, Any) else f": {annotation(p.annotation)}"
        equals = " = " if kind else "="
        texts.append(
            stars
            + p.name
            + kind
            + ("" if p.default is p.empty else f"{equals}{default(p)}")
        )
    back = found.return_annotation
    gives = (
        ""
        if back in (inspect.Signature.empty, None) or inspect.isclass(function)
        else annotation(back)
    )
    arrow = f" -> {gives}" if gives else ""
    line = f"{name}({', '.join(texts)}){arrow}"
    if len(line) <= 88:
        return line
    return "\n".join([f"{name}(", *(f"    {text}," for text in texts), f"){arrow}"])


def default(p: inspect.Parameter) -> str:
    text = repr(p.default) if isinstance(p.default, str) else shorter(repr(p.default))
    return "..." if " at 0x" in text or len(text) > 60 else text
