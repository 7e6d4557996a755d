"""Pages of jobs: they appear with the start and the end, are whole in the end, and say what could not be read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aws.state import State
from contract import items, keys
from contract.codec import encode
from contract.commits import MOST_SET, CheckpointSet
from contract.curves import Curve, Point
from contract.intents import LaunchOutcome
from contract.keys import BytesPrefix, JobPrefix
from contract.reports import Exit, Progress
from tests.builders import JOB, NODE_ROLE, NOW, PLACE
from tests.fakes.executions import MACHINE
from tests.fakes.faults import Kind, Mishap
from tests.fakes.state import TABLE, report, store
from tests.fakes.yard import ABROAD
from tests.functions.page_writer.account import AWAY, Pages


def closed_set(attempt: int, number: int, step: int) -> tuple[str, bytes]:
    """Key and body."""
    closed = CheckpointSet(job=JOB.id, attempt=attempt, number=number, step=step, closed_at=NOW, parts=())
    return BytesPrefix(JOB.id).closed(attempt, number), encode(closed)


def test_a_job_that_begins_has_a_page_within_seconds_of_its_admission(pages: Pages) -> None:
    pages.begin()
    pages.admit()
    pages.run()
    assert pages.count() == 1
    assert (pages.newest.status.name, pages.newest.job.id) == ("RUNNING", JOB.id)


def test_a_job_that_is_being_admitted_has_a_page_a_minute_later(pages: Pages) -> None:
    pages.begin()
    pages.run(30)
    assert pages.count() == 0
    pages.admit()
    pages.run(60)
    assert pages.count() == 1


def test_a_page_is_a_page_of_html_that_no_browser_keeps(pages: Pages) -> None:
    pages.begin()
    pages.admit()
    pages.run()
    page = pages.page()
    assert page is not None
    assert (page.content_type, page.cache_control) == ("text/html; charset=utf-8", "no-cache")


def test_a_success_has_its_report_in_its_page_at_once(pages: Pages) -> None:
    execution = pages.begin()
    pages.admit()
    pages.run(600)
    pages.report(error=None, attempts=1)
    pages.end(execution)
    pages.run()
    assert pages.newest.status.name == "SUCCEEDED"
    assert pages.newest.report["attempts"] == 1
    written = pages.count()
    pages.run(3600)
    assert pages.count() == written, "nothing writes a page again that is whole"


def test_an_end_whose_report_comes_late_is_written_once_more_with_it(pages: Pages) -> None:
    execution = pages.begin()
    pages.admit()
    pages.run(600)
    pages.end(execution, "ABORTED")
    pages.run()
    assert (pages.newest.status.name, pages.newest.report) == ("ABORTED", None)
    pages.run(240)
    pages.report(error="Aborted")
    pages.run(65)
    assert pages.newest.report["error"] == "Aborted"
    written = pages.count()
    pages.run(3600)
    assert pages.count() == written


def test_a_report_of_an_end_before_a_redrive_is_no_report_of_this_end(pages: Pages) -> None:
    execution = pages.begin()
    pages.admit()
    pages.report(error="Aborted")
    pages.aws.states.executions.redrive(execution)
    pages.run(600)
    pages.end(execution, "FAILED", "TrainingFailed", "exit code 1")
    pages.run(120)
    assert pages.count() >= 3
    pages.report(error="TrainingFailed")
    pages.run(65)
    assert pages.newest.report["error"] == "TrainingFailed"


def test_a_report_that_never_comes_is_waited_for_half_an_hour(pages: Pages) -> None:
    execution = pages.begin()
    pages.admit()
    pages.end(execution, "ABORTED")
    pages.run(3 * 3600)
    assert 30 <= pages.count() <= 64, "because of its start and of its end"
    assert pages.aws.queue.messages == {}
    assert pages.aws.queue.dead == []


def test_a_refused_request_has_a_page_with_its_cause(pages: Pages) -> None:
    execution = pages.begin()
    pages.run(2)
    pages.end(execution, "FAILED", "InvalidRequest", "nodes: 0; allowed: 1 to 16")
    pages.run()
    assert pages.newest.job is None
    assert pages.newest.status.cause.startswith("nodes: 0")
    pages.run(3600)
    assert pages.count() <= 2, "no report of it will ever come"


def test_a_plan_that_was_only_asked_for_has_no_page(pages: Pages) -> None:
    execution = pages.begin()
    pages.run(2)
    pages.end(execution, "SUCCEEDED")
    pages.run(3600)
    assert pages.count() == 0
    assert pages.aws.queue.messages == {}


def test_a_request_that_is_refused_for_its_used_name_leaves_the_page_of_the_job_that_has_it(pages: Pages) -> None:
    pages.admit()
    pages.run(90 * 86_400)
    pages.write(JobPrefix(JOB.id).page, b"the first job")
    execution = pages.begin()
    pages.end(execution, "FAILED", "InvalidRequest", "the name is taken")
    pages.run()
    page = pages.page()
    assert page is not None
    assert page.body == b"the first job"
    assert pages.aws.queue.messages == {}


def test_a_page_has_every_launch_end_and_report_of_all_attempts(pages: Pages) -> None:
    pages.begin()
    job = pages.admit()
    pages.launch(job, 1)
    pages.launch(job, 2, AWAY)
    State(TABLE).note_end(job.id, 1, pages.aws.clock.now, {"error": "Interrupted", "cause": "spot"})
    pages.hear(job, 1, 0)
    pages.hear(job, 2, 1, outcome=Exit(code=1, error="TrainingFailed"))
    pages.run()
    facts = pages.newest
    assert [walk.attempt for walk in facts.walks] == [1, 2]
    assert facts.walks[0].launched.answer.outcome is LaunchOutcome.LAUNCHED
    assert facts.ends[1].error == "Interrupted"
    assert {attempt: sorted(nodes) for attempt, nodes in facts.reports.items()} == {1: [0], 2: [1]}
    assert facts.unread == ()


def test_a_page_has_the_checkpoints_of_every_region_in_which_the_job_ran(pages: Pages) -> None:
    pages.begin()
    job = pages.admit()
    pages.launch(job, 1)
    pages.launch(job, 2, AWAY)
    pages.aws.s3.write(PLACE.bucket, *closed_set(1, 1, 100))
    pages.aws.s3.write(ABROAD.bucket, *closed_set(2, 1, 250))
    pages.run()
    assert [(one.attempt, one.step) for one in pages.newest.closed] == [(1, 100), (2, 250)]


def test_a_page_has_the_newest_twenty_checkpoints_of_each_region(pages: Pages) -> None:
    pages.begin()
    job = pages.admit()
    pages.launch(job, 1)
    pages.launch(job, 2, AWAY)
    for number in range(1, 30):
        pages.aws.s3.write(PLACE.bucket, *closed_set(1, number, number))
        pages.aws.s3.write(ABROAD.bucket, *closed_set(2, number, number))
    pages.run()
    every = [(attempt, number) for attempt in (1, 2) for number in range(10, 30)]
    assert [(one.attempt, one.number) for one in pages.newest.closed] == every


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"step": "many"}', b"x" * (MOST_SET + 1)])
def test_a_checkpoint_that_cannot_be_read_is_counted_in_the_page_and_hides_no_other(pages: Pages, body: bytes) -> None:
    execution = pages.begin()
    job = pages.admit()
    pages.launch(job)
    pages.aws.s3.write(PLACE.bucket, *closed_set(1, 1, 100))
    pages.aws.s3.write(PLACE.bucket, closed_set(1, 2, 0)[0], body)
    pages.report()
    pages.end(execution)
    pages.run()
    assert [one.number for one in pages.newest.closed] == [1]
    assert pages.newest.unread == (f"checkpoints in {PLACE.region}: 1 set could not be read",)
    before = pages.count()
    pages.run(3600)
    assert pages.count() == before, "another try reads no more"


def test_a_curve_ends_with_the_last_word_of_rank_0(pages: Pages) -> None:
    pages.begin()
    job = pages.admit()
    pages.launch(job)
    State(TABLE).keep_curve(job, Curve(points=(Point(attempt=1, step=10, at=pages.aws.clock.now, metric=0.5),)))
    pages.hear(job, 1, 1, progress=Progress(step=900, metric=0.9))
    pages.hear(job, 1, 0, progress=Progress(step=70, metric=0.75))
    pages.run()
    assert [(one.step, one.metric) for one in pages.newest.curve.points] == [(10, 0.5), (70, 0.75)]


def test_reports_of_other_instances_and_jobs_are_no_part_of_a_page(pages: Pages) -> None:
    pages.begin()
    job = pages.admit()
    pages.launch(job)
    told = replace(pages.hear(job, 1, 0), job="another")
    report(pages.aws, told)
    report(pages.aws, replace(told, job=job.id, rank=5, instance="i-1-1"))
    pages.run()
    assert pages.newest.reports == {1: {}}


def test_texts_of_nodes_begin_no_line_of_a_page(pages: Pages) -> None:
    pages.begin()
    job = pages.admit()
    pages.launch(job)
    pages.hear(job, 1, 0, note="a\nb\u202e" + 1000 * "x")
    pages.run()
    note = pages.newest.reports[1][0].note
    assert len(note) <= 500
    assert not {"\n", "\u202e"} & set(note)


def test_of_a_job_of_many_nodes_the_reports_of_the_newest_attempts_are_read(pages: Pages) -> None:
    pages.begin()
    job = pages.admit(nodes=600)
    for attempt in (1, 2):
        pages.launch(job, attempt, nodes=600)
        pages.hear(job, attempt, 0)
    pages.run()
    assert sorted(pages.newest.reports) == [2]
    assert "reports of nodes: those of attempts up to 1 are left out" in pages.newest.unread


@pytest.mark.parametrize("kind", [Kind.THROTTLED, Kind.ERROR, Kind.UNREACHABLE, Kind.DENIED])
@pytest.mark.parametrize("call", ["dynamodb:Query", "dynamodb:GetItem", "s3:ListObjectsV2"])
def test_what_does_not_answer_is_said_in_the_page_and_read_once_it_does(pages: Pages, call: str, kind: Kind) -> None:
    execution = pages.begin()
    job = pages.admit()
    pages.launch(job)
    pages.run(60)
    pages.report(error=None)
    pages.aws.faults.add(kind, call, times=1000)
    pages.end(execution)
    pages.run(5)
    assert pages.newest.status.name == "SUCCEEDED"
    assert pages.newest.unread
    pages.aws.faults.waiting.clear()
    pages.run(300)
    assert pages.newest.unread == ()


@pytest.mark.parametrize(
    "key", [JobPrefix(JOB.id).result, JobPrefix(JOB.id).wait], ids=lambda key: key.rpartition("/")[2]
)
@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff\xfe", b"[" * 100_000], ids=["cut", "list", "bytes", "deep"])
def test_a_garbled_document_is_said_in_the_page(pages: Pages, key: str, body: bytes) -> None:
    execution = pages.begin()
    pages.admit(max_wait_hours=1.0)
    pages.write(key, body)
    pages.end(execution, "FAILED", "TrainingFailed")
    pages.run()
    assert [one.partition(":")[0] for one in pages.newest.unread] == [key.rpartition("/")[2]]


def test_a_garbled_document_ends_no_message_in_letters(pages: Pages) -> None:
    execution = pages.begin()
    pages.admit(max_wait_hours=1.0)
    pages.write(JobPrefix(JOB.id).result, b"{")
    pages.end(execution, "FAILED", "TrainingFailed")
    pages.run(3 * 3600)
    assert pages.newest.unread
    assert pages.aws.queue.dead == []


def test_a_garbled_job_is_said_in_the_page_and_ends_no_message_in_letters(pages: Pages) -> None:
    execution = pages.begin()
    pages.write(JobPrefix(JOB.id).description, b"{}")
    pages.end(execution, "FAILED", "TrainingFailed")
    pages.run(3 * 3600)
    assert pages.newest.job is None
    assert [one.partition(":")[0] for one in pages.newest.unread] == ["job.json"]
    assert pages.aws.queue.dead == []


def test_a_garbled_item_of_the_table_is_said_in_the_page(pages: Pages) -> None:
    pages.begin()
    job = pages.admit()
    pages.launch(job)
    store(pages.aws, items.curve(job.id), b'{"points": "none"}')
    store(pages.aws, items.launch(job.id, 2, 1), b"{}")
    store(pages.aws, items.node_report(NODE_ROLE, "i-1-0"), b"no report")
    pages.run()
    assert {one.partition(":")[0] for one in pages.newest.unread} == {"metric over steps", "launches"}


def test_a_report_of_a_node_that_cannot_be_read_is_counted_in_the_page(pages: Pages) -> None:
    pages.begin()
    job = pages.admit()
    pages.launch(job)
    pages.hear(job, 1, 0)
    store(pages.aws, items.node_report(NODE_ROLE, "i-1-1"), b"no report")
    pages.run()
    assert pages.newest.unread == ("reports of nodes of attempt 1: 1 report could not be read",)
    assert list(pages.newest.reports[1]) == [0]


def test_while_step_functions_does_not_answer_no_page_is_written(pages: Pages) -> None:
    """It alone knows whether the execution is over: a page without it would take the place of a better one."""
    execution = pages.begin()
    pages.admit()
    pages.report()
    pages.aws.faults.add(Kind.THROTTLED, "stepfunctions:DescribeExecution", times=10_000)
    pages.end(execution)
    pages.run(600)
    assert pages.count() == 0
    pages.aws.faults.waiting.clear()
    pages.run(200)
    assert pages.newest.status.name == "SUCCEEDED"


def test_an_execution_that_is_gone_is_dropped(pages: Pages) -> None:
    execution = pages.begin()
    pages.admit()
    del pages.aws.states.executions.known[execution.arn]
    pages.run(600)
    assert (pages.count(), pages.aws.queue.messages, pages.aws.queue.dead) == (0, {}, [])


@pytest.mark.parametrize("name", ["a b", "..", ".hidden", "umlaut-ä", "a@b", "x" * 81])
def test_a_name_that_no_job_can_have_has_no_page(pages: Pages, name: str) -> None:
    execution = pages.begin(name)
    pages.end(execution, "FAILED", "InvalidRequest")
    pages.run(600)
    assert [key for key in pages.aws.s3.buckets[JOB.home_bucket].objects if key.endswith(keys.PAGE)] == []
    assert (pages.aws.queue.messages, pages.aws.queue.dead) == ({}, [])


def test_an_event_that_comes_twice_writes_the_page_twice_and_no_more(pages: Pages) -> None:
    pages.aws.events.weather = lambda _: (1.0, 2.0)
    execution = pages.begin()
    pages.admit()
    pages.report()
    pages.end(execution)
    pages.run(3600)
    assert pages.count() == 4


def test_a_function_that_dies_before_it_has_written_is_called_again(pages: Pages) -> None:
    execution = pages.begin(is_heard=False)
    pages.admit()
    pages.report()
    pages.mishaps.append([Mishap("s3:PutObject", fault=Kind.ERROR, times=100)])
    pages.end(execution)
    pages.run(600)
    assert pages.count() == 1


def test_a_page_that_cannot_be_written_for_an_hour_becomes_a_letter(pages: Pages) -> None:
    execution = pages.begin(is_heard=False)
    pages.admit()
    pages.aws.faults.add(Kind.DENIED, "s3:PutObject", times=1000)
    pages.end(execution)
    pages.run(2 * 3600)
    assert [one.body for one in pages.aws.queue.dead]
    assert MACHINE.rpartition(":")[2] in pages.aws.queue.dead[0].body


def test_of_two_writers_the_one_that_read_earlier_may_win_and_the_clock_mends_it(pages: Pages) -> None:
    execution = pages.begin()
    pages.admit()
    pages.report()

    def overtake() -> None:
        pages.end_unheard(execution)

    pages.mishaps.append([Mishap("s3:PutObject", meanwhile=overtake)])
    pages.run()
    assert pages.newest.status.name == "RUNNING"
    pages.tick()
    pages.run()
    assert pages.newest.status.name == "SUCCEEDED"


def test_a_page_is_html_when_it_is_rendered(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    import page_writer.writing
    from pages.job import write_job

    monkeypatch.setattr(page_writer.writing, "write_job", write_job)
    pages.begin()
    pages.launch(pages.admit())
    pages.run()
    page = pages.page()
    assert page is not None
    assert b"<html" in page.body
    assert encode(JOB)[:10] not in page.body
