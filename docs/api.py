"""The reference of the Python interface, from signatures, docstrings and the examples in `docs/examples`."""

import ast
import inspect
import re
import runpy
import textwrap
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

NOTE = "<!-- Written by docs/generate.py from the code: change the code, then run `make docs`. -->"
EXAMPLES = Path(__file__).resolve().parent / "examples"
MODULES = (
    "imprint", "imprint.imprinter", "imprint.recipes", "imprint.active", "imprint.collapse", "imprint.stats",
    "imprint.study",
    "imprint.tasks", "imprint.datasets", "imprint.embeddings", "imprint.backbones", "imprint.evaluation",
    "imprint.export",
    "imprint.report", "imprint.extend", "imprint.core.errors",
)  # fmt: skip
HIDDEN = {"__version__", "family"}
LONGEST_LINE = 120
SHAPE = re.compile(r"\s+# (\([nNC][^)]*\))")
SECTION = re.compile(
    r"^(Parameters|Attributes|Returns|Raises|Notes|Examples)\n-+\n", re.MULTILINE
)
calls = runpy.run_path(str(EXAMPLES.with_name("signatures.py")))
annotation, default, opening = calls["annotation"], calls["default"], calls["opening"]
shorter, shown_parameters, signature = (
    calls["shorter"],
    calls["shown_parameters"],
    calls["signature"],
)


def page_name(module: str) -> str:
    """The file of a module's page."""
    return f"python/{module.removeprefix('imprint.')}.md"


def public(module: str) -> dict[str, Any]:
    """What a module offers, in the order of its own list; what another page has is left out."""
    found = import_module(module)
    elsewhere = {"imprint.imprinter": {"Imprinter"}, "imprint.recipes": {"recipe"}}.get(
        module, set()
    )
    return {
        name: getattr(found, name)
        for name in found.__all__
        if name not in HIDDEN | elsewhere
    }


def index() -> str:
    """The page that leads to those of all modules."""
    lines = [
        "# Python",
        "",
        NOTE,
        "",
        "Every public name, by module. Each example is run by the tests.",
        "",
    ]
    for module in MODULES:
        names = ", ".join(f"`{name}`" for name in public(module))
        about = (import_module(module).__doc__ or "").split("\n\n")[0]
        lines += [
            f"[**{module}**]({page_name(module)}): {' '.join(about.split())} {names}",
            "",
        ]
    entries = [page_name(module).removesuffix(".md") for module in MODULES]
    return "\n".join([*lines, "```{toctree}", ":hidden:", "", *entries, "```"]) + "\n"


def module_page(module: str) -> str:
    """Every public name of a module."""
    lines = [f"# {module}", "", NOTE, "", *prose(import_module(module).__doc__ or "")]
    examples = read_examples(module)
    for name, found in public(module).items():
        lines += name_section(module, name, found, examples.get(name, ""))
    return "\n".join(lines).rstrip() + "\n"


