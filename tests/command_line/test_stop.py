"""`stop` ends an execution in the caller's name, at once, and says what follows."""

from __future__ import annotations

import pytest

from tests.command_line.account import PERSON, YARD, Account, run
from tests.fakes.executions import GRID_MACHINE, MACHINE, SEARCH_MACHINE


@pytest.mark.parametrize(
    ("machine", "kind", "follows"),
    [
        (MACHINE, "job", "trainyard report it"),
        (GRID_MACHINE, "grid", "trainyard grid results it"),
        (SEARCH_MACHINE, "search", "trainyard search status it"),
    ],
)
def test_whatever_runs_is_stopped_in_the_callers_name(there: Account, machine: str, kind: str, follows: str) -> None:
    execution = there.begin("it", machine)
    ran = run("stop", "it", *YARD)
    assert ran.code == 0
    assert (execution.status, execution.error, execution.cause) == ("ABORTED", "Stopped", f"stopped by {PERSON}")
    assert ran.out.startswith(f"{kind} it: stopped by {PERSON}; the cleanup ")
    assert follows in ran.out


def test_what_has_ended_is_left_as_it_is(there: Account) -> None:
    execution = there.begin()
    there.end(execution, "FAILED", error="NodeLost")
    ran = run("stop", "digits", *YARD)
    assert (ran.code, ran.out) == (0, "digits has ended already: FAILED\n")
    assert "stepfunctions:StopExecution" not in there.changes
    assert run("stop", "digits", "--json", *YARD).documents[0]["stopped"] is False


def test_of_two_with_one_name_none_is_stopped(there: Account) -> None:
    both = [there.begin("same"), there.begin("same", GRID_MACHINE)]
    assert run("stop", "same", *YARD).code == 2
    assert [one.status for one in both] == ["RUNNING", "RUNNING"]
    assert run("stop", "same", "--kind", "grid", *YARD).code == 0
    assert [one.status for one in both] == ["RUNNING", "ABORTED"]


def test_a_person_who_may_not_stop_reads_which_right_is_missing(there: Account) -> None:
    execution = there.begin()
    there.denied = {"stepfunctions:StopExecution"}
    ran = run("stop", "digits", *YARD)
    assert (ran.code, ran.err.count("\n"), execution.status) == (2, 1, "RUNNING")


def test_json_says_what_was_done(there: Account) -> None:
    there.begin()
    (done,) = run("stop", "digits", "--json", *YARD).documents
    assert (done["kind"], done["stopped"], done["cause"]) == ("job", True, f"stopped by {PERSON}")


def test_nothing_is_stopped_of_a_name_that_is_none(there: Account) -> None:
    assert run("stop", "none", *YARD).code == 2
    assert there.changes == []
