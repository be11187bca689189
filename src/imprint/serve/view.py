"""What the page shows: the state of a project and the evaluation of its model, as JSON,
and previews of inputs.
"""

import io
from base64 import b64encode
from collections import Counter
from collections.abc import Reversible
from typing import Any

import numpy as np
from PIL import Image
from scipy.io import wavfile

from imprint.calibration import Calibration
from imprint.calibration.estimates import caveats, wilson_interval
from imprint.datasets import samples
from imprint.evaluation import Evaluation
from imprint.evaluation.inspection import label_errors
from imprint.modalities import Modality
from imprint.modalities.image import DECODING, read_image
from imprint.modalities.sound import Recording
from imprint.serve.evaluation import EvaluatedItems, ModelEvaluation
from imprint.serve.export import image_input
from imprint.serve.labelled import LabelledSet, RecordedChange, last_together
from imprint.serve.project import Project
from imprint.tags import TagHead

MAX_LISTED = 60  # near duplicates and labels to check
# classes with fewer items, or with a lower recall, need more items
ENOUGH_ITEMS, GOOD_RECALL = 5, 0.9
SIDE = 480  # longest side, in pixels, of an image that is classified


def classes(project: Project) -> list[dict[str, Any]]:
    """The classes with their items."""
    labelled = project.history.labelled
    return [
        {
            "label": label,
            "items": [
                [i.id, i.text or i.name, i.digest[:8], i.held_out, i.text is not None]
                for i in items
            ],
            "opened": bool(labelled.classes[label]),
        }
        for label, items in labelled.by_class().items()
    ]


def state(project: Project) -> dict[str, Any]:
    """The classes with their items, and what the page needs to know about the
    project.
    """
    history, modality = project.history, project.modality
    return {
        "project": project.folder.name,
        "name": project.store.facts()["name"],
        "input": image_input(project.backbone),
        "revision": history.revision,
        "modality": modality.name,
        "noun": modality.noun,
        "typed": modality.typed,
        "describes": project.backbone.embeds_names,
        "suffixes": sorted(modality.suffixes()),
        "sample": any(
            one.modality == modality.name for one in samples.kinds().values()
        ),
        "backbone": project.backbone.record.name,
        "undo": described(history.done, modality),
        "redo": described(history.undone, modality),
        "classes": classes(project),
    }


def described(
    changes: Reversible[RecordedChange], modality: Modality
) -> dict[str, Any] | None:
    """The last change of `changes`, for the buttons *Undo* and *Redo*: its name, and
    what it did. Null if there is no change.
    """
    together = last_together(changes)
    if not together:
        return None
    added = [one.entry for one in together if one.entry["do"] == "add"]
    # The classes of uploaded folders are created by changes of the same group.
    entry = added[-1] if added else together[-1].entry
    labels = {one["label"] for one in added} or {entry.get("label")}
    target = f"{len(labels)} classes" if len(labels) > 1 else entry.get("label")
    number = len(added) or len(entry.get("ids", ()))
    items = f"{number} {modality.noun if number == 1 else modality.plural}"
    held_out = entry.get("held_out") is not False
    sentences = {
        "add": f"{items} added to {target}",
        "create": f"class {target} created",
        "move": f"{items} moved to {target}",
        "hold": f"{items} held out" if held_out else f"{items} used for training",
        "delete": f"{items} deleted",
        "rename": f"{target} renamed to {entry.get('to')}",
        "merge": f"{target} merged into {entry.get('into')}",
        "drop": f"class {target} deleted",
        "clear": "all classes deleted",
        "open": "model imported",
        "import": f"{entry.get('name')} imported",
    }
    return {"change": together[-1].revision, "text": sentences[entry["do"]]}


def evaluated(evaluation: ModelEvaluation, labelled: LabelledSet) -> dict[str, Any]:
    """What the page shows under Evaluate."""
    model, calibration, held_out = (
        evaluation.model,
        evaluation.calibration,
        evaluation.held_out,
    )
    common: dict[str, Any] = {
        "revision": model.history.revision,
        "calibrated": calibration is not None,
        "duplicates": [list(group) for group in evaluation.duplicates[:MAX_LISTED]],
        "held_out": _measured(held_out, labelled) if held_out else None,
    }
    if model.tags is not None:
        return {
            **common,
            **_tag_figures(
                model.tags, any(item.held_out for item in labelled.items.values())
            ),
        }
    fitted = evaluation.cross_validated()
    if fitted is None or calibration is None or evaluation.folds is None:
        return {
            **common,
            "ready": False,
            "reason": evaluation.why_uncalibrated,
            "advice": _advice(labelled, None),
        }
    return {
        **common,
        **_measured(fitted, labelled),
        "ready": True,
        # whether the images behind the figures are in the project
        "listed": bool(fitted.items),
        "accuracy": calibration.expected_accuracy,
        "interval": list(calibration.expected_interval),
        "caveats": caveats(evaluation.folds, "examples"),
        "levels": [one._asdict() for one in fitted.result.levels],
        "mislabelled": _mislabelled(evaluation, calibration),
        "advice": _advice(labelled, fitted.result),
    }


