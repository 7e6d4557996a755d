"""What a page of docs/benchmarks counts is what the code does today; what it times is of the commit that it names."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from benchmarks import pages
from benchmarks.capacity.page import MINUTE
from benchmarks.checkpoints import __main__ as checkpoints
from benchmarks.reaper import __main__ as reaper
from benchmarks.reaper.account import HOUR, REGION, Account
from benchmarks.reaper.server import Server
from benchmarks.served import variables
from benchmarks.spot import page as spot
from benchmarks.state import cost
from benchmarks.state.__main__ import list_rows
from benchmarks.submission import __main__ as submission
from benchmarks.submission import plan
from benchmarks.submission.results import CHILD
from benchmarks.submission.server import Server as SageMaker
from localaws.testing.waiting import HANG_S
from tests.fakes.fleet import CALL_CPU_S, ITEM_CPU_S
from tests.load.history import SHORT_S, waited

PAGES = sorted((pages.ROOT / "docs" / "benchmarks").glob("*.md"))
COMMIT = rf"({pages.MEASURED_AT}|The figures came with commit) `[0-9a-f]{{7,40}}({pages.DIRTY})?`"
TIMED = "GB-seconds"
"""In the name of a row whose amount is a time."""
VARIES, BY = ("other steps: units", "attendant: units written"), 0.25
"""Rows whose amount differs from run to run, because some calls of an execution are repeated by chance, and because times in a curve pack
differently; by this share at most."""
OURS = 1_000
"""Instances of ours in the account of the reaper's row that is counted again."""


def text(name: str) -> str:
    return (pages.ROOT / "docs" / "benchmarks" / f"{name}.md").read_text("utf-8")


@contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[str]:
    """The server's address, while it answers."""
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_the_commit_of_its_figures(page: Path) -> None:
    title, empty, measured = page.read_text("utf-8").splitlines()[:3]
    assert (title[:2], empty) == ("# ", "")
    assert re.match(COMMIT, measured), measured


def test_a_page_is_written_with_its_commit_beneath_the_title(tmp_path: Path) -> None:
    results = tmp_path / "part.json"
    pages.note_commit(results)
    assert pages.noted_commits([results]) == {pages.commit()}
    assert pages.noted_commits([tmp_path / "older.json"]) == {"unknown"}
    pages.write_page(tmp_path / "page.md", "# Title\nWords.\n", ["b", "a", "b"])
    assert (tmp_path / "page.md").read_text() == f"# Title\n\n{pages.MEASURED_AT} `a`, `b`.\n\nWords.\n"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("checkpoints", checkpoints.ABOUT),
        ("checkpoints", checkpoints.NOT_MEASURED),
        ("reaper", reaper.__doc__),
        ("spot", spot._ABOUT),
        ("spot", spot._ASSUMED),
        ("submission", submission.ABOUT),
        ("submission", submission.NOT_MEASURED),
    ],
    ids=lambda value: value if len(value or "") < 20 else "",
)
def test_a_page_says_what_its_command_would_say(name: str, said: str) -> None:
    page = text(name)
    assert [part for part in said.split("\n\n") if part.strip() not in page] == []


def test_the_page_of_state_counts_the_calls_of_eight_hours_and_of_a_month() -> None:
    month, _ = cost.idle_month(CALL_CPU_S, ITEM_CPU_S)
    counted = [*list_rows(cost.eight_hours(CALL_CPU_S, ITEM_CPU_S)), *list_rows(month)]
    page = text("state").splitlines()
    exact = [row for row in counted if TIMED not in row and not varies(row)]
    assert [row for row in exact if row not in page] == []
    shown, found = ([amount(row) for row in rows if varies(row)] for rows in (page, counted))
    assert shown == pytest.approx(found, rel=BY)


def varies(row: str) -> bool:
    return any(one in row for one in VARIES)


def amount(row: str) -> float:
    """The number in the second cell."""
    return float(row.split("|")[2].replace(",", ""))


def test_the_page_of_capacity_counts_the_history_of_a_short_wait() -> None:
    short = waited(SHORT_S)
    assert f"| {MINUTE} | {short.transitions} | {short.events} | 0 | 0 | {short.entered} |" in text("capacity")


def test_the_page_of_the_reaper_counts_the_calls_of_a_pass(tmp_path: Path) -> None:
    """Strangers cost it no call: EC2 filters."""
    now = int(time.time())
    launched = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(now - 2 * HOUR))
    account = Account(ours=OURS, strangers=0, now=now, launched=launched)
    with serving(Server(account)) as endpoint:
        command = [sys.executable, "-m", "benchmarks.reaper.ours"]
        paths = {"AWS_REGION": REGION, "PYTHONPATH": f"{pages.ROOT}:{pages.ROOT / 'lambda'}"}
        done = subprocess.run(
            command, env=variables(endpoint, REGION) | paths, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        with urllib.request.urlopen(f"{endpoint}/counts", timeout=HANG_S) as answer:
            counts = Counter[str](json.load(answer))
    assert json.loads(done.stdout.splitlines()[-1])["past_deadline"] == account.late()
    (row,) = (one for one in text("reaper").splitlines() if "1,000 of them ours, Custodian filters at EC2" in one)
    assert f", {sum(counts.values())} calls, {counts['throttled']} throttled | " in row


def test_the_page_of_submissions_counts_the_childs_calls(tmp_path: Path) -> None:
    server = SageMaker()
    with serving(server) as endpoint:
        with urllib.request.urlopen(f"{endpoint}/begin/0", timeout=HANG_S) as answer:
            told = json.load(answer)
        paths = {"PYTHONPATH": str(pages.ROOT)}
        subprocess.run(
            [sys.executable, "-m", "grid_child"],
            env=variables(endpoint, plan.REGION) | told["variables"] | paths,
            cwd=tmp_path,
            capture_output=True,
            check=True,
        )
        with urllib.request.urlopen(f"{endpoint}/seen", timeout=HANG_S) as answer:
            before = json.load(answer)["before"]
    rows = [row for row in text("submission").splitlines() if f"| {CHILD} | 0." in row]
    assert rows
    assert {int(row.split("|")[-2]) for row in rows} == {before}
