"""A page stays below 500 kB, as it is written, whatever texts it has, and stays valid; what it leaves out it counts."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pages import document, words
from pages.document import MOST_BYTES, is_console, render
from pages.facts import GridFacts, JobFacts, SearchFacts
from pages.grid import write_grid
from pages.job import write_job
from pages.search import write_search
from tests.fakes.pages import jobs, runs
from tests.functions.pages.document import read_page
from tests.functions.pages.spoiled import change_texts

WRITERS: dict[type, Callable[[Any], bytes]] = {JobFacts: write_job, GridFacts: write_grid, SearchFacts: write_search}
DEAR = ("&", '"', "'", "<", ">", "\N{GRINNING FACE}", "\N{CJK UNIFIED IDEOGRAPH-6F22}", "\u202e", "é", "x", '&"😀')
"""Letters that take more bytes of a page than one, and one that does not."""
LETTERS = st.sampled_from(DEAR) | st.text(min_size=1, max_size=4)
CONSOLE = "https://eu-central-1.console.aws.amazon.com/"


def failed_lines() -> GridFacts:
    """Lines of which none completed, each with a reason and an address."""
    facts = runs.grid(600)
    return replace(facts, records=tuple(replace(one, reason="it broke", log=CONSOLE) for one in facts.records))


def failed_trials() -> SearchFacts:
    facts = runs.search(600)
    more = {"reason": "it broke", **{f"hp.{name}": f"a {name}" for name in "abcdefg"}}
    return replace(facts, trials=tuple({**one, **more} for one in facts.trials))


LARGE: tuple[Callable[[], Any], ...] = (
    jobs.huge,
    jobs.interrupted,
    jobs.waiting,
    jobs.refused,
    failed_lines,
    runs.refused_grid,
    failed_trials,
    runs.failed_search,
)


def write(facts: Any) -> bytes:
    return WRITERS[type(facts)](facts)


@pytest.mark.parametrize("make", LARGE)
@given(letters=LETTERS, is_alone=st.booleans())
@settings(max_examples=3, deadline=None)
def test_a_page_of_long_texts_in_every_field_is_small_and_valid(
    make: Callable[[], Any], letters: str, is_alone: bool
) -> None:
    body = write(change_texts(make(), lambda text: ("" if is_alone else text) + letters * 700))
    page = read_page(body)
    assert len(body) <= MOST_BYTES
    assert page.strange == []
    assert "so it ends here" not in page.text


@pytest.mark.parametrize("letters", ["&", "\N{GRINNING FACE}", "x", '&"😀'])
@pytest.mark.parametrize("make", [jobs.huge, failed_lines, failed_trials])
def test_no_letter_is_so_dear_that_a_large_page_is_larger_than_500_kb(make: Callable[[], Any], letters: str) -> None:
    assert len(write(change_texts(make(), lambda text: text + letters * 3000))) <= MOST_BYTES


def test_an_address_of_many_ampersands_is_no_link() -> None:
    assert is_console(CONSOLE + "&" * 390)
    assert not is_console(CONSOLE + "&" * 400)
    facts = replace(
        failed_lines(), records=tuple(replace(one, log=CONSOLE + "&" * 1900) for one in runs.grid(600).records)
    )
    page = read_page(write(facts))
    assert [one for one in page.links if "&&" in one] == []
    assert "500 lines" in page.text


@pytest.mark.parametrize(
    ("make", "every", "said"),
    [
        (failed_lines, 600, r"(\d+) lines, those that did not complete first. (\d+) other lines are not shown"),
        (failed_trials, 600, r"The best (\d+) trials; (\d+) other trials are not shown"),
    ],
)
def test_rows_that_do_not_fit_are_counted(make: Callable[[], Any], every: int, said: str) -> None:
    page = read_page(write(change_texts(make(), lambda text: text + "&" * 300)))
    found = re.search(said, page.text)
    assert found is not None
    shown, left = int(found[1]), int(found[2])
    assert shown + left == every
    assert 20 < shown < 500
    assert page.source.count("&amp;") > shown


def test_a_page_of_which_no_row_fits_ends_below_its_outcome_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for make in (jobs.huge, failed_lines, failed_trials):
        monkeypatch.setattr(document, "MOST_BYTES", MOST_BYTES)
        whole = read_page(write(make()))
        monkeypatch.setattr(document, "MOST_BYTES", 30_000)
        body = write(make())
        page = read_page(body)
        assert len(body) <= document.MOST_BYTES
        assert "so it ends here" in page.text
        assert (page.title, page.strange) == (whole.title, [])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x" * 10, "x" * 10),
        ("x" * 11, f"{'x' * 10}… (cut, 11 characters)"),
        ("é" * 10, "é" * 10),
        ("漢" * 6, "漢" * 6),
        ("漢" * 7, f"{'漢' * 6}… (cut, 7 characters)"),
        ("&" * 4, "&&&&"),
        ("&" * 5, "&&&&… (cut, 5 characters)"),
        ("\"'<>&", "\"'<>… (cut, 5 characters)"),
    ],
)
def test_a_text_is_cut_by_characters_and_by_the_bytes_that_they_take(text: str, shown: str) -> None:
    assert words.visible(text, 10) == shown


def test_the_bytes_of_a_text_are_those_that_a_template_writes() -> None:
    text = "&\"'<>é漢\N{GRINNING FACE} plain"
    empty = render("base.html", **_base(""))
    assert len(render("base.html", **_base(text))) - len(empty) == words.count_bytes(text)


def _base(sentence: str) -> dict[str, Any]:
    outcome = {"tone": "good", "word": "", "sentence": sentence, "cause": (), "following": "", "runs": False}
    return {"facts": jobs.success(), "outcome": outcome, "title": "", "tiles": []}
