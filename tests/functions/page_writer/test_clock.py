"""The clock: it asks for pages of what runs, and of ends that no event told of; one failure keeps nothing else from its page."""

from __future__ import annotations

import json

import pytest

from contract.grid import GridPrefix
from contract.search import name_round
from localaws.model import Pages as ListPages
from page_writer.policy import PageKind
from tests.builders import JOB
from tests.fakes.executions import GRID_MACHINE, MACHINE, SEARCH_MACHINE
from tests.fakes.faults import Kind
from tests.functions.page_writer.account import Pages

SEARCH = {"backend": "sagemaker"}


def test_a_job_that_trains_has_a_page_that_is_at_most_five_minutes_old(pages: Pages) -> None:
    pages.start_clock()
    pages.begin()
    job = pages.admit()
    pages.launch(job)
    for _ in range(10):
        pages.run(301)
        assert pages.aws.clock.now - pages.newest.now <= 301
    assert set(pages.ticks) == {""}


def test_an_abort_of_which_no_event_tells_has_a_page_at_the_next_tick(pages: Pages) -> None:
    pages.begin()
    pages.admit()
    execution = pages.begin()
    pages.run()
    pages.end_unheard(execution, "ABORTED")
    pages.run(60)
    pages.tick()
    pages.run()
    assert pages.newest.status.name == "ABORTED"


def test_an_end_of_which_no_event_tells_gets_its_report_at_a_later_tick(pages: Pages) -> None:
    pages.start_clock()
    execution = pages.begin(is_heard=False)
    pages.admit()
    pages.end_unheard(execution, "ABORTED")
    pages.run(400)
    pages.report(error="Aborted")
    pages.run(400)
    assert pages.newest.report["error"] == "Aborted"
    written = pages.count()
    pages.run(3600)
    assert pages.count() == written


def test_an_end_of_long_ago_is_not_asked_for_again(pages: Pages) -> None:
    execution = pages.begin(is_heard=False)
    pages.admit()
    pages.end_unheard(execution)
    pages.run(7200)
    pages.tick()
    pages.run()
    assert pages.count() == 0


def test_a_report_that_the_cleanups_clock_caused_is_on_the_page(pages: Pages) -> None:
    """The event of the end got lost, so the report comes only when the cleanup's clock finds that it is missing."""
    timing = JOB.timing
    pages.start_clock()
    execution = pages.begin(is_heard=False)
    pages.admit()
    pages.end_unheard(execution, "ABORTED")
    pages.run(timing.missing_report_until_s + 1.5 * timing.terminate_patience_s - 301)
    pages.report(error="Aborted")
    pages.run(400)
    assert pages.newest.report["error"] == "Aborted"


def test_a_whole_page_is_not_asked_for_again(pages: Pages) -> None:
    execution = pages.begin(is_heard=False)
    pages.admit()
    pages.report()
    pages.end(execution)
    pages.run()
    before = len(pages.aws.calls)
    pages.tick()
    asked = [call.name for call in pages.aws.calls[before:]]
    assert "sqs:SendMessage" not in asked
    assert pages.count() == 1


def test_a_page_of_an_older_version_that_says_nothing_of_itself_is_asked_for(pages: Pages) -> None:
    execution = pages.begin(is_heard=False)
    pages.admit()
    pages.report()
    pages.write("jobs/job-1/report.html", b"old")
    pages.run()
    pages.end_unheard(execution)
    pages.tick()
    pages.run()
    assert pages.newest.status.name == "SUCCEEDED"


def test_grids_and_searches_that_run_are_asked_for_too_and_so_is_the_grid_of_a_round(pages: Pages) -> None:
    pages.begin("sweep", GRID_MACHINE, is_heard=False)
    pages.plan()
    pages.begin(name_round("tune", 1), GRID_MACHINE, is_heard=False)
    pages.begin("tune", SEARCH_MACHINE, is_heard=False)
    pages.settle(SEARCH)
    pages.run()
    pages.tick()
    asked = [call.params["MessageBody"] for call in pages.aws.calls if call.name == "sqs:SendMessage"]
    assert sorted(one.partition(',"')[0].partition('"execution"')[0] for one in asked) == [
        '{"kind": "grid", "name": "sweep", ',
        '{"kind": "grid", "name": "tune-r1", ',
        '{"kind": "search", "name": "tune", ',
    ]


def test_each_of_a_thousand_jobs_that_run_is_asked_for_once(pages: Pages) -> None:
    pages.aws.states.executions.pages = ListPages(size=100, error="InvalidToken")
    for number in range(1000):
        pages.begin(f"job-{number}", is_heard=False)
    pages.run()
    pages.aws.queue.feed(lambda _: None)
    assert pages.tick() == ""
    asked = [json.loads(one.body)["name"] for one in pages.aws.queue.messages.values()]
    assert sorted(asked) == sorted(f"job-{number}" for number in range(1000))


def test_a_message_of_the_clock_that_comes_late_is_dropped_because_another_one_follows(pages: Pages) -> None:
    pages.begin(is_heard=False)
    pages.admit()
    pages.run()
    pages.aws.queue.feed(lambda _: None)
    pages.tick()
    pages.run(700)
    (message,) = pages.aws.queue.messages.values()
    assert pages.invoke({"Records": [message.record()]}).value == {"batchItemFailures": []}
    assert pages.count() == 0


@pytest.mark.parametrize("kind", [Kind.THROTTLED, Kind.DENIED, Kind.UNREACHABLE])
def test_a_machine_that_cannot_be_listed_is_told_and_keeps_no_other_from_its_pages(pages: Pages, kind: Kind) -> None:
    pages.begin("sweep", GRID_MACHINE, is_heard=False)
    pages.plan()
    pages.run()
    pages.aws.faults.add(kind, "stepfunctions:ListExecutions", times=8 if kind is not Kind.DENIED else 1)
    assert pages.tick() == "NotAsked"
    pages.run()
    assert pages.newest.name == "sweep"


def test_a_page_that_cannot_be_asked_for_is_told(pages: Pages) -> None:
    execution = pages.begin(is_heard=False)
    pages.admit()
    pages.run()
    pages.end_unheard(execution)
    pages.aws.faults.add(Kind.DENIED, "s3:HeadObject")
    assert pages.tick() == "NotAsked"


def test_what_the_clock_asked_for_and_could_not_be_written_is_no_letter(pages: Pages) -> None:
    pages.begin(is_heard=False)
    pages.admit()
    pages.run()
    pages.aws.faults.add(Kind.DENIED, "s3:PutObject", times=1000)
    pages.tick()
    pages.run(7200)
    assert (pages.count(), pages.aws.queue.messages, pages.aws.queue.dead) == (0, {}, [])


def test_without_the_machines_of_grids_and_searches_jobs_have_their_pages(pages: Pages) -> None:
    pages.aws.states.executions.machines = {MACHINE}
    pages.begin(is_heard=False)
    pages.admit()
    pages.run()
    assert pages.tick() == ""
    pages.run()
    assert pages.count() == 1


def test_pages_of_names_that_lead_elsewhere_are_not_asked_for(pages: Pages) -> None:
    pages.begin("..", is_heard=False)
    pages.begin("a.b", GRID_MACHINE, is_heard=False)
    pages.run()
    assert pages.tick() == ""
    assert pages.aws.queue.messages == {}
    assert pages.page(PageKind.JOB, JOB.id) is None
    assert GridPrefix("a.b").page not in pages.aws.s3.buckets[JOB.home_bucket].objects
