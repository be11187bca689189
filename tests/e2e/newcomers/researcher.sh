#!/bin/sh
# A researcher who compares published methods: what there is, a comparison with its statistics, embeddings, neural collapse.
set -eu
imprint list recipes
imprint list studies
imprint demo --out out --seeds 2 --json > demo.json
imprint collapse digits --backbone tinynet --json > collapse.json

mkdir packs
imprint embed digits --backbone raw -o packs/raw-digits.npz
cat > table1.yaml <<'YAML'
embeddings: packs
backbones: raw
datasets: digits
tasks: [all, even, odd, short]
recipes: [qi2018, hosoda2024, janson2022, imprint2025, oracle]
seeds: [1, 2, 3]
YAML
imprint study run table1.yaml --out results
imprint study report results
test -s results/report/report.html

python - <<'PYTHON'
import json
from imprint.report import critical_difference
from imprint.stats import compare

demo = json.load(open("demo.json"))
result = compare({r["name"]: r["accuracy"] for r in demo["recipes"]})
open("ranks.svg", "wb").write(critical_difference(result))
print(*result.order)
assert result.order[0] in ("kernel", "oracle"), result.order
assert json.load(open("collapse.json"))["nc1"] > 0
PYTHON
test -s ranks.svg
test -s out/demo.html