def _measured(evaluated: EvaluatedItems, labelled: LabelledSet) -> dict[str, Any]:
    """Accuracy, mistakes and the confusion matrix.

    The matrix has the classes that occur as labels or as predictions, in the order in
    which they were added.
    """
    result, ids = evaluated.result, {item.path: item.id for item in evaluated.items}
    counts, added = (
        np.array(result.confusion),
        {label: n for n, label in enumerate(labelled.classes)},
    )
    occurring = np.flatnonzero(counts.any(axis=0) | counts.any(axis=1)).tolist()
    order = sorted(occurring, key=lambda c: added.get(result.classes[c], len(added)))
    return {
        "rows": result.rows,
        "accuracy": result.accuracy,
        "interval": list(wilson_interval(result.accuracy, result.rows)),
        "classes": [result.classes[c] for c in order],
        "confusion": counts[np.ix_(order, order)].tolist(),
        "mistakes": [
            _mistake(ids[m.path], m.label, m.predicted, m.probability)
            for m in result.mistakes
            if ids
        ],
    }


def _mislabelled(
    evaluation: ModelEvaluation, calibration: Calibration
) -> list[dict[str, Any]]:
    """Items that are likely in the wrong class, the most suspect first."""
    predictions, items = evaluation.predictions, evaluation.items
    if predictions is None or not items:
        return []
    P, classes = (
        calibration.probabilities(predictions.shares),
        predictions.classes.tolist(),
    )
    suspects = label_errors(
        predictions.scores,
        predictions.shares,
        P,
        predictions.true,
        predictions.assessed,
    )
    return [
        _mistake(items[n].id, items[n].label, classes[c], P[n, c])
        for n, c, _ in suspects[:MAX_LISTED]
    ]


def _mistake(id: int, label: str, predicted: str, probability: float) -> dict[str, Any]:
    return {
        "id": id,
        "label": label,
        "predicted": predicted,
        "probability": round(float(probability), 4),
    }


def _tag_figures(head: TagHead, any_held_out: bool) -> dict[str, Any]:
    """The leave-one-out results of a model of tags, and whether there are held-out
    items, which are not evaluated.
    """
    calibration, rows = head.calibration, head.rows_per_class
    precision, f1, present = calibration.average_precision, calibration.f1, rows > 0
    per_label = zip(
        map(str, head.labels),
        map(round, rows.tolist()),
        precision.tolist(),
        f1.tolist(),
    )
    names = ("label", "rows", "average_precision", "f1")
    return {
        "ready": True,
        "calibrated": True,
        "rows": round(float(head.proxies.mass.sum())),
        "accuracy": calibration.expected_accuracy,
        "interval": list(calibration.expected_interval),
        "tags": {
            "mean_average_precision": float(precision[present].mean()),
            "macro_f1": float(f1[present].mean()),
            "per_label": [dict(zip(names, one)) for one in per_label],
            "held_out_ignored": any_held_out,
        },
        "advice": [],
    }


def _advice(labelled: LabelledSet, result: Evaluation | None) -> list[dict[str, Any]]:
    """What would improve the model most, first things first: classes with few items,
    then classes with low recall.
    """
    sizes = {label: 0 for label, origins in labelled.classes.items() if not origins}
    sizes |= Counter(
        item.label
        for item in labelled.items.values()
        if item.label in sizes and not item.held_out
    )
    advice: list[dict[str, Any]] = (
        [] if len(labelled.classes) > 1 else [{"kind": "class"}]
    )
    few = sorted((n, label) for label, n in sizes.items() if n < ENOUGH_ITEMS)
    advice += [{"kind": "few", "label": label, "count": n} for n, label in few[:3]]
    for label, _, recall, _ in (
        sorted(result.per_class, key=lambda one: one.recall or 0) if result else ()
    ):
        confused = (
            Counter(
                m.predicted for m in result.mistakes if m.label == label
            ).most_common(1)
            if result
            else []
        )
        if (
            recall is not None
            and recall < GOOD_RECALL
            and confused
            and sizes.get(label, 0) >= ENOUGH_ITEMS
        ):
            advice.append(
                {
                    "kind": "confused",
                    "label": label,
                    "with": confused[0][0],
                    "recall": recall,
                }
            )
    return advice[:5]


def preview(modality: Modality, raw: bytes, side: int) -> tuple[str, bytes]:
    """The media type and bytes of an input for the page. It is decoded and encoded
    again, which removes all else.
    """
    with DECODING.holding():
        return _preview(modality, raw, side)


def _preview(modality: Modality, raw: bytes, side: int) -> tuple[str, bytes]:
    item = read_image(raw, side) if modality.name == "image" else modality.read(raw)
    shown = modality.show(item)
    out = io.BytesIO()
    if isinstance(item, Recording):
        wavfile.write(
            out, item.rate, (np.clip(item.samples, -1, 1) * 32767).astype(np.int16)
        )
        return "audio/wav", out.getvalue()
    if not isinstance(shown, np.ndarray):
        return "text/plain; charset=utf-8", str(shown or "").encode()
    image: Image.Image = Image.fromarray(shown)
    image.thumbnail((side, side))
    image.save(out, "JPEG", quality=85)
    return "image/jpeg", out.getvalue()


def inline_preview(modality: Modality, raw: bytes) -> str:
    """An input that is classified, as the page shows it: a text, or a data URL."""
    if modality.typed:
        return raw.decode("utf-8", "replace")[:300]
    media_type, content = preview(modality, raw, SIDE)
    return f"data:{media_type};base64,{b64encode(content).decode()}"
