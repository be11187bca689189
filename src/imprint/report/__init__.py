"""Results for people to read: diagrams, tables, pages."""

from imprint.report.critical_difference import (
    critical_difference,
    save_critical_difference,
)

__all__ = ["critical_difference", "save_critical_difference"]
