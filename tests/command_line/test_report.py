"""`report` fetches the page into a folder of its own, and opens it."""

from __future__ import annotations

import json
import stat
import webbrowser
from pathlib import Path

import pytest

from aws.s3 import Bucket
from contract.grid import GridPrefix
from contract.keys import READ_AT, JobPrefix
from contract.search import SearchPrefix
from tests.command_line.account import YARD, Account, run
from tests.fakes.executions import GRID_MACHINE, MACHINE, SEARCH_MACHINE
from tests.fakes.wire import HOME

PAGES = {
    "job": (MACHINE, JobPrefix("it").page, JobPrefix("it").result),
    "grid": (GRID_MACHINE, GridPrefix("it").page, GridPrefix("it").report),
    "search": (SEARCH_MACHINE, SearchPrefix("it").page, SearchPrefix("it").report),
}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the browser was asked to open."""
    found = list[str]()

    def note(address: str) -> bool:
        found.append(address)
        return True

    monkeypatch.setattr(webbrowser, "open", note)
    return found


@pytest.mark.parametrize("kind", PAGES)
def test_the_page_is_opened_from_a_folder_that_no_other_user_may_enter(
    there: Account, opened: list[str], kind: str
) -> None:
    machine, page, _ = PAGES[kind]
    there.begin("it", machine)
    there.put(page, b"<html>it</html>")
    ran = run("report", "it", *YARD)
    path = Path(ran.out.strip())
    assert (ran.code, path.read_bytes(), opened) == (0, b"<html>it</html>", [path.as_uri()])
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def put_page(kind: str, read_at: str) -> None:
    Bucket("yard-home", HOME).put_page(PAGES[kind][1], b"<html>it runs</html>", {READ_AT: read_at})


@pytest.mark.usefixtures("opened")
@pytest.mark.parametrize("kind", PAGES)
def test_a_page_that_is_older_than_the_end_is_said_to_be(there: Account, kind: str) -> None:
    execution = there.begin("it", PAGES[kind][0])
    put_page(kind, f"{there.clock.now - 1:.3f}")
    words = f"the page is older than the end of the {kind} (FAILED)"
    assert words not in run("report", "it", *YARD).out
    there.end(execution, "FAILED", error="TrainingFailed")
    ran = run("report", "it", *YARD)
    assert (ran.code, words in ran.out) == (0, True)
    for read_at in (f"{there.clock.now + 1:.3f}", "", "x", "nan"):
        put_page(kind, read_at)
        assert words not in run("report", "it", *YARD).out


def test_without_a_browser_it_says_where_the_file_is(there: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    there.begin("it")
    there.put(PAGES["job"][1], b"page")
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    assert run("report", "it", *YARD).out.endswith("no browser was found: open the file yourself\n")


def test_no_open_opens_nothing(there: Account, opened: list[str]) -> None:
    there.begin("it")
    there.put(PAGES["job"][1], b"page")
    assert run("report", "it", "--no-open", *YARD).code == 0
    assert opened == []


@pytest.mark.parametrize("kind", PAGES)
def test_json_prints_the_report_and_opens_nothing(there: Account, opened: list[str], kind: str) -> None:
    machine, _, report = PAGES[kind]
    there.begin("it", machine)
    there.put(report, json.dumps({"error": None, "evil": "\x1b[2J"}).encode())
    ran = run("report", "it", "--json", *YARD)
    assert ran.documents == [{"error": None, "evil": "\x1b[2J"}]
    assert "\x1b" not in ran.out
    assert opened == []


def test_a_page_that_is_not_there_is_said_so(there: Account, opened: list[str]) -> None:
    execution = there.begin("it")
    ran = run("report", "it", *YARD)
    assert (ran.code, ran.err.count("\n"), opened) == (2, 1, [])
    assert "there is no page yet (the job runs)" in ran.err
    there.end(execution, "FAILED", error="InvalidRequest")
    assert "nothing of one that was refused" in run("report", "it", "--json", *YARD).err


@pytest.mark.parametrize("body", [b"", b"{", b"\xff"])
def test_a_report_that_cannot_be_read_is_one_line(there: Account, body: bytes) -> None:
    there.begin("it")
    there.put(PAGES["job"][2], body)
    ran = run("report", "it", "--json", *YARD)
    assert (ran.code, ran.err.count("\n")) == (2, 1)


def test_a_page_of_a_gigabyte_is_not_read(there: Account) -> None:
    there.begin("it")
    there.s3.write("yard-home", PAGES["job"][1], b"page", size=1024**3)
    ran = run("report", "it", *YARD)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
