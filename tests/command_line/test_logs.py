"""`logs` prints each line once, in order, of the nodes that are wanted, and ends when the job has."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from localaws.model import Refused
from tests.builders import JOB, NOW, WITH_ROLES
from tests.command_line.account import DEPLOYMENT, LOG_GROUP, YARD, Account, run
from trainyard.logs import LogFilter, LogReader, follow_lines
from trainyard.patience import Timekeeper
from trainyard.printer import Printer

STREAMS = ("digits/1/0", "digits/1/1", "digits/1/10", "digits/2/1", "digits/1/0/kernel", "digits-2/1/0")


@pytest.fixture
def written(there: Account) -> Account:
    there.begin()
    for number, stream in enumerate(STREAMS):
        there.write_line(stream, f"line of {stream}", NOW + number)
    return there


def streams(out: str) -> list[str]:
    return [line.partition("line of ")[2] for line in out.splitlines()]


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ([], ["digits/1/0", "digits/1/1", "digits/1/10", "digits/2/1"]),
        (["--rank", 1], ["digits/1/1", "digits/2/1"]),
        (["--attempt", 1], ["digits/1/0", "digits/1/1", "digits/1/10"]),
        (["--rank", 1, "--attempt", 1], ["digits/1/1"]),
        (["--rank", 0, "--kernel"], ["digits/1/0", "digits/1/0/kernel"]),
        (["--rank", 7], []),
    ],
    ids=str,
)
def test_lines_are_those_of_the_nodes_that_are_wanted(options: list[object], wanted: list[str]) -> None:
    ran = run("logs", "digits", *options, *YARD)
    assert (ran.code, streams(ran.out)) == (0, wanted)
    assert ("digits: there is no line of rank 7 yet" in ran.err) == (not wanted)


@pytest.mark.usefixtures("written")
def test_lines_of_a_job_with_roles_name_them(there: Account) -> None:
    there.admit(replace(WITH_ROLES, id="digits"))
    lines = run("logs", "digits", "--attempt", 1, "--kernel", *YARD).out.splitlines()
    assert [line[9:].partition("  ")[0] for line in lines] == [
        "1/0 (chief 0)",
        "1/1 (worker 0)",
        "1/10",
        "1/0/kernel (chief 0)",
    ]
    err = run("logs", "digits", "--rank", 3, *YARD).err
    assert "there is no line of rank 3 (ps 0) yet" in err


def test_a_rank_that_a_job_has_not_is_said_to_be_none(there: Account) -> None:
    there.admit(replace(JOB, id="digits", nodes=2))
    there.end(there.begin())
    for command in ("logs", "artifacts"):
        err = run(command, "digits", "--rank", 5, *YARD).err
        assert " of rank 5 (the job has 2 nodes, and the first is rank 0)" in err
        assert "yet" not in err
    assert (
        run("logs", "digits", "--rank", 1, "--attempt", 2, *YARD).err
        == "digits: there is no line of rank 1 in attempt 2\n"
    )


@pytest.mark.usefixtures("written")
def test_json_has_node_time_and_line() -> None:
    first, *_ = run("logs", "digits", "--json", *YARD).documents
    assert first == {"at": NOW, "node": "1/0", "line": "line of digits/1/0"}


def test_lines_that_steer_a_terminal_are_made_harmless(there: Account) -> None:
    there.begin()
    there.write_line("digits/1/0", "\x1b[31mred\x1b[0m\x07 \u202eback\nsecond \x9b2J")
    ran = run("logs", "digits", *YARD)
    assert ran.out.count("\n") == 2
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(ran.out)


def test_a_line_of_a_million_characters_is_cut(there: Account) -> None:
    there.begin()
    there.write_line("digits/1/0", "x" * 1_000_000)
    assert len(run("logs", "digits", *YARD).out) < 21_000


def read(there: Account, *steps: Callable[[], object]) -> tuple[int, list[str]]:
    """Follows the log while one step after the other happens between two looks."""
    out, ahead = io.StringIO(), iter(steps)
    reader = LogReader(LOG_GROUP, "eu-central-1", LogFilter(job="digits"))
    keeper = Timekeeper(now=lambda: there.clock.now, sleep=lambda _: next(ahead)())
    follow_lines(DEPLOYMENT, reader, Printer(as_json=False, out=out), every_s=1.0, clock=keeper)
    return reader.count, [line.rpartition("  ")[2] for line in out.getvalue().splitlines()]


def test_following_prints_each_line_once_and_ends_after_the_job(there: Account) -> None:
    job = there.begin()
    there.write_line("digits/1/0", "one", NOW)
    count, lines = read(
        there,
        lambda: there.write_line("digits/1/0", "two", NOW + 5),
        lambda: there.write_line("digits/1/1", "late, of before", NOW + 1),
        lambda: there.end(job, output={}),
        lambda: there.write_line("digits/1/0", "last, after the end", NOW + 9),
        lambda: None,
        lambda: None,
    )
    assert (count, lines) == (4, ["one", "two", "late, of before", "last, after the end"])


def test_following_a_job_that_has_ended_reads_its_log_and_ends(there: Account) -> None:
    there.end(there.begin(), output={})
    for number in range(7):
        there.write_line("digits/1/0", str(number), NOW + number)
    assert read(there, lambda: None, lambda: None) == (7, list("0123456"))


def test_a_log_group_that_is_not_there_is_one_line(there: Account) -> None:
    def missing(_: Any) -> dict[str, Any]:
        raise Refused("ResourceNotFoundException", "The specified log group does not exist.", 400)

    there.begin()
    there.answers["logs:FilterLogEvents"] = missing
    ran = run("logs", "digits", *YARD)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert f"there is no log group {LOG_GROUP}" in ran.err


def test_a_person_who_may_not_read_logs_reads_which_right_is_missing(there: Account) -> None:
    there.begin()
    there.denied = {"logs:FilterLogEvents"}
    ran = run("logs", "digits", *YARD)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "logs:FilterLogEvents" in ran.err


@pytest.mark.usefixtures("there")
def test_the_log_of_a_job_that_never_was_is_one_line() -> None:
    assert "yard has no job called none" in run("logs", "none", *YARD).err


@pytest.mark.parametrize("option", [["--rank", "-1"], ["--rank", "x"], ["--attempt", "0"]], ids=str)
def test_a_number_that_cannot_be_is_refused(there: Account, option: list[str]) -> None:
    ran = run("logs", "digits", *option, *YARD)
    assert (ran.code, there.calls) == (2, [])
    assert option[0] in ran.err
