"""A training is stalled by what its nodes measured of it: never by their silence, nor while it begins, saves, or is ordered to stop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from attendant.facts import AttemptFacts
from attendant.policy import Action, Verdict, judge
from attendant.stalls import AGAIN_S, DUMP_S, StallFacts, find_stall
from aws.facts import Given
from contract.errors import NEW_ATTEMPT, Stalled
from contract.jobs import NoProgress, Reaction
from contract.orders import Order, OrderKind
from contract.reports import Exit, Phase, Progress
from tests.builders import JOB, NOW
from tests.functions.attendant.attempts import GIVEN, IDS, TRAINING, ended, heard, instance

MINUTES = 30.0
LONG_S = 2 * 3600.0
"""For so long the trainings here have trained."""
LATE = NOW + LONG_S + 600
STUCK: dict[str, Any] = {"phase_s": LONG_S, "idle_s": MINUTES * 60 + 1, "progress": Progress(step=40)}
MOVES: dict[str, Any] = {**STUCK, "idle_s": 3.0}
BARE: dict[str, Any] = {"phase_s": LONG_S, "idle_s": MINUTES * 60 + 1}
"""Of a rank without a progress file."""


def attempt(*fields: dict[str, Any], then: Reaction = Reaction.RESTART, age_s: float = 5.0) -> AttemptFacts:
    nodes = {rank: heard(rank, age_s=age_s, **one) for rank, one in enumerate(fields)}
    job = replace(JOB, stall=NoProgress(minutes=MINUTES, then=then))
    return replace(TRAINING, job=job, nodes=nodes)


def action(facts: AttemptFacts, now: float = LATE) -> Action:
    return judge(facts, now=now).action


def order_of(verdict: Verdict) -> Order:
    assert verdict.order is not None
    return verdict.order


# What follows


def test_a_restart_orders_every_node_to_dump_and_the_attempts_error_is_followed_by_a_new_one() -> None:
    verdict = judge(attempt(STUCK, BARE), now=LATE)
    order = order_of(verdict)
    assert (verdict.action, order.kind, order.error) == (Action.ORDER, OrderKind.DUMP, Stalled.__name__)
    assert Stalled in NEW_ATTEMPT
    assert order.by == int(LATE + DUMP_S + JOB.timing.stop_grace_s)
    assert order.reason == (
        "The training has made no progress for 30 min (allowed: 30 min, by stall.minutes of the request): rank 0 reports, and its "
        "progress file says step 40. A new attempt begins if one is left. The log of each node has its stacks."
    )


def test_a_stop_orders_the_same_and_says_that_the_job_ends() -> None:
    order = order_of(judge(attempt(STUCK, BARE, then=Reaction.STOP), now=LATE))
    assert (order.kind, order.error) == (OrderKind.DUMP, Stalled.__name__)
    assert "The job ends, as the request says." in order.reason


def test_a_notice_orders_nothing_and_the_training_goes_on() -> None:
    verdict = judge(attempt(STUCK, BARE, then=Reaction.NOTIFY), now=LATE)
    assert (verdict.action, verdict.order) == (Action.HEARTBEAT, None)
    assert verdict.stall == StallFacts(idle_s=MINUTES * 60 + 1, age_s=5.0, rank=0, then=Reaction.NOTIFY)
    assert verdict.checkpoint is not None


@pytest.mark.parametrize("then", Reaction)
def test_a_training_within_its_minutes_goes_on(then: Reaction) -> None:
    facts = attempt({**STUCK, "idle_s": MINUTES * 60}, BARE, then=then)
    verdict = judge(facts, now=LATE)
    assert (verdict.action, verdict.stall) == (Action.HEARTBEAT, None)


def test_without_the_field_a_training_may_stand_for_its_hours() -> None:
    assert action(replace(attempt(STUCK, STUCK), job=JOB)) is Action.HEARTBEAT


# What progress is


def test_the_progress_of_one_rank_is_the_jobs() -> None:
    assert action(attempt(STUCK, MOVES)) is Action.HEARTBEAT
    assert action(attempt(MOVES, STUCK)) is Action.HEARTBEAT


def test_where_a_rank_has_a_progress_file_the_output_of_others_is_none() -> None:
    """A rank whose collective hangs goes on to warn of it."""
    assert action(attempt(STUCK, {**BARE, "idle_s": 1.0})) is Action.ORDER


def test_without_a_progress_file_the_output_of_any_rank_is_progress() -> None:
    assert action(attempt(BARE, {**BARE, "idle_s": 1.0})) is Action.HEARTBEAT
    verdict = judge(attempt(BARE, BARE), now=LATE)
    assert "rank 0 reports, and it writes no output and no checkpoint." in order_of(verdict).reason


def test_the_rank_that_moved_last_is_named() -> None:
    verdict = judge(attempt({**STUCK, "idle_s": 5000.0}, {**STUCK, "idle_s": 4000.0}), now=LATE)
    assert "for 66.7 min" in order_of(verdict).reason
    assert "rank 1 reports" in order_of(verdict).reason


# When it is not judged


@pytest.mark.parametrize("phase", [one for one in Phase if one is not Phase.TRAINING])
def test_an_attempt_with_a_node_that_does_not_train_is_not_stalled(phase: Phase) -> None:
    """It restores, prepares, waits for its master, or makes its last commits; each has a time of its own."""
    facts = attempt(STUCK, {"phase": phase, "phase_s": 10.0, "idle_s": MINUTES * 60 + 1})
    assert find_stall(facts, now=LATE) is None


def test_an_attempt_in_which_a_node_has_not_reported_is_not_stalled() -> None:
    facts = attempt(STUCK, BARE)
    assert find_stall(replace(facts, nodes={0: facts.nodes[0]}), now=LATE) is None


def test_an_attempt_of_agents_that_do_not_measure_is_not_stalled() -> None:
    assert action(attempt({**STUCK, "idle_s": None}, {**BARE, "idle_s": None})) is Action.HEARTBEAT


def test_one_rank_that_is_not_measured_and_has_no_progress_file_says_nothing() -> None:
    assert action(attempt(BARE, {**BARE, "idle_s": None})) is Action.HEARTBEAT


@pytest.mark.parametrize("which", [0, 1])
def test_the_warm_up_of_the_last_node_that_began_is_not_counted(which: int) -> None:
    begins: dict[str, Any] = {**STUCK, "phase_s": JOB.timing.warm_up_s + MINUTES * 60}
    fields = [STUCK, STUCK]
    fields[which] = begins
    assert action(attempt(*fields)) is Action.HEARTBEAT
    fields[which] = {**begins, "phase_s": begins["phase_s"] + 1}
    assert action(attempt(*fields)) is Action.ORDER


def test_a_training_that_never_began_its_first_step_is_stalled_after_its_warm_up() -> None:
    """As where NCCL hangs while it connects."""
    long_s = JOB.timing.warm_up_s + MINUTES * 60 + 1
    assert action(attempt({"phase_s": long_s, "idle_s": long_s}, {"phase_s": long_s, "idle_s": long_s})) is Action.ORDER


def test_no_training_is_idle_for_longer_than_its_attempt_is_old() -> None:
    lies: dict[str, Any] = {**STUCK, "phase_s": 1e300, "idle_s": 1e300}
    assert action(attempt(lies, lies), now=NOW + JOB.timing.warm_up_s + MINUTES * 60) is Action.HEARTBEAT
    found = find_stall(attempt(lies, lies), now=LATE)
    assert found is not None
    assert found.idle_s == LATE - NOW


@pytest.mark.parametrize("idle_s", [-1.0, -1e300, 0.0])
def test_a_node_that_claims_to_move_without_end_keeps_its_own_job_alone(idle_s: float) -> None:
    assert action(attempt({**STUCK, "idle_s": idle_s}, {**STUCK, "idle_s": idle_s})) is Action.HEARTBEAT


# What silence is


def test_the_age_of_a_report_is_silence_and_no_stall() -> None:
    """While the table is away, nobody reports; then the training that went on is not stalled."""
    facts = attempt({**STUCK, "idle_s": MINUTES * 60 - 100}, BARE, age_s=170.0)
    assert action(facts) is Action.HEARTBEAT


def test_a_node_that_is_lost_is_no_stall() -> None:
    facts = attempt(STUCK, STUCK)
    gone = replace(facts, instances={IDS[0]: instance(0), IDS[1]: instance(1, "shutting-down")})
    assert judge(gone, now=LATE).error == "NodeLost"
    silent = replace(facts, nodes={0: facts.nodes[0], 1: heard(1, age_s=1000.0, **STUCK)})
    assert judge(silent, now=LATE).error == "NodeLost"


# Before, beside and after it


@pytest.mark.parametrize("error", ["Interrupted", "DeadlineReached", "Stalled"])
def test_an_attempt_that_has_its_order_gets_no_second_one(error: str) -> None:
    order = replace(GIVEN.order, error=error, by=int(LATE) + 500)
    verdict = judge(replace(attempt(STUCK, STUCK), order=Given(order=order, age_s=5.0)), now=LATE)
    assert (verdict.action, verdict.order) == (Action.HEARTBEAT, None)


def test_a_node_that_asks_for_an_order_is_heard_first() -> None:
    own = replace(GIVEN.order, by=int(LATE) + 500)
    assert order_of(judge(attempt(STUCK, {**STUCK, "order": own}), now=LATE)).error == "Interrupted"


def test_near_its_deadline_a_job_ends_by_it() -> None:
    facts = attempt(STUCK, STUCK)
    assert order_of(judge(facts, now=facts.job.stop_at)).error == "DeadlineReached"


def test_a_command_that_failed_explains_that_the_others_stand_still() -> None:
    facts = attempt(STUCK, STUCK)
    failed = ended(1, 3, ago_s=100.0)
    assert judge(replace(facts, nodes={0: facts.nodes[0], 1: failed}), now=LATE).error == "TrainingFailed"


ORDER = Order(kind=OrderKind.DUMP, error="Stalled", reason="It stood.", by=int(LATE), author="attendant")


def ordered(*phases: Phase, since_s: float, **fields: Any) -> Verdict:
    facts = attempt(*({"phase": phase, "phase_s": 60.0, "order": ORDER, **fields} for phase in phases))
    return judge(replace(facts, order=Given(order=ORDER, age_s=since_s)), now=LATE + since_s)


def test_nodes_that_have_stopped_have_the_time_of_last_commits() -> None:
    late_s = JOB.timing.silence_s + 500
    assert ordered(Phase.SAVING, Phase.SAVING, since_s=late_s).action is Action.HEARTBEAT


def test_a_node_that_cannot_stop_its_training_keeps_nobody_waiting() -> None:
    """A process that a driver holds cannot be killed; its agent goes on to report."""
    verdict = ordered(Phase.SAVING, Phase.TRAINING, since_s=JOB.timing.silence_s + 1)
    assert (verdict.action, verdict.error) == (Action.FAIL, "Stalled")
    assert ordered(Phase.SAVING, Phase.TRAINING, since_s=JOB.timing.silence_s - 1).action is Action.HEARTBEAT


def test_last_commits_after_a_stall_take_no_longer_than_others() -> None:
    verdict = ordered(Phase.SAVING, Phase.SAVING, since_s=5000.0)
    facts: dict[str, Any] = {"phase": Phase.SAVING, "order": ORDER}
    late = attempt({**facts, "phase_s": JOB.timing.save_allowance_s + 1}, {**facts, "phase_s": 1.0})
    assert verdict.action is Action.HEARTBEAT
    assert judge(replace(late, order=Given(order=ORDER, age_s=5000.0)), now=LATE + 5000).action is Action.FAIL


def test_once_all_have_stopped_the_attempt_is_stalled() -> None:
    end = Exit(code=143, error="Stalled", reason="It stood.", ordered=True)
    verdict = ordered(Phase.ENDED, Phase.ENDED, since_s=60.0, exit=end)
    assert (verdict.action, verdict.error) == (Action.FAIL, "Stalled")
    assert verdict.reason.startswith("It stood. All 2 nodes stopped as ordered.")


def test_a_node_that_vanished_after_the_order_is_explained_by_it() -> None:
    facts = replace(attempt({**STUCK, "order": ORDER}, STUCK), order=Given(order=ORDER, age_s=20.0))
    gone = replace(facts, instances={IDS[0]: instance(0), IDS[1]: instance(1, "terminated")})
    assert judge(gone, now=LATE).error == "Stalled"


# News


@pytest.mark.parametrize(
    ("told_s", "since_s", "news"),
    [
        (10.0, 2000.0, False),
        (1999.0, 2000.0, False),
        (2001.0, 2000.0, True),
        (AGAIN_S - 1, 300.0, False),
        (AGAIN_S + 1, 300.0, True),
    ],
    ids=["this stall, now", "this stall, at its beginning", "an earlier one", "a moment ago", "a while ago"],
)
def test_people_are_told_of_each_stall_once_and_not_too_often(told_s: float, since_s: float, news: bool) -> None:
    facts = StallFacts(idle_s=since_s - 5, age_s=5.0, rank=0, then=Reaction.NOTIFY)
    assert facts.is_news(told_s) is news
