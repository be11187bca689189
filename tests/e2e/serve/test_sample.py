"""The empty page offers sample data, which one Undo removes."""

from .browser import chromium, column


def test_sample_images_are_added_by_one_click_and_removed_by_one(serving, tmp_path):
    with serving("--backbone", "raw") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        page.click("#try-sample")
        page.until_text(f"{column('three')} .count", "40 + 40 held out")
        page.wait(
            lambda: all("40 + 40" in one.text for one in page.all("article .count")),
            "all images",
        )
        page.wait(lambda: page.text("#evaluate-badge"), "the evaluation")
        page.wait(lambda: not page.all("#undo[disabled]"), "Undo")
        page.click("#undo")
        page.wait(lambda: not page.all("article"), "the classes to go")
        page.wait(lambda: not page.all("#try-sample[disabled]"), "the offer")
        assert page.complaints() == []
