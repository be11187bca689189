"""The main job in small: the published recipes compared on handwritten digits, with a page to look at."""

from imprint.demo.findings import Findings, explore
from imprint.demo.page import write_page

__all__ = ["Findings", "explore", "write_page"]
