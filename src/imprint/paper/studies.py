"""The studies behind the artefacts of the paper, and the batches in which they are run."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

from imprint.paper.setting import MAX, Setting, regularisation
from imprint.study import Study
from imprint.study.grid import method_from_text

SEEDS = (17121997, 123987, 12412312)
SHOT_SEEDS = (14057, 994348, 23092007, 123456, 98765)
BATCH = 20  # maximum number of tasks in a batch
TASKS = ("all", "even", "odd", "short")


def role_study(
    setting: Setting,
    role: str,
    methods: Iterable[str],
    tasks: Sequence[str] = TASKS,
    seeds: Sequence[int] = SEEDS,
    shots: Sequence[int] = (),
) -> list[Study]:
    """The study of some methods on the packs of one role, after which it is named; none if there are no such packs.

    In a method, `{reg}` stands for the weight decay of the backbone, and `max` for the aggregator of the setting.
    """
    group = setting.group(role)
    if not group:
        return []
    texts = [method_text(method, b, setting.aggregator) for method in methods for b in group.backbones]
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
    return [study]


@cache
def method_text(method: str, backbone: str, aggregator: str = MAX) -> str:
    """A method as results name it: with the weight decay of the backbone and an aggregator in place of `max`.

    >>> method_text("none / least_squares(reg={reg}) / none / none / max", "swin_b")
    'none / least_squares(reg=0.05) / none / none / max'
    """
    text = with_aggregator(method, aggregator).replace("{reg}", repr(regularisation(backbone)))
    return str(method_from_text(text))


def with_aggregator(method: str, aggregator: str) -> str:
    """The method with `max` replaced by an aggregator; other aggregators stay.

    >>> with_aggregator("l2 / mean / l2 / l2 / max", "kernel")
    'l2 / mean / l2 / l2 / kernel'
    """
    *parts, last = method.split(" / ")
    return " / ".join([*parts, aggregator if last == MAX else last])


def batches(studies: Iterable[Study]) -> list[list[Study]]:
    """The experiments of some studies, each named once, in batches that are run one after the other.

    Studies that differ only in their methods are merged, so that their common work is computed once. A batch has few
    tasks, so that a killed run loses little and uses little memory. Its studies have the same packs and seeds, so that
    they share proxies and distances.
    """
    methods: dict[Study, list[str]] = {}  # by the study without its methods
    for study in studies:
        methods.setdefault(replace(study, recipes=("qi2018",)), []).extend(study.recipes)
    batches: list[list[Study]] = []
    batch: list[Study] = []
    for study, texts in methods.items():
        for i in range(0, len(study.tasks), BATCH):
            part = replace(study, recipes=tuple(dict.fromkeys(texts)), tasks=study.tasks[i : i + BATCH])
            fits = sum(len(s.tasks) for s in (*batch, part)) <= BATCH
            if not fits or any((s.name, s.seeds, s.shots) != (part.name, part.seeds, part.shots) for s in batch[:1]):
                batch = []
            if not batch:
                batches.append(batch)
            batch.append(part)
    return batches


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


def unnormalised(generator: str, aggregator: str = "max") -> str:
    """A generator with nothing normalised."""
    return f"none / {generator} / none / none / {aggregator}"
