"""`status` lists what runs, and says how one execution stands."""

from __future__ import annotations

import pytest

from contract.reports import NodeReport, Phase, Progress
from tests.builders import JOB, NOW
from tests.command_line.account import YARD, Account, History, run
from tests.fakes.causes import write_cause
from tests.fakes.executions import GRID_MACHINE, SEARCH_MACHINE
from tests.fakes.state import report


def test_a_list_has_what_runs_and_what_ended_of_every_machine(there: Account) -> None:
    there.begin("runs", history=History().admit().launch())
    there.end(there.begin("ended"), "FAILED", error="NodeLost")
    there.begin("sweep", GRID_MACHINE, History().enter("Plan"))
    there.begin("lr", SEARCH_MACHINE)
    ran = run("status", *YARD)
    rows = [line.split() for line in ran.out.splitlines()]
    assert ran.code == 0
    assert {tuple(row[:4]) for row in rows[1:]} >= {
        ("job", "runs", "RUNNING", "Train"),
        ("grid", "sweep", "RUNNING", "Plan"),
    }
    assert {row[1] for row in rows[1:]} == {"runs", "ended", "sweep", "lr"}


def test_a_list_of_one_kind_has_no_other(there: Account) -> None:
    there.begin("runs", history=History().admit())
    there.begin("sweep", GRID_MACHINE, History().enter("Plan"))
    names = [one["name"] for one in run("status", "--kind", "grid", "--json", *YARD).documents]
    assert names == ["sweep"]
    assert run("status", "--kind", "search", *YARD).out.startswith("yard in eu-central-1: no search runs")
    del there.outputs["yard-search"]
    ran = run("status", "--kind", "search", *YARD)
    assert (ran.code, "has no search machine" in ran.err) == (2, True)


def test_following_without_a_name_is_refused(there: Account) -> None:
    there.begin("runs", history=History().admit())
    ran = run("status", "-f", *YARD)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("NAME: is missing, and --follow follows one; allowed: a name")


@pytest.mark.usefixtures("there")
def test_a_deployment_in_which_nothing_ran_says_so() -> None:
    ran = run("status", *YARD)
    assert (ran.code, ran.out) == (0, "yard in eu-central-1: nothing runs, and nothing ended in 90 days.\n")
    assert run("status", "--json", *YARD).out == ""


def test_a_list_as_json_is_a_document_a_line(there: Account) -> None:
    there.begin("runs", history=History().admit())
    (one,) = run("status", "--json", *YARD).documents
    assert (one["kind"], one["name"], one["status"], one["state"], one["ended_at"]) == (
        "job",
        "runs",
        "RUNNING",
        "Admit",
        None,
    )


def test_a_job_says_state_attempt_nodes_step_cost_and_links(there: Account) -> None:
    history = History().admit().launch().end_attempt("NodeLost", "gone", step=3, usd=1.5).enter("Pause").launch()
    there.begin(history=history)
    progress = Progress(step=9, metric=0.25)
    report(
        there,
        NodeReport(
            job="digits", attempt=2, rank=0, instance="i-0", phase=Phase.TRAINING, sent_at=NOW, progress=progress
        ),
    )
    ran = run("status", "digits", *YARD)
    assert ran.code == 0
    for words in (
        "digits: RUNNING, in Train",
        "attempt 1 ended: NodeLost: gone",
        "attempt 2 follows, and goes on from step 3",
        "nodes: rank 0 training; step 9, metric 0.25",
        "cost so far: $",
        "execution: https://eu-central-1.console.aws.amazon.com/states",
        "page: https://",
        "log: https://",
    ):
        assert words in ran.out
    (whole,) = run("status", "digits", "--json", *YARD).documents
    assert (whole["state"], whole["attempt"], whole["step"], whole["metric"]) == ("Train", 2, 9, 0.25)
    assert whole["nodes"] == {"0": "training"}
    assert whole["error"] == ""
    assert whole["cost_usd_at_most"] > 1.5


def test_a_job_that_failed_while_its_nodes_were_to_end_has_cost_something(there: Account) -> None:
    history = History().admit().launch()
    history.at += 3600
    history.enter("Terminate").schedule({"problem": None})
    job = there.begin(history=history)
    assert "cost so far: $2.51 at most" in run("status", "digits", *YARD).out
    there.end(job, "FAILED", error="States.TaskFailed")
    assert "\ncost: $2.51 at most" in run("status", "digits", *YARD).out


@pytest.mark.parametrize("follow", [["--follow"], []], ids=str)
def test_a_program_reads_what_a_job_has_cost_at_most(there: Account, follow: list[str]) -> None:
    history = History().admit().launch()
    history.at += 3600
    history.enter("Terminate").schedule({"problem": None})
    there.end(there.begin(history=history), "FAILED", error="States.TaskFailed")
    assert run("status", "digits", "--json", *follow, *YARD).documents[-1]["cost_usd_at_most"] == 2.51
    there.end(there.begin("refused"), "FAILED", error="InvalidRequest")
    assert run("status", "refused", "--json", *follow, *YARD).documents[-1]["cost_usd_at_most"] == 0.0


def test_a_job_that_failed_says_why(there: Account) -> None:
    cause = write_cause(JOB, "code 3\nmore")
    there.end(there.begin(history=History().admit()), "FAILED", error="TrainingFailed", cause=cause)
    ran = run("status", "digits", *YARD)
    assert ran.code == 0
    assert "TrainingFailed: code 3\nmore\nexecution: https://" in ran.out


def test_a_job_that_timed_out_without_a_cause_says_what_that_means(there: Account) -> None:
    there.end(there.begin(history=History().admit()), "TIMED_OUT")
    assert "TimedOut: The execution ran longer than its state machine allows." in run("status", "digits", *YARD).out


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("name", ["none", "a:b", "../x", "a" * 200])
def test_a_name_that_is_none_is_one_line(name: str) -> None:
    ran = run("status", name, *YARD)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "yard has no job or grid or search called" in ran.err


def test_a_name_of_two_kinds_needs_the_kind(there: Account) -> None:
    there.begin("same", history=History().admit())
    there.begin("same", GRID_MACHINE, History().enter("Plan"))
    ran = run("status", "same", *YARD)
    assert (ran.code, ran.err) == (2, "NAME: same is a job and a grid; allowed: --kind with one of them\n")
    assert "same: RUNNING, in Admit" in run("status", "same", "--kind", "job", *YARD).out
    assert "RUNNING, Plan" in run("status", "same", "--kind", "grid", *YARD).out
    assert run("status", "same", "--kind", "build", *YARD).code == 2


def test_a_deployment_without_grids_has_jobs_all_the_same(there: Account) -> None:
    del there.outputs["yard-grid"], there.outputs["yard-search"]
    there.begin(history=History().admit())
    assert run("status", "digits", *YARD).code == 0
    ran = run("grid", "status", "sweep", *YARD)
    assert ran.code == 2
    assert "yard has no grid called sweep" in ran.err


def test_following_a_job_that_has_ended_prints_its_end(there: Account) -> None:
    there.end(there.begin(history=History().admit()), "FAILED", error="TrainingFailed", cause="code 3")
    ran = run("status", "digits", "-f", *YARD)
    assert ran.code == 1
    assert "digits: FAILED" in ran.out
