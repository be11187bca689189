"""The pages of `evaluate` and `check` in a real browser, if there is one."""

from pathlib import Path

import pytest

from imprint.cli import main

from .serve.browser import save_patterns

HOSTILE = "<img src=x onerror=\"document.title='taken'\">"


@pytest.fixture(scope="module")
def browser(browser_page):
    return browser_page.driver


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Both pages for a folder with a wrong label, a duplicate, and a class whose name is markup."""
    folder = tmp_path_factory.mktemp("pages")
    save_patterns(folder / "data", ["one", "two", HOSTILE.replace("/", "")], 12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IMPRINT_HOME", str(folder / "home"))
        data, model = str(folder / "data"), str(folder / "m.imprint")
        assert main(["fit", data, "-o", model, "-b", "raw"]) == 0
        assert (
            main(["evaluate", model, data, "--page", str(folder / "evaluate.html")])
            == 0
        )
        assert (
            main(["check", data, "-b", "raw", "--page", str(folder / "check.html")])
            == 0
        )
    return folder


def look(browser, page: Path, width: int):
    size = {
        "width": width,
        "height": 900,
        "deviceScaleFactor": 1,
        "mobile": width < 500,
    }
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page.as_uri())
    assert browser.get_log("browser") == []
    assert (
        browser.execute_script("return document.documentElement.scrollWidth") <= width
    )
    assert browser.title != "taken"


@pytest.mark.parametrize("width", [390, 1280])
def test_a_cell_scrolls_to_its_images(browser, pages, width):
    look(browser, pages / "evaluate.html", width)
    headings = [h.text for h in browser.find_elements("css selector", "h2")]
    assert headings[:2] == ["Mistakes", "Confusion matrix"]
    cells = browser.find_elements("css selector", ".cm-cells button")
    wrong = next(
        c for c in cells if "of two predicted as one" in c.get_attribute("aria-label")
    )
    browser.execute_script("window.scrollTo(0, 0); arguments[0].click()", wrong)
    opened = browser.find_elements("css selector", "[aria-live] figure")
    assert [
        ("wrong.png" in figure.text, "correct: two" in figure.text) for figure in opened
    ] == [(True, True)]
    assert (
        len(opened[0].find_elements("css selector", "img")) == 2
    )  # itself and the closest training image
    top = browser.execute_script(
        "return arguments[0].getBoundingClientRect().top", opened[0]
    )
    assert 0 <= top < 900
    assert browser.execute_script(
        "return [...document.images].every(i => i.complete && i.naturalWidth > 0)"
    )
    assert HOSTILE in browser.find_element("css selector", ".bars").text.replace(
        "…", ""
    )


@pytest.mark.parametrize("width", [390, 1280])
def test_check_shows_copies_side_by_side(browser, pages, width):
    look(browser, pages / "check.html", width)
    group = browser.find_element("css selector", "#duplicates .group")
    assert "2 copies with different labels" in group.text
    assert len(group.find_elements("css selector", "img")) == 2
    points = browser.find_elements("css selector", ".map circle")
    assert len(points) == 37


CONTRAST = """
const light = (c) => { const v = c / 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
const parse = (text) => { const n = text.match(/[0-9.]+/g).map(Number); return n.length > 3 ? n : [...n, 1]; };
const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
const over = (top, back) => [0, 1, 2].map((i) => top[3] * top[i] + (1 - top[3]) * back[i]);
function background(node) {
  if (!node) return [255, 255, 255];
  const colour = parse(getComputedStyle(node).backgroundColor);
  return colour[3] === 1 ? colour : over(colour, background(node.parentElement));
}
return [...document.querySelectorAll("p, span, b, th, button, h1, h2, h3, small, figcaption, footer, li")]
  .filter((n) => n.innerText && !n.classList.contains("hidden"))
  .map((n) => {
    const back = background(n), ink = parse(getComputedStyle(n).color);
    const [a, b] = [luminance(over(ink, back)), luminance(back)].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), n.outerHTML.slice(0, 80)];
  });
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", ["evaluate.html", "check.html"])
def test_text_has_contrast_and_tables_have_headers(browser, pages, page, scheme):
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    look(browser, pages / page, 390)
    assert [found for found in browser.execute_script(CONTRAST) if found[0] < 4.5] == []
    assert [
        th
        for th in browser.find_elements("css selector", "th")
        if not th.get_attribute("textContent")
    ] == []
    scrolling = "return [...document.querySelectorAll('*')].filter((n) => n.scrollWidth > n.clientWidth + 1"
    scrolling += " && ['auto', 'scroll'].includes(getComputedStyle(n).overflowX)).map((n) => n.tabIndex)"
    assert set(browser.execute_script(scrolling)) <= {0}
    assert str(pages) not in (pages / page).read_text("utf-8")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_keyboard_leads_through_the_matrix_and_shows_where(browser, pages, width):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    def press(*keys):
        ActionChains(browser).send_keys(*keys).perform()

    look(browser, pages / "evaluate.html", width)
    run = browser.execute_script
    focused = "return document.activeElement.getAttribute('aria-label')"
    stops = run("return document.querySelectorAll('.cm-cells [tabindex=\"0\"]').length")
    assert stops == 1, "one tab stop for all cells"
    run("document.querySelector('.cm-cells [tabindex=\"0\"]').focus()")
    first = run(focused)
    press(Keys.ARROW_DOWN)
    second = run(focused)
    assert first != second
    assert (
        run("return document.querySelector('.cm-readout').textContent") == f"{second}."
    )
    press(Keys.ENTER)
    assert browser.find_elements("css selector", "[aria-live] figure")

    run("document.activeElement.blur()")
    for size in ("Larger", "Smaller"):
        button = browser.find_element("css selector", f"[aria-label='{size} cells']")
        if button.is_enabled():
            before = run("return document.querySelector('.cm-cells').clientWidth")
            run("arguments[0].click()", button)
            after = run("return document.querySelector('.cm-cells').clientWidth")
            assert (after > before) == (size == "Larger")
