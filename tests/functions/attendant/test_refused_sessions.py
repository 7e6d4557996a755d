"""STS refuses the job's own session for good: nodes without keys end with the cause, and nodes with keys save before these expire."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from attendant.policy import SAVED_S, Action, judge
from contract import items
from contract.codec import decode
from contract.errors import NodeLost, RoleRefused
from contract.orders import OrderKind
from contract.sessions import LASTS_S, AttemptSessions
from tests.builders import JOB_ROLE, NOW
from tests.fakes import state
from tests.fakes.fleet import WORKING, Fleet
from tests.fakes.functions import Outcome
from tests.functions.attendant.attempts import TRAINING

ONE, OTHER = "job-0000", "job-0001"
PATIENCE_S = 300.0
FOR_GOOD = [
    "AccessDenied",
    "RegionDisabledException",
    "PackedPolicyTooLarge",
    "MalformedPolicyDocument",
    "ValidationError",
]


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    made = Fleet([1, 2], now=NOW)
    with made.functions.installed():
        yield made


def tick(fleet: Fleet) -> Outcome:
    return fleet.functions.invoke("attendant", {"source": "aws.events"})


def pass_minutes(fleet: Fleet, seconds: float, *, reporting: bool) -> None:
    until = fleet.clock.now + seconds
    while fleet.clock.now < until:
        fleet.clock.now += 60
        for job, instances in fleet.instances.items() if reporting else ():
            for rank, one in enumerate(instances):
                state.report(fleet.aws, replace(WORKING, job=job, rank=rank, instance=one))
        tick(fleet)


def answer(fleet: Fleet, job: str) -> tuple[str, str]:
    return fleet.aws.states.waits[fleet.tokens[job]].error or ("", "")


def known(fleet: Fleet, job: str) -> AttemptSessions:
    return decode(AttemptSessions, state.stored(fleet.aws, items.session(job, 1)) or b"{}")


@pytest.mark.parametrize("code", FOR_GOOD)
def test_nodes_that_never_get_keys_end_within_minutes_with_what_sts_says(fleet: Fleet, code: str) -> None:
    fleet.aws.sts.refuses[JOB_ROLE] = code
    tick(fleet)
    pass_minutes(fleet, PATIENCE_S + 120, reporting=False)
    for job in (ONE, OTHER):
        error, cause = answer(fleet, job)
        assert error == RoleRefused.__name__
        for words in (
            "The nodes have no credentials",
            JOB_ROLE.rpartition("/")[2],
            "sts:TagSession",
            "User: me is not",
        ):
            assert words in cause


def test_each_look_that_sts_refuses_counts_as_failed_so_that_the_alarm_rings(fleet: Fleet) -> None:
    fleet.aws.sts.refuses[JOB_ROLE] = "AccessDenied"
    assert "looks failed" in tick(fleet).cause


@pytest.mark.parametrize("code", ["Throttling", "ServiceUnavailable", "ExpiredToken", "InvalidClientTokenId"])
def test_an_answer_that_says_nothing_about_the_session_ends_no_job(fleet: Fleet, code: str) -> None:
    fleet.aws.sts.refuses[JOB_ROLE] = code
    tick(fleet)
    pass_minutes(fleet, 4 * PATIENCE_S, reporting=False)
    assert answer(fleet, ONE) == ("", "")
    assert known(fleet, ONE).own_refused_from == 0


def test_a_refusal_that_passes_ends_nothing_and_is_forgotten(fleet: Fleet) -> None:
    fleet.aws.sts.refuses[JOB_ROLE] = "AccessDenied"
    tick(fleet)
    pass_minutes(fleet, PATIENCE_S - 60, reporting=False)
    assert known(fleet, ONE).own_refused_from > 0
    del fleet.aws.sts.refuses[JOB_ROLE]
    pass_minutes(fleet, PATIENCE_S, reporting=True)
    assert answer(fleet, ONE) == ("", "")
    assert (known(fleet, ONE).own_refused_from, known(fleet, ONE).own_refusal) == (0, "")


def test_nodes_that_have_keys_train_on_until_shortly_before_these_expire_and_then_save(fleet: Fleet) -> None:
    tick(fleet)
    fleet.aws.sts.refuses[JOB_ROLE] = "AccessDenied"
    pass_minutes(fleet, LASTS_S - SAVED_S - 120, reporting=True)
    assert state.stored(fleet.aws, items.order(ONE, 1)) is None
    pass_minutes(fleet, 240, reporting=True)
    assert state.stored(fleet.aws, items.order(ONE, 1)) is not None
    assert answer(fleet, ONE) == ("", "")


REFUSED = AttemptSessions(own_refused_from=NOW - 400, own_refused_last=NOW - 60, own_refusal="no")
KEYLESS = replace(TRAINING, nodes={}, sessions=REFUSED)
EXPIRING = replace(TRAINING, sessions=replace(REFUSED, since=NOW - 3200, until=NOW + 400))


def test_a_refusal_that_lasts_is_a_verdict() -> None:
    verdict = judge(KEYLESS, now=NOW)
    assert (verdict.action, verdict.error) == (Action.FAIL, RoleRefused.__name__)


def test_the_order_leaves_the_time_that_the_keys_are_valid() -> None:
    order = judge(EXPIRING, now=NOW).order
    assert order is not None
    assert (order.kind, order.error, order.by) == (OrderKind.CHECKPOINT_AND_STOP, RoleRefused.__name__, int(NOW + 400))


@pytest.mark.parametrize(
    "kept",
    [
        replace(KEYLESS, sessions=replace(REFUSED, own_refused_last=REFUSED.own_refused_from + 299)),
        replace(KEYLESS, sessions=replace(REFUSED, own_refused_from=NOW - 9999, own_refused_last=NOW - 9999)),
        replace(KEYLESS, sessions=AttemptSessions()),
        replace(TRAINING, sessions=replace(REFUSED, since=NOW - 1000, until=NOW + 2600)),
        replace(EXPIRING, sessions=replace(EXPIRING.sessions, own_refused_from=0.0, own_refused_last=0.0)),
    ],
)
def test_anything_less_is_kept(kept: Any) -> None:
    verdict = judge(kept, now=NOW)
    assert verdict.action is Action.HEARTBEAT


def test_an_order_that_was_given_is_not_given_again() -> None:
    order = judge(EXPIRING, now=NOW).order
    given = replace(
        EXPIRING,
        nodes={rank: replace(one, report=replace(one.report, order=order)) for rank, one in EXPIRING.nodes.items()},
    )
    assert judge(given, now=NOW).order == order  # from a node, for the others
    assert judge(given, now=NOW).error != NodeLost.__name__
