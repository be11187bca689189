import pickle

from imprint.core.threads import Lazy


def test_a_pickle_holds_the_calibration_and_nothing_else_that_was_derived():
    derived = Lazy()
    derived.put("calibration", "slow to compute")
    derived.put("prepared", "large")
    again = pickle.loads(pickle.dumps(derived))
    assert again.get("calibration", lambda: "computed again") == "slow to compute"
    assert "prepared" not in again
    assert again.source is None


def test_an_object_that_was_never_initialised_is_an_empty_cache():
    empty = Lazy.__new__(Lazy)
    assert "calibration" not in empty
    assert empty.get("classes", lambda: 3) == 3
    assert empty.source is None
    assert pickle.loads(pickle.dumps(Lazy())).source is None
