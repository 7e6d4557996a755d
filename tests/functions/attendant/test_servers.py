"""A node that serves the others and dies ends the attempt as long as they need it, and ends nothing once they do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attendant.policy import Action, judge
from aws.facts import Given, Heard
from contract.errors import NodeLost, RetriedExit, TrainingFailed
from contract.jobs import RetryPlan
from contract.roles import RoleEnd
from tests.builders import NOW, WITH_ROLES
from tests.functions.attendant.attempts import ORDER, ended, heard
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

SILENCE_S = WITH_ROLES.timing.silence_s
CODES = [1, 75, 134, 137]


@pytest.mark.parametrize("code", CODES)
def test_a_server_whose_command_fails_ends_the_attempt_as_its_own_failure(code: int) -> None:
    verdict = judge(having(r3=ended(SERVER, code, ago_s=60.0)), now=NOW + 60)
    assert (verdict.action, verdict.error) == (Action.FAIL, TrainingFailed.__name__)
    assert verdict.reason.startswith(f"rank 3 (ps 0): the command exited with code {code}. The role ps ends ")
    assert 'With "ends": "freely" its nodes may end earlier.' in verdict.reason


def test_the_exit_code_of_a_server_may_be_one_that_the_request_retries() -> None:
    job = replace(WITH_ROLES, retries=RetryPlan(exit_codes=(75,), times=2))
    facts = replace(having(r3=ended(SERVER, 75, ago_s=60.0)), job=job)
    assert judge(facts, now=NOW + 60).error == RetriedExit.__name__
    assert (
        judge(replace(facts, nodes=having(r3=ended(SERVER, 1, ago_s=60.0)).nodes), now=NOW + 60).error
        == "TrainingFailed"
    )


def test_a_server_that_fails_is_named_before_the_workers_that_it_takes_along() -> None:
    broken = ended(WORKER, 1, error=TrainingFailed.__name__, ago_s=50.0)
    facts = having(r0=broken, r1=broken, r2=broken, r3=ended(SERVER, 3, ago_s=60.0))
    said = judge(facts, now=NOW + 60).reason
    assert said.startswith("rank 3 (ps 0): the command exited with code 3.")
    assert "Ranks 0 (chief 0), 1 (worker 0), 2 (worker 1) exited with code 1 after it." in said


@pytest.mark.parametrize("ago_s", [1.0, 5.0, 11.0])
def test_a_server_that_fails_is_not_judged_before_its_peers_have_reported_after_it(ago_s: float) -> None:
    """Their own end, which ended its connections, may be on its way."""
    facts = having(r3=ended(SERVER, 1, ago_s=ago_s))
    assert judge(facts, now=NOW + 60).action is Action.AWAIT


def test_a_server_that_fails_beside_a_lost_peer_is_no_failure_of_the_code() -> None:
    facts = without(having(r1=heard(WORKER, age_s=90.0), r3=ended(SERVER, 1, ago_s=60.0)), WORKER)
    assert judge(facts, now=NOW + 60).error == NodeLost.__name__


@pytest.mark.parametrize("code", [0, *CODES])
def test_a_server_that_dies_once_all_that_end_the_job_are_through_is_a_good_end(code: int) -> None:
    """Before they have reported their exits, and afterwards."""
    dead = ended(SERVER, code, ago_s=400.0)
    still_saving = having(r0=WELL, r1=saving(WORKER), r2=saving(OTHER), r3=dead)
    assert judge(still_saving, now=NOW + 60).action is Action.HEARTBEAT
    assert judge(having(DONE, r3=dead, r4=ended(EVALUATOR)), now=NOW + 60).action is Action.SUCCEED


@pytest.mark.parametrize("rank", [SERVER, EVALUATOR])
def test_what_is_lost_while_the_last_commits_are_on_their_way_undoes_nothing(rank: int) -> None:
    facts = having(r0=WELL, r1=saving(WORKER), r2=WELL)
    assert judge(without(facts, rank), now=NOW + 60).action is Action.HEARTBEAT
    silent = having(facts, **{f"r{rank}": heard(rank, age_s=10_000.0, timeline={"started": NOW})})
    assert judge(silent, now=NOW + 60).action is Action.HEARTBEAT
    ill = having(facts, **{f"r{rank}": heard(rank, unhealthy="GPU 0: Xid 79")})
    assert judge(ill, now=NOW + 60).action is Action.HEARTBEAT


def test_a_worker_that_is_lost_while_it_saves_still_does() -> None:
    facts = having(r0=WELL, r1=saving(WORKER), r2=WELL)
    assert judge(without(facts, WORKER), now=NOW + 60).error == NodeLost.__name__


def test_a_server_that_dies_while_one_of_those_that_end_the_job_could_not_save_counts() -> None:
    unsaved = ended(WORKER, 1, error="NodeLost", ago_s=30.0)
    assert judge(having(r0=WELL, r1=unsaved, r2=WELL, r3=ended(SERVER, 1)), now=NOW + 60).ends


LEFT = [ended(SERVER, ago_s=SILENCE_S + 30), saving(SERVER, phase_s=SILENCE_S + 30)]


@pytest.mark.parametrize("server", LEFT)
def test_a_server_that_ends_with_0_while_others_need_it_ends_the_attempt(server: Heard) -> None:
    """Workers of TensorFlow wait for it for ever."""
    verdict = judge(having(r3=server), now=NOW + 60)
    assert (verdict.action, verdict.error) == (Action.FAIL, TrainingFailed.__name__)
    assert "rank 3 (ps 0) ended with exit code 0 " in verdict.reason
    assert (
        "and ranks 0 (chief 0), 1 (worker 0), 2 (worker 1) still work (allowed: 180 s, by silence_s)." in verdict.reason
    )
    assert 'With "ends": "freely"' in verdict.reason


@pytest.mark.parametrize("server", [ended(SERVER, ago_s=SILENCE_S - 1), saving(SERVER, phase_s=SILENCE_S - 1)])
def test_a_server_may_end_with_0_a_little_before_those_that_it_serves(server: Heard) -> None:
    assert judge(having(r3=server), now=NOW + 60).action is Action.HEARTBEAT


def test_a_server_that_left_is_not_judged_by_old_reports_of_its_peers() -> None:
    """They may have ended meanwhile, or may be lost, which is another end."""
    facts = having(r0=heard(CHIEF, age_s=40.0, timeline={"started": NOW}), r3=LEFT[0])
    assert judge(facts, now=NOW + 60).action is Action.HEARTBEAT


def test_a_server_that_left_with_0_hides_no_failure_of_a_worker() -> None:
    """The code of the worker is the one that the request may retry."""
    job = replace(WITH_ROLES, retries=RetryPlan(exit_codes=(75,), times=2))
    facts = replace(having(r1=ended(WORKER, 75, ago_s=100.0), r3=LEFT[0]), job=job)
    assert judge(facts, now=NOW + 60).error == RetriedExit.__name__


def test_an_order_explains_that_a_server_has_ended_with_0() -> None:
    facts = replace(having(r3=LEFT[0]), order=Given(order=replace(ORDER, by=int(NOW) + 900), age_s=SILENCE_S + 60))
    assert judge(facts, now=NOW + 60).action is Action.HEARTBEAT


@pytest.mark.parametrize("server", [*LEFT, *(ended(SERVER, code) for code in CODES)])
def test_a_server_that_may_end_freely_ends_nothing(server: Heard) -> None:
    assert judge(having(whose_server(RoleEnd.FREELY), r3=server), now=NOW + 60).action is Action.HEARTBEAT


def test_one_that_ends_freely_and_runs_is_stopped_once_the_job_is_done() -> None:
    verdict = judge(having(whose_server(RoleEnd.FREELY), r0=WELL, r1=WELL, r2=WELL), now=NOW + 60)
    assert (verdict.action, verdict.released) == (Action.ORDER, (SERVER,))


@pytest.mark.parametrize("ends", [RoleEnd.SERVED, RoleEnd.FREELY, RoleEnd.ALONE])
def test_the_machine_of_a_role_that_is_lost_ends_the_attempt_whatever_its_end_means(ends: RoleEnd) -> None:
    rank = RANK_OF[ends]
    facts = without(whose_server(ends) if rank == SERVER else FIVE, rank)
    verdict = judge(facts, now=NOW + 60)
    assert verdict.error == NodeLost.__name__
    place = "evaluator 0" if rank == EVALUATOR else "ps 0"
    assert verdict.reason.startswith(f"rank {rank} ({place}, i-{rank}) is terminated")
