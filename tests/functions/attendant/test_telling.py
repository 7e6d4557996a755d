"""People are told once that a training makes no progress, however many looks see it, and no message keeps Train waiting."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from attendant.notices import Message, word_stall
from attendant.stalls import AGAIN_S
from attendant.telling import SENDS_S, tell_once
from attendant.words import FOLLOWS
from aws.state import Notified, State
from contract import items
from contract.codec import encode
from contract.events import Event
from contract.items import ItemKey
from contract.jobs import Job, NoProgress, Reaction
from contract.reports import Phase, Progress
from tests.builders import JOB, NOW, TOPIC
from tests.fakes import state
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.fleet import WORKING, Fleet
from tests.fakes.functions import Outcome

TICK = {"source": "aws.events"}
MINUTES = 2.0


class Watched:
    """A fleet of two jobs of two nodes each, of which the first asks to be told."""

    def __init__(self, then: Reaction = Reaction.NOTIFY, *notify: Event) -> None:
        self.fleet = Fleet([2, 2], now=NOW, reporting=False)
        for wait in self.fleet.aws.states.waits.values():
            wait.heartbeat_s = 1e6  # the passes here are far from each other
        self.job = replace(
            self.fleet.jobs[0],
            owner="ada",
            notify=notify,
            stall=NoProgress(minutes=MINUTES, then=then),
            timing=replace(JOB.timing, warm_up_s=0.0),
        )
        state.store(self.fleet.aws, items.job(self.job.id), encode(self.job))

    @property
    def mails(self) -> list[tuple[str, str]]:
        return self.fleet.aws.topics.messages

    def after(self, seconds: float, *mishaps: Mishap, idle_s: float, step: int = 40, **fields: Any) -> Outcome:
        """A pass so much later, at which all nodes say so."""
        self.fleet.aws.clock.now += seconds
        for job in self.fleet.jobs:
            for rank, one in enumerate(self.fleet.instances[job.id]):
                said = replace(
                    WORKING, progress=Progress(step=step), idle_s=idle_s, phase_s=self.fleet.aws.clock.now - NOW, **fields
                )  # fmt: skip
                self.fleet._report(said, job.id, rank, one)
        return self.fleet.functions.invoke("attendant", TICK, mishaps)

    def stalls(self) -> None:
        self.after(300, idle_s=125.0)


@pytest.fixture
def watched() -> Iterator[Watched]:
    made = Watched()
    with made.fleet.functions.installed():
        yield made


def test_people_are_told_what_stands_and_what_they_can_do(watched: Watched) -> None:
    watched.stalls()
    ((head, text),) = watched.mails
    assert head == f"Trainyard {JOB.deployment}: {watched.job.id} makes no progress"
    assert text.startswith(
        f"Job {watched.job.id} of ada, attempt 1: The training has made no progress for 2.08 min (allowed: 2 min"
    )
    assert "says step 40" in text
    assert watched.job.execution in text
    assert watched.job.log_group in text


def test_of_one_stall_they_are_told_once_though_it_lasts_for_hours(watched: Watched) -> None:
    for number in range(20):
        watched.after(600, idle_s=125.0 + 600 * number)
    assert len(watched.mails) == 1


def test_of_the_next_one_they_are_told_again(watched: Watched) -> None:
    watched.stalls()
    watched.after(AGAIN_S + 60, idle_s=3.0, step=41)
    watched.after(200, idle_s=190.0, step=41)
    assert ["says step 40" in text for _, text in watched.mails] == [True, False]


def test_of_many_short_ones_they_are_told_seldom(watched: Watched) -> None:
    """A training that stalls and goes on, every five minutes for two hours."""
    for number in range(24):
        watched.after(300, idle_s=125.0, step=number)
    assert 24 * 300 / (AGAIN_S + 300) <= len(watched.mails) <= 24 * 300 / AGAIN_S


def test_a_training_that_goes_on_is_no_mail(watched: Watched) -> None:
    watched.after(300, idle_s=3.0)
    watched.after(300, idle_s=125.0, phase=Phase.SAVING)
    assert watched.mails == []


@pytest.mark.parametrize("then", [Reaction.RESTART, Reaction.STOP])
def test_where_something_else_follows_nobody_is_mailed(then: Reaction) -> None:
    made = Watched(then)
    with made.fleet.functions.installed():
        made.stalls()
        assert made.mails == []
        assert state.stored(made.fleet.aws, items.order(made.job.id, 1)) is not None
        assert state.stored(made.fleet.aws, items.order(made.fleet.jobs[1].id, 1)) is None


@pytest.mark.parametrize("then", [Reaction.RESTART, Reaction.STOP])
def test_where_something_else_follows_whoever_asked_is_told_once(then: Reaction) -> None:
    made = Watched(then, Event.STALLED)
    with made.fleet.functions.installed():
        made.stalls()
        made.after(10, idle_s=135.0)
        ((head, text),) = made.mails
        assert head == f"Trainyard {JOB.deployment}: {made.job.id} makes no progress"
        assert FOLLOWS[then] in text
        assert '{"then": "notify"}' not in text


def test_a_message_about_a_restart_that_could_not_be_sent_comes_while_its_nodes_stop() -> None:
    made = Watched(Reaction.RESTART, Event.STALLED)
    with made.fleet.functions.installed():
        made.after(300, Mishap("sns:Publish", fault=Kind.DENIED, times=99), idle_s=125.0)
        assert made.mails == []
        for number in range(5):
            made.after(50, idle_s=175.0 + 50 * number)
        assert len(made.mails) == 1


@pytest.mark.parametrize("kind", [Kind.DENIED, Kind.ERROR, Kind.UNREACHABLE])
def test_a_message_that_cannot_be_sent_keeps_nobody_waiting_and_comes_later(watched: Watched, kind: Kind) -> None:
    outcome = watched.after(300, Mishap("sns:Publish", fault=kind, times=99), idle_s=125.0)
    assert outcome.error == ""
    assert watched.mails == []
    assert all(wait.beaten_at >= NOW + 300 for wait in watched.fleet.aws.states.waits.values())
    watched.after(SENDS_S / 2, idle_s=185.0)
    assert watched.mails == []  # whoever began may be at it
    watched.after(SENDS_S, idle_s=305.0)
    assert len(watched.mails) == 1


@pytest.mark.parametrize("kind", [Kind.DENIED, Kind.ERROR])
@pytest.mark.parametrize("call", ["dynamodb:GetItem", "dynamodb:PutItem"])
def test_without_the_note_nobody_is_told_twice(watched: Watched, call: str, kind: Kind) -> None:
    watched.stalls()
    for number in range(12):
        mishaps = [Mishap(call, fault=kind, nth=number + 1)]
        watched.after(60, *mishaps, idle_s=185.0 + 60 * number)
    assert len(watched.mails) == 1


@pytest.mark.parametrize("when", Death)
def test_whoever_dies_while_it_tells_is_followed_by_another(watched: Watched, when: Death) -> None:
    watched.after(300, Mishap("sns:Publish", death=when), idle_s=125.0)
    for number in range(9):
        watched.after(60, idle_s=185.0 + 60 * number)
    assert len(watched.mails) == (1 if when is Death.BEFORE else 2)


def words(reason: str, job: Job = JOB, attempt: int = 1) -> Message:
    return word_stall(job, attempt, reason, goes_on=True, cost="It costs.")


def test_of_two_looks_at_once_one_tells(watched: Watched) -> None:
    """The other one has read that nobody does."""
    one, key, told = State(state.TABLE), items.stall_notice(watched.job.id, 1), list[ItemKey]()

    class Late(State):
        def read_notice(self, key: ItemKey) -> Notified | None:
            found = super().read_notice(key)
            tell_once(one, TOPIC, key, lambda: words("first"), now=NOW)
            told.append(key)
            return found

    tell_once(Late(state.TABLE), TOPIC, key, lambda: words("second"), now=NOW)
    assert told == [key]
    assert ["first" in text for _, text in watched.mails] == [True]


def test_the_text_of_a_job_without_an_owner_has_no_hole() -> None:
    assert "Job job-1, attempt 2: It stands." in words("It stands.", replace(JOB, owner=""), 2).text


def test_what_an_owner_is_called_breaks_no_subject() -> None:
    assert "\n" not in words("x").subject
