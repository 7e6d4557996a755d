"""The history of an execution, as a story."""

from __future__ import annotations

from typing import Any

import pytest

from contract.money import up_to_cents
from tests.builders import NOW
from tests.command_line.account import LAUNCH, History
from trainyard.story import Story, tell


def lines(history: History) -> list[str]:
    return [line for _, line in tell(history.events).lines]


def test_a_job_that_goes_well_has_a_line_for_each_thing_that_happens() -> None:
    history = (
        History().admit().launch().leave("Train", {"progress": {"step": 7}}).enter("Sync").end_attempt().enter("Done")
    )
    assert lines(history) == [
        "admitted: 2 places to try",
        "attempt 1: looks for nodes",
        "attempt 1: launched 2 x g5.xlarge in eu-central-1a, spot, $2.50 an hour at most",
        "attempt 1: the training is done, and its nodes end",
    ]


def test_an_interruption_says_why_and_from_where_it_goes_on() -> None:
    history = (
        History()
        .admit()
        .launch()
        .end_attempt("Interrupted", "rank 1: spot notice\nmore", step=210)
        .enter("Pause")
        .launch()
    )
    story = tell(history.events)
    assert [line for _, line in story.lines][3:5] == [
        "attempt 1 ended: Interrupted: rank 1: spot notice",
        "attempt 2 follows, and goes on from step 210",
    ]
    newest = story.attempt
    assert newest is not None
    assert (newest.number, newest.ended, newest.instances) == (2, False, ("i-0", "i-1"))
    assert (story.tries[0].error, story.tries[0].cause) == ("Interrupted", "rank 1: spot notice\nmore")


def test_without_a_checkpoint_it_begins_again() -> None:
    history = History().admit().launch().end_attempt("NodeLost", "gone").enter("Pause")
    assert lines(history)[-1] == "attempt 2 follows, and begins again: there is no checkpoint with a step"


def test_a_step_of_an_earlier_attempt_is_not_forgotten() -> None:
    history = History().admit().launch().end_attempt("NodeLost", "gone", step=30).enter("Pause").launch()
    assert lines(history.end_attempt("NodeLost", "gone").enter("Pause"))[-1].endswith("goes on from step 30")


def test_a_wait_for_capacity_is_told_once_however_often_its_state_is_entered() -> None:
    history = History().admit().enter("Launch").enter("Wait for capacity").enter("Wait for capacity")
    waited = history.leave("Wait for capacity", LAUNCH).enter("Train")
    assert len([line for line in lines(waited) if line.startswith("waits: no place of the ladder has capacity")]) == 1
    assert lines(waited)[-1].startswith("attempt 1: launched 2 x g5.xlarge")


def test_a_state_that_is_tried_again_ends_an_attempt_once() -> None:
    history = History().admit().launch().enter("Terminate")
    for _ in range(3):
        history.schedule({"problem": {"error": "NodeLost", "cause": "gone"}})
    assert [line for line in lines(history) if "ended" in line] == ["attempt 1 ended: NodeLost: gone"]


def test_an_error_of_another_functions_call_is_no_end_of_an_attempt() -> None:
    history = History().admit().launch().schedule({"problem": {"error": "X", "cause": "of Train"}})
    assert not any("ended" in line for line in lines(history))


@pytest.mark.parametrize("answer", [None, [], "text", {"ladder": 1}, {"rungs": [], "instances": []}], ids=str)
def test_an_answer_of_another_version_is_left_out(answer: Any) -> None:
    history = (
        History().enter("Admit").leave("Admit", {"job": "x"}).enter("Launch").leave("Launch", answer).enter("Train")
    )
    assert lines(history) == ["attempt 1: looks for nodes"]


@pytest.mark.parametrize("given", [1, "i-0", {"0": "i-0"}, True], ids=str)
def test_what_another_version_wrote_is_said_to_be_so(given: Any) -> None:
    history = History().enter("Admit").leave("Admit", {"ladder": given}).enter("Launch")
    words = "more is not known: its answer was written by another version"
    assert lines(history.leave("Launch", {"instances": given})) == [
        f"admitted: {words}",
        "attempt 1: looks for nodes",
        f"attempt 1: launched; {words}",
    ]


