"""What EC2 refuses is mostly about one type or its image: the walk closes that type, and goes on with the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contract.codec import decode, encode
from contract.errors import CapacityPending, CapacityUnavailable, InvalidRequest, QuotaExceeded
from contract.intents import Intent, LaunchAnswer, LaunchOutcome, Step
from contract.jobs import Market, Rung
from launcher import policy
from tests.builders import INTENT, NOW, rung

LATE = NOW + 1800
CODES = (
    "InvalidParameterCombination",
    "UnsupportedOperation",
    "UnauthorizedOperation",
    "InvalidAMIID.NotFound",
    "NeverSeen",
)
SMALL, LARGE = "g5.xlarge", "p4d.24xlarge"


def walk(*rungs: Rung) -> Intent:
    return replace(INTENT, steps=tuple(Step(rung=one, request={"InstanceType": one.instance_type}) for one in rungs))


def refuse(intent: Intent, place: int, code: str = CODES[0], message: str = "no") -> Intent:
    answer = LaunchAnswer(outcome=LaunchOutcome.MISTAKE, at=NOW, code=code, message=message)
    return policy.record_answer(intent, place, answer, recovering=False)


def lack(intent: Intent, place: int, outcome: LaunchOutcome = LaunchOutcome.NO_CAPACITY) -> Intent:
    code = "InsufficientInstanceCapacity" if outcome is LaunchOutcome.NO_CAPACITY else outcome.value
    return policy.record_answer(intent, place, LaunchAnswer(outcome=outcome, at=NOW, code=code), recovering=False)


TWO = walk(rung("eu-central-1a", SMALL), rung("eu-central-1b", SMALL), rung("eu-central-1a", LARGE))


@pytest.mark.parametrize("code", CODES)
def test_a_refusal_closes_its_type_and_the_next_type_is_asked(code: str) -> None:
    refused = refuse(TWO, 0, code)
    assert [step.answer is not None for step in refused.steps] == [True, True, False]
    assert refused.next_place == 2


def test_a_refusal_closes_no_other_region_market_or_reservation() -> None:
    others = (
        rung("us-east-1a", SMALL, region="us-east-1"),
        replace(rung("eu-central-1a", SMALL), market=Market.SPOT),
        replace(rung("eu-central-1a", SMALL), reservation="cr-1"),
    )
    refused = refuse(walk(rung("eu-central-1a", SMALL), *others), 0)
    assert [step.answer is None for step in refused.steps] == [False, True, True, True]


def test_only_a_refusal_of_every_type_is_a_wrong_request_and_it_has_each_types_words() -> None:
    once = refuse(TWO, 0, "InvalidParameterCombination", "this is no combination")
    assert isinstance(policy.find_error(once, NOW), CapacityPending)  # the large one was not asked yet
    error = policy.find_error(refuse(once, 2, "UnauthorizedOperation", "the organization says no"), NOW)
    assert isinstance(error, InvalidRequest)
    assert f"{SMALL}: InvalidParameterCombination: this is no combination" in str(error)
    assert f"{LARGE}: UnauthorizedOperation: the organization says no" in str(error)
    assert str(error).count(SMALL) == 1


def test_types_that_are_refused_in_the_same_words_share_a_sentence() -> None:
    error = policy.find_error(refuse(refuse(TWO, 0), 2), NOW)
    assert f"{SMALL}, {LARGE}: InvalidParameterCombination: no" in str(error)


def test_a_type_without_capacity_beside_a_refused_one_is_walked_to_again_until_patience_is_over() -> None:
    mixed = lack(refuse(TWO, 0, message="no such combination"), 2)
    assert isinstance(policy.find_error(mixed, NOW), CapacityPending)
    over = policy.find_error(mixed, LATE)
    assert isinstance(over, CapacityUnavailable)
    assert "InvalidParameterCombination: no such combination" in str(over)


@pytest.mark.parametrize("outcome", [LaunchOutcome.QUOTA, LaunchOutcome.CLOSED])
def test_a_quota_beside_a_refused_type_is_named_as_such(outcome: LaunchOutcome) -> None:
    error = policy.find_error(lack(refuse(TWO, 0), 2, outcome), NOW)
    assert isinstance(error, QuotaExceeded)


def test_places_that_were_not_asked_are_no_refusal() -> None:
    passed = replace(
        TWO.steps[2],
        answer=LaunchAnswer(outcome=LaunchOutcome.NO_CAPACITY, at=NOW, code="NotAsked: job-9 found it empty"),
    )
    intent = replace(TWO, steps=(*TWO.steps[:2], passed))
    assert isinstance(policy.find_error(refuse(intent, 0), NOW), CapacityPending)


def test_a_token_that_was_used_for_something_else_ends_the_walk() -> None:
    answer = LaunchAnswer(
        outcome=LaunchOutcome.MISTAKE, at=NOW, code="IdempotentParameterMismatch", message="other parameters"
    )
    ended = policy.record_answer(TWO, 0, answer, recovering=False)
    assert ended.next_place is None
    assert isinstance(policy.find_error(ended, NOW), InvalidRequest)


def test_a_refusal_that_is_written_down_stays_one() -> None:
    refused = decode(Intent, encode(refuse(refuse(TWO, 0), 2)))
    assert isinstance(policy.find_error(refused, LATE), InvalidRequest)
