"""What the attendant concludes from reports, instances and time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from attendant.policy import Action, judge
from aws.facts import Given, Heard
from contract.keys import BytesPrefix
from contract.reports import Phase, Progress
from tests.builders import JOB, NOW
from tests.functions.attendant.attempts import GIVEN, LATER, ORDER, TRAINING, ended, heard, instance


def test_a_cluster_that_trains_gets_a_heartbeat() -> None:
    verdict = judge(TRAINING, now=LATER)
    assert verdict.action is Action.HEARTBEAT
    assert verdict.reason == "2 training; 0 of 2 have ended"


def test_all_nodes_ended_with_zero_is_success_and_shows_the_progress() -> None:
    done = replace(
        TRAINING,
        nodes={
            0: replace(ended(0), report=replace(ended(0).report, progress=Progress(step=9, world_size=2))),
            1: ended(1),
        },
    )
    verdict = judge(done, now=LATER)
    assert verdict.action is Action.SUCCEED
    assert verdict.progress["step"] == 9


@pytest.mark.parametrize(("diverged", "shown"), [("nan", {"diverged": "nan"}), ("", {})])
def test_a_success_says_where_its_training_diverged(diverged: str, shown: dict[str, str]) -> None:
    last = Progress(step=9, diverged=diverged)
    nodes = {0: replace(ended(0), report=replace(ended(0).report, progress=last)), 1: ended(1)}
    found = judge(replace(TRAINING, nodes=nodes), now=LATER).progress
    assert {name: one for name, one in found.items() if name == "diverged"} == shown
    assert found["metric"] is None


def test_one_node_that_ended_well_is_not_yet_success() -> None:
    assert judge(replace(TRAINING, nodes={0: ended(0), 1: heard(1)}), now=LATER).action is Action.HEARTBEAT


def test_a_node_that_ended_well_may_be_gone() -> None:
    facts = replace(
        TRAINING, nodes={0: ended(0), 1: heard(1)}, instances={"i-0": instance(0, "terminated"), "i-1": instance(1)}
    )
    assert judge(facts, now=LATER).action is Action.HEARTBEAT


@pytest.mark.parametrize("state", ["shutting-down", "terminated", "stopping", "stopped"])
def test_a_node_that_went_before_its_work_was_done_is_lost(state: str) -> None:
    verdict = judge(replace(TRAINING, instances={"i-0": instance(0), "i-1": instance(1, state)}), now=LATER)
    assert (verdict.action, verdict.error) == (Action.FAIL, "NodeLost")
    assert state in verdict.reason


def test_nothing_is_concluded_from_a_lookup_that_failed() -> None:
    assert judge(replace(TRAINING, instances=None), now=LATER).action is Action.HEARTBEAT


def test_a_new_instance_may_be_unknown_to_ec2_for_a_while() -> None:
    facts = replace(TRAINING, instances={}, nodes={})
    assert judge(facts, now=NOW + 10).action is Action.HEARTBEAT
    assert judge(facts, now=NOW + 61).error == "NodeLost"


def test_a_slow_boot_is_not_a_lost_node_before_its_allowance_is_over() -> None:
    facts = replace(TRAINING, nodes={0: heard(0)})
    assert judge(facts, now=NOW + 899).action is Action.HEARTBEAT
    late = judge(facts, now=NOW + 901)
    assert late.error == "NodeLost"
    assert "rank 1 (i-1) has sent no report 901 s after its launch" in late.reason


def test_a_silent_node_is_lost_whatever_ec2_says() -> None:
    assert judge(replace(TRAINING, nodes={0: heard(0), 1: heard(1, age_s=179)}), now=LATER).action is Action.HEARTBEAT
    assert judge(replace(TRAINING, nodes={0: heard(0), 1: heard(1, age_s=181)}), now=LATER).error == "NodeLost"


@pytest.mark.parametrize("error", ["Lambda.ServiceException", "States.Timeout", "x" * 300])
def test_an_error_that_no_error_of_ours_is_called_is_a_failed_training(error: str) -> None:
    """The machine retries some errors of Lambda and of Step Functions, and code of a job writes its node's report."""
    verdict = judge(replace(TRAINING, nodes={0: ended(0, 1, error=error), 1: ended(1)}), now=LATER)
    assert (verdict.action, verdict.error) == (Action.FAIL, "TrainingFailed")


def test_ahead_of_the_deadline_the_nodes_are_ordered_to_stop_once() -> None:
    verdict = judge(TRAINING, now=JOB.deadline - 299)
    assert verdict.action is Action.ORDER
    assert verdict.order is not None
    assert verdict.order.error == "DeadlineReached"
    assert (
        judge(replace(TRAINING, order=Given(order=verdict.order, age_s=1.0)), now=JOB.deadline - 298).action
        is Action.HEARTBEAT
    )


