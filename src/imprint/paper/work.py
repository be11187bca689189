"""What an artefact of the paper asks of a study, and how the wishes of several are joined."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from imprint.paper.setting import MAX, Setting, regularisation
from imprint.study import Study
from imprint.study.grid import method_from_text

SEEDS = (17121997, 123987, 12412312)
SHOT_SEEDS = (14057, 994348, 23092007, 123456, 98765)
PIECE = 20  # tasks
TASKS = ("all", "even", "odd", "short")


class Work(NamedTuple):
    """A study and the store it goes to: one store for each part that packs play."""

    role: str
    study: Study


def work(
    setting: Setting,
    role: str,
    methods: Iterable[str],
    tasks: Sequence[str] = TASKS,
    seeds: Sequence[int] = SEEDS,
    shots: Sequence[int] = (),
) -> list[Work]:
    """Methods on the packs of one part; nothing where no pack plays it.

    `{reg}` in a method stands for the weight decay of the backbone at hand, `max` for the aggregator of the setting.
    """
    group = setting.group(role)
    if not group:
        return []
    texts = [t for method in methods for t in spellings(method, group.backbones, setting.aggregator)]
    study = Study(
        name=role,
        embeddings=setting.embeddings,
        backbones=group.backbones,
        datasets=group.datasets,
        tasks=tuple(tasks),
        seeds=tuple(seeds),
        shots=tuple(shots),
        recipes=tuple(dict.fromkeys(texts)),
    )
    return [Work(role, study)]


def spellings(method: str, backbones: Iterable[str], aggregator: str = MAX) -> list[str]:
    """A method for each weight decay that the backbones need, as results name it.

    >>> spellings("none / least_squares(reg={reg}) / none / none / max", ["resnet18", "swin_b"])[1]
    'none / least_squares(reg=0.05) / none / none / max'
    """
    return list(dict.fromkeys(spelling(method, b, aggregator) for b in backbones))


@cache
def spelling(method: str, backbone: str, aggregator: str = MAX) -> str:
    """A method as results name it for one backbone."""
    return str(method_from_text(decided_by(aggregator, method).replace("{reg}", repr(regularisation(backbone)))))


def decided_by(aggregator: str, method: str) -> str:
    """The method with an aggregator in the place of `max`; another than `max` stays.

    >>> decided_by("kernel", "l2 / mean / l2 / l2 / max")
    'l2 / mean / l2 / l2 / kernel'
    """
    *parts, last = method.split(" / ")
    return " / ".join([*parts, aggregator if last == MAX else last])


def joined(works: Iterable[Work]) -> list[Work]:
    """The same experiments in fewer studies, so that what they have in common is computed once."""
    found: dict[Work, list[str]] = {}
    for one in works:
        bare = Work(one.role, replace(one.study, recipes=("qi2018",)))
        found.setdefault(bare, []).extend(one.study.recipes)
    return [Work(role, replace(bare, recipes=tuple(dict.fromkeys(recipes)))) for (role, bare), recipes in found.items()]


def in_pieces(works: Iterable[Work]) -> list[Work]:
    """The same experiments with a few tasks at a time, so that a kill costs little and memory stays small."""
    return [
        Work(role, replace(study, tasks=study.tasks[i : i + PIECE]))
        for role, study in works
        for i in range(0, len(study.tasks), PIECE)
    ]


NORMS = tuple(
    (pre, post, inf)
    for pre, inf in (("none", "none"), ("none", "l2"), ("l2", "l2"))
    for post in ("none", "l2", "quantile")
)


def every_norm(generator: str, aggregator: str = "max") -> tuple[str, ...]:
    """A generator under all nine settings.

    >>> len(every_norm("mean")), every_norm("mean")[0]
    (9, 'none / mean / none / none / max')
    """
    return tuple(f"{pre} / {generator} / {post} / {inf} / {aggregator}" for pre, post, inf in NORMS)


def cosine(generator: str, aggregator: str = "max") -> str:
    """A generator with L2 throughout."""
    return f"l2 / {generator} / l2 / l2 / {aggregator}"


def bare(generator: str, aggregator: str = "max") -> str:
    """A generator with nothing normalised."""
    return f"none / {generator} / none / none / {aggregator}"
