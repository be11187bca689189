"""What a person looks at: diagrams, tables, pages."""

from imprint.report.critical_difference import critical_difference, save_critical_difference
from imprint.report.row_diagram import ranks_by_row

__all__ = ["critical_difference", "ranks_by_row", "save_critical_difference"]
