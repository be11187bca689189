"""ONNX Runtime reports nothing about its use while imprint runs it."""

import os
import subprocess
import sys

# what ONNX Runtime 1.31 writes to the home folder as soon as it is imported, and would
# send a few seconds later
PROGRAM = """
import sys
import numpy as np
from imprint import Imprinter
images = [np.full((9, 9, 3), shade, np.uint8) for shade in (0, 250)]
Imprinter("tinynet", cache=False, calibrate=False).fit((images, ["dark", "light"]))
assert "onnxruntime" in sys.modules
"""


def test_a_model_leaves_no_reports_in_the_home_folder(tmp_path):
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["IMPRINT_HOME"] = str(tmp_path / "imprint")
    environment.pop("XDG_CACHE_HOME", None)
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True)
    written = [path for path in tmp_path.rglob("*") if "onnxruntime" in path.name]
    assert written == []
