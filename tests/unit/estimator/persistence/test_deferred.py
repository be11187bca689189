"""A model from a file answers without the states of its classes, and exactly as before it was saved."""

import pickle

import numpy as np
import pytest

from imprint import ImprintClassifier
from imprint.calibration import held
from imprint.core.errors import FileError
from imprint.core.files import container
from imprint.estimator.deferred import DeferredStates
from imprint.gaussian_process.placed import PlacedRows
from imprint.gaussian_process.posterior import MAX_WITNESSES
from imprint.imprinter.state import ImprinterState

CLASSES, ROWS, BLOCKS = 30, 80, (10, 6)
CASES = {
    "blocks": ("float32", BLOCKS),
    "one block": ("float32", None),
    "float64": ("float64", BLOCKS),
}


def data(dtype="float32", rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(9).normal(size=(CLASSES, 16))
    y = np.repeat([f"class {i:02}" for i in range(CLASSES)], rows)
    X = np.repeat(centres, rows, axis=0) + rng.normal(0, 0.7, (len(y), 16))
    return X.astype(dtype), y


@pytest.fixture(scope="module", autouse=True)
def always_with_factor():
    """The embeddings of these tests are so narrow that the factor would not be stored."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("imprint.gaussian_process.stored.MAX_FACTOR_SHARE", np.inf)
        yield


@pytest.fixture(scope="module", params=list(CASES))
def case(request, tmp_path_factory):
    """A model with more proxies than the doubt uses, its file and new rows."""
    dtype, blocks = CASES[request.param]
    X, y = data(dtype)
    order = np.random.default_rng(1).permutation(len(y))
    model = ImprintClassifier(calibrate=True, blocks=blocks)
    # some classes arrive later, so that the order of the file is not that of the labels
    late = np.isin(y[order], ["class 00", "class 07"])
    model.partial_fit(X[order][~late], y[order][~late])
    model.partial_fit(X[order][late], y[order][late])
    path = tmp_path_factory.mktemp("model") / "m.imprint"
    model.save(path)
    # exactly the model that the file states: no updated solution
    model = ImprintClassifier(calibrate=True, blocks=blocks)
    model.partial_fit(X[order][~late], y[order][~late])
    model.partial_fit(X[order][late], y[order][late])
    model.head_.derived.source = None
    return model, path, data(dtype, rows=30, seed=5)[0]


def answers(model, X):
    return model.decision_function(X), model.predict_proba(X), model.known(X)


def assert_equal(first, second):
    for one, other in zip(first, second):
        assert np.array_equal(one, other)


def fresh(model):
    """The head as it is computed from scratch."""
    from dataclasses import replace

    return ImprintClassifier.of_head(replace(model.head_))


@pytest.mark.parametrize("count", [1, 7, 900])
def test_the_answers_are_those_of_the_model_that_was_saved(case, count):
    model, path, new = case
    assert len(model.proxies_.labels) > MAX_WITNESSES
    expected = answers(fresh(model), new[:count])
    again = ImprintClassifier.load(path)
    assert_equal(answers(again, new[:count]), expected)
    # later queries use what the first one did not keep
    assert_equal(answers(again, new[:count]), expected)
    assert_equal(
        answers(again, new[: max(1, count // 2)]),
        answers(fresh(model), new[: max(1, count // 2)]),
    )


def test_a_prediction_needs_no_states_and_keeps_no_rows(case, monkeypatch):
    _, path, new = case
    again = ImprintClassifier.load(path)
    calls = []
    monkeypatch.setattr(held, "unshare_rows", lambda *_: calls.append("states"))
    monkeypatch.setattr(
        PlacedRows, "array", property(lambda self: calls.append("array"))
    )
    again.known(new[:3])
    assert calls == []
    assert isinstance(again.head_.states, DeferredStates)
    assert not again.head_.prepared.system._copies


def test_a_loaded_model_learns_forgets_merges_and_is_saved_as_before(case, tmp_path):
    model, path, new = case
    extra = np.full(20, "new")
    other, labels = data(new.dtype, rows=4, seed=8)

    def changed(model):
        model.partial_fit(new[:20] + 3, extra)
        model.partial_fit(other, labels)
        return model.forget("class 03")

    before = fresh(model)
    assert_equal(
        answers(changed(ImprintClassifier.load(path)), new),
        answers(changed(fresh(before)), new),
    )
    again = ImprintClassifier.load(path)
    again.save(tmp_path / "again.imprint")
    assert (tmp_path / "again.imprint").read_bytes() == path.read_bytes()
    copy = pickle.loads(pickle.dumps(ImprintClassifier.load(path)))
    assert_equal(answers(copy, new[:5]), answers(before, new[:5]))
    assert np.array_equal(again.proxies_.weights, model.proxies_.weights)
    assert np.array_equal(again.head_.proxies_per_class, np.full(CLASSES, ROWS))


def test_a_mapped_file_has_the_same_answers_and_is_not_in_memory(case, tmp_path):
    _, path, new = case
    again = ImprintClassifier.load(path)
    document, arrays = container.read(path, mapped=True)
    state = ImprinterState.from_parts(document, arrays, path)
    mapped = ImprintClassifier.of_head(state.head)
    assert not arrays["held/rows/values"].flags.writeable
    assert_equal(answers(mapped, new[:4]), answers(again, new[:4]))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("shared/index/values", lambda a: a + 10**6),
        ("shared/index/values", lambda a: np.zeros_like(a)),
        ("solution/witness_factor", lambda a: a[:-1]),
        ("solution/witness_factor_blocks", lambda a: -a),
        ("solution/witness_factor_blocks", lambda a: a[:-1]),
        ("solution/witness_coefficients", lambda a: a[1:]),
        ("solution/witness_centre", lambda a: a[1:]),
        ("solution/centre", lambda a: a[1:]),
        ("solution/centre", lambda a: a * np.nan),
        ("solution/max_exponent", lambda a: np.repeat(a, 2)),
        ("solution/noise", lambda a: -a),
        ("solution/coefficients", lambda a: a[:, 1:]),
        ("state/mass/values", lambda a: -a),
        ("state/mass/values", lambda a: a[:-1]),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(case, tmp_path, name, change):
    _, path, _ = case
    document, arrays = container.read(path)
    container.write(
        tmp_path / "m.imprint", document, {**arrays, name: change(arrays[name])}
    )
    with pytest.raises(FileError, match="is not an imprint model"):
        ImprintClassifier.load(tmp_path / "m.imprint")


def test_a_factor_that_is_larger_than_the_proxies_is_not_stored(
    case, tmp_path, monkeypatch
):
    _, path, new = case
    monkeypatch.setattr("imprint.gaussian_process.stored.MAX_FACTOR_SHARE", 0.25)
    again = ImprintClassifier.load(path)
    again.save(tmp_path / "m.imprint")
    _, arrays = container.read(tmp_path / "m.imprint")
    assert "solution/centre" in arrays
    assert not any("witness" in name for name in arrays)
    smaller = ImprintClassifier.load(tmp_path / "m.imprint")
    assert_equal(answers(smaller, new[:3]), answers(again, new[:3]))


def test_files_without_the_newer_arrays_are_solved_again(case, tmp_path):
    model, path, new = case
    document, arrays = container.read(path)
    rest = {
        n: a
        for n, a in arrays.items()
        if "witness" not in n and n not in ("solution/centre", "solution/max_exponent")
    }
    container.write(tmp_path / "m.imprint", document, rest)
    again = ImprintClassifier.load(tmp_path / "m.imprint")
    assert_equal(answers(again, new[:9]), answers(fresh(model), new[:9]))
