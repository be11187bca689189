"""Tables of texts in all their forms."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from imprint.report import html

# Characters that have a meaning in LaTeX, as they are written there.
LATEX = str.maketrans({"_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "±": r"$\pm$"})


def number(value: float, form: str = ".2f") -> str:
    """A number as text; empty for NaN."""
    is_nan = value != value
    return "" if is_nan else format(value, form)


def markdown_cell(text: str) -> str:
    """Text for a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


@dataclass(frozen=True)
class TextTable:
    """A table of texts.

    Columns from `numbers` on are right-aligned, except the last `remarks`.

    Examples
    --------
    >>> from imprint.report import TextTable
    >>> table = TextTable(("method", "accuracy"), (("kernel", "97.5"), ("max", "9.0")))
    >>> print("\\n".join(table.text()))
    method  accuracy
    kernel      97.5
    max          9.0
    """

    head: tuple[str, ...]  # the names of the columns
    rows: tuple[tuple[str, ...], ...]
    numbers: int = 1  # the first column of numbers
    caption: str = ""
    remarks: int = 0  # number of columns of text after the numbers

    def right_aligned(self, column: int) -> bool:
        """Whether a column is right-aligned."""
        return self.numbers <= column < len(self.head) - self.remarks

    def _by_alignment(self, left: str, right: str) -> list[str]:
        """For each column, the text for its alignment."""
        columns = range(len(self.head))
        return [right if self.right_aligned(j) else left for j in columns]

    def text(self) -> list[str]:
        """The lines for a terminal, padded to columns."""
        every_row = (self.head, *self.rows)
        columns = list(zip(*every_row))
        widths = [max(map(len, column)) for column in columns]
        lines = []
        for row in every_row:
            cells = [
                text.rjust(width) if self.right_aligned(j) else text.ljust(width)
                for j, (text, width) in enumerate(zip(row, widths))
            ]
            lines.append("  ".join(cells).rstrip())
        return lines

    def csv(self) -> str:
        """The table as CSV."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.head)
        writer.writerows(self.rows)
        return out.getvalue()

    def latex(self) -> str:
        """The table as LaTeX (booktabs)."""
        columns = "".join(self._by_alignment("l", "r"))
        rows = [_latex_row(row) for row in self.rows]
        lines = [
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _latex_row(self.head),
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
        return "\n".join(lines)

    def markdown(self) -> list[str]:
        """The lines of a Markdown table, and its caption."""
        rule = self._by_alignment("---", "---:")
        lines = [_markdown_row(row) for row in (self.head, rule, *self.rows)]
        lines.append("")
        if self.caption:
            lines += [self.caption, ""]
        return lines

    def html(self) -> str:
        """The table as HTML, and its caption."""
        css = self._by_alignment("", ' class="n"')
        head = _html_row("th", self.head, css)
        rows = [_html_row("td", texts, css) for texts in self.rows]
        caption = f"<small>{escape(self.caption)}</small>" if self.caption else ""
        return html.table(head, rows) + caption


def _latex_row(texts: Sequence[str]) -> str:
    cells = [text.translate(LATEX) for text in texts]
    return " & ".join(cells) + r" \\"


def _markdown_row(texts: Sequence[str]) -> str:
    return "| " + " | ".join(map(markdown_cell, texts)) + " |"


def _html_row(tag: str, texts: Sequence[str], css: Sequence[str]) -> str:
    cells = []
    for text, kind in zip(texts, css):
        # A percent sign alone on a line is hard to read.
        content = escape(text).replace(" %", "&nbsp;%")
        cells.append(f"<{tag}{kind}>{content}</{tag}>")
    return html.row(*cells)
