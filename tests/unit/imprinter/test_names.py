"""Class names as examples: used where they agree with the examples, stored, added and forgotten with their class."""

import numpy as np
import pytest

from imprint import Imprinter
from imprint.core.errors import ParameterError
from imprint.imprinter.embedder import NAME_CAPTION, words_of

TEXTS = [
    ("I lost my card yesterday", "card_lost"),
    ("my card is gone, someone stole it", "card_lost"),
    ("please give me my money back", "refundRequest"),
    ("I want a refund for this order", "refundRequest"),
    ("how much is a dollar in euros", "exchange-rate"),
    ("what do you charge for currency conversion", "exchange-rate"),
    ("I forgot my PIN", "pin"),
    ("my pin code is blocked", "pin"),
    ("when does my parcel arrive", "deliveryTime"),
    ("the delivery takes too long", "deliveryTime"),
    ("close my account", "cancel_account"),
    ("I want to cancel and delete my account", "cancel_account"),
]
X, Y = [text for text, _ in TEXTS], [label for _, label in TEXTS]
MEANINGLESS = {label: f"c{i}" for i, label in enumerate(sorted(set(Y)))}


def fitted(labels=Y, **options):
    return Imprinter("minilm", cache=False, calibrate=False, **options).fit(X, labels)


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("card_lost", "card lost"),
        ("refundRequest", "refund request"),
        ("CardArrival", "card arrival"),
        ("ATMSupport", "ATM support"),
        ("lost-card2", "lost card2"),
        (17, "17"),
        ("-", "-"),
    ],
)
def test_labels_become_words(label, words):
    assert words_of(label) == words


def test_names_that_agree_with_the_examples_are_used_by_default():
    model = fitted()
    assert model.state.named
    assert model.state.head.proxies.mass.sum() == len(X) + 6
    assert model.card().rows_per_class == (2,) * 6, "a name is not counted as a text"


def test_names_without_meaning_are_not_used_unless_asked_for():
    labels = [MEANINGLESS[label] for label in Y]
    assert not fitted(labels).state.named
    assert fitted(labels, names=True).state.named
    assert not fitted(names=False).state.named


def test_embeddings_of_names_are_stored_and_removed_with_their_class(tmp_path):
    model = fitted()
    model.save(tmp_path / "m.imprint")
    loaded = Imprinter.load(tmp_path / "m.imprint", cache=False)
    assert loaded.state.named
    loaded.add(["open a savings account for me"], ["savings"])
    assert loaded.state.head.proxies.mass.sum() == len(X) + 6 + 2
    others = [i for i, label in enumerate(Y) if label != "pin"]
    without = Imprinter("minilm", cache=False, calibrate=False, names=True).fit(
        [X[i] for i in others], [Y[i] for i in others]
    )
    np.testing.assert_array_equal(
        model.forget("pin").predict_proba(X), without.predict_proba(X)
    )


def test_classes_from_names_alone_and_from_a_better_wording():
    model = Imprinter("minilm", cache=False).fit_names(
        ["card lost", "refund", "exchange rate"]
    )
    assert model.predict(
        ["someone stole my debit card", "give me my money back"]
    ).tolist() == ["card lost", "refund"]
    coded = Imprinter("minilm", cache=False).fit_names(
        {"A": "card lost", "B": "refund"}
    )
    assert coded.predict(["someone stole my debit card"]).tolist() == ["A"]
    assert any(NAME_CAPTION in reason.image for reason in coded.why("my card is lost"))


def test_what_cannot_embed_names_is_refused_in_a_sentence():
    images = np.zeros((2, 8, 8), np.uint8)
    with pytest.raises(ParameterError, match="tinynet cannot embed class names"):
        Imprinter("tinynet", cache=False, names=True).fit(
            ([*images, *(images + 255)], ["a", "a", "b", "b"])
        )
    with pytest.raises(
        ParameterError, match="names must be True, False, None, or a dict"
    ):
        Imprinter(names=["a"])
