"""Aggregators: from queries and proxies to one score per class."""

from imprint.aggregators._base import Aggregator
from imprint.core.component import Family

family = Family(__name__, Aggregator)
