"""Results for people to read: diagrams, tables, pages."""

from imprint.report.critical_difference import (
    critical_difference,
    save_critical_difference,
)
from imprint.report.figures import Cloud, Panel, Point, Series, draw, interval, scatter
from imprint.report.text_table import TextTable

__all__ = [
    "Cloud",
    "Panel",
    "Point",
    "Series",
    "TextTable",
    "critical_difference",
    "draw",
    "interval",
    "save_critical_difference",
    "scatter",
]
