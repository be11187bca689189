import pytest

import imprint
from imprint import ImprintClassifier, recipe, recipes
from imprint.method import Method


@pytest.mark.parametrize(
    "name", ["kernel", "qi2018", "hosoda2024", "janson2022", "imprint2025", "oracle"]
)
def test_recipes_are_classifiers_with_a_source(name):
    clf = recipe(name, random_state=4)
    assert isinstance(clf, ImprintClassifier)
    assert clf.random_state == 4
    about = recipes.describe(name)
    assert about.citation.endswith(".")
    assert about.differs.endswith(".")
    assert "\n" not in about.differs
    assert about.parts().items() <= clf.get_params().items()


def test_every_part_is_a_component_of_its_family():
    for name in recipes.names():
        Method.of(**recipes.describe(name).parts())
    published = dict(
        norm_pre="l2",
        generator="kmeans(k=20)",
        norm_post="l2",
        norm_inf="l2",
        aggregator="max",
    )
    assert recipes.describe("imprint2025").parts() == published


def test_changes_replace_parts():
    assert recipe("imprint2025", generator="kmeans(k=5)").generator == "kmeans(k=5)"


def test_public_names():
    assert len(imprint.__all__) <= 10
    for name in imprint.__all__:
        assert getattr(imprint, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = imprint.nothing
