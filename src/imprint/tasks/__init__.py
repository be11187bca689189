"""Tasks: which rows are used, under which labels, and how many of each class."""

import ast
import reprlib

from imprint.core.component import Family
from imprint.core.errors import ParameterError
from imprint.tasks._base import Chain, Selection, Task

__all__ = ["Chain", "Selection", "Task", "family", "names", "resolve"]

family = Family(__name__, Task)
MAX_TEXT_LENGTH = 20_000  # characters; room for a thousand named classes


def names() -> list[str]:
    """The names of the tasks."""
    return family.names()


def resolve(spec: str | Task) -> Task:
    """The task that a text describes; a task is returned unchanged. `str(task)` is the
    text again.
    """
    if isinstance(spec, Task):
        return spec
    try:
        if not isinstance(spec, str) or len(spec) > MAX_TEXT_LENGTH:
            raise TypeError
        steps = _steps(ast.parse(spec.strip(), mode="eval").body)
    except ParameterError:
        raise
    except (TypeError, SyntaxError, ValueError, RecursionError, MemoryError):
        example = (
            "Write a name, a call or a chain, such as 'classes(0, 3) | shots(n=5)'"
        )
        raise ParameterError(
            f"Cannot read {reprlib.repr(spec)} as a task. {example}."
        ) from None
    return steps[0] if len(steps) == 1 else Chain(steps=tuple(steps))


def _steps(node: ast.expr) -> list[Task]:
    """The steps of `a | b | c`, in order."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _steps(node.left) + _steps(node.right)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.args
        and not node.keywords
    ):
        cls = family.load(node.func.id)
        if cls.positional:
            return [cls(**{cls.positional: tuple(map(ast.literal_eval, node.args))})]
    return [family.resolve(ast.unparse(node))]
