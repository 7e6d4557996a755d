"""What the end of a node means by its role, and that a job with roles ends once: whatever befalls which of them, and in which order."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from attendant.facts import AttemptFacts
from attendant.policy import Action, judge
from attendant.roles import RULES, find_completion
from attendant.silence import find_lost
from attendant.stalls import find_stall
from aws.facts import Given, Heard
from contract.errors import NodeLost, NodeUnhealthy, TrainingFailed
from contract.jobs import NoProgress, Reaction
from contract.orders import OrderKind
from contract.reports import Exit, Phase
from contract.roles import RoleEnd
from tests.builders import NOW, WITH_ROLES
from tests.functions.attendant.attempts import ORDER, TRAINING, ended, heard
from tests.functions.attendant.role_attempts import (
    CHIEF,
    DONE,
    EVALUATOR,
    FIVE,
    OTHER,
    RANK_OF,
    SERVER,
    WELL,
    WORKER,
    having,
    saving,
    whose_server,
    without,
)


@pytest.mark.parametrize("facts", [FIVE, having(r0=WELL), having(r0=WELL, r1=WELL)])
def test_a_job_goes_on_until_every_node_that_decides_has_ended(facts: AttemptFacts) -> None:
    assert judge(facts, now=NOW + 60).action is Action.HEARTBEAT


def test_once_they_have_the_servers_are_stopped_and_the_others_are_not() -> None:
    verdict = judge(DONE, now=NOW + 60)
    assert (verdict.action, verdict.released) == (Action.ORDER, (SERVER,))
    assert verdict.order is not None
    assert (verdict.order.kind, verdict.order.error) == (OrderKind.STOP, "")


def test_an_evaluator_is_waited_for_and_then_the_job_ends_well() -> None:
    stopped = having(DONE, r3=ended(SERVER, 137, ordered=True, error=""))
    verdict = judge(stopped, now=NOW + 60)
    assert verdict.action is Action.HEARTBEAT
    assert verdict.reason == "all 3 nodes of chief, worker ended with exit code 0; rank 4 (evaluator 0) is waited for"
    verdict = judge(having(stopped, r4=ended(EVALUATOR, 3)), now=NOW + 60)
    assert verdict.action is Action.SUCCEED
    assert verdict.reason.endswith("; ps 0 was stopped; evaluator 0 exited with code 3")


def test_a_server_that_knows_is_waited_for_and_told_nothing_more() -> None:
    order = replace(ORDER, kind=OrderKind.STOP, error="", author="attendant")
    knowing = having(DONE, r3=heard(SERVER, order=order), r4=ended(EVALUATOR))
    verdict = judge(knowing, now=NOW + 60)
    assert (verdict.action, verdict.order) == (Action.HEARTBEAT, None)


RELEASED = replace(ORDER, kind=OrderKind.STOP, error="", author="attendant")
GRACE_S = WITH_ROLES.timing.stop_grace_s + WITH_ROLES.timing.silence_s
LONG_AGO = ended(CHIEF, ago_s=GRACE_S + 1)
LONG_DONE = having(r0=LONG_AGO, r1=LONG_AGO, r2=LONG_AGO)


def test_a_server_that_does_not_obey_keeps_no_job_from_its_end() -> None:
    timing = WITH_ROLES.timing
    deaf = heard(SERVER, order=RELEASED, ordered_s=GRACE_S)
    facts = having(LONG_DONE, r3=deaf, r4=ended(EVALUATOR))
    assert judge(facts, now=NOW + 600).action is Action.SUCCEED
    saving = having(facts, r3=heard(SERVER, phase=Phase.SAVING, phase_s=30.0))
    assert judge(saving, now=NOW + 600).action is not Action.SUCCEED
    for_ever = having(facts, r3=heard(SERVER, phase=Phase.SAVING, phase_s=timing.save_allowance_s + 1))
    assert judge(for_ever, now=NOW + 600).action is Action.SUCCEED


@pytest.mark.parametrize("evaluator", [ended(EVALUATOR), heard(EVALUATOR)])
def test_a_server_that_never_got_its_order_is_ordered_however_late_it_is(evaluator: Heard) -> None:
    """The attendant was away around the job's end: the server has served on, and its last commits are still to come."""
    verdict = judge(having(LONG_DONE, r4=evaluator), now=NOW + 600)
    assert (verdict.action, verdict.released) == (Action.ORDER, (SERVER,))


