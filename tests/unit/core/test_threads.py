import pickle

from imprint.core.threads import Lazy


def test_a_pickle_holds_the_calibration_and_nothing_else_that_was_derived():
    again = pickle.loads(
        pickle.dumps(Lazy(calibration="slow to compute", prepared="large"))
    )
    assert again.get("calibration", lambda: "computed again") == "slow to compute"
    assert "prepared" not in again
    assert again.source is None
