"""Following a job prints what is new, once, until the job ends."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import pytest

from aws.facts import Status
from contract.reports import NodeReport, Phase, Progress
from tests.builders import NOW, WITH_ROLES
from tests.command_line.account import DEPLOYMENT, Account, History
from tests.fakes.state import report
from trainyard.following import UNKNOWN_S, NodeLines, describe_nodes, follow_job
from trainyard.patience import Timekeeper
from trainyard.printer import Printer
from trainyard.stops import CannotProceed
from trainyard.watching import Watched, find


def heard(rank: int, phase: Phase, step: int | None = None, metric: float | None = None, note: str = "") -> NodeReport:
    progress = None if step is None else Progress(step=step, metric=metric)
    return NodeReport(
        job="digits", attempt=1, rank=rank, instance=f"i-{rank}", phase=phase, sent_at=NOW, progress=progress, note=note
    )


def follow(there: Account, *steps: Callable[[], object], job: Watched | None = None) -> tuple[int, list[str]]:
    """Follows the job while one step after the other happens between two looks; the last one has to end it."""
    out, ahead = io.StringIO(), iter(steps)

    def sleep(seconds: float) -> None:
        there.clock.now += seconds
        next(ahead)()

    keeper = Timekeeper(now=lambda: there.clock.now, sleep=sleep)
    code = follow_job(
        DEPLOYMENT,
        job or find(DEPLOYMENT, "digits"),
        Printer(as_json=False, out=out, err=out),
        every_s=5.0,
        clock=keeper,
    )
    return code, [line[10:] if line[2:3] == ":" else line for line in out.getvalue().splitlines()]


def test_states_nodes_and_the_end_are_told_once_each(there: Account) -> None:
    history = History().admit().launch()
    job = there.begin(history=history)

    def report_all(phase: Phase, step: int | None = None) -> None:
        for rank in (0, 1):
            report(there, heard(rank, phase, step, 0.5))

    code, lines = follow(
        there,
        lambda: report_all(Phase.PREPARING),
        lambda: None,
        lambda: report_all(Phase.TRAINING, 3),
        lambda: (history.end_attempt(step=3), there.end(job, output={})),
    )
    assert code == 0
    assert lines[:5] == [
        "admitted: 2 places to try",
        "attempt 1: looks for nodes",
        "attempt 1: launched 2 x g5.xlarge in eu-central-1a, spot, $2.50 an hour at most",
        "rank 0 preparing, rank 1 preparing",
        "rank 0 training, rank 1 training; step 3, metric 0.5",
    ]
    assert lines[5:7] == ["attempt 1: the training is done, and its nodes end", "digits: SUCCEEDED after 20 s"]


def test_nodes_of_a_job_with_roles_are_named_by_them(there: Account) -> None:
    reports = {0: heard(0, Phase.TRAINING, 3), 3: heard(3, Phase.PREPARING)}
    said = "rank 0 (chief 0) training, rank 3 (ps 0) preparing; step 3"
    assert describe_nodes(reports, WITH_ROLES.roles) == said
    there.admit(replace(WITH_ROLES, id="digits"))
    job = there.begin(history=(history := History().admit().launch()))
    _, lines = follow(
        there,
        lambda: [report(there, heard(rank, Phase.TRAINING, 3)) for rank in (0, 1)],
        lambda: (history.end_attempt(step=3), there.end(job, output={})),
    )
    assert "rank 0 (chief 0) training, rank 1 (worker 0) training; step 3" in lines


def test_a_node_that_was_lost_is_not_said_to_train_once_its_attempt_has_ended(there: Account) -> None:
    history = History().admit().launch()
    job = there.begin(history=history)
    report(there, heard(0, Phase.TRAINING, 3))
    _, lines = follow(
        there,
        lambda: (
            report(there, heard(0, Phase.SAVING, 4)),
            history.enter("Terminate").schedule({"problem": {"error": "NodeLost", "cause": "gone"}}),
        ),
        lambda: there.end(job, "FAILED", error="NodeLost", cause="gone"),
    )
    assert lines[3:5] == ["rank 0 training; step 3", "attempt 1 ended: NodeLost: gone"]
    assert not any("saving" in line for line in lines)


def test_a_step_that_goes_on_is_a_line_every_half_minute() -> None:
    lines = NodeLines()
    assert lines.choose_line(1, {0: heard(0, Phase.TRAINING, 1)}, 0.0) == "rank 0 training; step 1"
    assert lines.choose_line(1, {0: heard(0, Phase.TRAINING, 2)}, 5.0) == ""
    assert lines.choose_line(1, {0: heard(0, Phase.TRAINING, 9)}, 30.0) == "rank 0 training; step 9"
    assert lines.choose_line(1, {0: heard(0, Phase.TRAINING, 9)}, 90.0) == ""
    assert lines.choose_line(2, {0: heard(0, Phase.TRAINING, 9)}, 91.0) == "rank 0 training; step 9"
    assert lines.choose_line(2, {}, 999.0) == ""


def test_phases_of_many_nodes_are_counted() -> None:
    reports = {rank: heard(rank, Phase.TRAINING if rank else Phase.SAVING) for rank in range(512)}
    assert describe_nodes(reports) == "1 saving, 511 training"


@pytest.mark.parametrize("metric", [float("nan"), float("inf"), 1e300])
def test_a_metric_that_is_no_good_number_is_shown_all_the_same(metric: float) -> None:
    assert "metric" in describe_nodes({0: heard(0, Phase.TRAINING, 1, metric)})


def test_a_person_who_may_not_read_the_table_is_told_once_and_follows_all_the_same(there: Account) -> None:
    job = there.begin(history=History().admit().launch())
    there.denied = {"dynamodb:BatchGetItem"}
    code, lines = follow(there, lambda: None, lambda: None, lambda: there.end(job, output={}))
    assert code == 0
    (line,) = (one for one in lines if "not shown" in one)
    assert "AWS denies you dynamodb:BatchGetItem" in line
    assert "trainyard logs digits -f" in line
    assert sum(call.name == "dynamodb:BatchGetItem" for call in there.calls) == 1


def test_stacks_of_an_older_version_say_nothing_of_nodes(there: Account) -> None:
    del there.outputs["yard-foundation"]["NodeRoleId"]
    job = there.begin(history=History().admit().launch())
    from trainyard.deployment import find_deployment

    out = io.StringIO()
    keeper = Timekeeper(now=lambda: there.clock.now, sleep=lambda _: there.end(job, output={}))
    found = find_deployment("yard", "eu-central-1")
    assert follow_job(found, find(found, "digits"), Printer(as_json=False, out=out), clock=keeper) == 0
    assert "the stacks have no output NodeRoleId" in out.getvalue()


def test_a_report_of_another_job_or_of_a_planted_rank_counts_for_nothing(there: Account) -> None:
    from dataclasses import replace

    job = there.begin(history=History().admit().launch())
    report(there, replace(heard(0, Phase.TRAINING, 5), job="other"))
    report(there, replace(heard(1, Phase.TRAINING, 5), rank=0))
    _, lines = follow(there, lambda: there.end(job, output={}))
    assert not any("rank" in line for line in lines)


def test_an_execution_that_step_functions_forgets_ends_following(there: Account) -> None:
    job = there.begin(history=History().admit())
    steps = [lambda: there.states.executions.known.pop(job.arn), *[lambda: None] * len(UNKNOWN_S)]
    with pytest.raises(CannotProceed, match=r"^digits: Step Functions no longer has the execution\.$"):
        follow(there, *steps)


def test_an_execution_that_step_functions_does_not_know_yet_is_followed(there: Account) -> None:
    job = there.begin(history=History().admit())
    unknown = there.states.executions.known.pop(job.arn)
    began = Watched(kind="job", name="digits", arn=job.arn, status=Status(name="RUNNING"), given={}, output={})

    def learn() -> None:
        there.states.executions.known[job.arn] = unknown
        there.end(job, output={})

    code, lines = follow(there, lambda: None, learn, job=began)
    assert (code, lines[0]) == (0, "admitted: 2 places to try")


def test_what_jobs_say_steers_no_terminal(there: Account) -> None:
    history = History().admit().launch()
    job = there.begin(history=history)
    evil = "\x1b]0;owned\x07\u202etxt\r\n\x1b[2Jrank 1 says"
    code, lines = follow(
        there,
        lambda: (
            history.end_attempt("TrainingFailed", evil),
            there.end(job, "FAILED", error="TrainingFailed", cause=evil),
        ),
    )
    assert code == 1
    assert not {"\x1b", "\x07", "\u202e", "\r"} & set("".join(lines))
    assert any("rank 1 says" in line for line in lines)


def test_a_stopped_job_is_one_that_failed(there: Account) -> None:
    job = there.begin(history=History().admit().launch())
    code, lines = follow(there, lambda: there.end(job, "ABORTED", error="Stopped", cause="stopped by ada"))
    assert code == 1
    assert "Stopped: stopped by ada" in lines