def read_examples(module: str) -> dict[str, str]:
    """The examples for names whose docstrings have none; several names may share one."""
    file = EXAMPLES / f"{module.removeprefix('imprint.')}.txt"
    if not file.exists():
        return {}
    _, *parts = re.split(
        r"^([\w, ]+)\n-+\n", file.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    shared = zip(parts[::2], parts[1::2])
    return {name: text.strip() for names, text in shared for name in names.split(", ")}


def name_section(module: str, name: str, found: Any, example: str) -> Iterator[str]:
    """A class, a function, or a plain value."""
    yield from (f"## `{name}`", "")
    if inspect.isclass(found):
        yield from class_section(found)
    elif inspect.ismodule(found):
        yield from prose(found.__doc__ or "")
    elif inspect.isfunction(inspect.unwrap(found)):
        yield from (
            *block("py", signature(found.__name__, found)),
            *docstring(found),
        )
        if "Parameters\n---" not in (inspect.getdoc(found) or ""):
            yield from parameters(found)
        yield from examples_of(found)
    else:
        text = (
            repr(found).replace("'", '"')
            if isinstance(found, dict | tuple)
            else shorter(repr(found))
        )
        if isinstance(found, dict) and len(f"{name} = {text}") > LONGEST_LINE:
            entries = "".join(
                f"    {key!r}: {value!r},\n" for key, value in found.items()
            )
            text = f"{{\n{entries}}}".replace("'", '"')
        yield from (*block("py", f"{name} = {text}"), *prose(value_doc(module, name)))
    if example:
        yield from block("pycon", example)


def class_section(cls: type) -> Iterator[str]:
    """How it is made, what it is, what it holds and what it does."""
    yield from (*block("py", opening(cls)), *docstring(cls), *examples_of(cls))
    held = field_rows(cls)
    if held and "Parameters" not in (cls.__doc__ or ""):
        yield from ("| field | holds | meaning |", "|---|---|---|", *held, "")
    ours = {
        k: v
        for base in reversed(cls.__mro__)
        if base.__module__.startswith("imprint")
        for k, v in vars(base).items()
    }
    for name, member in sorted(ours.items(), key=lambda item: item[0] != "fit"):
        about = inspect.getdoc(getattr(member, "__func__", member))
        if name.startswith("_") or not about or name in getattr(cls, "_fields", ()):
            continue
        if isinstance(member, property) or type(member).__name__ == "cached_property":
            yield from (f"### `{cls.__name__}.{name}`", "", *member_doc(about))
        elif inspect.isfunction(member) or isinstance(
            member, classmethod | staticmethod
        ):
            function = getattr(member, "__func__", member)
            call = signature(name, function, own=not isinstance(member, staticmethod))
            yield from (
                f"### `{cls.__name__}.{name}`",
                "",
                *block("py", call),
                *member_doc(about),
            )


def member_doc(about: str) -> Iterator[str]:
    """The docstring of a member: one paragraph, or its sections where it has some."""
    if not SECTION.search(about):
        yield from (one_line(about), "")
        return
    yield from sections(about)
    for example in examples_in(about):
        yield from block("pycon", example)


def field_rows(cls: type) -> list[str]:
    """The fields of a dataclass or a named tuple, with the text that follows each in the source; none without any."""
    if is_dataclass(cls):
        types = {f.name: f.type for f in fields(cls) if not f.name.startswith("_")}
    elif hasattr(cls, "_fields"):
        types = {name: cls.__annotations__[name] for name in cls._fields}
    else:
        return []
    meanings: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        if base.__module__.startswith("imprint"):
            meanings |= field_docs(base)
    if not any(meanings.get(name) for name in types):
        return []
    return [
        escaped(f"| `{n}` | `{annotation(kind)}` | {meanings.get(n, '')} |")
        for n, kind in types.items()
    ]


def field_docs(cls: type) -> dict[str, str]:
    """Texts below, beside or above the fields of a class, by field."""
    source = textwrap.dedent(inspect.getsource(cls))
    body: list[ast.stmt] = ast.parse(source).body[0].body  # type: ignore[attr-defined]
    found, lines = {}, source.splitlines()
    for one, other in zip(body, [*body[1:], None]):
        if isinstance(one, ast.AnnAssign):
            _, _, beside = lines[one.lineno - 1].partition("  # ")
            below = isinstance(other, ast.Expr) and isinstance(
                other.value, ast.Constant
            )
            found[getattr(one.target, "id", "")] = (
                one_line(other.value.value)
                if below
                else beside or comment_above(lines, one.lineno)
            )
    return found


def comment_above(lines: list[str], number: int) -> str:
    """The comment that ends above a line, as one text."""
    texts: list[str] = []
    for line in reversed(lines[: number - 1]):
        if not line.strip().startswith("# "):
            break
        texts.insert(0, line.strip()[2:])
    return " ".join(texts)


def value_doc(module: str, name: str) -> str:
    """The text below a value in the source of its module."""
    body = ast.parse(inspect.getsource(import_module(module))).body
    for one, other in pairwise(body):
        named = (
            isinstance(one, ast.Assign) and getattr(one.targets[0], "id", "") == name
        )
        if (
            named
            and isinstance(other, ast.Expr)
            and isinstance(other.value, ast.Constant)
        ):
            return str(other.value.value)
    return ""


# Tables


def parameters(function: Any) -> Iterator[str]:
    """A line for each parameter: what it takes, and its default."""
    rows = [
        f"| `{p.name}` | `{annotation(p.annotation)}` | {'' if p.default is p.empty else f'`{default(p)}`'} |"
        for p in shown_parameters(function)
    ]
    if rows:
        yield from (
            "| parameter | takes | default |",
            "|---|---|---|",
            *map(escaped, rows),
            "",
        )


def escaped(row: str) -> str:
    """A row of a table in which bars within code are no borders."""
    return re.sub(r"`[^`]*`", lambda m: m[0].replace("|", "\\|"), row)


# Docstrings


def docstring(found: Any) -> Iterator[str]:
    """The text of a docstring and its sections."""
    yield from sections(inspect.getdoc(found) or "")


def sections(doc: str) -> Iterator[str]:
    """Sections of a docstring as tables or paragraphs."""
    text, *titled = SECTION.split(doc)
    yield from prose(text)
    for title, body in zip(titled[::2], titled[1::2]):
        if title in ("Parameters", "Attributes"):
            kind = "is" if title == "Attributes" else "takes"
            yield from (f"| {title.lower()[:-1]} | {kind} | meaning |", "|---|---|---|")
            yield from (*map(escaped, entries(body)), "")
        elif title in ("Returns", "Raises"):
            yield from (f"**{title}** {outcomes(body)}", "")
        else:
            yield from prose(body)


def outcomes(body: str) -> str:
    """What is returned or raised, each with the indented text below it."""
    texts = []
    for entry in re.split(r"\n(?=\S)", body.strip()):
        kind, _, about = entry.partition("\n")
        texts.append(f"`{kind}`: {' '.join(about.split())}" if about else f"`{kind}`")
    return " ".join(texts)


def entries(body: str) -> Iterator[str]:
    """`name : type` with an indented text below, as lines of a table."""
    for entry in re.split(r"\n(?=\S)", body.strip()):
        head, _, about = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        yield f"| {', '.join(f'`{n}`' for n in names.split(', '))} | {kind} | {' '.join(about.split())} |"


def examples_of(found: Any) -> Iterator[str]:
    """The examples of a docstring as code."""
    for example in examples_in(inspect.getdoc(found) or ""):
        yield from block("pycon", example)


def examples_in(doc: str) -> Iterator[str]:
    """The examples of a docstring."""
    for part in doc.split("\n\n"):
        if ">>>" in part:
            yield part[part.index(">>>") :]


def prose(text: str) -> Iterator[str]:
    """Paragraphs, and lists as they are; examples are left out."""
    for part in inspect.cleandoc(text).split("\n\n"):
        if part.startswith(">>>"):
            continue
        if part.startswith("- "):
            yield from (part, "")
        elif part:
            yield from (" ".join(part.split()), "")


def one_line(text: str) -> str:
    """A docstring as one paragraph, without its examples and blocks of code."""
    parts = inspect.cleandoc(text).split(">>>")[0].split("\n\n")
    paragraph = " ".join(
        " ".join(part.split()) for part in parts if not part.startswith(" ")
    )
    return SHAPE.sub(r" Shape: `\1`.", paragraph)


def block(language: str, text: str) -> Iterator[str]:
    yield from (f"```{language}", text, "```", "")
