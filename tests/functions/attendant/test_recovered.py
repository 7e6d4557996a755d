"""People are told once that a new attempt trains, where they want to be: not of a first one, nor of one that has not begun."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from attendant.notices import stall_reason, trains_again
from attendant.policy import Action, Verdict
from attendant.telling import SENDS_S
from aws.facts import Given
from aws.state import CAUSE, State
from contract import items
from contract.codec import decode, encode
from contract.errors import Stalled
from contract.events import Event
from contract.intents import Intent
from contract.orders import Order, OrderKind
from contract.reports import Phase
from tests.builders import JOB, NOW
from tests.fakes import state
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.fleet import WORKING, Fleet
from tests.fakes.functions import Outcome
from tests.fakes.state import TABLE
from tests.functions.attendant.attempts import TRAINING, ended, heard

TICK = {"source": "aws.events"}
LOST = {"error": "NodeLost", "cause": "rank 1 (i-1) has not reported for 400 s."}
BEGUN = {"timeline": {"started": NOW}}
GOES_ON = Verdict(action=Action.HEARTBEAT, reason="it trains")


class Watched:
    """A job of two nodes whose second attempt is in Train."""

    def __init__(self, *notify: Event) -> None:
        self.fleet = Fleet([2], now=NOW, reporting=False)
        for wait in self.fleet.aws.states.waits.values():
            wait.heartbeat_s = 1e6
        self.job = replace(self.fleet.jobs[0], owner="ada", notify=notify)
        self.ids = self.fleet.instances[self.job.id]
        aws, token = self.fleet.aws, self.fleet.tokens[self.job.id]
        state.store(aws, items.job(self.job.id), encode(self.job))
        walk = state.stored(aws, items.launch(self.job.id, 1, 1))
        assert walk is not None
        state.store(aws, items.launch(self.job.id, 2, 1), encode(replace(decode(Intent, walk), attempt=2)))
        told = {"job": self.job.id, "attempt": 2, "token": token}
        state.store(aws, self.fleet.key(self.job.id), json.dumps(told).encode())

    @property
    def mails(self) -> list[tuple[str, str]]:
        return self.fleet.aws.topics.messages

    def looks(self, *mishaps: Mishap, **fields: Any) -> Outcome:
        """A minute later, at which all nodes say so."""
        self.fleet.aws.clock.now += 60
        for rank, one in enumerate(self.ids):
            self.fleet._report(replace(WORKING, attempt=2, **fields), self.job.id, rank, one)
        return self.fleet.functions.invoke("attendant", TICK, mishaps)


@pytest.fixture
def watched() -> Iterator[Watched]:
    made = Watched(Event.RECOVERED)
    with made.fleet.functions.installed():
        State(TABLE).note_end(made.job.id, 1, NOW - 100, LOST)
        yield made


def test_people_are_told_why_where_and_from_which_step_it_trains_again(watched: Watched) -> None:
    watched.looks(restored_step=120)
    ((head, text),) = watched.mails
    assert head == f"Trainyard {JOB.deployment}: {watched.job.id} trains again (attempt 2)"
    assert "attempt 2 trains in eu-central-1, from the checkpoint of step 120." in text
    assert "Attempt 1: NodeLost: rank 1 (i-1) has not reported for 400 s." in text
    assert "Its cost so far is unknown" in text
    assert watched.fleet.aws.topics.attributes[0]["event"] == "recovered"


@pytest.mark.parametrize(
    ("restored", "words"),
    [
        ("", "from the beginning: there was no checkpoint."),
        ("bucket/1/3", "from the newest checkpoint, whose trainer reported no step."),
    ],
)
def test_a_checkpoint_without_a_step_is_no_beginning(watched: Watched, restored: str, words: str) -> None:
    watched.looks(restored=restored)
    assert f"trains in eu-central-1, {words}" in watched.mails[0][1]


def test_they_are_told_once_though_it_trains_for_hours(watched: Watched) -> None:
    for _ in range(20):
        watched.looks()
    assert len(watched.mails) == 1


def test_nobody_is_told_before_every_node_has_begun(watched: Watched) -> None:
    watched.looks(phase=Phase.RESTORING, timeline={"booted": NOW})
    assert watched.mails == []


@pytest.mark.parametrize("notify", [(), (Event.DONE, Event.FAILED, Event.STALLED)])
def test_nobody_is_told_who_did_not_ask(notify: tuple[Event, ...]) -> None:
    made = Watched(*notify)
    with made.fleet.functions.installed():
        made.looks()
        assert made.mails == []
        assert not [call for call in made.fleet.aws.calls if "recovered" in str(call.params)]


def test_an_attempt_of_which_no_end_was_noted_is_told_all_the_same() -> None:
    made = Watched(Event.RECOVERED)
    with made.fleet.functions.installed():
        made.looks()
        assert "The table has no cause for the end of attempt 1" in made.mails[0][1]
        assert "from the beginning" in made.mails[0][1]


@pytest.mark.parametrize("kind", [Kind.DENIED, Kind.ERROR, Kind.UNREACHABLE])
def test_a_message_that_cannot_be_sent_keeps_nobody_waiting_and_comes_later(watched: Watched, kind: Kind) -> None:
    assert watched.looks(Mishap("sns:Publish", fault=kind, times=99)).error == ""
    assert all(wait.beaten_at >= NOW + 60 for wait in watched.fleet.aws.states.waits.values())
    for _ in range(int(SENDS_S / 60) + 1):
        watched.looks()
    assert len(watched.mails) == 1


@pytest.mark.parametrize("death", Death)
def test_whoever_dies_while_it_tells_is_followed_by_another(watched: Watched, death: Death) -> None:
    watched.looks(Mishap("sns:Publish", death=death))
    for _ in range(6):
        watched.looks()
    assert len(watched.mails) == (1 if death is Death.BEFORE else 2)


def test_what_was_noted_of_an_end_and_cannot_be_read_keeps_nobody_waiting(watched: Watched) -> None:
    state.store(watched.fleet.aws, items.ended(watched.job.id, 1), b"no JSON")
    assert watched.looks().error == ""
    assert watched.mails == []


def test_what_ended_an_attempt_is_noted_once_short_and_in_whole_letters(watched: Watched) -> None:
    found = State(TABLE)
    found.note_end(watched.job.id, 2, NOW, {"error": "TrainingFailed", "cause": "\ud800" + "x" * 100_000})
    found.note_end(watched.job.id, 2, NOW + 9, {"error": "NodeLost", "cause": "later"})
    end = found.endings(watched.job.id)[2]
    assert (end.at, end.error, end.cause[:2], len(end.cause)) == (NOW, "TrainingFailed", "?x", CAUSE)


def test_of_an_attempt_that_ended_well_no_problem_is_noted(watched: Watched) -> None:
    State(TABLE).note_end(watched.job.id, 2, NOW)
    State(TABLE).close(watched.job.id, 3)
    ends = State(TABLE).endings(watched.job.id)
    assert (ends.keys(), ends[2].error) == ({1, 2}, "")


# The decision


SECOND = replace(
    TRAINING,
    attempt=2,
    job=replace(JOB, notify=(Event.RECOVERED, Event.STALLED)),
    nodes={0: heard(0, **BEGUN), 1: heard(1, **BEGUN)},
)


def test_a_second_attempt_in_which_all_have_begun_trains_again() -> None:
    assert trains_again(SECOND, GOES_ON)
    both = {0: ended(0), 1: ended(1)}
    assert trains_again(replace(SECOND, nodes=both), Verdict(action=Action.SUCCEED, reason="all ended"))


def test_a_first_attempt_one_that_fails_and_one_that_has_not_begun_do_not() -> None:
    assert not trains_again(replace(SECOND, attempt=1), GOES_ON)
    assert not trains_again(SECOND, Verdict(action=Action.FAIL, reason="lost", error="NodeLost"))
    assert not trains_again(replace(SECOND, nodes={0: heard(0, **BEGUN)}), GOES_ON)
    assert not trains_again(replace(SECOND, nodes={0: heard(0, **BEGUN), 1: heard(1)}), GOES_ON)


DUMP = Order(kind=OrderKind.DUMP, error=Stalled.__name__, reason="It stands.", by=int(NOW), author="attendant")


def test_an_order_to_a_stalled_training_is_told_as_long_as_the_attempt_lasts() -> None:
    ordered = replace(SECOND, order=Given(order=DUMP, age_s=3.0))
    for action in (Action.HEARTBEAT, Action.FAIL):
        assert stall_reason(ordered, Verdict(action=action, reason="x")) == "It stands."
    assert stall_reason(SECOND, Verdict(action=Action.ORDER, reason="x", order=DUMP)) == "It stands."


@pytest.mark.parametrize(
    "order",
    [
        replace(DUMP, author="rank 1"),
        replace(DUMP, error="DeadlineReached"),
        replace(DUMP, kind=OrderKind.CHECKPOINT_AND_STOP),
    ],
)
def test_another_order_is_no_stall(order: Order) -> None:
    assert stall_reason(replace(SECOND, order=Given(order=order, age_s=3.0)), GOES_ON) == ""


def test_a_stall_that_is_ended_is_told_to_nobody_who_did_not_ask() -> None:
    quiet = replace(SECOND, job=replace(JOB, notify=(Event.DONE,)), order=Given(order=DUMP, age_s=3.0))
    assert stall_reason(quiet, GOES_ON) == ""
