"""Tags (multi-label classification): a head whose inputs may have several labels, or
none.
"""

from imprint.tags.calibration import TagCalibration
from imprint.tags.head import TagHead, new_head

__all__ = ["TagCalibration", "TagHead", "new_head"]
