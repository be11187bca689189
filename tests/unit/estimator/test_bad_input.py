"""Invalid calls get one sentence with the call and the rule, and do not change the model."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from imprint import ImprintClassifier, recipe
from imprint.core.errors import ImprintError, ParameterError

X = np.random.default_rng(0).normal(size=(12, 4))
Y = np.repeat(["a", "b", "c"], 4)
NAN, INF = X.copy(), X.copy()
NAN[3, 1], INF[2, 2] = np.nan, np.inf

RAW = dict(
    generator="mean",
    norm_pre="none",
    norm_post="none",
    norm_inf="none",
    aggregator="max",
)


class Silent:
    def __array__(self, dtype=None, copy=None):
        raise ValueError


REFUSED = [
    ("NaN", lambda c: c.fit(NAN, Y), r"fit\(X, y\): Input X contains NaN\."),
    ("infinity", lambda c: c.fit(INF, Y), r"fit\(X, y\): Input X contains infinity"),
    (
        "NaN label",
        lambda c: c.fit(X, np.where(Y == "a", np.nan, 1.0)),
        r"fit\(X, y\): Input y contains NaN\.",
    ),
    (
        "flat X",
        lambda c: c.fit(X[0], Y[:4]),
        r"fit\(X, y\): Expected 2D array, got 1D array instead; Reshape",
    ),
    (
        "no rows",
        lambda c: c.fit(X[:0], Y[:0]),
        r"fit\(X, y\): Found array with 0 sample",
    ),
    ("no columns", lambda c: c.fit(X[:, :0], Y), r"fit\(X, y\): .*0 feature"),
    (
        "too few labels",
        lambda c: c.fit(X, Y[:5]),
        r"fit\(X, y\): X and y must have .* rows, not 12 and 5\.",
    ),
    ("no labels", lambda c: c.fit(X, None), r"fit\(X, y\): requires y"),
    (
        "table of labels",
        lambda c: c.fit(X, 3 * np.eye(12)),
        r"fit\(X, y\): y should be a 1d array",
    ),
    (
        "continuous labels",
        lambda c: c.fit(X, X[:, 0]),
        r"fit\(X, y\): Unknown label type: continuous",
    ),
    (
        "mixed labels",
        lambda c: c.fit(X, np.array([1, "a", 2.5] * 4, object)),
        r"fit\(X, y\): y mixes labels of the ty",
    ),
    (
        "dates as labels",
        lambda c: c.fit(X, np.full(12, "2020").astype("M8[Y]")),
        r"fit\(X, y\): .*datetime64",
    ),
    (
        "text as numbers",
        lambda c: c.fit(np.full((12, 4), "pixel"), Y),
        r"fit\(X, y\): could not convert string",
    ),
    (
        "complex numbers",
        lambda c: c.fit(X * 1j, Y),
        r"fit\(X, y\): Complex data not supported",
    ),
    (
        "wrong width",
        lambda c: c.fit(X, Y).predict(X[:, :3]),
        r"predict\(X\): X has 3 features, but .* expecting 4",
    ),
    (
        "wrong width later",
        lambda c: c.fit(X, Y).partial_fit(X[:, :2], Y),
        r"partial_fit\(X, y\): X has 2 features",
    ),
    (
        "NaN query",
        lambda c: c.fit(X, Y).predict_proba(NAN),
        r"predict_proba\(X\): Input X contains NaN\.",
    ),
    (
        "doubles beyond single precision",
        lambda c: c.fit(X.astype(np.float32), Y).partial_fit(
            np.full((1, 4), 1e300), ["d"]
        ),
        r"partial_fit\(X, y\): Input X contains infinity or a value too large for dtype\('float32'\)\.",
    ),
    (
        "scores beyond every number",
        lambda c: c.set_params(**RAW).fit(X * 1e150, Y).predict_proba(X * 1e200),
        r"predict_proba\(X\): the scores overflow float64; .*norm_inf='l2'",
    ),
    (
        "rows beyond every square",  # a model with such numbers could be saved but not loaded
        lambda c: c.set_params(**RAW | dict(aggregator="nearest(m=1)")).fit(
            X * 1e200, Y
        ),
        r"mean: the rows are too large to calculate with; scale them down\.",
    ),
    (
        "moments beyond every number",
        lambda c: c.set_params(
            **RAW | dict(generator="least_squares", norm_inf="l2")
        ).fit(X * 1e200, Y),
        r"least_squares\(reg=0.0001\): the rows are too large to calculate with",
    ),
    (
        "numbers after text",
        lambda c: c.fit(X, Y).partial_fit(X, range(12)),
        r"partial_fit\(X, y\): y holds integer lab",
    ),
    (
        "unknown class",
        lambda c: c.fit(X, Y).forget("aa"),
        r"Unknown class 'aa'\. Did you mean 'a'\? Known: a, b, c\.",
    ),
    (
        "last class",
        lambda c: c.fit(X[:4], Y[:4]).forget("a"),
        r"forget\('a'\): it is the only class",
    ),
    (
        "bad seed",
        lambda c: c.set_params(random_state=-1).fit(X, Y),
        r"random_state=-1: random_state must be an int",
    ),
    (
        "bad seed text",
        lambda c: c.set_params(random_state="x").fit(X, Y),
        r"random_state='x': random_state must be",
    ),
    (
        "bad k",
        lambda c: c.set_params(generator="kmeans(k=0)").fit(X, Y),
        r"KMeans\(k=0\): k must be int >= 1\.",
    ),
    (
        "quantile pre",
        lambda c: c.set_params(norm_pre="quantile").fit(X, Y),
        r"norm_pre='quantile': quantile works only",
    ),
    (
        "quantile inf",
        lambda c: c.set_params(norm_inf="quantile").fit(X, Y),
        r"norm_inf='quantile': quantile works only",
    ),
    (
        "sparse rows",
        lambda c: c.fit(csr_matrix(X), Y),
        r"fit\(X, y\): Sparse data was passed for X, but dense data is",
    ),
    (
        "sparse queries",
        lambda c: c.fit(X, Y).predict(csr_matrix(X)),
        r"predict\(X\): Sparse data was passed for X",
    ),
    (
        "an error without a message",
        lambda c: c.fit(Silent(), Y),
        r"fit\(X, y\): ValueError\.$",
    ),
    (
        "a dict",
        lambda c: c.fit({"a": X}, Y),
        r"fit\(X, y\): float\(\) argument must be .* not 'dict'",
    ),
    (
        "a dict of labels",
        lambda c: c.fit(X, {"a": 1}),
        r"fit\(X, y\): y should be a 1d array",
    ),
    (
        "a list to forget",
        lambda c: c.fit(X, Y).forget(["a"]),
        r"Unknown class \['a'\]\. .*Known: a, b, c\.",
    ),
    (
        "unknown recipe",
        lambda c: recipe("qi2017"),
        r"Unknown recipe 'qi2017'\. Did you mean 'qi2018'\? Known: ",
    ),
    (
        "no labels",
        lambda c: c.fit(X, [None] * 12),
        r"fit\(X, y\): labels of the type NoneType are not supported; use text or whole numbers\.",
    ),
    (
        "labels of tags",
        lambda c: (
            c.set_params(generator="all")
            .fit(X, np.eye(12, 2, dtype=int))
            .partial_fit(X, [0.5] * 12)
        ),
        r"partial_fit\(X, y\): Unknown label type: continuous",
    ),
    (
        "more voters than proxies",
        lambda c: c.set_params(aggregator="nearest(m=5)", generator="mean").fit(X, Y),
        r"fit\(X, y\) with 12 samples: nearest\(m=5\): m must not exceed the 3 proxies\.",
    ),
]


@pytest.mark.parametrize(
    ("call", "says"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_refused_in_one_sentence(call, says):
    with pytest.raises(ParameterError, match=f"^{says}") as e:
        call(ImprintClassifier())
    assert "\n" not in str(e.value)
    assert isinstance(e.value, ImprintError)
    assert isinstance(e.value, ValueError)


def test_a_refused_call_changes_nothing():
    clf = ImprintClassifier(generator="mean").fit(X, Y)
    before = clf.proxies_.weights.copy()
    for call in (
        lambda: clf.fit(X[:, :2], Y[:5]),
        lambda: clf.fit(NAN, Y),
        lambda: clf.partial_fit(NAN, Y),
        lambda: clf.partial_fit(X[:, :2], Y),
        lambda: clf.partial_fit(X, range(12)),
        lambda: clf.forget("zebra"),
    ):
        with pytest.raises(ParameterError):
            call()
        assert np.array_equal(clf.proxies_.weights, before)
        assert clf.classes_.tolist() == ["a", "b", "c"]
        assert clf.predict(X).shape == (12,)
        assert clf.n_features_in_ == 4


def test_fit_may_change_the_width_and_the_kind_of_labels():
    clf = ImprintClassifier(generator="mean").fit(X, Y).fit(X[:, :2], np.arange(12) % 2)
    assert (clf.n_features_in_, clf.classes_.tolist()) == (2, [0, 1])
    assert clf.predict(X[:, :2]).shape == (12,)


SERVED = [
    ("zero row", np.vstack([np.zeros((1, 4)), X[1:]]), Y),
    ("all rows zero", np.zeros((12, 4)), Y),
    ("duplicates", np.repeat(X[::4], 4, axis=0), Y),
    ("a class of one", X, np.array(["a"] * 11 + ["b"])),
    ("one class", X, np.full(12, "a")),
    ("one row", X[:1], ["only"]),
    ("booleans", X, np.arange(12) % 2 == 0),
    ("integers as X", (X * 10).astype(int), Y),
    ("half precision", X.astype(np.float16), Y),
    ("lists", X.tolist(), Y.tolist()),
    ("objects as labels", X, Y.astype(object)),
    ("one wide column", X[:, :1], Y),
    ("huge numbers", X * 1e150, Y),
    ("tiny numbers", X * 1e-160, Y),
]


@pytest.mark.parametrize(
    "generator",
    ["mean", "kmeans(k=3)", "kmedoids(k=3)", "covmax(k=3)", "fps(k=3)", "random(k=3)"],
)
@pytest.mark.parametrize(
    ("rows", "labels"), [c[1:] for c in SERVED], ids=[c[0] for c in SERVED]
)
def test_unusual_valid_input_is_accepted(rows, labels, generator):
    for aggregator in ("kernel", "max", "nearest(m=1)"):
        clf = ImprintClassifier(
            generator=generator, aggregator=aggregator, random_state=0
        ).fit(rows, labels)
        assert np.isfinite(clf.proxies_.weights).all()
        assert set(clf.predict(rows)) <= set(np.asarray(labels).tolist())
        np.testing.assert_allclose(clf.predict_proba(rows).sum(axis=1), 1, rtol=1e-5)


def test_one_row_per_class_gives_no_warning():
    """One row per class is a normal use: no warning that the labels look like a regression."""
    many = np.random.default_rng(0).normal(size=(60, 4))
    assert (
        ImprintClassifier(generator="mean")
        .fit(many, np.arange(60))
        .score(many, np.arange(60))
        == 1
    )


@pytest.mark.parametrize("kind", [float, np.float32, np.uint8, bool])
def test_equal_labels_of_any_type_have_the_same_random_numbers(kind):
    labels = np.arange(12) % 2
    a, b = (
        ImprintClassifier(generator="random(k=2)", random_state=0).fit(X, y)
        for y in (labels, labels.astype(kind))
    )
    assert np.array_equal(a.proxies_.weights, b.proxies_.weights)


def test_forgetting_the_longest_label_narrows_the_type():
    clf = (
        ImprintClassifier(generator="mean")
        .fit(X, np.repeat(["a", "b", "hippopotamus"], 4))
        .forget("hippopotamus")
    )
    assert clf.classes_.dtype == "<U1"


def test_half_precision_becomes_single():
    assert (
        ImprintClassifier(generator="mean")
        .fit(X.astype(np.float16), Y)
        .proxies_.weights.dtype
        == np.float32
    )


def test_a_model_may_start_with_one_class():
    clf = ImprintClassifier(generator="mean", aggregator="nearest(m=2)").partial_fit(
        X[:4], Y[:4]
    )
    with pytest.raises(
        ParameterError,
        match=r"^predict\(X\): nearest\(m=2\): m must not exceed the 1 proxies\.$",
    ):
        clf.predict(X)
    assert set(clf.partial_fit(X[4:8], Y[4:8]).predict(X)) <= {"a", "b"}


def test_labels_may_grow_longer():
    clf = (
        ImprintClassifier(generator="mean")
        .fit(X, Y)
        .partial_fit(X[:2] + 9, ["hippopotamus"] * 2)
    )
    assert "hippopotamus" in clf.predict(X[:2] + 9)


def test_unfitted():
    from sklearn.exceptions import NotFittedError

    for call in ("predict", "predict_proba", "decision_function", "forget", "save"):
        with pytest.raises(NotFittedError):
            getattr(ImprintClassifier(), call)(X)


@pytest.mark.parametrize(
    "random_state", [None, 5, np.int64(5), np.random.RandomState(0)]
)
def test_random_states(random_state):
    clf = ImprintClassifier(generator="random(k=2)", random_state=random_state).fit(
        X, Y
    )
    assert set(clf.predict(X)) <= set(Y)
    assert len(clf.proxies_.labels) == 2 * len(set(Y))


def test_without_a_seed_runs_differ_and_a_run_agrees_with_itself():
    many = np.random.default_rng(1).normal(size=(500, 4))
    labels = np.zeros(500, int)
    a, b = (
        ImprintClassifier(generator="random(k=5)", random_state=None).fit(many, labels)
        for _ in range(2)
    )
    assert not np.array_equal(a.proxies_.weights, b.proxies_.weights)
