#!/bin/sh
# A researcher who compares published methods: what there is, a comparison with its statistics, embeddings, neural collapse.
set -eu
imprint list recipes
imprint list studies
imprint demo --out out --seeds 2 --json > demo.json
imprint collapse digits --json > collapse.json

python - <<'PYTHON'
import json
from imprint.report import critical_difference
from imprint.stats import compare

demo = json.load(open("demo.json"))
result = compare({r["name"]: r["accuracy"] for r in demo["recipes"]})
open("ranks.svg", "wb").write(critical_difference(result))
print(*result.order)
assert result.order[0] in ("imprint2025", "oracle"), result.order
assert json.load(open("collapse.json"))["nc1"] > 0
PYTHON
test -s ranks.svg
test -s out/demo.html
