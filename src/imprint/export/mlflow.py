"""Models in MLflow: log, load and serve them, without pickle.

A logged model holds the model file, its card, a signature and the version of this
library. `mlflow.pyfunc.load_model` gives predictions as a data frame, `load_model` the
`Imprinter` itself.
"""

import base64
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from imprint.core import __version__
from imprint.core.errors import ParameterError
from imprint.core.extras import import_extra
from imprint.core.files.atomic import make_folder
from imprint.imprinter import Imprinter
from imprint.imprinter.hub import CARD_FILE, MODEL_FILE

if TYPE_CHECKING:
    from pandas import DataFrame

FLAVOUR = "imprint"
REQUIREMENTS = "requirements.txt"


def log_model(
    model: Imprinter,
    name: str = "model",
    *,
    input_example: Any = None,
    registered_model_name: str | None = None,
) -> Any:
    """Log a fitted model in the active run of MLflow.

    Parameters
    ----------
    model : Imprinter
    name : str
        The name of the logged model.
    input_example : list or matrix, optional
        Some inputs, as `Imprinter.predict` takes them: texts, or embeddings.
    registered_model_name : str, optional
        The model of the registry to which a version is added.

    Returns
    -------
    mlflow.models.model.ModelInfo
    """
    import_extra("mlflow", "mlflow", "log_model")
    from mlflow.models import Model

    from imprint.export import mlflow as flavour

    return Model.log(
        artifact_path=None,  # its earlier name
        name=name,
        flavor=flavour,
        registered_model_name=registered_model_name,
        imprinter=model,
        input_example=input_example,
    )


def save_model(
    imprinter: Imprinter,
    path: str,
    mlflow_model: Any = None,
    input_example: Any = None,
    **_: Any,
) -> None:
    """Write a model as a folder in MLflow's format; `log_model` calls this."""
    import_extra("mlflow", "mlflow", "save_model")
    from mlflow import pyfunc
    from mlflow.models import Model

    folder = make_folder(Path(path))
    imprinter.save(folder / MODEL_FILE)
    card = imprinter.card().markdown(MODEL_FILE)
    (folder / CARD_FILE).write_text(card, "utf-8")
    required = f"weight-imprinting=={__version__}\n"
    (folder / REQUIREMENTS).write_text(required, "utf-8")
    environment = f"python: {platform.python_version()}\ndependencies:\n"
    environment += f"- -r {REQUIREMENTS}\n"
    (folder / "python_env.yaml").write_text(environment, "utf-8")
    described = mlflow_model or Model()
    described.signature = signature(imprinter)
    if input_example is not None:
        from mlflow.models.utils import _save_example

        example = _frame(imprinter, input_example)
        _save_example(described, example, str(folder))
    pyfunc.add_to_model(
        described,
        loader_module="imprint.export.mlflow",
        data=MODEL_FILE,
        python_env="python_env.yaml",
    )
    described.add_flavor(FLAVOUR, data=MODEL_FILE, version=__version__)
    described.save(str(folder / "MLmodel"))


def load_model(uri: str, **options: Any) -> Imprinter:
    """The `Imprinter` of a logged or registered model; `options` are those of
    `Imprinter.load`.
    """
    mlflow = import_extra("mlflow", "mlflow", "load_model")
    folder = mlflow.artifacts.download_artifacts(artifact_uri=uri)
    return Imprinter.load(Path(folder) / MODEL_FILE, **options)


def signature(model: Imprinter) -> Any:
    """The columns that a model takes and gives, in MLflow's terms."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, Schema, TensorSpec

    kind = model.embedder.kind
    if not kind.needs_backbone:
        head = model.state.head.imprinted
        inputs = Schema([TensorSpec(head.dtype, (-1, head.width))])
    else:
        # files of images and sounds as bytes
        column = DataType.string if kind.typed else DataType.binary
        inputs = Schema([ColSpec(column, kind.name)])
    outputs = [ColSpec(DataType.string, "label")]
    outputs.append(ColSpec(DataType.double, "probability"))
    if model.calibrated:
        outputs.append(ColSpec(DataType.double, "known"))
    return ModelSignature(inputs, Schema(outputs))


def _frame(model: Imprinter, inputs: Any) -> Any:
    """Inputs in the form of the signature: a matrix, or a data frame of one column."""
    kind = model.embedder.kind
    if not kind.needs_backbone:
        return np.asarray(inputs, model.state.head.imprinted.dtype)
    if not kind.typed:
        raise ParameterError(
            f"log_model(input_example=...): an example of {kind.plural} cannot be"
            " stored; leave it out."
        )
    pandas = import_extra("pandas", "mlflow", "log_model")
    return pandas.DataFrame({kind.name: list(inputs)})


class PyfuncModel:
    """What `mlflow.pyfunc` calls."""

    def __init__(self, model: Imprinter):
        self.model = model

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> "DataFrame":
        """Labels as texts, probabilities and, if the model is calibrated, p-values."""
        pandas = import_extra("pandas", "mlflow", "mlflow.pyfunc")
        model = self.model
        rows = model.look(_inputs(model, data))
        best = model.predict_proba(rows).max(axis=1)
        labels = [str(label) for label in model.predict(rows).tolist()]
        columns = {"label": labels, "probability": best}
        if model.calibrated:
            columns["known"] = model.known(rows)
        return pandas.DataFrame(columns)


def _inputs(model: Imprinter, data: Any) -> Any:
    """Inputs from what MLflow passes: a matrix, or a data frame of one column."""
    kind = model.embedder.kind
    if not kind.needs_backbone:
        return np.asarray(data, model.state.head.imprinted.dtype)
    values = data[kind.name].tolist() if hasattr(data, "columns") else list(data)
    # servers of MLflow send bytes as base64
    return [
        base64.b64decode(value) if isinstance(value, str) and not kind.typed else value
        for value in values
    ]


def _load_pyfunc(path: str) -> PyfuncModel:
    """Called by `mlflow.pyfunc.load_model` with the path of the model file."""
    return PyfuncModel(Imprinter.load(path))