def test_a_server_whose_reports_could_not_arrive_is_ordered_once_they_can() -> None:
    facts = having(LONG_DONE, r3=heard(SERVER, age_s=GRACE_S + 1), r4=ended(EVALUATOR))
    assert judge(replace(facts, gaps_s=(GRACE_S + 1, 5.0)), now=NOW + 600).action is Action.ORDER


def test_the_time_that_a_server_has_to_stop_begins_with_its_order() -> None:
    facts = having(LONG_DONE, r3=heard(SERVER, order=RELEASED, ordered_s=GRACE_S - 10), r4=ended(EVALUATOR))
    assert judge(facts, now=NOW + 600).action is Action.HEARTBEAT


def test_an_old_order_of_a_server_takes_no_time_from_it_once_the_job_is_done() -> None:
    facts = having(DONE, r3=heard(SERVER, order=RELEASED, ordered_s=GRACE_S), r4=ended(EVALUATOR))
    assert judge(facts, now=NOW + 600).action is Action.HEARTBEAT


def test_a_server_without_an_order_is_waited_for_until_the_deadline_and_no_longer() -> None:
    facts = having(LONG_DONE, r4=ended(EVALUATOR))
    late = WITH_ROLES.deadline + WITH_ROLES.timing.silence_s
    assert judge(facts, now=late - 10).action is Action.ORDER
    assert judge(facts, now=late + 10).action is Action.SUCCEED


def test_a_server_that_never_reported_is_not_waited_for_beyond_its_time() -> None:
    facts = having(LONG_DONE, r4=ended(EVALUATOR))
    silent = replace(facts, nodes={rank: one for rank, one in facts.nodes.items() if rank != SERVER})
    assert judge(silent, now=NOW + 60).action is Action.SUCCEED


def test_one_order_to_a_server_is_no_order_of_the_attempt() -> None:
    order = replace(ORDER, kind=OrderKind.STOP, error="", author="attendant")
    facts = having(r3=heard(SERVER, order=order, ordered_s=50.0))
    assert facts.obeyed is None
    assert facts.ordered_s == 0.0
    assert judge(facts, now=NOW + 60).action is Action.HEARTBEAT


def test_an_end_that_means_nothing_and_was_earlier_did_not_follow_from_the_error() -> None:
    own = ended(WORKER, 7, ago_s=900.0, error=TrainingFailed.__name__)
    facts = having(r1=own, r2=ended(OTHER, 1, ago_s=890.0), r4=ended(EVALUATOR, 1, ago_s=4000.0))
    said = judge(facts, now=NOW + 60).reason
    assert "Rank 2 (worker 1) exited with code 1 after it." in said
    assert "Rank 4 (evaluator 0) exited with code 1 before it." in said


def test_what_ended_before_the_last_report_of_a_lost_node_did_not_follow_from_its_loss() -> None:
    facts = without(having(r1=heard(WORKER, age_s=100.0), r4=ended(EVALUATOR, 1, ago_s=4000.0)), WORKER)
    assert "Rank 4 (evaluator 0) exited with code 1 before it." in judge(facts, now=NOW + 60).reason


# The table: who ends how


ENDS: dict[str, dict[str, Any]] = {
    "with 0": {},
    "with 7": {"code": 7, "error": TrainingFailed.__name__},
    "without a start": {"code": 1, "error": TrainingFailed.__name__, "started": False},
    "with a broken disk": {"code": 1, "error": NodeLost.__name__},
    "on a bad machine": {"code": 1, "error": NodeUnhealthy.__name__},
}
FAILS: dict[tuple[str, RoleEnd], str] = {
    ("with 0", RoleEnd.SERVED): "TrainingFailed",
    ("with 7", RoleEnd.JOB): "TrainingFailed",
    ("with 7", RoleEnd.SERVED): "TrainingFailed",
    ("without a start", RoleEnd.JOB): "TrainingFailed",
    ("without a start", RoleEnd.SERVED): "TrainingFailed",
    ("without a start", RoleEnd.FREELY): "TrainingFailed",
    **{("with a broken disk", one): "NodeLost" for one in RoleEnd},
    **{("on a bad machine", one): "NodeUnhealthy" for one in RoleEnd},
}
"""With which error an attempt ends; every other end leaves it at work."""


def test_the_table_has_a_rule_for_every_kind_of_role() -> None:
    assert RULES.keys() == {*RoleEnd}


