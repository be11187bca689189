"""The data sets that have a name: one file each, the file name is the public name."""

from imprint.core.family import Family
from imprint.datasets.named._base import Dataset

family = Family(__name__, Dataset)
