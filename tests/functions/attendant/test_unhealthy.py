"""Whose fault an end is where a node says that something is wrong with its machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from attendant.facts import AttemptFacts
from attendant.policy import Action, judge
from attendant.unhealthy import EXAMINES_S, MOST_NOTED, MOST_WHY, list_nodes
from aws.facts import Given, Heard
from contract.errors import NEW_ATTEMPT, NodeUnhealthy
from contract.health import HealthCheck
from contract.reports import Exit, Phase
from tests.builders import JOB, NOW, rung
from tests.functions.attendant.attempts import LATER, ORDER, TRAINING, ended, heard

XID = "Xid 79 of GPU 0000:86:00 (the GPU has fallen off the bus)"
STARTED = {"started": NOW}
CHECKED = replace(TRAINING, job=replace(JOB, health=HealthCheck.QUICK), rung=rung())


def with_nodes(*nodes: Heard, **changes: Any) -> AttemptFacts:
    return replace(CHECKED, nodes=dict(enumerate(nodes)), **changes)


def saying(rank: int, **fields: Any) -> Heard:
    """A node that trains, beside a fault of its machine."""
    told: dict[str, Any] = {"unhealthy": XID, "timeline": STARTED, **fields}
    return heard(rank, **told)


def failed(rank: int, *, ago_s: float, **fields: Any) -> Heard:
    """A node whose command has failed, and whose last commits are on their way."""
    told = {"phase": Phase.SAVING, "outcome": Exit(code=1, error="TrainingFailed"), "timeline": STARTED, **fields}
    return heard(rank, age_s=ago_s, **told)


def beside_xid(node: Heard) -> Heard:
    return replace(node, report=replace(node.report, unhealthy=XID))


def test_an_unhealthy_machine_begins_a_new_attempt() -> None:
    assert NodeUnhealthy in NEW_ATTEMPT


def test_a_node_that_its_check_keeps_from_training_ends_the_attempt_at_once() -> None:
    verdict = judge(with_nodes(heard(0), heard(1, phase=Phase.RESTORING, unhealthy=XID)), now=LATER)
    assert (verdict.action, verdict.error) == (Action.FAIL, "NodeUnhealthy")
    assert verdict.reason.startswith(
        "rank 1 (i-1, g5.xlarge in eu-central-1a) has an unhealthy machine. A new attempt tries this zone last."
    )
    assert verdict.reason.endswith(f"\nIts nodes said:\n  rank 1: {XID}")
    assert "after it" not in verdict.reason
    assert verdict.unhealthy == {1: XID}


def test_a_node_that_has_ended_by_its_check_names_it() -> None:
    gone = ended(1, 1, started=False, error="NodeUnhealthy", reason="rank 1: its machine is unhealthy: PCI shows 3")
    verdict = judge(with_nodes(heard(0), gone), now=LATER)
    assert (verdict.error, verdict.unhealthy) == ("NodeUnhealthy", {1: "rank 1: its machine is unhealthy: PCI shows 3"})


# Nodes that measure the network between them

SLOW = "its link to rank 0 carries no all-reduce, and 1 Gbit/s are expected at least"
DEEP = replace(JOB, health=HealthCheck.DEEP)


def checking(rank: int, **fields: Any) -> Heard:
    told: dict[str, Any] = {"phase": Phase.CHECKING, "timeline": {"prepared": NOW}, **fields}
    return heard(rank, **told)


def test_nodes_that_measure_the_network_are_left_alone() -> None:
    waits = checking(0, phase_s=JOB.timing.meet_allowance_s * 3)
    verdict = judge(with_nodes(waits, heard(1, phase=Phase.RESTORING), job=DEEP), now=LATER)
    assert verdict.action is Action.HEARTBEAT


def test_a_node_that_is_slow_ends_the_attempt_while_its_peers_still_hold() -> None:
    verdict = judge(with_nodes(checking(0), checking(1, unhealthy=SLOW), job=DEEP), now=LATER)
    assert (verdict.error, verdict.unhealthy) == ("NodeUnhealthy", {1: SLOW})


def test_both_of_a_pair_are_named_where_both_say_so() -> None:
    gone = ended(1, 1, started=False, error="NodeUnhealthy", reason=SLOW)
    verdict = judge(with_nodes(checking(0, unhealthy=SLOW), gone, job=DEEP), now=LATER)
    assert list(verdict.unhealthy) == [0, 1]


def test_a_peer_that_falls_silent_while_they_measure_is_lost_and_nobody_is_unhealthy() -> None:
    silent = checking(1, age_s=JOB.timing.silence_s * 2 + 1)
    verdict = judge(with_nodes(checking(0), silent, job=DEEP), now=LATER)
    assert (verdict.error, verdict.unhealthy) == ("NodeLost", {})


def test_a_trainer_that_started_without_a_lost_peer_explains_nothing() -> None:
    silent = checking(1, age_s=JOB.timing.silence_s * 2 + 1)
    verdict = judge(with_nodes(failed(0, ago_s=20), silent, job=DEEP), now=LATER)
    assert (verdict.error, verdict.unhealthy) == ("NodeLost", {})


def test_a_training_that_goes_on_beside_an_error_of_the_hardware_is_left_alone() -> None:
    verdict = judge(with_nodes(heard(0), saying(1)), now=LATER)
    assert (verdict.action, verdict.error, verdict.unhealthy) == (Action.HEARTBEAT, "", {})


def test_an_error_beside_a_fault_of_the_same_machine_is_the_machines() -> None:
    verdict = judge(with_nodes(heard(0, age_s=5), beside_xid(ended(1, 134, ago_s=20))), now=LATER)
    assert verdict.error == "NodeUnhealthy"
    assert "Rank 1 exited with code 134 after it." in verdict.reason


def test_a_fault_explains_the_errors_of_its_peers_also_while_its_own_trainer_hangs() -> None:
    peer = ended(0, 1, ago_s=60, tail=("Connection reset by peer",))
    verdict = judge(with_nodes(peer, saying(1, age_s=1)), now=LATER)
    assert verdict.error == "NodeUnhealthy"
    assert "Rank 0 exited with code 1 after it." in verdict.reason
    assert "\n  rank 0: Connection reset by peer" in verdict.reason
    assert list(verdict.unhealthy) == [1]


def test_an_exit_code_that_the_request_retries_takes_no_retry_beside_a_fault() -> None:
    job = replace(CHECKED.job, retries=replace(JOB.retries, times=3))
    assert judge(with_nodes(ended(0, 1, ago_s=60), saying(1), job=job), now=LATER).error == "NodeUnhealthy"
    assert judge(with_nodes(ended(0, 1, ago_s=60), heard(1), job=job), now=LATER).error == "RetriedExit"


def test_an_error_without_a_fault_stays_the_codes_own() -> None:
    verdict = judge(with_nodes(heard(0), ended(1, 134, ago_s=20)), now=LATER)
    assert (verdict.error, verdict.unhealthy) == ("TrainingFailed", {})


def test_a_success_stays_one_whatever_the_machines_say() -> None:
    good = [beside_xid(heard(rank, phase=Phase.ENDED, exit=Exit(code=0))) for rank in (0, 1)]
    assert judge(with_nodes(*good), now=LATER).action is Action.SUCCEED


@pytest.mark.parametrize("nodes", [(heard(0), heard(1, unhealthy=XID)), (ended(0, 1, ago_s=60), saying(1))])
def test_what_nodes_say_of_a_job_without_checks_counts_for_nothing(nodes: tuple[Heard, ...]) -> None:
    unchecked = replace(CHECKED.job, health=HealthCheck.OFF)
    assert judge(with_nodes(*nodes, job=unchecked), now=LATER).error != "NodeUnhealthy"


def test_under_an_order_a_machine_explains_nothing_that_the_order_explains() -> None:
    ordered = ended(1, 1, error="Interrupted", reason="A spot notice came.", ordered=True)
    given = Given(order=ORDER, age_s=1000.0)
    verdict = judge(with_nodes(heard(0, unhealthy=XID), beside_xid(ordered), order=given), now=LATER)
    assert verdict.error != "NodeUnhealthy"


def test_an_error_waits_while_its_node_looks_at_its_machine() -> None:
    verdict = judge(with_nodes(heard(0, age_s=1), failed(1, ago_s=10, examines=True)), now=LATER)
    assert (verdict.action, verdict.awaits) == (Action.AWAIT, "i-1")
    assert verdict.reason == "rank 1 exited with code 1, and its agent examines the machine for a fault"


def test_a_peers_error_waits_for_it_as_well() -> None:
    nodes = (failed(0, ago_s=12), failed(1, ago_s=10, examines=True))
    assert judge(with_nodes(*nodes), now=LATER).action is Action.AWAIT


def test_a_node_that_looks_for_ever_delays_nothing_more() -> None:
    nodes = (heard(0, age_s=1), failed(1, ago_s=EXAMINES_S + 1, examines=True))
    assert judge(with_nodes(*nodes), now=LATER).error == "TrainingFailed"


def test_a_node_that_looks_outlives_no_deadline() -> None:
    nodes = (heard(0, age_s=1), failed(1, ago_s=0, examines=True))
    assert judge(with_nodes(*nodes), now=JOB.deadline + 181).error == "DeadlineReached"


def test_where_many_machines_are_at_fault_the_sentence_stays_short_and_the_notes_are_few() -> None:
    ids = tuple(f"i-{rank}" for rank in range(40))
    nodes = {rank: heard(rank, unhealthy="x" * 9000) for rank in range(40)}
    facts = replace(CHECKED, job=replace(CHECKED.job, nodes=40), ids=ids, instances=None, nodes=nodes)
    verdict = judge(facts, now=LATER)
    assert "35 more ranks have unhealthy machines." in verdict.reason
    assert len(verdict.reason) < 7 * MOST_WHY
    assert len(list_nodes(facts, verdict.unhealthy)) == MOST_NOTED


def test_what_is_kept_is_where_ec2_launched_the_node_and_the_nodes_words() -> None:
    (one,) = list_nodes(CHECKED, {1: XID})
    assert (one.attempt, one.rank, one.instance, one.why) == (1, 1, "i-1", XID)
    assert (one.region, one.zone, one.instance_type) == ("eu-central-1", "eu-central-1a", "g5.xlarge")