@pytest.mark.parametrize(("how", "ends"), product(ENDS, RoleEnd))
def test_an_end_before_the_job_is_done_means_what_its_role_says(how: str, ends: RoleEnd) -> None:
    rank = RANK_OF[ends]
    whose = whose_server(ends) if rank == SERVER else FIVE
    facts = having(whose, **{f"r{rank}": ended(rank, **ENDS[how])})
    verdict = judge(facts, now=NOW + 60)
    assert verdict.error == FAILS.get((how, ends), "")
    assert verdict.ends is bool(verdict.error)


@pytest.mark.parametrize("rank", range(5))
def test_a_lost_node_ends_the_attempt_whatever_its_role(rank: int) -> None:
    verdict = judge(without(FIVE, rank), now=NOW + 60)
    assert (verdict.action, verdict.error) == (Action.FAIL, NodeLost.__name__)


@pytest.mark.parametrize("rank", range(5))
def test_a_silent_node_ends_the_attempt_whatever_its_role(rank: int) -> None:
    silent = having(**{f"r{rank}": heard(rank, age_s=10_000.0, timeline={"started": NOW})})
    assert judge(silent, now=NOW + 60).error == NodeLost.__name__


@pytest.mark.parametrize("rank", range(5))
def test_a_node_that_prepares_for_too_long_ends_the_attempt_whatever_its_role(rank: int) -> None:
    late_s = WITH_ROLES.timing.prepare_allowance_s + 1
    facts = having(**{f"r{rank}": heard(rank, phase=Phase.PREPARING, phase_s=late_s)})
    assert judge(facts, now=NOW + 60).error == "Stalled"


def test_an_evaluator_that_prepares_for_too_long_ends_nothing_once_the_job_is_done() -> None:
    late_s = WITH_ROLES.timing.prepare_allowance_s + 1
    slow = heard(EVALUATOR, phase=Phase.PREPARING, phase_s=late_s)
    assert judge(having(DONE, r3=ended(SERVER), r4=slow), now=NOW + 60).action is Action.HEARTBEAT


@pytest.mark.parametrize("rank", [SERVER, EVALUATOR])
def test_what_is_lost_once_the_job_is_done_undoes_nothing(rank: int) -> None:
    other = EVALUATOR if rank == SERVER else SERVER
    facts = without(having(DONE, **{f"r{other}": ended(other)}), rank)
    assert judge(facts, now=NOW + 60).action is Action.SUCCEED


def test_a_node_that_decides_and_is_lost_after_its_end_changes_nothing() -> None:
    others = having(DONE, r3=ended(SERVER), r4=ended(EVALUATOR))
    assert judge(without(others, CHIEF), now=NOW + 60).action is Action.SUCCEED


def test_an_order_of_the_attempt_is_no_good_end_for_those_that_decide() -> None:
    stop = {"ordered": True, "error": "Interrupted"}
    facts = having(**{f"r{rank}": ended(rank, 143, **stop) for rank in range(5)})
    verdict = judge(replace(facts, order=Given(order=ORDER, age_s=900.0)), now=NOW + 60)
    assert (verdict.action, verdict.error) == (Action.FAIL, "Interrupted")


def test_a_failing_worker_beside_a_dead_server_blames_the_server() -> None:
    """A broken connection to a server that is gone is no error of the code."""
    failed = ended(WORKER, 1, error=TrainingFailed.__name__, ago_s=5.0)
    facts = without(having(r1=failed, r3=heard(SERVER, age_s=30.0)), SERVER)
    assert judge(facts, now=NOW + 60).error == NodeLost.__name__


@pytest.mark.parametrize("rank", [CHIEF, WORKER, EVALUATOR])
@pytest.mark.parametrize("hours", [1, 3, 70])
def test_nothing_bounds_how_long_the_others_work_on_after_one_has_ended_well(rank: int, hours: int) -> None:
    long_ago = having(**{f"r{rank}": ended(rank, 3 if rank == EVALUATOR else 0, ago_s=hours * 3600.0)})
    job = replace(WITH_ROLES, deadline=int(NOW) + 100 * 3600)
    assert judge(replace(long_ago, job=job), now=NOW + hours * 3600.0 + 60).action is Action.HEARTBEAT


@pytest.mark.parametrize("ends", [RoleEnd.FREELY, RoleEnd.ALONE])
def test_the_last_commits_of_a_node_that_may_end_have_no_bound_before_the_job_is_done(ends: RoleEnd) -> None:
    late_s = WITH_ROLES.timing.save_allowance_s + 1
    rank = RANK_OF[ends]
    facts = having(whose_server(ends) if rank == SERVER else FIVE, **{f"r{rank}": saving(rank, phase_s=late_s)})
    assert judge(facts, now=NOW + 60).action is Action.HEARTBEAT


