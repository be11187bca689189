"""The folders of classes."""

from imprint.cli.files import class_folder


def test_a_label_of_a_tree_is_a_folder_in_a_folder():
    assert class_folder("animal/cat") == ("animal", "cat")
    assert class_folder(7) == ("7",)


def test_no_label_leads_out_of_the_folder():
    for label in ("../../etc", "..", ".", "/etc", "a//b", "C:\\x", ""):
        parts = class_folder(label)
        assert all(part not in ("", ".", "..") for part in parts)
        assert not any("/" in part or "\\" in part for part in parts)
