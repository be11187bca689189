#!/bin/sh
# Somebody with a folder of images: make a model, ask it, see why, teach it more, make it forget, take it elsewhere.
set -eu
here=$(dirname "$0")
python "$here/photos.py"

imprint fit photos -o model.imprint
imprint predict model.imprint asked/three --why
imprint add model.imprint more
imprint predict model.imprint asked --json > answers.json
imprint forget model.imprint nine
imprint export model.imprint --to onnx

python - <<'PYTHON'
import json
answers = json.load(open("answers.json"))
right = sum(a["label"] == a["path"].replace("\\", "/").split("/")[-2] for a in answers)
print(f"{right} of {len(answers)} right")
assert len(answers) == 50 and right > 25, right
PYTHON
python "$here/../../../examples/run_onnx.py" model.onnx asked/three/12.png asked/five/12.png
