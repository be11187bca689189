"""Normalisers: how training rows, proxies and queries are scaled."""

from imprint.core.component import Family
from imprint.normalisers._base import Normaliser

family = Family(__name__, Normaliser)
