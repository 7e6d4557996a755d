"""The page that a rehearsal leaves is the final one, says that it is a rehearsal's, and leads nowhere into AWS's console."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from contract.keys import PAGE, WHOLE
from contract.links import ARTIFACTS_LINKED
from pages.job import write_job
from rehearsal import pages
from rehearsal.pages import LOOKS, LOOKS_A_TICK, leave_page, mark_page
from tests.fakes.pages import jobs
from tests.fakes.pages.samples import SAMPLES
from tests.functions.pages.document import read_page

KEY = "jobs/mine/report.html"
WRITER = "trainyard-pages-PageWriter0123"
RUNNING, FINAL = ("0", b'<main id="page">\nit trains'), ("1", b'<main id="page">\nit failed')
Said = list[str]


@dataclass
class Account:
    """An account with one execution and its page, which the function of pages writes when it is called."""

    page: tuple[str, bytes] | None = None
    """Its mark and its body."""
    writes: Callable[[int], tuple[str, bytes] | None] = lambda _: FINAL
    """What the function makes of the page in its call of this number."""
    throttles: int = 0
    """Calls of the function that AWS refuses first."""
    is_running: bool = False
    calls: list[str] = field(default_factory=list)
    looks: int = 0

    @property
    def yard(self) -> Any:
        return SimpleNamespace(client=lambda _: self, places=SimpleNamespace(home="home"))

    def runs(self) -> bool:
        return self.is_running

    def get_paginator(self, _: str) -> Any:
        names = ("trainyard-workflow-Cleanup45", WRITER)
        return SimpleNamespace(paginate=lambda: iter([{"Functions": [{"FunctionName": one}]} for one in names]))

    def invoke(self, *, FunctionName: str, Payload: bytes) -> None:  # noqa: N803  (AWS's names)
        assert Payload == b"{}"
        self.calls.append(FunctionName)
        if len(self.calls) <= self.throttles:
            raise ClientError({"Error": {"Code": "TooManyRequestsException"}}, "Invoke")
        self.page = self.writes(len(self.calls))

    def head_object(self, **_: str) -> dict[str, Any]:
        self.looks += 1
        if self.page is None:
            raise ClientError({"Error": {"Code": "404"}}, "HeadObject")
        return {"Metadata": {WHOLE: self.page[0]}}

    def get_object(self, **_: str) -> dict[str, Any]:
        assert self.page is not None
        return {"Body": io.BytesIO(self.page[1])}


@pytest.fixture
def leave(tmp_path: Path) -> Leave:
    """Leaves the page of an account. Returns its text, and what is said to a person."""

    def left(account: Account) -> tuple[str | None, Said]:
        said = Said()
        file = leave_page(account, KEY, tmp_path / "out", said.append, pause=lambda _: None)  # type: ignore[arg-type]
        assert file in (None, tmp_path / "out" / PAGE)
        return file.read_text() if file else None, said

    return left


Leave = Callable[[Account], tuple[str | None, Said]]


def test_a_page_that_is_final_is_asked_for_no_more(leave: Leave) -> None:
    account = Account(page=FINAL)
    text, said = leave(account)
    assert "it failed" in (text or "")
    assert (account.calls, said) == ([], [])


@pytest.mark.parametrize("page", [RUNNING, None])
def test_a_page_whose_event_was_lost_is_written_as_the_clock_would(
    leave: Leave, page: tuple[str, bytes] | None
) -> None:
    account = Account(page=page)
    text, said = leave(account)
    assert "it failed" in (text or "")
    assert (account.calls, said) == ([WRITER], [])


def test_a_clock_that_aws_refuses_is_asked_again(leave: Leave) -> None:
    account = Account(page=RUNNING, throttles=2)
    text, _ = leave(account)
    assert "it failed" in (text or "")
    assert len(account.calls) == 3


def test_a_page_that_lacks_a_report_is_asked_for_until_it_has_it(leave: Leave) -> None:
    account = Account(writes=lambda number: FINAL if number > 3 else RUNNING)
    text, said = leave(account)
    assert "it failed" in (text or "")
    assert said == []


def test_a_page_that_never_becomes_final_is_left_and_said_to_be_none(leave: Leave) -> None:
    account = Account(writes=lambda _: RUNNING)
    text, said = leave(account)
    assert "it trains" in (text or "")
    assert said == [f"the page is not final, as the execution runs or has no report yet: {KEY}"]
    assert len(account.calls) == LOOKS / LOOKS_A_TICK


def test_the_page_of_an_execution_that_runs_is_not_waited_for(leave: Leave) -> None:
    account = Account(writes=lambda _: RUNNING, is_running=True)
    text, said = leave(account)
    assert "it trains" in (text or "")
    assert len(said) == 1
    assert account.looks < 2 * LOOKS_A_TICK


def test_where_there_is_no_page_that_is_said(leave: Leave) -> None:
    account = Account(writes=lambda _: None)
    assert leave(account) == (None, [f"no page was written: {KEY}"])


@pytest.mark.parametrize("name", SAMPLES)
def test_the_page_of_a_rehearsal_says_so_and_leads_nowhere(name: str) -> None:
    page = read_page(mark_page(SAMPLES[name]()))
    assert page.text.index("This is the page of a rehearsal") < page.text.index("of the deployment")
    assert page.links == ["#page"]
    assert ".console." not in page.source
    assert page.strange == []


@pytest.mark.parametrize("name", SAMPLES)
def test_the_page_of_a_rehearsal_has_everything_else_of_the_page(name: str) -> None:
    before, after = read_page(SAMPLES[name]()), read_page(mark_page(SAMPLES[name]()))
    assert (after.title, after.policy, after.style) == (before.title, before.policy, before.style)
    links = 'class="links">' in before.source
    told = before.text.replace(ARTIFACTS_LINKED, pages.ARTIFACTS_BESIDE)
    assert told.split("Links\n")[0].split("of the deployment")[-1] in after.text
    assert before.source.count("<h2>") - links == after.source.count("<h2>")


def test_a_page_without_links_names_the_folder_of_the_artifacts() -> None:
    page = read_page(mark_page(write_job(jobs.success())))
    assert "Its artifacts are in the folder artifacts beside this page." in page.text
    assert "link below" not in page.text


def test_an_address_in_a_cause_is_no_address_of_a_rehearsal() -> None:
    address = "https://eu-central-1.console.aws.amazon.com/states/home?region=x#/v2/executions/details/arn:a:b"
    body = f'<main id="page">\n<pre tabindex="0">See {address} first\nnext &lt;line&gt;\nLog: {address}\nlast\n</pre>'
    marked = mark_page(body.encode()).decode()
    assert '<pre tabindex="0">See (an address of the console) first\nnext &lt;line&gt;\nlast\n</pre>' in marked
    assert pages.NOTICE in marked
