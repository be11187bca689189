"""How embeddings and proxies are scaled: before generation, after it, and at inference."""

from imprint.core.family import Family
from imprint.normalisers._base import Normaliser

family = Family(__name__, Normaliser)
