"""Model cards: what a model is, how good it is, how to use it and what it does not do,
as Markdown and as JSON.
"""

from dataclasses import asdict, dataclass
from typing import Any

from imprint.core.errors import printable
from imprint.core.markdown import as_markdown
from imprint.generators._base import Generator
from imprint.head.decider import Decider
from imprint.head.head import Head, count_single_rows
from imprint.modalities import modality

HEADING = "# Model card"
# the largest number of classes that the Markdown lists one by one
MAX_LISTED_CLASSES = 30
PIPELINES = {
    "image": "image-classification",
    "text": "text-classification",
    "sound": "audio-classification",
}
"""The names of the tasks on the Hugging Face hub."""

USAGE = """## How to use it

```console
$ imprint predict {file} INPUT --unknown 0.05
```

```python
from imprint import Imprinter

Imprinter.load("{file}").predict(["INPUT"])
```
"""
LIMITS = """## What it does not do

- It cannot separate classes that the frozen network does not separate.
- The expected accuracy holds for inputs that are distributed like the training data.
"""
CALIBRATED = (
    "- Inputs of other classes are flagged at the rate given by `--unknown`; some are"
    " missed.\n"
)
NOT_CALIBRATED = (
    "- It is not calibrated: probabilities are relative scores; unknown inputs are not"
    " flagged.\n"
)


REVEALS = """## What the file reveals

{}
Who may ask the model, or read its file, can guess whether an input was among the
training data; docs/trust.md has measurements.
"""


@dataclass(frozen=True)
class ModelCard:
    """The facts of a model. `expected_accuracy` is None where the model is not
    calibrated or has too few rows.
    """

    modality: str
    classes: tuple[str, ...]
    rows_per_class: tuple[int, ...]
    rows: int
    method: str
    proxies: int
    width: int
    calibrated: bool
    expected_accuracy: float | None
    expected_interval: tuple[float, float] | None
    backbone: dict[str, Any] | None
    """The name, fingerprint, blocks, licence, pre-training data and source of the
    network; None for embeddings.
    """
    tags: bool = False  # whether an input may have several of the classes, or none
    reveals: str = ""  # what the file tells about the training inputs

    def as_json(self) -> dict[str, Any]:
        """The facts as plain values."""
        return asdict(self)

    def markdown(self, file: str = "model.imprint") -> str:
        """The card in the form that the Hugging Face hub reads: YAML front matter, then
        Markdown.
        """
        limit = CALIBRATED if self.calibrated else NOT_CALIBRATED
        return "\n".join(
            [
                *self._front_matter(),
                "",
                *self._summary(),
                "",
                USAGE.format(file=file),
                LIMITS + limit,
                REVEALS.format(self.reveals),
            ]
        )

    def _front_matter(self) -> list[str]:
        pipeline = PIPELINES.get(self.modality)
        lines = [
            "---",
            "library_name: imprint",
            "tags:",
            "- weight-imprinting",
            "- few-shot",
        ]
        lines += [f"pipeline_tag: {pipeline}"] if pipeline else []
        if self.expected_accuracy is not None:
            task = pipeline or "tabular-classification"
            lines += [
                "model-index:",
                "- name: imprint model",
                "  results:",
                f"  - task: {{type: {task}}}",
            ]
            lines += [
                "    dataset: {name: training data (extrapolated from"
                " cross-validation), type: private}"
            ]
            lines += [
                "    metrics: [{type: accuracy, value:"
                f" {self.expected_accuracy:.4f}}}]"
            ]
        return [*lines, "---"]

    def _summary(self) -> list[str]:
        kind = modality(self.modality)
        accuracy = "not estimated: evaluate the model on held-out data"
        if self.expected_accuracy is not None and self.expected_interval is not None:
            low, high = (100 * bound for bound in self.expected_interval)
            source = (
                "all labels of an input; leave-one-out"
                if self.tags
                else "extrapolated from cross-validation"
            )
            accuracy = (
                f"{100 * self.expected_accuracy:.1f} %, 95 % interval"
                f" {low:.1f}-{high:.1f} % ({source})"
            )
        classes = f"{len(self.classes):,} {'tags' if self.tags else 'classes'}"
        several = ", of which an input may have several" if self.tags else ""
        facts = {
            "Training data": f"{kind.count(self.rows)} of {classes}",
            "Expected accuracy": accuracy,
            "Calibrated probabilities and p-values": "yes" if self.calibrated else "no",
            "Method": (
                f"`{self.method}`, {self.proxies:,} proxies (prototypes) of"
                f" {self.width:,} numbers"
            ),
        }
        if self.backbone is not None:
            facts |= _network_facts(self.backbone)
        lines = [
            HEADING,
            "",
            f"A classifier of {kind.plural} into {classes}{several}, imprinted",
            "from the embeddings of a frozen network without gradient steps.",
            "",
            "| | |",
            "|---|---|",
        ]
        for heading, fact in facts.items():
            lines.append(f"| {heading} | {printable(fact)} |")
        return [*lines, *self._class_table(kind.plural)]

    def _class_table(self, noun: str) -> list[str]:
        """The classes, each with the number of its inputs."""
        lines = [
            "",
            "## Classes",
            "",
            f"| class | {noun} |",
            "|---|---:|",
        ]
        listed = self.classes[:MAX_LISTED_CLASSES]
        # names may hold markup, and a page of models shows HTML in Markdown as it is
        for label, count in zip(listed, self.rows_per_class):
            lines.append(f"| {_shown(label, 60)} | {count:,} |")
        total = len(self.classes)
        others = total - len(listed)
        if others:
            unlisted = self.rows_per_class[MAX_LISTED_CLASSES:]
            rows = sum(unlisted)
            lines.append(f"| ... and {others:,} more classes | {rows:,} |")
        return lines


