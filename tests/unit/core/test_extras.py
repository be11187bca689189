"""Optional modules: the error for a missing one names its extra; an error inside of one is not changed."""

import pytest

from imprint.core.errors import MissingExtraError
from imprint.core.extras import import_extra


def test_a_missing_module_names_its_extra():
    with pytest.raises(
        MissingExtraError, match=r"^Drawing needs absent-module: .*\[heic\]"
    ):
        import_extra("absent_module", "heic", "Drawing")


def test_a_module_whose_dependency_is_missing_raises_its_own_error(
    tmp_path, monkeypatch
):
    (tmp_path / "present_module.py").write_text("import absent_dependency")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="absent_dependency") as e:
        import_extra("present_module", "heic", "Drawing")
    assert not isinstance(e.value, MissingExtraError)


def test_an_incompatible_module_says_how_to_install_it_again(tmp_path, monkeypatch):
    (tmp_path / "incompatible_module.py").write_text(
        "raise RuntimeError('operator does not exist')"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        MissingExtraError,
        match=r"compatible packages \(operator does not exist\).*--force-reinstall",
    ):
        import_extra("incompatible_module", "heic", "Drawing")
