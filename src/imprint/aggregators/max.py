from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from imprint.aggregators._base import Aggregator
from imprint.core.component import param
from imprint.core.types import Array, Proxies
from imprint.kernels import placed
from imprint.kernels.maxima import class_maxima


@dataclass(frozen=True, kw_only=True)
class Max(Aggregator):
    """The class whose best proxy has the largest inner product with the query.

    Probabilities are the softmax of the scores over a temperature, in units of the score that a query of usual length
    along the longest proxy gets (1 where everything is L2-normalised). They rank and compare; they are not calibrated.
    """

    temperature: float = param(0.01, "divides the scores before their softmax", gt=0, detail=True)

    @property
    def heeds_lengths(self) -> tuple[bool, bool]:
        return False, True

    def shortlists(self, Q: Array, parts: Sequence[Array], device: str = "cpu") -> list[Array]:
        starts = np.cumsum([0, *map(len, parts)])[:-1]
        return list(placed.class_maxima(Q, np.concatenate(parts), starts, device).T[:, None])

    @property
    def by_best_score(self) -> bool:
        return True

    def gather(self, shortlists: Sequence[Array]) -> Array:
        return np.concatenate(shortlists)

    def decide(self, gathered: Array) -> Array:
        return gathered

    def scores(self, Q: Array, proxies: Proxies, n_classes: int) -> Array:
        starts = np.searchsorted(proxies.labels, np.arange(n_classes))
        return class_maxima(Q, proxies.weights, starts)

    def probabilities(self, scores: Array, reach: float) -> Array:
        from scipy.special import softmax

        return np.asarray(softmax(scores.astype(np.float64) / (self.temperature * reach), axis=1))
