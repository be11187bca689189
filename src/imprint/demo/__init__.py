"""A small demonstration: the published recipes compared on handwritten digits, shown on
a page.
"""

from imprint.demo.findings import Findings, explore
from imprint.demo.page import write_page

__all__ = ["Findings", "explore", "write_page"]