def _network_facts(network: dict[str, Any]) -> dict[str, str]:
    """What the card says about the network, by its heading."""
    name = _shown(network["name"])
    fingerprint = _shown(network["fingerprint"][:16])
    not_stated = "not stated"
    licence = network["licence"] or not_stated
    pretraining = network["pretraining"] or not_stated
    # a network without blocks has one embedding, which needs no line
    blocks = [
        f"{_shown(block['name'])} ({block['width']:,})" for block in network["blocks"]
    ]
    facts = {
        "Backbone": f"{name} (fingerprint {fingerprint})",
        "Blocks of the embedding": ", ".join(blocks),
        "Backbone's licence": _shown(licence),
        "Backbone's training data": _shown(pretraining),
    }
    return {heading: fact for heading, fact in facts.items() if fact}


def _shown(text: object, max_length: int = 500) -> str:
    """A text that users or files state, which may hold markup, as text."""
    visible = printable(text, max_length)
    return as_markdown(visible)


def model_card(
    head: Decider, kind: str, origin: dict[str, Any] | None, named: bool = False
) -> ModelCard:
    """The card of a fitted model; `origin` is what the model file states about its
    backbone.

    With `named`, one row of each class is its name, which is not counted.
    """
    proxies = head.imprinted.proxies
    accuracy = None
    interval = None
    if head.calibrated:
        accuracy = head.calibration.expected
        # there is no interval without an estimate
        interval = None if accuracy is None else head.calibration.expected_interval
    network = None
    if origin is not None:
        record = origin["record"]
        network = {
            "name": origin["spec"],
            "fingerprint": origin["fingerprint"],
            "blocks": record.get("blocks", []),
            "licence": record.get("licence"),
            "pretraining": record.get("pretraining"),
            "source": record.get("source"),
        }
    # the classes of a model of tags are label sets
    labelled = head if head.tags else head.imprinted
    names_per_class = int(named)
    rows_per_class = [round(rows) - names_per_class for rows in head.rows_per_class]
    mass = float(proxies.mass.sum())
    rows = round(mass)
    return ModelCard(
        modality=kind,
        classes=tuple(map(str, labelled.classes.tolist())),
        rows_per_class=tuple(rows_per_class),
        rows=rows - names_per_class * len(rows_per_class),
        method=head.description,
        proxies=len(proxies.labels),
        width=proxies.weights.shape[1],
        calibrated=head.calibrated,
        expected_accuracy=accuracy,
        expected_interval=interval,
        backbone=network,
        tags=head.tags,
        reveals=_revealed(head.imprinted),
    )


def _revealed(head: Head) -> str:
    """What a file with this head tells about the training inputs."""
    folds = head.folds
    if folds is not None and folds.has_rows:
        held = sum(rows.count_stored() for rows in folds.held.values())
        return f"It holds the embeddings of {held:,} training inputs."
    generator = head.method.generator
    holds_rows = type(generator).without_rows is Generator.without_rows
    single = 0
    for state in head.states:
        if holds_rows:
            (proxies,) = generator.proxies([state.summary])
            single += len(proxies)
        else:
            single += count_single_rows(state.summary)
    if not single:
        return "No proxy in it is a single training input."
    return f"It holds the embeddings of {single:,} training inputs, as proxies."
