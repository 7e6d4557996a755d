"""A cap on a job's cost, over its attempts: what is launched, until when, and how the job ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from contract import items, tags
from contract.codec import decode
from contract.intents import Intent
from contract.jobs import Job, Rung
from tests.builders import JOB, rung
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.functions import Functions, Outcome
from tests.fakes.state import stored
from tests.fakes.yard import admitted, deployed, home

HOUR = 3600.0
OFF_S = JOB.timing.power_off_after_deadline_s
CHEAP, DEAR = replace(rung(), most_usd=2.0), replace(rung("eu-central-1b"), most_usd=8.0)


class Yard:
    """Attempts of one job of two nodes, one after the other."""

    def __init__(self, *ladder: Rung, cap: float | None) -> None:
        self.aws = deployed()
        self.functions = Functions(self.aws)
        self.job: Job = admitted(self.aws, replace(JOB, ladder=ladder, max_cost_usd=cap, max_hours=100.0))

    def launch(self, attempt: int, *mishaps: Mishap) -> Outcome:
        event = {"job": JOB.id, "attempt": attempt}
        outcome = self.functions.invoke("launcher", event, mishaps)
        for _ in range(20):
            if outcome.error in {"", "BudgetExceeded"}:
                break
            self.run(60)
            outcome = self.functions.invoke("launcher", event)
        return outcome

    def terminate(self, attempt: int) -> dict[str, Any]:
        problem = {"error": "NodeLost", "cause": "rank 0 is lost"}
        for _ in range(10):
            outcome = self.functions.invoke("terminator", {"job": JOB.id, "attempt": attempt, "problem": problem})
            if not outcome.error:
                return dict(outcome.value)
            self.run(15)
        raise AssertionError(outcome)

    def run(self, seconds: float) -> None:
        self.aws.clock.run(seconds)

    def cost(self) -> float:
        """What EC2 would bill by the prices of the ladder."""
        usd = {one.zone: one.most_usd or 0.0 for one in self.job.ladder}
        now = self.aws.clock.now
        return sum(
            usd[one.zone] * (min(one.ending_at, now) - one.launched_at) / HOUR
            for one in home(self.aws).machines.values()
        )


@pytest.fixture
def yard() -> Iterator[Yard]:
    """Four dollars an hour, and twelve in all."""
    made = Yard(CHEAP, cap=12.0)
    with made.functions.installed():
        yield made


def test_the_nodes_get_the_deadline_up_to_which_the_money_lasts(yard: Yard) -> None:
    launched = yard.launch(1).value
    began = yard.aws.clock.now
    assert launched["late_error"] == "BudgetExceeded"
    assert launched["deadline"] == pytest.approx(began + 3 * HOUR - OFF_S, abs=60)
    assert {one.tags[tags.DEADLINE] for one in home(yard.aws).running()} == {str(launched["deadline"])}
    assert launched["cost"] == {"usd_an_hour_at_most": 4.0, "usd_spent_before": 0.0, "max_cost_usd": 12.0}


def test_the_next_attempt_has_what_the_one_before_left(yard: Yard) -> None:
    yard.launch(1)
    yard.run(HOUR)
    yard.terminate(1)
    launched = yard.launch(2).value
    assert launched["cost"]["usd_spent_before"] == pytest.approx(4.0, abs=0.2)
    assert launched["deadline"] == pytest.approx(yard.aws.clock.now + 2 * HOUR - OFF_S, abs=240)


def test_time_between_attempts_costs_nothing(yard: Yard) -> None:
    yard.launch(1)
    yard.run(HOUR)
    yard.terminate(1)
    yard.run(48 * HOUR)
    assert yard.launch(2).value["cost"]["usd_spent_before"] == pytest.approx(4.0, abs=0.2)


def test_a_terminate_that_comes_again_later_makes_nothing_dearer(yard: Yard) -> None:
    yard.launch(1)
    yard.run(HOUR)
    first = yard.terminate(1)
    yard.run(24 * HOUR)
    assert yard.terminate(1)["cost"] == first["cost"]


def test_what_was_spent_is_read_at_once_however_many_attempts_there_were(yard: Yard) -> None:
    """One job of 500 attempts must not keep the turn of a thousand others waiting."""

    def reads(attempt: int) -> int:
        before = len(yard.aws.calls)
        yard.launch(attempt)
        made = sum(call.name in {"dynamodb:GetItem", "dynamodb:Query"} for call in yard.aws.calls[before:])
        yard.run(60)
        yard.terminate(attempt)
        return made

    first, second, *later = [reads(attempt) for attempt in range(1, 7)]
    assert first < second
    assert set(later) == {second}


def test_without_enough_money_for_an_attempt_the_job_ends_and_nothing_is_launched(yard: Yard) -> None:
    yard.launch(1)
    yard.run(2.9 * HOUR)
    yard.terminate(1)
    before = len(home(yard.aws).machines)
    outcome = yard.launch(2)
    assert outcome.error == "BudgetExceeded"
    assert "max_cost_usd is $12, and the attempts so far have cost $11." in outcome.cause
    assert len(home(yard.aws).machines) == before


def test_a_place_that_became_too_dear_is_not_asked_while_another_is_affordable() -> None:
    yard = Yard(DEAR, CHEAP, cap=20.0)
    with yard.functions.installed():
        home(yard.aws).capacity[DEAR.instance_type, DEAR.zone] = 0
        yard.launch(1)
        yard.run(4.25 * HOUR)
        yard.terminate(1)
        del home(yard.aws).capacity[DEAR.instance_type, DEAR.zone]
        launched = yard.launch(2).value
    assert launched["rungs"][0]["answer"] == "NotAsked: too expensive for the rest of max_cost_usd"
    assert {one.zone for one in home(yard.aws).running()} == {CHEAP.zone}


def test_nodes_of_a_launch_whose_answer_never_came_are_counted_once_it_is_given_up(yard: Yard) -> None:
    """The instances run; the walk has gone on because its patience was over, and found nothing else."""
    lost = Mishap("ec2:RunInstances", times=10_000, fault=Kind.LOST)
    for _ in range(60):
        if yard.functions.invoke("launcher", {"job": JOB.id, "attempt": 1}, [lost]).error == "CapacityUnavailable":
            break
        yard.run(60)
    assert len(home(yard.aws).running()) == JOB.nodes
    yard.run(HOUR)
    assert yard.terminate(1)["cost"]["usd_at_most"] >= round(yard.cost(), 2) > 4.0


def test_nodes_that_a_lost_answer_left_behind_are_paid_for_beside_those_that_train() -> None:
    """The first place launches and never says so; once patience is over another one in the region launches too, and both run."""
    other = replace(CHEAP, zone="eu-central-1b")
    yard = Yard(CHEAP, other, cap=12.0)
    with yard.functions.installed():
        event = {"job": JOB.id, "attempt": 1}
        yard.functions.invoke("launcher", event, [Mishap("ec2:RunInstances", death=Death.AFTER)])
        yard.run(JOB.timing.launch_patience_s)
        launched = yard.functions.invoke("launcher", event, [Mishap("ec2:RunInstances", fault=Kind.LOST)])
        assert len(home(yard.aws).running()) == 2 * JOB.nodes
        yard.run(int(launched.value["deadline"]) + OFF_S - yard.aws.clock.now)
        assert yard.cost() <= 12.0
        assert yard.terminate(1)["cost"]["usd_at_most"] >= round(yard.cost(), 2)


def test_a_launcher_that_dies_before_it_notes_the_answer_hides_no_cost(yard: Yard) -> None:
    yard.functions.invoke("launcher", {"job": JOB.id, "attempt": 1}, [Mishap("ec2:RunInstances", death=Death.AFTER)])
    yard.run(HOUR)
    assert yard.terminate(1)["cost"]["usd_at_most"] >= round(yard.cost(), 2) > 3.9


def test_the_report_says_what_the_job_has_cost_at_most(yard: Yard) -> None:
    yard.launch(1)
    yard.run(HOUR)
    told = yard.terminate(1)
    assert told["cost"]["usd_at_most"] == pytest.approx(4.0, abs=0.2)
    assert told["cost"]["usd_at_most"] >= round(yard.cost(), 2) - 0.01


def test_a_job_without_prices_has_an_unknown_cost_and_trains(yard: Yard) -> None:
    yard.job = admitted(yard.aws, replace(yard.job, ladder=(rung(),), max_cost_usd=None))
    assert yard.launch(1).value["cost"]["usd_an_hour_at_most"] == "unknown"
    assert yard.terminate(1)["cost"]["usd_at_most"] == "unknown"


def deaths() -> Iterator[Any]:
    """Before and after each call; who dies before a call leaves what one left who died after the call before it."""
    for nth in range(1, 26):
        yield pytest.param(nth, Death.BEFORE, marks=pytest.mark.at_length if nth > 1 else ())
        yield pytest.param(nth, Death.AFTER, marks=pytest.mark.at_length if nth % 2 == 0 else ())


@pytest.mark.parametrize(("nth", "death"), list(deaths()))
def test_a_launcher_killed_at_any_call_never_lets_the_job_pass_its_cap(yard: Yard, nth: int, death: Death) -> None:
    """Attempts of forty minutes, each launcher killed once, until the money is used up."""
    for attempt in range(1, 12):
        outcome = yard.launch(attempt, Mishap("*", nth, death=death))
        if outcome.error == "BudgetExceeded":
            break
        left = int(outcome.value["deadline"]) + OFF_S - yard.aws.clock.now
        yard.run(min(2400.0, left))
        yard.terminate(attempt)
    assert outcome.error == "BudgetExceeded"
    assert yard.cost() <= 12.0


def test_the_same_walk_taken_over_has_the_same_deadline(yard: Yard) -> None:
    """The token of a launch binds all its bytes, the deadline's too."""
    yard.functions.invoke("launcher", {"job": JOB.id, "attempt": 1}, [Mishap("ec2:RunInstances", death=Death.AFTER)])
    written = decode(Intent, stored(yard.aws, items.launch(JOB.id, 1, 1)) or b"")
    yard.run(400)
    launched = yard.launch(1).value
    marks = {tag["Key"]: tag["Value"] for tag in written.steps[0].request["TagSpecifications"][0]["Tags"]}
    assert str(launched["deadline"]) == marks[tags.DEADLINE]
    assert len(home(yard.aws).running()) == JOB.nodes
