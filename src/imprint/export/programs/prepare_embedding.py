"""Embeddings as the graph takes them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def read(text: str) -> Any:
    """A row of numbers from the command line, as a JSON list."""
    return json.loads(text)


def preparation(facts: dict[str, Any], folder: Path) -> Callable[[Any], Any]:
    """The function from a row of numbers to the input of the graph."""
    return lambda row: np.asarray(row, facts["dtype"])
