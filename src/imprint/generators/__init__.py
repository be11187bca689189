"""Generators: proxies from the embeddings of a class."""

from imprint.core.component import Family
from imprint.generators._base import Generator

family = Family(__name__, Generator)
