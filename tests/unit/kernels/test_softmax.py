"""The winner by scores has the largest probability, also after rounding."""

import numpy as np
import pytest

from imprint.kernels.softmax import keep_winners


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_tensor", [False, True])
def test_the_winner_has_the_largest_probability(dtype, is_tensor):
    P, S = np.array([[0.5, 0.5], [0.7, 0.3]]), np.array([[0, 1e-20], [2, 1]], dtype=dtype)
    before = P.copy()
    if is_tensor:
        torch = pytest.importorskip("torch")
        P, S = torch.from_numpy(P), torch.from_numpy(S)
    result = keep_winners(P, S)
    assert result.dtype == S.dtype
    assert result.argmax(1).tolist() == [1, 0]
    np.testing.assert_allclose(result, before, rtol=1e-6)
    assert np.array_equal(P, before)  # the caller's probabilities do not change
