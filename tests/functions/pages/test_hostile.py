"""What code of a job writes is text on a page, whatever it is: it makes no element, no link and no direction of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pages.document import is_console
from pages.facts import GridFacts, JobFacts, SearchFacts
from pages.grid import write_grid
from pages.job import write_job
from pages.search import write_search
from tests.fakes.pages import jobs, runs
from tests.functions.pages.document import read_page
from tests.functions.pages.spoiled import change_counts, change_fractions, change_texts

MOST_BYTES = 500_000
PIECES = (
    "<script>alert(1)</script>",
    '"><img src=https://example.com/x onerror=alert(1)>',
    "' onload='alert(1)",
    "</title></style></pre><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "<!-- -->",
    "]]>",
    "&lt;b&gt;&#x3c;b&#62;",
    "\u202e\u2066\u200f\u061c",
    "\x00\x1b[31mred\x1b[0m\x07\x9b",
    "\r\n\t\u2028\u2029\x85",
    "\ud800",
    "\ufeff\u200b\u00ad",
    "שלום",
    "é漢字",
)
HOSTILE = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=6).map("".join)
JOBS = (jobs.failure, jobs.interrupted, jobs.waiting, jobs.refused)
WRITERS: dict[type, Callable[[Any], bytes]] = {JobFacts: write_job, GridFacts: write_grid, SearchFacts: write_search}


def some_lines() -> GridFacts:
    return runs.grid(30)


def some_trials() -> SearchFacts:
    return runs.search(20)


SMALL: tuple[Callable[[], Any], ...] = (*JOBS, some_lines, runs.refused_grid, some_trials, runs.failed_search)


def write(facts: Any) -> bytes:
    return WRITERS[type(facts)](facts)


@pytest.mark.parametrize("make", SMALL)
@given(hostile=HOSTILE)
@settings(max_examples=20, deadline=None)
def test_no_text_becomes_an_element_an_attribute_or_a_link(make: Callable[[], Any], hostile: str) -> None:
    body = write(change_texts(make(), lambda text: text + hostile))
    assert read_page(body).strange == []


@pytest.mark.parametrize("make", SMALL)
@given(hostile=HOSTILE)
@settings(max_examples=10, deadline=None)
def test_a_text_that_is_hostile_as_a_whole_is_shown_as_well(make: Callable[[], Any], hostile: str) -> None:
    body = write(change_texts(make(), lambda _: hostile))
    assert read_page(body).strange == []


@pytest.mark.parametrize("make", SMALL)
def test_no_invisible_character_reaches_a_page(make: Callable[[], Any]) -> None:
    body = write(change_texts(make(), lambda text: text + "".join(PIECES))).decode()
    assert {letter for letter in body if not letter.isprintable()} == {"\n"}


@pytest.mark.parametrize("make", SMALL)
def test_lines_of_a_megabyte_are_cut(make: Callable[[], Any]) -> None:
    body = write(change_texts(make(), lambda text: text + "<" * 1_000_000))
    assert len(body) < MOST_BYTES
    assert "(cut, 1,000,0" in read_page(body).text


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324, 0.0, -1.0])
@pytest.mark.parametrize("make", SMALL)
def test_a_page_comes_whatever_the_numbers_are(make: Callable[[], Any], number: float) -> None:
    page = read_page(write(change_fractions(make(), number)))
    assert page.strange == []
    assert not {"nan", "inf", "NaN", "Infinity"} & set(page.text.replace(",", " ").split())


@pytest.mark.parametrize("number", [10**400, -(10**400), 2**63, 0], ids=["huge", "low", "long", "zero"])
@pytest.mark.parametrize("make", SMALL)
def test_a_page_comes_whatever_the_whole_numbers_are(make: Callable[[], Any], number: int) -> None:
    body = write(change_counts(make(), number))
    assert read_page(body).strange == []
    assert len(body) < MOST_BYTES


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "http://eu-central-1.console.aws.amazon.com/",
        "https://console.aws.amazon.com.example.com/",
        "https://example.com/?console.aws.amazon.com",
        "https://evilconsole.aws.amazon.com/",
        "https://user@eu-central-1.console.aws.amazon.com/",
        "https://eu-central-1.console.aws.amazon.com:8443/",
        "https://[console.aws.amazon.com/",
        "https://eu-central-1.console.aws.amazon.com/\u202e",
        'https://eu-central-1.console.aws.amazon.com/"onclick="x',
        "//eu-central-1.console.aws.amazon.com/",
        " https://eu-central-1.console.aws.amazon.com/",
        "https:\\\\eu-central-1.console.aws.amazon.com/",
        "",
    ],
)
def test_an_address_outside_of_the_console_is_no_link(address: str) -> None:
    assert not is_console(address)


@pytest.mark.parametrize("host", ["eu-central-1.console.aws.amazon.com", "cn-north-1.console.amazonaws.cn"])
def test_an_address_of_the_console_is_a_link(host: str) -> None:
    assert is_console(
        f"https://{host}/s3/buckets/b?region=x&prefix=jobs%2Fa#logsV2:log-groups/log-group/$252Ftrainyard"
    )


def test_a_record_with_another_address_as_its_log_has_no_link() -> None:
    facts = change_texts(runs.grid(13), lambda text: text.replace("console.aws.amazon.com", "example.com"))
    assert [one for one in read_page(write_grid(facts)).links if "example" in one] == []


def test_garbled_reports_are_shown_as_far_as_they_can_be_read() -> None:
    garbled: tuple[Mapping[str, Any], ...] = (
        {"attempts": "x", "error": 7, "cause": ["a"], "recovered": [1, {"attempt": "<b>"}], "problem": 4},
        {
            "outcomes": [],
            "regions": {"a": 1},
            "failures": [{}, 3],
            "lines": "many",
            "best": [],
            "importance": {"a": "b"},
        },
        {
            "failures": 1,
            "best": {"line": "x", "artifact": 3},
            "objective": [],
            "cost_usd": "much",
            "why": {},
            "max_cost_usd": "x",
        },
    )
    for report in garbled:
        for facts in (jobs.failure(), runs.grid(0), runs.search(0 + 3)):
            kept = type(facts)(**{one: getattr(facts, one) for one in facts.__slots__} | {"report": report})  # type: ignore[arg-type]
            assert read_page(write(kept)).strange == []
