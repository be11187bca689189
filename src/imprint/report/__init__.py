"""Results for people to read: diagrams, tables, pages."""

from imprint.report import html
from imprint.report.critical_difference import (
    critical_difference,
    save_critical_difference,
)
from imprint.report.figures import (
    COLOURS,
    GRID,
    INK,
    PALE,
    Cloud,
    Panel,
    Point,
    Series,
    canvas,
    draw,
    interval,
    scatter,
)
from imprint.report.text_table import TextTable

__all__ = [
    "COLOURS",
    "GRID",
    "INK",
    "PALE",
    "Cloud",
    "Panel",
    "Point",
    "Series",
    "TextTable",
    "canvas",
    "critical_difference",
    "draw",
    "html",
    "interval",
    "save_critical_difference",
    "scatter",
]
