"""One default method and seed: in Python, in the terminal and on the page."""

from imprint import ImprintClassifier, Imprinter, recipe
from imprint.core.component import DEFAULT_METHOD
from imprint.method import Method
from imprint.serve.projects import open_project


def test_five_entry_points_use_the_same_method_and_seed(imprint, paint, tmp_path):
    photos = paint(tmp_path / "photos", ["dark", "light"], 6)
    assert imprint("fit", photos, "-o", tmp_path / "m.imprint", "-b", "raw").code == 0
    fitted = Imprinter.load(tmp_path / "m.imprint").classifier
    classifiers = [
        ImprintClassifier(),
        recipe("kernel"),
        Imprinter("raw").fit(photos).classifier,
        fitted,
    ]
    X, y = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]], ["a", "a", "b", "b"]
    page = open_project(tmp_path / "project", "raw")
    page.close()
    heads = [
        page._plain.empty,
        *(classifier.fit(X, y).head_ for classifier in classifiers),
    ]
    assert [head.method for head in heads] == [Method.of(**DEFAULT_METHOD)] * 5
    assert [head.seed for head in heads] == [0] * 5
