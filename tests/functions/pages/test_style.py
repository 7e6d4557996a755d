"""A page can be read by everybody: contrast in both themes, headings in order, drawings with words, and no style but its own."""

from __future__ import annotations

import base64
import hashlib
import re
from itertools import pairwise

import pytest

from pages.document import STYLE, TEMPLATES
from tests.fakes.pages.samples import SAMPLES
from tests.functions.pages.document import read_page

TEXTS = [
    (text, card)
    for text, cards in {
        "text": ("page", "card", "good-card", "bad-card", "busy-card", "unsure-card"),
        "muted": ("page", "card"),
        "link": ("page",),
        "good": ("page", "good-card"),
        "bad": ("page", "bad-card"),
        "busy": ("page", "busy-card"),
        "unsure": ("page", "unsure-card"),
    }.items()
    for card in cards
]
DRAWN = ("ask", "boot", "prepare", "meet", "train", "save", "lost", "dot", "best", "text")
MARKUP = {file.name: file.read_text() for file in sorted(TEMPLATES.glob("*.html"))}


def read_palettes() -> dict[str, dict[str, str]]:
    """Returns the colours of both themes, by name."""
    light, dark = (TEMPLATES / STYLE).read_text().split("@media (prefers-color-scheme: dark)", 1)
    found = re.compile(r"--([a-z-]+): (#[0-9a-f]{6})")
    return {"light": dict(found.findall(light)), "dark": dict(found.findall(dark))}


PALETTES = read_palettes()


def contrast(one: str, other: str) -> float:
    """Returns the contrast of two colours as WCAG 2.2 defines it."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_contrast_of_black_and_white_is_that_of_the_standard() -> None:
    assert round(contrast("#000000", "#ffffff"), 1) == 21.0
    assert round(contrast("#777777", "#ffffff"), 2) == 4.48


def test_both_themes_have_the_same_colours() -> None:
    assert PALETTES["light"].keys() == PALETTES["dark"].keys()


@pytest.mark.parametrize("theme", PALETTES)
@pytest.mark.parametrize(("text", "card"), TEXTS)
def test_words_stand_out_from_what_is_behind_them(theme: str, text: str, card: str) -> None:
    assert contrast(PALETTES[theme][text], PALETTES[theme][card]) >= 4.5


@pytest.mark.parametrize("theme", PALETTES)
@pytest.mark.parametrize("part", DRAWN)
def test_drawings_stand_out_from_the_page(theme: str, part: str) -> None:
    assert contrast(PALETTES[theme][part], PALETTES[theme]["page"]) >= 3


@pytest.mark.parametrize("file", MARKUP)
def test_no_template_has_what_the_policy_forbids(file: str) -> None:
    forbidden = re.compile(
        r"<script|\sstyle=|\son[a-z]+=|<link|<img|<iframe|<form|<object|<base|@import|url\(|\bsrc=", re.IGNORECASE
    )
    assert forbidden.findall(MARKUP[file] + (TEMPLATES / STYLE).read_text()) == []


@pytest.mark.parametrize("file", MARKUP)
def test_no_template_takes_a_text_for_markup(file: str) -> None:
    assert re.findall(r"\|\s*safe|autoescape|Markup", MARKUP[file]) == []


@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_is_one_document_of_its_own(name: str) -> None:
    body = SAMPLES[name]()
    page = read_page(body)
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    assert page.strange == []
    assert page.policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert b'<meta name="referrer" content="no-referrer">' in body
    assert body.startswith(b'<!doctype html>\n<html lang="en">')
    assert body.index(b"Content-Security-Policy") < body.index(b"<style>")
    assert re.fullmatch(r"(job|grid|search) [\w-]+: .+", page.title)


@pytest.mark.parametrize("name", SAMPLES)
def test_headings_skip_no_level_and_every_label_is_there(name: str) -> None:
    page = read_page(SAMPLES[name]())
    assert page.headings.count(1) == 1
    assert page.headings[0] == 1
    assert [pair for pair in pairwise(page.headings) if pair[1] > pair[0] + 1] == []
    assert len(page.ids) == len(set(page.ids))
    assert set(page.labels) <= set(page.ids)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_is_small_and_the_same_each_time(name: str) -> None:
    body = SAMPLES[name]()
    assert len(body) < 500_000
    assert body == SAMPLES[name]()
