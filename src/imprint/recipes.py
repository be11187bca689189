"""Published methods by name: their components, citations, and differences from the
cited work.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from imprint.core.component import DEFAULT_METHOD, PARTS
from imprint.core.errors import unknown

if TYPE_CHECKING:
    from imprint.classifier import ImprintClassifier

__all__ = ["Recipe", "describe", "names", "recipe"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A named method."""

    name: str
    title: str
    citation: str
    differs: str  # how the method here differs from that of the cited work
    norm_pre: str
    generator: str
    norm_post: str
    norm_inf: str
    aggregator: str

    def parts(self) -> dict[str, str]:
        """The five components, as parameters of `ImprintClassifier`."""
        return {part: getattr(self, part) for part in PARTS}


RECIPES = {
    r.name: r
    for r in (
        Recipe(
            name="kernel",
            title=(
                "Kernel ridge regression on k-means centres: a Gaussian process whose"
                " observations are clusters"
            ),
            citation=(
                "This project, after C. E. Rasmussen, C. K. I. Williams. Gaussian"
                " Processes for Machine Learning. MIT Press 2006."
            ),
            differs=(
                "Not a published method: one small linear system scores the classes,"
                " instead of the best proxy. See docs/methods.md."
            ),
            **DEFAULT_METHOD,
        ),
        Recipe(
            name="qi2018",
            title="Imprinted weights: the normalised mean of normalised embeddings",
            citation=(
                "H. Qi, M. Brown, D. G. Lowe. Low-Shot Learning with Imprinted Weights."
                " CVPR 2018."
            ),
            differs=(
                "The cited work keeps the base classes next to the new ones, learns a"
                " scale for the cosine and may fine-tune; here all classes are"
                " imprinted and nothing is trained."
            ),
            **dict(zip(PARTS, ("l2", "mean", "l2", "l2", "max"))),
        ),
        Recipe(
            name="hosoda2024",
            title="DONE: the mean, quantile-normalised",
            citation=(
                "K. Hosoda, K. Nishida, S. Seno, T. Mashita, H. Kashioka, I. Ohzawa. A"
                " single fast Hebbian-like process enabling one-shot class addition in"
                " deep neural networks without backbone modification. Frontiers in"
                " Neuroscience 2024."
            ),
            differs=(
                "The cited code maps to the mean of the sorted weights of the"
                " pre-trained head and adds the median bias; here the reference is the"
                " pool of proxies imprinted before, and there is no bias."
            ),
            **dict(zip(PARTS, ("none", "mean", "quantile", "none", "max"))),
        ),
        Recipe(
            name="janson2022",
            title="Nearest class mean",
            citation=(
                "P. Janson, W. Zhang, R. Aljundi, M. Elhoseiny. A Simple Baseline that"
                " Questions the Use of Pretrained-Models in Continual Learning. NeurIPS"
                " 2022 Workshop on Distribution Shifts."
            ),
            differs=(
                "The cited code L2-normalises embeddings before the mean and at"
                " inference; here, as the authors of the framework list it, nothing is"
                " normalised."
            ),
            **dict(zip(PARTS, ("none", "mean", "none", "none", "nearest(m=1)"))),
        ),
        Recipe(
            name="imprint2025",
            title="Twenty normalised k-means centres per class",
            citation=(
                "J. Westerhoff, G. Atefi, M. Koddenbrock, A. Figueroa, A. Löser, E."
                " Rodner, F. A. Gers. Robust Weight Imprinting: Insights from Neural"
                " Collapse and Proxy-Based Aggregation. TMLR 2025."
            ),
            differs=(
                "The cited code clusters every class with the same random numbers; here"
                " each class has its own, drawn from the seed and its label, so that"
                " classes can be added and removed without changing others."
            ),
            **dict(zip(PARTS, ("l2", "kmeans(k=20)", "l2", "l2", "max"))),
        ),
        Recipe(
            name="oracle",
            title="Regularised least squares over all classes",
            citation=(
                "M. Y. Harun, C. Kanan. A Good Start Matters: Enhancing Continual"
                " Learning with Data-Driven Weight Initialization. arXiv:2503.06385,"
                " 2025."
            ),
            differs=(
                "The cited work starts gradient training from these weights; here they"
                " are the classifier. It uses statistics across classes, so it is a"
                " reference, not an imprinting method."
            ),
            **dict(
                zip(PARTS, ("none", "least_squares(reg=1e-4)", "none", "none", "max"))
            ),
        ),
    )
}


def names() -> list[str]:
    """The names of all recipes."""
    return list(RECIPES)


def describe(name: str) -> Recipe:
    """The components and the citation of a recipe."""
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    return RECIPES[name]


def recipe(name: str, **changes: Any) -> "ImprintClassifier":
    """The classifier of a published method; `changes` replace constructor arguments."""
    from imprint.classifier import ImprintClassifier

    return ImprintClassifier(**{**describe(name).parts(), **changes})