def test_a_short_job_keeps_half_of_its_time() -> None:
    short = replace(TRAINING, job=replace(JOB, deadline=int(NOW) + 100))
    assert judge(short, now=NOW + 49).action is Action.HEARTBEAT
    assert judge(short, now=NOW + 51).action is Action.ORDER


def test_nodes_that_outlive_the_deadline_end_the_job() -> None:
    assert judge(replace(TRAINING, order=GIVEN), now=ORDER.by + 181).error == "Interrupted"
    assert (
        judge(
            replace(TRAINING, order=replace(GIVEN, order=replace(ORDER, by=JOB.deadline + 999))), now=JOB.deadline + 181
        ).error
        == "DeadlineReached"
    )


def test_after_an_order_the_others_get_their_time_to_stop() -> None:
    facts = replace(TRAINING, order=GIVEN, nodes={0: ended(0, 143, ordered=True), 1: heard(1)})
    assert judge(facts, now=NOW + 100).action is Action.HEARTBEAT


def test_under_an_order_a_node_that_ended_long_ago_stalls_nothing() -> None:
    """The order says until when the others may take; without one the attempt stalls."""
    order = replace(GIVEN, order=replace(ORDER, by=int(LATER) + 10))
    nodes = {0: ended(0, 143, ordered=True, ago_s=JOB.timing.uneven_allowance_s + 1), 1: heard(1)}
    assert judge(replace(TRAINING, order=order, nodes=nodes), now=LATER).action is Action.HEARTBEAT
    unordered = {0: ended(0, ago_s=JOB.timing.uneven_allowance_s + 1), 1: heard(1)}
    assert judge(replace(TRAINING, nodes=unordered), now=LATER).error == "Stalled"


@pytest.mark.parametrize("code", [0, 143])
def test_stopping_as_ordered_ends_with_the_orders_error_and_not_with_success(code: int) -> None:
    facts = replace(TRAINING, order=GIVEN, nodes={rank: ended(rank, code, ordered=True) for rank in (0, 1)})
    verdict = judge(facts, now=NOW + 100)
    assert (verdict.action, verdict.error) == (Action.FAIL, "Interrupted")


def test_a_node_lost_after_a_spot_notice_is_an_interruption() -> None:
    facts = replace(TRAINING, order=GIVEN, instances={"i-0": instance(0), "i-1": instance(1, "terminated")})
    assert judge(facts, now=NOW + 100).error == "Interrupted"


def test_the_newest_checkpoint_is_named_when_a_node_is_lost() -> None:
    facts = replace(TRAINING, nodes={0: heard(0, checkpoint="k", checkpoint_step=120), 1: heard(1, age_s=999)})
    assert "newest checkpoint is of step 120" in judge(facts, now=LATER).reason


def started(rank: int, restored: str, step: int, **facts: Any) -> Heard:
    return heard(rank, restored=restored, restored_step=step, timeline={"prepared": NOW}, **facts)


def test_ranks_that_restored_the_same_checkpoint_train_on() -> None:
    facts = replace(TRAINING, nodes={rank: started(rank, "bucket/1/7", 120) for rank in (0, 1)})
    assert judge(facts, now=LATER).action is Action.HEARTBEAT


@pytest.mark.parametrize("other", [("bucket/1/6", 100), ("", -1), ("bucket/1/8", 120)])
def test_ranks_that_restored_different_checkpoints_end_the_attempt_and_a_new_one_restores_anew(
    other: tuple[str, int],
) -> None:
    facts = replace(TRAINING, nodes={0: started(0, "bucket/1/7", 120), 1: started(1, *other)})
    verdict = judge(facts, now=LATER)
    assert (verdict.action, verdict.error) == (Action.FAIL, "NodeLost")
    assert "rank 0 from step 120" in verdict.reason
    assert f"rank 1 from {f'step {other[1]}' if other[0] else 'the beginning'}" in verdict.reason
    assert all(
        f"\n  rank {rank}: {name}" in verdict.reason for rank, name in ((0, "bucket/1/7"), (1, other[0])) if name
    )


def test_a_rank_that_still_restores_has_not_restored_another_checkpoint() -> None:
    facts = replace(TRAINING, nodes={0: started(0, "bucket/1/7", 120), 1: heard(1, phase=Phase.RESTORING)})
    assert judge(facts, now=LATER).action is Action.HEARTBEAT


def test_only_closed_sets_are_called_checkpoints() -> None:
    part = BytesPrefix(JOB.id).part(1, 3, 0)
    open_ = heard(0, checkpoint=part, checkpoint_step=120)
    facts = replace(TRAINING, nodes={0: open_, 1: heard(1, age_s=999)})
    assert "This attempt has no checkpoint." in judge(facts, now=LATER).reason
    facts = replace(
        facts, nodes={0: replace(open_, report=replace(open_.report, closed_step=100)), 1: heard(1, age_s=999)}
    )
    assert "newest checkpoint is of step 100" in judge(facts, now=LATER).reason
