"""Published methods by name: their components, citations, and differences from the
cited work.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from imprint.core.component import DEFAULT_METHOD, PARTS
from imprint.core.errors import unknown

if TYPE_CHECKING:
    from imprint.classifier import ImprintClassifier

__all__ = [
    "Recipe",
    "describe",
    "names",
    "recipe",
]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A named method.

    Examples
    --------
    >>> from imprint import recipes
    >>> qi = recipes.describe("qi2018")
    >>> qi.parts()["generator"], qi.citation[:11]
    ('mean', 'H. Qi, M. B')
    """

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


# In the order of `imprint list recipes`: the default first, and last a reference that
# is not an imprinting method.
_RECIPES = (
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
        norm_pre="l2",
        generator="mean",
        norm_post="l2",
        norm_inf="l2",
        aggregator="max",
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
        norm_pre="none",
        generator="mean",
        norm_post="quantile",
        norm_inf="none",
        aggregator="max",
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
        norm_pre="none",
        generator="mean",
        norm_post="none",
        norm_inf="none",
        aggregator="nearest(m=1)",
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
        norm_pre="l2",
        generator="kmeans(k=20)",
        norm_post="l2",
        norm_inf="l2",
        aggregator="max",
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
        norm_pre="none",
        generator="least_squares(reg=1e-4)",
        norm_post="none",
        norm_inf="none",
        aggregator="max",
    ),
)
RECIPES = {recipe.name: recipe for recipe in _RECIPES}


def names() -> list[str]:
    """The names of all recipes.

    Examples
    --------
    >>> from imprint import recipes
    >>> recipes.names()
    ['kernel', 'qi2018', 'hosoda2024', 'janson2022', 'imprint2025', 'oracle']
    """
    return list(RECIPES)


def describe(name: str) -> Recipe:
    """The components and the citation of a recipe.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    Recipe
        What the classifier of this name is made of.

    Examples
    --------
    >>> from imprint import recipes
    >>> recipes.describe("qi2018").title
    'Imprinted weights: the normalised mean of normalised embeddings'
    """
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    return RECIPES[name]


def recipe(name: str, **changes: Any) -> "ImprintClassifier":
    """The classifier of a published method.

    Parameters
    ----------
    name : str
        One of `imprint.recipes.names()`.
    **changes
        Constructor arguments of `ImprintClassifier` that replace those of the recipe.

    Returns
    -------
    ImprintClassifier
        Not fitted.

    Examples
    --------
    >>> from imprint import recipe
    >>> recipe("qi2018", random_state=3).generator
    'mean'
    """
    # Names and citations are listed without scikit-learn, which the classifier imports.
    from imprint.classifier import ImprintClassifier

    arguments = {**describe(name).parts(), **changes}
    return ImprintClassifier(**arguments)
