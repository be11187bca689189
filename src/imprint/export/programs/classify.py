"""Classify inputs with the model in this folder, without imprint.

    python classify.py INPUT... [--unknown 0.05]

Needs onnxruntime (which brings NumPy) and, to open files of images, Pillow.
"""

import argparse
import importlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

# ONNX Runtime would report its use to Microsoft.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime

# Values of JSON, and inputs: a path, pixels, a text or numbers.
Value = Any


class Model:
    """The model in a folder that `imprint export --whole` wrote."""

    def __init__(self, folder: Path, threads: int = 0):
        self.facts = json.loads((folder / "model.json").read_text("utf-8"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        # threads that wait for work would keep a core busy
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self.session = onnxruntime.InferenceSession(
            folder / "model.onnx", options, providers=["CPUExecutionProvider"]
        )
        kind = self.facts["modality"]
        self.preparation = importlib.import_module(f"prepare_{kind}")
        self.prepare = self.preparation.preparation(self.facts, folder)

    def outputs(self, item: Value) -> dict[str, Value]:
        """The outputs of the graph for one input, such as `probabilities`."""
        names = [output.name for output in self.session.get_outputs()]
        (given,) = self.session.get_inputs()
        # a batch of one
        values = self.session.run(names, {given.name: self.prepare(item)[None]})
        return {name: value[0] for name, value in zip(names, values, strict=True)}

    def classify(
        self, item: Value, unknown: float | None = None, top: int = 3
    ) -> dict[str, Value]:
        """The prediction for one input, in JSON types.

        `label` is None if the p-value `known` is below `unknown`. A model of tags
        answers with `labels`, those that the input has, the most probable first.
        """
        outputs = self.outputs(item)
        classes = self.facts["classes"]
        probabilities = outputs["probabilities"]
        # models that are not calibrated have no p-values
        known = float(outputs["known"]) if "known" in outputs else None
        is_unknown = unknown is not None and known is not None and known < unknown
        order = np.argsort(-probabilities, kind="stable").tolist()
        guesses = []
        for i in order[:top]:
            probability = float(probabilities[i])
            guesses.append({"label": classes[i], "probability": probability})
        # the first one if several share the largest score
        winner = classes[int(np.argmax(outputs["scores"]))]
        answer: dict[str, Value] = {
            "label": None if is_unknown else winner,
            "probability": guesses[0]["probability"],
            "known": known,
            "top": guesses,
        }
        if "tags" in self.facts:
            present = set(np.flatnonzero(outputs["labels"]).tolist())
            chosen = [classes[i] for i in order if i in present and not is_unknown]
            answer["labels"] = chosen
            answer["label"] = chosen[0] if chosen else None
        return answer


def main() -> None:
    """Print one line of JSON for each input."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("inputs", nargs="+", help="files, or texts")
    parser.add_argument("--unknown", type=float, help="p-value below which: unknown")
    options = parser.parse_args()
    model = Model(Path(__file__).parent)
    for name in options.inputs:
        answer = model.classify(model.preparation.read(name), options.unknown)
        print(json.dumps({"path": name, **answer}, ensure_ascii=False))


if __name__ == "__main__":
    main()
