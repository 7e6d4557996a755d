"""Who may speak through the topic, and who may encrypt for it: what alarms say must not be dropped without a word."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from localaws.iam.simulator import Answer, Policies, Request, simulate
from tests.security.policies import ACCOUNT, REGION, TOPIC, TOPIC_KEY, of_resource, role
from tests.stacks.synth import resources
from tools.synthesis import Synthesised

CLOUDWATCH, EVENTS, S3 = (f"{name}.amazonaws.com" for name in ("cloudwatch", "events", "s3"))
OURS, THEIRS = {"aws:SourceAccount": ACCOUNT}, {"aws:SourceAccount": "999999999999"}
KEY_ACTIONS = ("kms:Decrypt", "kms:GenerateDataKey")


@pytest.fixture(scope="module")
def key_policy(deployment: Synthesised) -> dict[str, object]:
    return of_resource(deployment, "AWS::KMS::Key")


@pytest.fixture(scope="module")
def topic_policy(deployment: Synthesised) -> dict[str, object]:
    return of_resource(deployment, "AWS::SNS::TopicPolicy")


def answers(
    policy: Mapping[str, object], resource: str, who: str, context: Mapping[str, str], *actions: str
) -> list[bool]:
    asked = [
        Request(principal=who, action=action, resource=resource, context=context, resource_policy=policy)
        for action in actions
    ]
    found: list[Answer] = simulate({}, asked)
    assert [one.error for one in found] == [""] * len(actions)
    return [one.allowed for one in found]


def test_alarms_of_this_account_may_encrypt_for_the_topic(key_policy: dict[str, object]) -> None:
    assert answers(key_policy, TOPIC_KEY, CLOUDWATCH, OURS, *KEY_ACTIONS) == [True, True]


def test_alarms_of_this_account_may_publish(topic_policy: dict[str, object]) -> None:
    safe = OURS | {"aws:SecureTransport": "true"}
    assert answers(topic_policy, TOPIC, CLOUDWATCH, safe, "sns:Publish") == [True]


@pytest.mark.parametrize(("who", "context"), [(CLOUDWATCH, THEIRS), (CLOUDWATCH, {}), (EVENTS, OURS), (S3, OURS)])
def test_nobody_else_encrypts_or_publishes(
    key_policy: dict[str, object], topic_policy: dict[str, object], who: str, context: dict[str, str]
) -> None:
    assert not any(answers(key_policy, TOPIC_KEY, who, context, *KEY_ACTIONS))
    assert not any(answers(topic_policy, TOPIC, who, context, "sns:Publish"))


def test_alarms_may_do_nothing_else_with_the_key_and_the_topic(
    key_policy: dict[str, object], topic_policy: dict[str, object]
) -> None:
    assert not any(answers(key_policy, TOPIC_KEY, CLOUDWATCH, OURS, "kms:ScheduleKeyDeletion", "kms:PutKeyPolicy"))
    assert not any(answers(topic_policy, TOPIC, CLOUDWATCH, OURS, "sns:Subscribe", "sns:DeleteTopic"))


def test_no_role_publishes_or_encrypts_for_the_topic_but_those_that_tell_people(
    policies: dict[str, Policies], key_policy: dict[str, object]
) -> None:
    """The reaper tells what it ended, the grid's Collect and its cleanup tell how a grid ended, a search and its cleanup how that
    ended, the attendant that a training makes no
    progress; nobody else has anything to say."""
    tellers = {role(one) for one in ("Reaper", "GridCollect", "GridCleanup", "Search", "SearchCleanup", "Attendant")}
    through = {"kms:ViaService": f"sns.{REGION}.amazonaws.com"}
    for action in (*KEY_ACTIONS, "sns:Publish"):
        key = action in KEY_ACTIONS
        asked = [
            Request(
                principal=one,
                action=action,
                resource=TOPIC_KEY if key else TOPIC,
                context=through if key else {},
                resource_policy=key_policy if key else None,
            )
            for one in policies
        ]
        answered = zip(asked, simulate(policies, asked), strict=True)
        assert {request.principal for request, one in answered if one.allowed} == tellers, action


def test_the_topic_is_under_that_key_which_turns(deployment: Synthesised) -> None:
    foundation = deployment.template("foundation")
    (topic,) = resources(foundation, "AWS::SNS::Topic").values()
    ((name, key),) = resources(foundation, "AWS::KMS::Key").items()
    assert topic["KmsMasterKeyId"] == {"Fn::GetAtt": [name, "Arn"]}
    assert key["EnableKeyRotation"] is True
    assert key["PendingWindowInDays"] == 7
