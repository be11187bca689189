"""Models that keep the pre-trained classes of their backbone: the method that each strategy requires."""

from collections.abc import Mapping
from typing import Any

from imprint import backbones, generators, recipes
from imprint.core.errors import ParameterError
from imprint.core.family import unknown
from imprint.imprinter.embedder import ROWS
from imprint.pretrained_classes import STRATEGIES

RECIPES = {"qi": "qi2018", "done": "hosoda2024"}
"""The published methods that define a strategy; `done` matches proxies to the weights of the head."""


def method_parts(
    strategy: str, spec: str, recipe: str | None, parts: Mapping[str, Any], calibrate: bool
) -> dict[str, str]:
    """The parts of the method for `Imprinter(keep_head=strategy)`, of which `parts` replace some.

    Options that the strategy does not allow, and a backbone without pre-trained classes, are refused.
    """
    call = f"Imprinter(keep_head={strategy!r})"
    if strategy not in STRATEGIES:
        raise unknown("way to keep the head", strategy, STRATEGIES)
    if spec == ROWS:
        raise ParameterError(f"{call}: embeddings come without a network, so there is no head to keep.")
    backbones.head(spec)
    if strategy in RECIPES:
        other = ["recipe"] if recipe is not None else [name for name in parts if name != "generator"]
        if other:
            raise ParameterError(f"{call}: this strategy is a complete method; it takes no {other[0]}.")
    elif not calibrate:
        raise ParameterError(f"{call}: the margin is computed from held-out pictures; it needs calibrate=True.")
    method = recipes.describe(RECIPES.get(strategy, recipe or "kernel")).parts()
    method |= {"norm_post": "none"} if strategy == "done" else {}
    if strategy != "qi" and not generators.family.resolve(parts.get("generator", method["generator"])).points:
        raise ParameterError(f"{call}: new classes need proxies that are points, not directions.")
    return method
