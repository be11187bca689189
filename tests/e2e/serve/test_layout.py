"""What a person sees on a narrow and on a wide screen, and where the focus is."""

from urllib.parse import quote

import pytest

from .browser import chromium

LONG_LABELS = ("part number of the delivered good", "part number of the returned good")
INSIDE = """
return [...document.querySelectorAll(arguments[0])].filter((one) => one.offsetParent)
  .filter((one) => {
    const { left, right } = one.getBoundingClientRect();
    return left < 0 || right > document.documentElement.clientWidth;
  }).map((one) => one.outerHTML.slice(0, 80));
"""
CUT = """
return [...document.querySelectorAll(arguments[0])].filter((one) => one.offsetParent)
  .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent);
"""
PLACEHOLDER_WIDTH = """
const context = document.createElement("canvas").getContext("2d");
return [...document.querySelectorAll("#new-class, #describe")].map((one) => {
  const style = getComputedStyle(one);
  context.font = style.font;
  const room = one.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  return context.measureText(one.placeholder).width <= room;
});
"""


def resize(page, width):
    page.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500},
    )


@pytest.mark.parametrize("width", [390, 1280])
def test_a_project_of_texts_shows_its_fields_tabs_and_names_whole(
    serving, tmp_path, width
):
    with serving("--backbone", "minilm") as server, chromium(tmp_path) as page:
        for label in LONG_LABELS:
            for text in (f"{label} one", f"{label} two"):
                server.json("POST", f"/api/items?label={quote(label)}&name=text", text)
        resize(page, width)
        page.driver.get(server.address)
        page.find("article")
        run = page.driver.execute_script
        assert run(PLACEHOLDER_WIDTH) == [True, True]
        assert run(INSIDE, "[role=tab], article, article *") == []
        assert run(CUT, ".class .name") == []
        if width < 500:
            page.click("#tab-try")
        page.type("#try-text", "where is it")
        page.find("#winner")
        page.wait(lambda: page.all(".bar-label"), "the probabilities")
        assert run(CUT, ".bar-label") == []
        shown = {one.text for one in page.all(".bar-label")}
        assert shown == set(LONG_LABELS)


def test_the_focus_goes_to_the_next_class_when_one_is_deleted(serving, tmp_path):
    with serving("--backbone", "tinynet") as server, chromium(tmp_path) as page:
        page.driver.get(server.address)
        for label in ("one", "two"):
            page.new_class(label)
        focused = "return document.activeElement.closest('article')?.dataset.label ?? document.activeElement.id"
        for label, next_focus in (("one", "two"), ("two", "new-class")):
            page.click(f'article[data-label="{label}"] summary')
            page.click(f'article[data-label="{label}"] .danger')
            page.wait(
                lambda: page.driver.execute_script(focused) == next_focus,  # noqa: B023
                f"the focus on {next_focus}",
            )
