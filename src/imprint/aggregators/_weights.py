"""Fixed weights of the blocks of an embedding, for aggregators that choose none."""

from typing import Any

from imprint.core.arrays import Array, Proxies, cast_like, like
from imprint.core.blocks import column_factors, read_weights
from imprint.core.component import Component, param

Weights = str | tuple[float, ...]


def fixed_weights() -> Any:
    """The parameter `weights` of such an aggregator."""
    return param(
        "equal",
        "weights of the blocks of an embedding",
        read=lambda value: None if value == "auto" else read_weights(value),
        rule="'equal' or numbers >= 0, one for each block",
        detail=True,
    )


def weighted_columns(
    component: Component,
    weights: Weights,
    X: Any,
    blocks: tuple[int, ...],
    power: float,
) -> Any:
    """The rows with the columns of each block multiplied by its weight to a power."""
    if isinstance(weights, str):
        return X
    factors: Array = column_factors(str(component), weights, blocks, X.shape[1])
    return X * cast_like(like(factors**power, X), X)


def weighted_proxies(
    component: Component, weights: Weights, proxies: Proxies, power: float
) -> Proxies:
    """The proxies with weighted columns."""
    if isinstance(weights, str):
        return proxies
    rows = weighted_columns(component, weights, proxies.weights, proxies.blocks, power)
    return proxies._replace(weights=rows)
