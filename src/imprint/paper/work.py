"""The studies behind the artefacts of the paper, and how those of several artefacts are merged."""

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
    """A study and its store; there is one store for each role of packs."""

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
    """The study of some methods on the packs of one role; none if there are no such packs.

    In a method, `{reg}` stands for the weight decay of the backbone, and `max` for the aggregator of the setting.
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
    """A method as results name it, once for each weight decay of the backbones.

    >>> spellings("none / least_squares(reg={reg}) / none / none / max", ["resnet18", "swin_b"])[1]
    'none / least_squares(reg=0.05) / none / none / max'
    """
    return list(dict.fromkeys(spelling(method, b, aggregator) for b in backbones))


@cache
def spelling(method: str, backbone: str, aggregator: str = MAX) -> str:
    """A method as the results of one backbone name it."""
    return str(method_from_text(decided_by(aggregator, method).replace("{reg}", repr(regularisation(backbone)))))


def decided_by(aggregator: str, method: str) -> str:
    """The method with `max` replaced by an aggregator; other aggregators stay.

    >>> decided_by("kernel", "l2 / mean / l2 / l2 / max")
    'l2 / mean / l2 / l2 / kernel'
    """
    *parts, last = method.split(" / ")
    return " / ".join([*parts, aggregator if last == MAX else last])


def joined(works: Iterable[Work]) -> list[Work]:
    """The same experiments in fewer studies, so that their common work is computed once."""
    methods: dict[Work, list[str]] = {}  # by the study without its methods
    for role, study in works:
        methods.setdefault(Work(role, replace(study, recipes=("qi2018",))), []).extend(study.recipes)
    return [Work(role, replace(study, recipes=tuple(dict.fromkeys(m)))) for (role, study), m in methods.items()]


def in_pieces(works: Iterable[Work]) -> list[Work]:
    """The same experiments with a few tasks at a time, so that a killed run loses little and uses little memory."""
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


def every_norm(pattern: str) -> tuple[str, ...]:
    """The methods that a pattern describes: `*` stands for the norms of the nine settings of the paper.

    >>> len(every_norm("* / mean / * / * / max")), every_norm("* / mean / l2 / * / max")[2]
    (9, 'l2 / mean / l2 / l2 / max')
    """
    pre, generator, post, inf, aggregator = pattern.split(" / ")
    if "*" not in (pre, post, inf):
        return (pattern,)
    fitting = (norms for norms in NORMS if all(p in ("*", norm) for p, norm in zip((pre, post, inf), norms)))
    return tuple(f"{pre} / {generator} / {post} / {inf} / {aggregator}" for pre, post, inf in fitting)


def cosine(generator: str, aggregator: str = "max") -> str:
    """A generator with L2 throughout."""
    return f"l2 / {generator} / l2 / l2 / {aggregator}"


def bare(generator: str, aggregator: str = "max") -> str:
    """A generator with nothing normalised."""
    return f"none / {generator} / none / none / {aggregator}"
