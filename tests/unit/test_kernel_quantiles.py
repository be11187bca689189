import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from imprint.kernels.quantiles import Pool, quantiles

few = st.lists(st.floats(-4, 4, width=16), min_size=1, max_size=12).map(lambda v: np.array(v, dtype=np.float32))


@given(few, st.lists(st.tuples(few, st.integers(1, 5)), max_size=4))
def test_quantiles_are_those_of_numpy(first, more):
    pool, everything = Pool(first), [first]
    for values, times in more:
        pool.add(values, times)
        everything += [values] * times
    q = (np.arange(9) + 0.5) / 9
    expected = np.quantile(np.concatenate(everything), q)
    np.testing.assert_array_equal(pool.quantiles(q), expected)
    np.testing.assert_array_equal(quantiles(np.concatenate(everything), q), expected)