@pytest.mark.parametrize("output", ["", "{", "[" * 50_000, "null", None], ids=["empty", "cut", "deep", "null", "none"])
def test_what_is_no_json_is_left_out(output: str | None) -> None:
    history = (
        History().enter("Admit").add("TaskStateExited", stateExitedEventDetails={"name": "Admit", "output": output})
    )
    assert tell(history.events).lines == []


def test_an_empty_history_is_an_empty_story() -> None:
    assert tell([]) == Story()


def test_the_cost_so_far_has_the_attempts_that_ended_and_the_one_that_runs() -> None:
    history = History().admit().launch().end_attempt("NodeLost", "gone", usd=3.0).enter("Pause").launch()
    story = tell(history.events)
    newest = story.attempt
    assert newest is not None
    assert newest.launched_at is not None
    assert story.cost_at_most(newest.launched_at + 3600) == pytest.approx(3.0 + 2.5)


def test_a_minute_at_least_is_billed_and_cents_are_rounded_up() -> None:
    story = tell(History().admit().launch().events)
    assert story.attempt is not None
    story.attempt.hourly_usd = 0.1
    assert story.cost_at_most(NOW - 1e6) == 0.01  # 60 s cost 0.0017
    assert story.cost_at_most(NOW + 4000) == 0.12  # 0.111
    story.attempt.hourly_usd = 0.0
    assert story.cost_at_most(NOW + 3600) == 0.0


def test_a_launch_is_counted_from_its_beginning_and_a_wait_for_capacity_is_not() -> None:
    slow = History().admit().enter("Launch")
    slow.at += 3600
    assert tell(slow.leave("Launch", LAUNCH).enter("Train").events).cost_at_most(slow.at) == 2.51
    waits = History().admit().enter("Launch").enter("Wait for capacity")
    waits.at += 14 * 86_400
    assert tell(waits.leave("Wait for capacity", LAUNCH).events).cost_at_most(waits.at) == 0.21  # 300 s of the last try


@pytest.mark.parametrize("answer", [None, {}, {"cost": None}, {"cost": {}}, {"cost": [1]}], ids=str)
def test_an_attempt_costs_until_its_end_for_as_long_as_terminate_has_not_said_what(answer: Any) -> None:
    history = History().admit().launch().end_attempt("NodeLost", "gone", usd=3.0).enter("Pause").launch()
    history.at += 3600
    history.enter("Terminate").schedule({"problem": {"error": "NodeLost", "cause": "gone"}})
    if answer is not None:
        history.leave("Terminate", answer)
    newest = (story := tell(history.events)).attempt
    assert newest is not None
    assert newest.launched_at is not None
    assert newest.ended_at is not None
    hours = (newest.ended_at - newest.launched_at) / 3600
    assert hours > 1
    assert story.cost_at_most(history.at + 1e6) == up_to_cents(3.0 + 2.5 * hours)


@pytest.mark.parametrize("usd", ["unknown", None])
def test_a_cost_that_is_not_known_is_not_guessed(usd: object) -> None:
    story = tell(History().admit().launch().end_attempt("NodeLost", "gone", usd=usd).events)
    assert story.cost_at_most(NOW + 3600) is None


def test_a_launch_without_a_price_has_a_cost_that_is_not_known() -> None:
    unpriced = {**LAUNCH, "cost": {"usd_an_hour_at_most": "unknown"}}
    history = History().admit().enter("Launch").leave("Launch", unpriced).enter("Train")
    assert tell(history.events).cost_at_most(NOW + 3600) is None
    assert lines(history)[-1] == "attempt 1: launched 2 x g5.xlarge in eu-central-1a, spot"


def test_a_cause_of_a_million_characters_is_short_in_its_line() -> None:
    history = History().admit().launch().end_attempt("NodeLost", "x" * 1_000_000)
    assert len(lines(history)[-1]) < 600
