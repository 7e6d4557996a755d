"""Pages in a real browser: they ask for nothing, run nothing, keep their own policy, and fit on a phone in both themes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pages.job import write_job
from tests.fakes.pages import jobs
from tests.fakes.pages.browser import PROGRAM, THEMES, Browser, open_browser
from tests.fakes.pages.samples import SAMPLES
from tests.functions.pages.spoiled import change_texts

pytestmark = [
    pytest.mark.at_length,
    pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed: apt-get install chromium"),
]
WIDTHS = (360, 768, 1280)
OVERFLOW = """[...document.querySelectorAll('body *')].filter(one => !one.closest('.box, .output, svg, .skip')
  && one.getBoundingClientRect().right > innerWidth + 1).map(one => one.tagName + '.' + one.className)"""
HOSTILE = "<script>document.title='run'</script>\"><img src=https://example.com/x onerror=document.title='run'>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_asks_for_nothing_and_fits_at_every_width(browser: Browser, folder: Path, name: str, theme: str) -> None:
    file = folder / f"{name}.html"
    file.write_bytes(SAMPLES[name]())
    for width in WIDTHS:
        seen = browser.open(file, theme=theme, width=width)
        assert browser.evaluate("document.documentElement.scrollWidth") == width
        assert browser.evaluate(OVERFLOW) == []
        assert [one for one in seen.addresses if one != file.as_uri()] == []
        assert seen.complaints == []


@pytest.mark.parametrize("theme", THEMES)
def test_the_style_of_a_page_is_taken(browser: Browser, folder: Path, theme: str) -> None:
    file = folder / "styled.html"
    file.write_bytes(SAMPLES["success"]())
    browser.open(file, theme=theme, width=1280)
    colour = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert colour == {"light": "rgb(255, 255, 255)", "dark": "rgb(14, 18, 23)"}[theme]


def test_a_style_that_is_not_the_pages_own_is_refused(browser: Browser, folder: Path) -> None:
    file = folder / "changed.html"
    file.write_bytes(SAMPLES["success"]().replace(b"--page: #ffffff", b"--page: #fffffe"))
    seen = browser.open(file, theme="light", width=1280)
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgba(0, 0, 0, 0)"
    assert any("Content Security Policy" in one for one in seen.complaints)


def test_a_script_that_reached_a_page_would_not_run(browser: Browser, folder: Path) -> None:
    file = folder / "scripted.html"
    file.write_bytes(SAMPLES["success"]().replace(b"</main>", HOSTILE.encode() + b"</main>"))
    seen = browser.open(file, theme="light", width=1280)
    assert browser.evaluate("document.title") == "job digits-ddp-12: completed"
    assert any("Content Security Policy" in one for one in seen.complaints)


def test_hostile_texts_run_nothing_and_ask_for_nothing(browser: Browser, folder: Path) -> None:
    file = folder / "hostile.html"
    file.write_bytes(write_job(change_texts(jobs.failure(), lambda text: text + HOSTILE)))
    seen = browser.open(file, theme="light", width=360)
    assert browser.evaluate("document.title").startswith("job digits-broken<script>")
    assert browser.evaluate("document.querySelectorAll('script, img').length") == 0
    assert [one for one in seen.addresses if one != file.as_uri()] == []
    assert seen.complaints == []
    assert browser.evaluate("document.documentElement.scrollWidth") == 360


def test_a_page_can_be_used_by_keyboard(browser: Browser, folder: Path) -> None:
    file = folder / "keyboard.html"
    file.write_bytes(SAMPLES["failure"]())
    browser.open(file, theme="light", width=1280)
    places = []
    for _ in range(60):
        for kind in ("keyDown", "keyUp"):
            browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        places.append(browser.evaluate("document.activeElement.tagName + '.' + document.activeElement.className"))
    assert places[0] == "A.skip"
    assert {"SUMMARY.", "DIV.box", "PRE.output"} <= set(places)


def test_what_is_folded_is_printed(browser: Browser, folder: Path) -> None:
    file = folder / "printed.html"
    file.write_bytes(SAMPLES["failure"]())
    browser.open(file, theme="light", width=1280)
    height = "document.querySelector('details:not([open])').getBoundingClientRect().height"
    folded = browser.evaluate(height)
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    try:
        assert browser.evaluate(height) > folded + 50
    finally:
        browser.call("Emulation.setEmulatedMedia", media="screen", features=[])
