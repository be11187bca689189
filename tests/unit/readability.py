"""How much a reader has to hold in mind: figures of a package, measured on its source.

Run it to see the figures of each sub-package: python -m tests.unit.readability
"""

import ast
import io
import tokenize
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import imprint

# Tokens that are layout, not content.
LAYOUT = {
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# A function of 40 lines fills the screen of a laptop.
LONG_FUNCTION = 40


@dataclass
class Counts:
    """What is counted in the source of one or several files."""

    lines: int = 0  # lines that hold code; docstrings, comments and blanks do not
    tokens: int = 0
    comments: int = 0  # lines that hold nothing but a comment
    tuple_assignments: int = 0
    nested_comprehensions: int = 0
    any_types: int = 0
    functions: int = 0
    long_functions: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        sums = [a + b for a, b in zip(astuple(self), astuple(other), strict=True)]
        return Counts(*sums)

    def per_thousand(self, count: int) -> float:
        """A count for every thousand lines of code."""
        return 1000 * count / max(self.lines, 1)

    def figures(self) -> dict[str, float]:
        """The figures that have limits, by name."""
        return {
            "tokens": self.tokens / max(self.lines, 1),
            "comments": self.per_thousand(self.comments),
            "tuples": self.per_thousand(self.tuple_assignments),
            "nested": self.per_thousand(self.nested_comprehensions),
            "any": self.per_thousand(self.any_types),
            "long": 100 * self.long_functions / max(self.functions, 1),
        }


def count(source: str) -> Counts:
    """Count one file."""
    tree = ast.parse(source)
    counts = count_tokens(source, docstring_lines(tree))
    for node in ast.walk(tree):
        counts.tuple_assignments += assigns_tuple(node)
        counts.nested_comprehensions += holds_comprehension(node)
        counts.any_types += isinstance(node, ast.Name) and node.id == "Any"
        if isinstance(node, FUNCTIONS):
            counts.functions += 1
            counts.long_functions += body_lines(node) > LONG_FUNCTION
    return counts


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The number of lines of a function below its name, without its docstring.

    A docstring with parameters and an example is read instead of the body, not with it.
    """
    lines = function.end_lineno - function.lineno
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        lines -= first.end_lineno - first.lineno + 1
    return lines


def docstring_lines(tree: ast.AST) -> set[int]:
    """The numbers of the lines of docstrings and of other bare strings."""
    numbers = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
            continue
        if isinstance(node.value.value, str):
            numbers.update(range(node.lineno, node.end_lineno + 1))
    return numbers


def count_tokens(source: str, skipped: set[int]) -> Counts:
    """Count tokens, lines of code and comments outside the skipped lines."""
    counts = Counts()
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            counts.comments += token.line.lstrip().startswith("#")
        elif token.type not in LAYOUT and token.start[0] not in skipped:
            counts.tokens += 1
            lines.add(token.start[0])
    counts.lines = len(lines)
    return counts


def assigns_tuple(node: ast.AST) -> bool:
    """Whether a statement assigns several expressions to as many targets.

    A swap does too, but its expressions are the targets in another order.
    """
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    target = node.targets[0]
    if not isinstance(target, ast.Tuple):
        return False
    assigned = sorted(ast.unparse(part) for part in target.elts)
    values = sorted(ast.unparse(part) for part in node.value.elts)
    return assigned != values


def holds_comprehension(node: ast.AST) -> bool:
    """Whether a comprehension holds another one."""
    if not isinstance(node, COMPREHENSIONS):
        return False
    return sum(isinstance(part, COMPREHENSIONS) for part in ast.walk(node)) > 1


def count_files(paths: Iterable[Path]) -> Counts:
    """Count several files together."""
    return sum((count(path.read_text("utf-8")) for path in paths), Counts())


def by_package(root: Path) -> dict[str, Counts]:
    """The counts of each sub-package, and of all modules beside them as `modules`."""
    packages: dict[str, list[Path]] = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        name = parts[0] if len(parts) > 1 else "modules"
        packages.setdefault(name, []).append(path)
    return {name: count_files(paths) for name, paths in packages.items()}


def main() -> None:
    packages = by_package(Path(imprint.__file__).parent)
    packages["all"] = sum(packages.values(), Counts())
    names = list(Counts().figures())
    lines = fields(Counts)[0].name
    print(f"{'':20}", *(f"{name:>9}" for name in [lines, *names]))
    for package, counts in packages.items():
        figures = [f"{value:9.1f}" for value in counts.figures().values()]
        print(f"{package:20}", f"{counts.lines:9}", *figures)


if __name__ == "__main__":
    main()
