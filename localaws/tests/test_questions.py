"""What IAM is asked for the calls that functions and machines make to most services."""

from __future__ import annotations

from typing import Any

import pytest

from localaws.iam.questions import Untaught
from localaws.testing.asking import KEY, OPEN, OWNER, questions_of

REGION = "eu-central-1"
HERE = f"{REGION}:{OWNER}"
MACHINE = f"arn:aws:states:{HERE}:stateMachine:train"
EXECUTION = f"arn:aws:states:{HERE}:execution:train:resnet"
TOPIC = f"arn:aws:sns:{HERE}:people"
QUEUE = f"https://sqs.eu-central-1.amazonaws.com/{OWNER}/ended"


def list_questions(name: str, **parameters: Any) -> list[tuple[str, str]]:
    return [(one.action, one.resource) for one in questions_of(name, REGION, **parameters)]


QUESTIONS: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    ("states:ListExecutions", {"stateMachineArn": MACHINE}, [("states:ListExecutions", MACHINE)]),
    ("states:StartExecution", {"stateMachineArn": MACHINE}, [("states:StartExecution", MACHINE)]),
    ("states:DescribeExecution", {"executionArn": EXECUTION}, [("states:DescribeExecution", EXECUTION)]),
    ("states:StopExecution", {"executionArn": EXECUTION}, [("states:StopExecution", EXECUTION)]),
    *(
        (f"events:{action}", {named: "ours"}, [(f"events:{action}", f"arn:aws:events:{HERE}:rule/ours")])
        for action, named in (("PutRule", "Name"), ("PutTargets", "Rule"), ("DescribeRule", "Name"))
    ),
    ("sqs:SendMessage", {"QueueUrl": QUEUE}, [("sqs:SendMessage", f"arn:aws:sqs:{HERE}:ended")]),
    ("sqs:DeleteMessageBatch", {"QueueUrl": QUEUE}, [("sqs:DeleteMessage", f"arn:aws:sqs:{HERE}:ended")]),
    ("sns:Publish", {"TopicArn": TOPIC}, [("sns:Publish", TOPIC), ("kms:Decrypt", KEY), ("kms:GenerateDataKey", KEY)]),
    (
        "s3:DeleteObjects",
        {"Bucket": "b", "Deleted": [["jobs/a"], ["jobs/b", "v1"]]},
        [("s3:DeleteObject", "arn:aws:s3:::b/jobs/a"), ("s3:DeleteObjectVersion", "arn:aws:s3:::b/jobs/b")],
    ),
    *(
        (
            "lambda:Invoke",
            {"FunctionName": given},
            [("lambda:InvokeFunction", f"arn:aws:lambda:{HERE}:function:worker")],
        )
        for given in ("worker", f"arn:aws:lambda:{HERE}:function:worker")
    ),
    ("monitoring:GetMetricData", {}, [("cloudwatch:GetMetricData", "*")]),
    ("pricing:GetProducts", {}, [("pricing:GetProducts", "*")]),
    ("ec2:DeleteVolume", {"VolumeId": "vol-1"}, [("ec2:DeleteVolume", f"arn:aws:ec2:{HERE}:volume/vol-1")]),
    (
        "ec2:CancelSpotInstanceRequests",
        {"SpotInstanceRequestId.1": "sir-1"},
        [("ec2:CancelSpotInstanceRequests", f"arn:aws:ec2:{HERE}:spot-instances-request/sir-1")],
    ),
]


@pytest.mark.parametrize(("name", "parameters", "questions"), QUESTIONS, ids=[name for name, *_ in QUESTIONS])
def test_a_call_is_asked_for_what_it_touches(
    name: str, parameters: dict[str, Any], questions: list[tuple[str, str]]
) -> None:
    assert list_questions(name, **parameters) == questions


def test_a_key_answers_by_its_own_policy() -> None:
    publish, *of_key = questions_of("sns:Publish", REGION, TopicArn=TOPIC)
    assert publish.resource_policy is None
    assert [one.resource_policy for one in of_key] == [OPEN, OPEN]
    assert {one.context["kms:ViaService"] for one in of_key} == {"sns.eu-central-1.amazonaws.com"}


@pytest.mark.parametrize(
    "name", ["states:RedriveExecution", "events:DeleteRule", "sns:DeleteTopic", "ec2:RebootInstances", "kms:Encrypt"]
)
def test_a_call_that_nobody_taught_is_an_error(name: str) -> None:
    with pytest.raises(Untaught, match=name):
        list_questions(name)
