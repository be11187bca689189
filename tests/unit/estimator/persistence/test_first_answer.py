"""What the first prediction needs is in the file: nothing is solved after loading."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from imprint import ImprintClassifier
from imprint.core.errors import FileError
from imprint.core.files import container
from imprint.gaussian_process import posterior

X, y = load_digits(return_X_y=True)
X = X.astype(np.float32)


@pytest.fixture(autouse=True)
def every_solution_is_stored(monkeypatch):
    """Also that of few proxies, which is solved as fast as it is loaded."""
    monkeypatch.setattr("imprint.aggregators.kernel.MAX_WITNESSES", 0)
    monkeypatch.setattr("imprint.aggregators.kernel.MAX_CHOSEN_PROXIES", 0)


def fitted(**options):
    model = ImprintClassifier(calibrate=True, random_state=0, **options)
    return model.fit(X[:600], y[:600])


@pytest.fixture
def no_solving(monkeypatch):
    """Fail where a system of more proxies than those of the doubt is factored."""

    def refused(*_):
        raise AssertionError("a system was factored")

    def start():
        monkeypatch.setattr(posterior, "_factor_of", refused)
        monkeypatch.setattr(posterior, "solve", refused)

    return start


@pytest.mark.parametrize(
    "options",
    [{}, {"blocks": (32, 32)}, {"class_weight": "balanced"}],
    ids=["plain", "blocks", "weights"],
)
def test_a_loaded_model_predicts_the_same_bits_without_solving(
    options, tmp_path, no_solving
):
    model = fitted(**options)
    expected = model.predict_proba(X), model.decision_function(X)
    known = model.known(X)
    model.save(tmp_path / "m.imprint")
    loaded = ImprintClassifier.load(tmp_path / "m.imprint")
    loaded.head_.prepared.system.factor  # noqa: B018 - computed here, for the doubt
    no_solving()
    np.testing.assert_array_equal(loaded.predict_proba(X), expected[0])
    np.testing.assert_array_equal(loaded.decision_function(X), expected[1])
    np.testing.assert_array_equal(loaded.known(X), known)


def test_tags_are_stored_too(tmp_path, no_solving):
    marks = np.stack([y % 2, y > 4, y == 3], axis=1).astype(int)
    model = ImprintClassifier().fit(X[:300], marks[:300])
    expected = model.predict_proba(X)
    model.save(tmp_path / "m.imprint")
    loaded = ImprintClassifier.load(tmp_path / "m.imprint")
    no_solving()
    np.testing.assert_array_equal(loaded.predict_proba(X), expected)


def test_a_loaded_model_learns_and_forgets_as_the_one_that_was_saved(tmp_path):
    model = fitted()
    model.save(tmp_path / "m.imprint")
    loaded = ImprintClassifier.load(tmp_path / "m.imprint")
    for changed in (model, loaded):
        changed.partial_fit(X[600:700], y[600:700] + 10)
        changed.forget(3)
    model.save(tmp_path / "a.imprint")
    loaded.save(tmp_path / "b.imprint")
    assert (tmp_path / "a.imprint").read_bytes() == (
        tmp_path / "b.imprint"
    ).read_bytes()


def test_the_file_of_an_updated_solution_is_that_of_a_fresh_one(tmp_path, monkeypatch):
    # so that few proxies are enough for an update
    monkeypatch.setattr("imprint.gaussian_process.scale.MAX_RESOLVED_PROXIES", 0)
    options = {"norm_pre": "none", "norm_inf": "none", "generator": "all"}
    updated = fitted(**options)
    updated.predict(X[:1])
    updated.partial_fit(X[600:603], [10, 10, 10])
    updated.predict(X[:1])
    assert updated.head_.prepared.system.is_updated
    updated.save(tmp_path / "a.imprint")
    rows, labels = np.concatenate([X[:600], X[600:603]]), [*y[:600], 10, 10, 10]
    fresh = ImprintClassifier(calibrate=True, random_state=0, **options)
    fresh.fit(rows, labels).save(tmp_path / "b.imprint")
    stored = [container.read(tmp_path / name)[1] for name in ("a.imprint", "b.imprint")]
    for name, array in stored[0].items():
        np.testing.assert_array_equal(array, stored[1][name], err_msg=name)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("coefficients", lambda a: a[:-1]),
        ("coefficients", lambda a: a.astype(np.float32)),
        ("coefficients", lambda a: np.where(a == a.max(), np.nan, a)),
        ("noise", lambda a: -a),
        ("scale", lambda a: a * 0),
        ("class_weights", lambda a: a[:, None]),
        ("scale", None),
    ],
)
def test_a_solution_that_does_not_fit_is_refused(name, damage, tmp_path):
    fitted().save(tmp_path / "m.imprint")
    document, arrays = container.read(tmp_path / "m.imprint")
    array = arrays.pop(f"solution/{name}")
    if damage is not None:
        arrays[f"solution/{name}"] = damage(array)
    container.write(tmp_path / "b.imprint", document, arrays)
    with pytest.raises(FileError, match="not an imprint model"):
        ImprintClassifier.load(tmp_path / "b.imprint")


def test_the_solution_of_few_proxies_is_not_stored(tmp_path, monkeypatch):
    monkeypatch.setattr("imprint.aggregators.kernel.MAX_WITNESSES", 2048)
    monkeypatch.setattr("imprint.aggregators.kernel.MAX_CHOSEN_PROXIES", 400)
    fitted().save(tmp_path / "m.imprint")
    fitted(blocks=(32, 32)).save(tmp_path / "b.imprint")
    names = [set(container.read(tmp_path / n)[1]) for n in ("m.imprint", "b.imprint")]
    assert not any(name.startswith("solution/") for name in names[0])
    # the choice of the weights of blocks takes longer than to read them
    assert "solution/block_weights" in names[1]


def test_a_file_without_a_solution_is_read(tmp_path):
    model = fitted()
    model.save(tmp_path / "m.imprint")
    document, arrays = container.read(tmp_path / "m.imprint")
    rest = {k: v for k, v in arrays.items() if not k.startswith("solution/")}
    container.write(tmp_path / "b.imprint", document, rest)
    loaded = ImprintClassifier.load(tmp_path / "b.imprint")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_the_doubt_of_many_proxies_follows_from_some_of_them(monkeypatch):
    model = fitted(generator="all")
    whole = model.known(X[600:])
    monkeypatch.setattr(posterior, "MAX_WITNESSES", 200)
    fewer = fitted(generator="all")
    system = fewer.head_.prepared.system
    assert 190 <= len(system.witnesses.weights) <= 210
    doubt = fewer.head_.doubt(X[:50])
    assert ((doubt >= 0) & (doubt <= 1)).all()
    # fewer observations leave more variance
    assert (doubt >= model.head_.doubt(X[:50]) - 1e-6).all()
    np.testing.assert_array_equal(fewer.predict(X), model.predict(X))
    assert np.corrcoef(whole, fewer.known(X[600:]))[0, 1] > 0.9
