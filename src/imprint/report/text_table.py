"""Numbers as texts, and tables of texts with their forms: plain text, CSV, LaTeX, Markdown and HTML."""

import csv
import io
from dataclasses import dataclass
from html import escape

from imprint.report import html

LATEX = str.maketrans({"_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "±": r"$\pm$"})


def number(value: float, form: str = ".2f") -> str:
    """A number as text; empty for NaN."""
    return "" if value != value else format(value, form)


@dataclass(frozen=True)
class TextTable:
    """A table of texts. Columns from `numbers` on are right-aligned, except the last `remarks`."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: int = 1
    caption: str = ""
    remarks: int = 0

    def right_aligned(self, column: int) -> bool:
        """Whether a column is right-aligned."""
        return self.numbers <= column < len(self.head) - self.remarks

    def text(self) -> list[str]:
        """The lines for a terminal, padded to columns."""
        widths = [max(map(len, column)) for column in zip(self.head, *self.rows)]
        align = [str.rjust if self.right_aligned(j) else str.ljust for j in range(len(widths))]
        padded = ([pad(v, w) for pad, v, w in zip(align, row, widths)] for row in (self.head, *self.rows))
        return ["  ".join(row).rstrip() for row in padded]

    def csv(self) -> str:
        """The table as CSV."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.head, *self.rows])
        return out.getvalue()

    def latex(self) -> str:
        """The table as LaTeX (booktabs)."""
        head, *rows = (" & ".join(text.translate(LATEX) for text in row) + r" \\" for row in (self.head, *self.rows))
        columns = "".join("r" if self.right_aligned(j) else "l" for j in range(len(self.head)))
        top, bottom = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"], [r"\bottomrule", r"\end{tabular}", ""]
        return "\n".join([*top, head, r"\midrule", *rows, *bottom])

    def markdown(self) -> list[str]:
        """The lines of a Markdown table, and its caption."""
        rule = ["---:" if self.right_aligned(j) else "---" for j in range(len(self.head))]
        lines = ["| " + " | ".join(map(markdown_cell, row)) + " |" for row in (self.head, rule, *self.rows)]
        return [*lines, "", *([self.caption, ""] if self.caption else [])]

    def html(self) -> str:
        """The table as HTML, and its caption."""
        css = [' class="n"' if self.right_aligned(j) else "" for j in range(len(self.head))]
        head, *rows = (
            html.row(*(f"<{tag}{c}>{escape(v).replace(' %', '&nbsp;%')}</{tag}>" for v, c in zip(row, css)))
            for tag, row in (("th", self.head), *(("td", row) for row in self.rows))
        )
        return html.table(head, rows) + (f"<small>{escape(self.caption)}</small>" if self.caption else "")


def markdown_cell(text: str) -> str:
    """Text for a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")
