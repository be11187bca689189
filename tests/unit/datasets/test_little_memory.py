"""Tables in so little memory that Arrow would end the process."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

if not Path("/proc/self/status").exists():
    pytest.skip("limits of the address space need Linux", allow_module_level=True)

PROGRAM = """
import json, os, resource, sys
from imprint import datasets
from imprint.core.errors import ImprintError
import pyarrow, pyarrow.compute

def left(extra):
    text = open("/proc/self/status").read()
    used = int(text.split("VmSize:")[1].split()[0]) << 10
    resource.setrlimit(resource.RLIMIT_AS, (used + extra, used + extra))

outcomes = []
for power in range(64, 115, 3):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(writing, 2)
        left(int(2 ** (power / 4)))
        try:
            datasets.load(sys.argv[1])
            os.write(writing, b"read")
        except MemoryError as e:
            os.write(writing, b"MemoryError " + str(e).encode())
        except ImprintError as e:
            os.write(writing, b"wrong " + str(e).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    outcomes.append([power / 4, status, said])
print(json.dumps(outcomes))
"""


def tables(folder):
    """Small and larger tables in every format that Arrow reads."""
    X = np.random.default_rng(0).normal(size=(20_000, 32)).astype(np.float32)
    columns = {f"x{i}": X[:, i] for i in range(32)}
    columns["label"] = np.arange(len(X)) % 3
    texts = {"text": [f"text {i}" for i in range(50)], "label": [0, 1] * 25}
    for name, table in (("large", columns), ("small", texts)):
        table = pa.table(table)
        pq.write_table(table, folder / f"{name}.parquet")
        feather.write_feather(table, folder / f"{name}.feather")
        rows = zip(*table.to_pydict().values())
        lines = [",".join(table.column_names)]
        lines += [",".join(map(str, row)) for row in rows]
        (folder / f"{name}.csv").write_text("\n".join(lines[:9000]) + "\n")


@pytest.mark.parametrize("suffix", ["parquet", "feather", "csv"])
@pytest.mark.parametrize("size", ["small", "large"])
def test_a_table_is_read_or_refused_in_one_sentence(size, suffix, tmp_path):
    tables(tmp_path)
    path = tmp_path / f"{size}.{suffix}"
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    outcomes = json.loads(run.stdout)
    for power, status, said in outcomes:
        assert status == 0, (power, status, said)
        assert said.startswith(("read", "MemoryError")), (power, said)
    sentences = {said for _, _, said in outcomes if said.startswith("MemoryError C")}
    expected = f"MemoryError Cannot read {path}: less than 128 MB of memory are left."
    assert sentences == {expected}