def test_those_of_a_node_that_ends_the_job_do() -> None:
    facts = having(r1=saving(WORKER, phase_s=WITH_ROLES.timing.save_allowance_s + 1))
    verdict = judge(facts, now=NOW + 60)
    assert verdict.error == "Stalled"
    assert "rank 1 (worker 0, i-1) still reports, and has been saving" in verdict.reason


def test_an_evaluator_is_waited_for_until_the_deadline_and_no_longer() -> None:
    facts = having(DONE, r3=ended(SERVER))
    late = WITH_ROLES.deadline + WITH_ROLES.timing.silence_s
    assert judge(facts, now=late - 10).action is Action.HEARTBEAT
    assert judge(facts, now=late + 10).action is Action.SUCCEED


def test_progress_is_that_of_the_nodes_that_decide() -> None:
    job = replace(WITH_ROLES, stall=NoProgress(minutes=10, then=Reaction.STOP))
    idle = {f"r{rank}": heard(rank, phase_s=5000.0, idle_s=4000.0) for rank in (CHIEF, WORKER, OTHER)}
    busy = heard(EVALUATOR, phase_s=5000.0, idle_s=0.0)
    facts = replace(having(**idle, r3=ended(SERVER), r4=busy), job=job)
    assert find_stall(facts, now=NOW + 5000) is not None
    training = replace(having(**{**idle, "r1": heard(WORKER, phase_s=5000.0, idle_s=0.0)}), job=job)
    assert find_stall(training, now=NOW + 5000) is None


def test_those_that_have_ended_well_leave_the_progress_to_the_others() -> None:
    job = replace(WITH_ROLES, stall=NoProgress(minutes=10, then=Reaction.STOP))
    idle, busy = heard(WORKER, phase_s=5000.0, idle_s=4000.0), heard(WORKER, phase_s=5000.0, idle_s=0.0)
    served = {"r3": heard(SERVER, phase_s=5000.0), "r4": heard(EVALUATOR, phase_s=5000.0)}
    facts = replace(having(r0=WELL, r1=idle, r2=idle, **served), job=job)
    stall = find_stall(facts, now=NOW + 5000)
    assert stall is not None
    assert stall.rank == WORKER
    assert find_stall(having(facts, r4=saving(EVALUATOR, phase_s=4000.0)), now=NOW + 5000) is not None
    assert find_stall(having(facts, r2=busy), now=NOW + 5000) is None
    assert find_stall(having(facts, r1=ended(WORKER, 7), r2=idle), now=NOW + 5000) is None
    assert find_stall(having(facts, r1=WELL, r2=WELL), now=NOW + 5000) is None


def test_a_job_is_done_in_one_way_in_whatever_order_its_nodes_end() -> None:
    """Every combination of running, ended well, ended badly and lost: one verdict, and the same when it is asked again."""
    states = {
        "runs": lambda rank: heard(rank, timeline={"started": NOW}),
        "well": lambda rank: ended(rank, ago_s=20.0),
        "badly": lambda rank: ended(rank, 7, error=TrainingFailed.__name__, ago_s=20.0),
    }
    for found in product(states, repeat=5):
        facts = having(**{f"r{rank}": states[one](rank) for rank, one in enumerate(found)})
        verdict = judge(facts, now=NOW + 60)
        assert verdict == judge(facts, now=NOW + 60)
        decided = found[:3]
        if "badly" in decided or (found[3] == "badly" and "runs" in decided):
            assert verdict.action in {Action.FAIL, Action.AWAIT}, found
        elif "runs" in decided:
            assert verdict.action is Action.HEARTBEAT, found
        else:
            left = found[3:].count("runs")
            wanted = Action.ORDER if found[3] == "runs" else Action.HEARTBEAT if left else Action.SUCCEED
            assert verdict.action is wanted, found


def test_a_job_without_roles_is_done_as_before() -> None:
    done = replace(TRAINING, nodes={0: ended(0), 1: ended(1)})
    completion = find_completion(done, find_lost(done, NOW), NOW)
    assert completion is not None
    assert (completion.to_stop, completion.awaited) == ((), ())
    assert judge(done, now=NOW).reason == "all 2 nodes ended with exit code 0"
    assert Exit(code=0) == done.nodes[0].report.exit
