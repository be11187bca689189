"""Tasks: which rows are used, under which labels, and how many of each class."""

import ast
import reprlib

from imprint.core.component import Family
from imprint.core.errors import ParameterError
from imprint.tasks._base import Chain, Selection, Task

__all__ = [
    "Chain",
    "Selection",
    "Task",
    "family",
    "names",
    "resolve",
]

family = Family(__name__, Task)
MAX_TEXT_LENGTH = 20_000  # characters; room for a thousand named classes


def names() -> list[str]:
    """The names of the tasks.

    Examples
    --------
    >>> from imprint.tasks import names
    >>> names()
    ['all', 'classes', 'd_in_1', 'even', 'odd', 'short', 'shots']
    """
    return family.names()


def resolve(spec: str | Task) -> Task:
    """The task that a text describes.

    Parameters
    ----------
    spec : str or Task
        A name, a call or a chain, such as `classes(0, 3) | shots(n=5)`. A task is
        returned unchanged.

    Returns
    -------
    Task
        Its `str` is the text again.

    Examples
    --------
    >>> from imprint.tasks import resolve
    >>> str(resolve("even | shots(n=5)"))
    'even | shots(n=5)'
    >>> resolve("classes('cat', 'dog')").select(["dog", "cow", "cat"]).rows
    array([0, 2])
    """
    if isinstance(spec, Task):
        return spec
    try:
        if not isinstance(spec, str) or len(spec) > MAX_TEXT_LENGTH:
            raise TypeError
        expression = ast.parse(spec.strip(), mode="eval")
        steps = _steps(expression.body)
    except ParameterError:
        raise
    # `literal_eval` raises a ValueError for what is not a literal; deep nesting is a
    # RecursionError or a MemoryError.
    except (TypeError, SyntaxError, ValueError, RecursionError, MemoryError):
        raise ParameterError(
            f"Cannot read {reprlib.repr(spec)} as a task. Write a name, a call or a"
            " chain, such as 'classes(0, 3) | shots(n=5)'."
        ) from None
    return steps[0] if len(steps) == 1 else Chain(steps=tuple(steps))


def _steps(node: ast.expr) -> list[Task]:
    """The steps of `a | b | c`, in order."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _steps(node.left) + _steps(node.right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        cls = family.load(node.func.id)
        # `classes(0, 3, 7)`: all positions belong to one parameter.
        by_position = node.args and not node.keywords
        if cls.positional and by_position:
            values = map(ast.literal_eval, node.args)
            return [cls(**{cls.positional: tuple(values)})]
    return [family.resolve(ast.unparse(node))]
