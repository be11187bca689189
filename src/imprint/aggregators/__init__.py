"""Aggregators: from queries and proxies to one score per class."""

from imprint.aggregators._base import Aggregator
from imprint.core.family import Family

family = Family(__name__, Aggregator)
