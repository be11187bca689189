import numpy as np
import pytest

from imprint.core.files import container


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "int64", "uint8", "bool"]
)
def test_arrays_come_back_whatever_their_order_in_memory(tmp_path, dtype):
    matrix = np.arange(24).reshape(4, 6).astype(dtype)
    arrays = {
        "rows": matrix,
        "columns": matrix.T,
        "every_other": matrix[::2, ::-1],
        "none": matrix[:0],
    }
    container.write(tmp_path / "m", {"kind": "test"}, arrays)
    document, again = container.read(tmp_path / "m")
    assert document["kind"] == "test"
    assert {name: array.dtype.name for name, array in again.items()} == dict.fromkeys(
        arrays, dtype
    )
    assert all(np.array_equal(again[name], array) for name, array in arrays.items())
