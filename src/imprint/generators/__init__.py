"""Generators: proxies from the embeddings of a class."""

from imprint.core.family import Family
from imprint.generators._base import Generator

family = Family(__name__, Generator)
