"""What roles may and may not do: requests put to an IAM simulator with the synthesised policies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from contract import keys, names, tags
from localaws.iam.permissions import listed
from localaws.iam.simulator import Answer, Policies, Request, condition_keys, simulate
from tests.builders import TAGS_AT_LAUNCH
from tests.security import containers, endings, grids, images, jobs, launches, resumes, state
from tests.security.asking import (
    ARM_IMAGE,
    BYTES,
    EC2,
    HERE,
    HOME,
    JOB,
    JOB_ROLE,
    LAUNCHING,
    NODE_ROLE,
    NODES_LOG,
    OURS,
    OWN,
    SECRETS,
    SPOT_ROLE,
    SSM,
    STATES,
    TAGGED,
    THEIRS,
    UNDER_OURS,
    X86_IMAGE,
    Ask,
)
from tests.security.endings import BY_SNS
from tests.security.policies import (
    ACCOUNT,
    REGION,
    TOPIC,
    TOPIC_KEY,
    function,
    log_stream,
    of_resource,
    queue,
    role,
    trust,
)
from tools.synthesis import Synthesised

AGENT = keys.agent("a" * 64)

ALLOWED = [
    Ask("Admission", "s3:GetObject", f"{HOME}/{keys.UPLOADS}ann/code.zip"),
    Ask("Admission", "s3:PutObject", f"{HOME}/{JOB.description}"),
    Ask("Admission", "s3:ListBucket", HOME),
    Ask("Admission", "ec2:DescribeInstanceTypes", "*", HERE),
    Ask("Admission", "ssm:GetParameter", f"{SSM}:{ACCOUNT}:parameter{names.region_parameter('trainyard', REGION)}"),
    Ask("Admission", "ssm:GetParameter", f"{SSM}::parameter{ARM_IMAGE}"),
    Ask("Admission", "ssm:GetParameter", f"{SSM}::parameter{X86_IMAGE}"),
    Ask("Admission", "s3:GetObjectVersion", f"{HOME}/{keys.UPLOADS}ann/code.zip"),
    Ask("Admission", "s3:GetObject", f"{HOME}/{JOB.description}"),
    Ask("Admission", "s3:GetObject", f"{HOME}/{JOB.code('code.zip')}"),
    Ask("Admission", "s3:PutObject", f"{HOME}/{JOB.code('code.tar.gz')}"),
    Ask("Admission", "ec2:DescribeInstanceTypeOfferings", "*", HERE),
    Ask("Admission", "ec2:GetEbsDefaultKmsKeyId", "*", HERE),
    Ask("Admission", "ec2:DescribeCapacityReservations", "*", HERE),
    Ask("Admission", "resource-groups:ListGroupResources", f"arn:aws:resource-groups:{REGION}:{ACCOUNT}:group/g", HERE),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:capacity-reservation/cr-1", OURS),
    Ask("Admission", "ec2:DescribeSpotPriceHistory", "*", HERE),
    Ask("Admission", "pricing:GetProducts", "*", {"aws:RequestedRegion": "us-east-1"}),
    Ask("Admission", "s3:AbortMultipartUpload", f"{HOME}/{JOB.code('code.tar.gz')}"),
    Ask("Admission", "ec2:DescribeImages", "*", HERE),
    Ask("Admission", "logs:PutLogEvents", log_stream("AdmissionLog", "x")),
    Ask("Launcher", "logs:CreateLogStream", log_stream("LauncherLog", "x")),
    Ask("Attendant", "logs:PutLogEvents", log_stream("AttendantLog", "x")),
    Ask("ArtifactCheck", "logs:PutLogEvents", log_stream("ArtifactCheckLog", "x")),
    Ask("Terminator", "logs:PutLogEvents", log_stream("TerminatorLog", "x")),
    Ask("Admission", "secretsmanager:DescribeSecret", f"{SECRETS}:trainyard/trainyard/wandb-AbCdEf"),
    *(Ask("Launcher", "ec2:RunInstances", f"{EC2}:{kind}/*", context) for kind, context in launches.SAFE.items()),
    *(Ask("Launcher", "ec2:RunInstances", launches.IMAGE, owner) for owner in launches.OWNERS),
    Ask("Launcher", "ec2:DescribeSpotPriceHistory", "*", HERE),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:subnet/subnet-1", OURS),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:security-group/sg-1", OURS),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:launch-template/lt-1", OURS),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:placement-group/g", OURS),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:spot-instances-request/*"),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:instance/*", LAUNCHING | {"aws:TagKeys": list(TAGS_AT_LAUNCH)}),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:network-interface/*", LAUNCHING),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:instance/i-1", OURS | {"aws:TagKeys": [tags.MASTER_ADDRESS]}),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:instance/i-1", OURS | {"aws:TagKeys": [tags.NAME]}),
    Ask("Launcher", "iam:PassRole", NODE_ROLE, {"iam:PassedToService": "ec2.amazonaws.com"}),
    Ask("Launcher", "iam:CreateServiceLinkedRole", SPOT_ROLE, {"iam:AWSServiceName": "spot.amazonaws.com"}),
    Ask("Launcher", "ec2:DescribeInstances", "*", HERE),
    *(
        Ask("Launcher", f"states:SendTask{one}", f"{STATES}:trainyard-train")
        for one in ("Success", "Failure", "Heartbeat")
    ),
    Ask("Launcher", "s3:PutObject", f"{HOME}/{JOB.wait}"),
    Ask("Attendant", "states:SendTaskSuccess", f"{STATES}:trainyard-train"),
    Ask("Attendant", "states:SendTaskFailure", f"{STATES}:trainyard-train"),
    Ask("Attendant", "ec2:DescribeInstances", "*", HERE),
    Ask("Attendant", "ec2:GetConsoleOutput", f"{EC2}:instance/i-1", OURS),
    Ask("Attendant", "states:SendTaskHeartbeat", f"{STATES}:trainyard-train"),
    *(
        Ask("Attendant", f"sqs:{one}", queue("Endings"))
        for one in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
    ),
    Ask("ArtifactCheck", "s3:GetObject", f"{BYTES}/jobs/resnet/commits/artifacts/x.json"),
    Ask("ArtifactCheck", "s3:ListBucket", BYTES),
    Ask("ArtifactCheck", "s3:PutObject", f"{HOME}/{JOB.artifacts(1)}"),
    Ask("Terminator", "ec2:TerminateInstances", f"{EC2}:instance/i-1", OURS | UNDER_OURS),
    Ask("Terminator", "ec2:DescribeInstances", "*", HERE),
    Ask("Terminator", "s3:GetObject", f"{HOME}/{JOB.result}"),
    Ask("Terminator", "s3:PutObject", f"{HOME}/{JOB.result}"),
    Ask("Terminator", "s3:ListBucket", HOME, {"s3:prefix": JOB.result}),
    Ask("Terminator", "s3:GetObject", f"{BYTES}/jobs/resnet/commits/checkpoints/0001-000001/closed.json"),
    Ask("Terminator", "s3:ListBucket", BYTES),
    Ask("Attendant", "sns:Publish", TOPIC),
    Ask("Attendant", "kms:Decrypt", TOPIC_KEY, BY_SNS),
    Ask("Attendant", "kms:GenerateDataKey", TOPIC_KEY, BY_SNS),
    Ask("Train", "lambda:InvokeFunction", function("Admission")),
    Ask("Train", "lambda:InvokeFunction", function("Launcher")),
    Ask("Train", "lambda:InvokeFunction", function("Attendant")),
    Ask("Train", "lambda:InvokeFunction", function("ArtifactCheck")),
    Ask("Train", "lambda:InvokeFunction", function("Terminator")),
    Ask("Admission", "s3:PutObject", f"{HOME}/{AGENT}"),
    Ask("Admission", "s3:GetObject", f"{HOME}/{AGENT}"),
    Ask("Node", "s3:GetObject", f"{HOME}/{AGENT}"),
]

DENIED = [
    Ask("Node", "s3:PutObject", f"{HOME}/{AGENT}"),
    Ask("Node", "s3:DeleteObject", f"{HOME}/{AGENT}"),
    Ask("Admission", "s3:DeleteObject", f"{HOME}/{AGENT}"),
    Ask("Admission", "s3:GetObject", f"arn:aws:s3:::cdk-hnb659fds-assets-{ACCOUNT}-{REGION}/{'0' * 64}.zip"),
    Ask("Launcher", "s3:PutObject", f"{HOME}/{AGENT}"),
    Ask("Node", "s3:PutObject", f"{HOME}/{JOB.description}"),
    Ask("Node", "s3:PutObject", f"{HOME}/{JOB.artifacts(1)}"),
    Ask("Node", "s3:GetObject", f"{HOME}/{JOB.artifacts(1)}"),
    Ask("Node", "s3:GetObject", f"{HOME}/{JOB.result}"),
    Ask("Node", "s3:PutObject", f"{HOME}/{JOB.root}attempts/1/nodes/0000.json"),
    Ask("Node", "s3:ListBucket", HOME, {"s3:prefix": keys.AGENTS}),
    *(
        Ask(one, action, f"{HOME}/{JOB.description}")
        for one in ("Launcher", "Attendant", "ArtifactCheck", "Terminator")
        for action in ("s3:GetObject", "s3:PutObject")
    ),
    Ask("Attendant", "s3:ListBucket", HOME),
    Ask("Attendant", "sqs:SendMessage", queue("Endings")),
    Ask("Attendant", "sqs:ReceiveMessage", queue("CleanupQueue")),
    Ask("Attendant", "sqs:PurgeQueue", queue("Endings")),
    Ask("Cleanup", "sqs:ReceiveMessage", queue("Endings")),
    Ask("Node", "sqs:SendMessage", queue("Endings")),
    Ask("Launcher", "s3:ListBucket", HOME),
    Ask("Launcher", "s3:GetObject", f"{HOME}/{JOB.wait}"),
    Ask("Launcher", "s3:PutObject", f"{HOME}/{JOB.result}"),
    Ask("Launcher", "s3:PutObject", f"{HOME}/{JOB.artifacts(1)}"),
    Ask("Launcher", "states:SendTaskSuccess", f"{STATES}:trainyard-grid"),
    Ask("Launcher", "states:StartExecution", f"{STATES}:trainyard-train"),
    *(Ask(who, "s3:PutObject", f"{HOME}/{JOB.wait}") for who in ("Node", "Attendant", "Terminator", "Admission")),
    Ask("Attendant", "s3:PutObject", f"{HOME}/{JOB.result}"),
    Ask("Node", "s3:PutObject", f"{HOME}/{JOB.code('code.zip')}"),
    Ask("Node", "s3:GetObject", f"{HOME}/{keys.UPLOADS}ann/code.zip"),
    Ask("Node", "s3:GetObject", "arn:aws:s3:::somebody-elses/data"),
    Ask("Node", "s3:GetObject", f"arn:aws:s3:::{names.bytes_bucket('other', ACCOUNT, REGION)}/jobs/a/checkpoints/x"),
    Ask("Node", "s3:GetObject", f"arn:aws:s3:::cdk-hnb659fds-assets-{ACCOUNT}-{REGION}/{'0' * 64}.zip"),
    Ask("Node", "ec2:TerminateInstances", f"{EC2}:instance/i-1", OURS),
    Ask("Node", "ec2:RunInstances", f"{EC2}:instance/*", TAGGED),
    Ask("Node", "ec2:CreateTags", f"{EC2}:instance/i-1", OURS | {"aws:TagKeys": [tags.MASTER_ADDRESS]}),
    Ask("Node", "ec2:DescribeInstances", "*", HERE),
    Ask("Node", "states:SendTaskSuccess", f"{STATES}:trainyard-train"),
    Ask("Node", "iam:PassRole", NODE_ROLE, {"iam:PassedToService": "ec2.amazonaws.com"}),
    Ask("Node", "secretsmanager:GetSecretValue", f"{SECRETS}:trainyard/other/key-AbCdEf"),
    Ask("Node", "secretsmanager:PutSecretValue", f"{SECRETS}:trainyard/trainyard/wandb-AbCdEf"),
    Ask("Node", "logs:DeleteLogStream", log_stream(NODES_LOG, names.log_stream("resnet", 1, 0))),
    Ask("Node", "logs:PutLogEvents", log_stream("AttendantLog", "x")),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:instance/*"),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:instance/*", {f"aws:RequestTag/{tags.DEPLOYMENT}": "other"}),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:subnet/subnet-9", THEIRS),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:subnet/subnet-9"),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:launch-template/lt-9", THEIRS),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:key-pair/mine"),
    Ask("Launcher", "ec2:RunInstances", f"arn:aws:ec2:eu-west-1:{ACCOUNT}:instance/*", TAGGED),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:instance/i-9", TAGGED | {"aws:TagKeys": [tags.DEPLOYMENT]}),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:instance/i-9", THEIRS | {"aws:TagKeys": [tags.MASTER_ADDRESS]}),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:instance/i-9", THEIRS | {"aws:TagKeys": [tags.NAME]}),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:instance/i-1", OURS | {"aws:TagKeys": [tags.DEADLINE]}),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:instance/i-1", OURS | {"aws:TagKeys": [tags.MASTER_ADDRESS, tags.JOB]}),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:instance/i-1", OURS),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:subnet/subnet-1", TAGGED | {"aws:TagKeys": [tags.DEPLOYMENT]}),
    Ask("Launcher", "ec2:DeleteTags", f"{EC2}:instance/i-1", OURS | {"aws:TagKeys": [tags.MASTER_ADDRESS]}),
    Ask("Launcher", "ec2:TerminateInstances", f"{EC2}:instance/i-1", OURS),
    Ask("Launcher", "iam:PassRole", NODE_ROLE, {"iam:PassedToService": "lambda.amazonaws.com"}),
    Ask("Launcher", "iam:PassRole", NODE_ROLE),
    Ask("Launcher", "iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/admin", {"iam:PassedToService": "ec2.amazonaws.com"}),
    Ask("Terminator", "ec2:TerminateInstances", f"{EC2}:instance/i-9", THEIRS),
    Ask("Terminator", "s3:GetObject", f"{BYTES}/jobs/resnet/checkpoints/rank-0000/x"),
    Ask("Terminator", "s3:PutObject", f"{BYTES}/jobs/resnet/commits/checkpoints/0001-000001/closed.json"),
    Ask("Attendant", "sns:Publish", f"{TOPIC}-of-others"),
    Ask("Attendant", "kms:Decrypt", TOPIC_KEY),
    *(Ask(who, "sns:Publish", TOPIC) for who in ("Launcher", "Terminator", "Admission")),
    Ask("Terminator", "ec2:TerminateInstances", f"{EC2}:instance/i-9"),
    Ask("Terminator", "ec2:StopInstances", f"{EC2}:instance/i-1", OURS),
    Ask("Terminator", "ec2:DescribeInstances", "*", {"aws:RequestedRegion": "ap-south-1"}),
    Ask("Terminator", "ec2:RunInstances", f"{EC2}:instance/*", TAGGED),
    Ask("Terminator", "s3:DeleteObject", f"{HOME}/{JOB.result}"),
    Ask("Attendant", "states:SendTaskSuccess", f"{STATES}:other-train"),
    Ask("Attendant", "states:StartExecution", f"{STATES}:trainyard-train"),
    Ask("Attendant", "ec2:TerminateInstances", f"{EC2}:instance/i-1", OURS),
    Ask("Attendant", "ec2:GetConsoleOutput", f"{EC2}:instance/i-9", THEIRS),
    Ask("Attendant", "ec2:GetConsoleOutput", f"{EC2}:instance/i-9"),
    Ask("Attendant", "ec2:GetConsoleOutput", f"arn:aws:ec2:eu-west-1:{ACCOUNT}:instance/i-1", OURS),
    Ask("Node", "ec2:GetConsoleOutput", f"{EC2}:instance/i-1", OURS),
    Ask("Node", "cloudwatch:PutMetricData", "*", HERE | {"cloudwatch:namespace": names.METRICS}),
    Ask("Node", "cloudwatch:PutMetricData", "*", HERE | {"cloudwatch:namespace": names.node_metrics("other")}),
    Ask("Node", "cloudwatch:PutMetricData", "*", HERE),
    Ask("Attendant", "s3:DeleteObject", f"{HOME}/{JOB.description}"),
    Ask("Admission", "s3:PutObject", f"{HOME}/{keys.UPLOADS}ann/code.zip"),
    Ask("Admission", "s3:GetObject", "arn:aws:s3:::somebody-elses/code.zip"),
    Ask("Admission", "secretsmanager:GetSecretValue", f"{SECRETS}:trainyard/trainyard/wandb-AbCdEf"),
    Ask("Admission", "ssm:GetParameter", f"{SSM}:{ACCOUNT}:parameter/trainyard/other/regions/{REGION}"),
    Ask("Admission", "ssm:PutParameter", f"{SSM}:{ACCOUNT}:parameter{names.region_parameter('trainyard', REGION)}"),
    Ask("Admission", "ec2:RunInstances", f"{EC2}:instance/*", TAGGED),
    Ask("Admission", "ec2:ModifyEbsDefaultKmsKeyId", "*", HERE),
    Ask("Admission", "s3:AbortMultipartUpload", f"{HOME}/{keys.UPLOADS}ann/code.zip"),
    Ask("Admission", "s3:GetObjectTagging", f"{HOME}/{keys.UPLOADS}ann/code.zip"),
    Ask("Admission", "s3:PutObjectTagging", f"{HOME}/{JOB.code('code.tar')}"),
    *(
        Ask("Attendant", action, f"{HOME}/control/{key}")
        for action in ("s3:GetObject", "s3:PutObject", "s3:DeleteObject")
        for key in ("admission.json", "tokens/resnet/1.json")
    ),
    *(
        Ask("ArtifactCheck", "s3:GetObject", f"{BYTES}/{key}")
        for key in (
            keys.BytesPrefix("resnet").checkpoint(0, "f" * 64, "model.pt"),
            keys.BytesPrefix("resnet").artifact(0, "model.pt"),
            "grids/sweep/00000000/output/model.tar.gz",
        )
    ),
    *(
        Ask(one, "s3:PutObject", f"{HOME}/{key}", {"aws:ResourceAccount": "444455556666"})
        for one, key in (
            ("Admission", JOB.description),
            ("ArtifactCheck", JOB.artifacts(1)),
            ("Terminator", JOB.result),
        )
    ),
    Ask("Admission", "s3:GetObject", f"{HOME}/{keys.UPLOADS}ann/code.zip", {"aws:ResourceAccount": "444455556666"}),
    Ask("Admission", "s3:ListBucket", HOME, {"aws:ResourceAccount": "444455556666"}),
    Ask("ArtifactCheck", "s3:PutObject", f"{BYTES}/jobs/resnet/artifacts/rank-0000/model.pt"),
    Ask("ArtifactCheck", "s3:DeleteObject", f"{BYTES}/jobs/resnet/checkpoints/x"),
    Ask("Train", "states:StartExecution", f"{STATES}:trainyard-train"),
    Ask("Train", "lambda:InvokeFunction", function("SomebodyElses")),
    Ask("Train", "lambda:InvokeFunction", f"{function('Launcher')}:1"),
    Ask("Train", "ec2:TerminateInstances", f"{EC2}:instance/i-1", OURS),
    Ask("Launcher", "iam:CreateServiceLinkedRole", SPOT_ROLE),
    Ask("Launcher", "iam:CreateServiceLinkedRole", SPOT_ROLE, {"iam:AWSServiceName": "autoscaling.amazonaws.com"}),
    Ask("Launcher", "ec2:RunInstances", f"arn:aws:ec2:{REGION}::snapshot/snap-1"),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:capacity-reservation/cr-1"),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:capacity-reservation/cr-1", THEIRS),
    Ask("Launcher", "ec2:ModifyCapacityReservation", f"{EC2}:capacity-reservation/cr-1", OURS),
    Ask("Launcher", "ec2:CancelCapacityReservation", f"{EC2}:capacity-reservation/cr-1", OURS),
    Ask("Admission", "ec2:CreateCapacityReservation", f"{EC2}:capacity-reservation/*", OURS),
    Ask("Admission", "ec2:PurchaseCapacityBlock", "*", HERE),
    Ask(
        "Admission",
        "resource-groups:ListGroupResources",
        "arn:aws:resource-groups:eu-central-1:999999999999:group/g",
        HERE,
    ),
    Ask("Admission", "resource-groups:GroupResources", f"arn:aws:resource-groups:{REGION}:{ACCOUNT}:group/g", HERE),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:placement-group/theirs", THEIRS),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:security-group/sg-9", THEIRS),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:volume/*", {"ec2:CreateAction": "RunInstances"}),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:instance/*", TAGGED | {"ec2:CreateAction": "CreateVolume"}),
    Ask("Admission", "s3:DeleteObject", f"{HOME}/{keys.UPLOADS}ann/code.zip"),
    Ask("Admission", "ssm:GetParameter", f"{SSM}::parameter/aws/service/deeplearning/ami/arm64/x/latest/ami-id"),
    Ask("Node", "s3:GetObject", f"{BYTES}/{keys.BytesPrefix('resnet').artifact(0, 'model.pt')}"),
    Ask("Node", "s3:DeleteObject", f"{BYTES}/{keys.BytesPrefix('resnet').artifact(0, 'model.pt')}"),
    Ask("Node", "lambda:InvokeFunction", function("Launcher")),
]

EVERY_ALLOWED = [
    *ALLOWED,
    *endings.ALLOWED,
    *images.ALLOWED,
    *grids.ALLOWED,
    *state.ALLOWED,
    *jobs.ALLOWED,
    *resumes.ALLOWED,
    *containers.ALLOWED,
]
EVERY_DENIED = [
    *DENIED,
    *launches.DENIED,
    *endings.DENIED,
    *images.DENIED,
    *grids.DENIED,
    *state.DENIED,
    *jobs.DENIED,
    *resumes.DENIED,
    *containers.DENIED,
]


IN_EVERY_REQUEST = {"aws:requestedregion"}
"""Of a parameter that belongs to no account the simulator knows no keys at all."""


@pytest.fixture(scope="module")
def answers(policies: dict[str, Policies], deployment: Synthesised) -> dict[str, Answer]:
    """One process for all cases. KMS asks the policy of the key as well, which leaves roles to their own, and STS the trust policy."""
    key = of_resource(deployment, "AWS::KMS::Key")
    asked = [ask.request for ask in (*EVERY_ALLOWED, *EVERY_DENIED)]
    of_their_own = {TOPIC_KEY: key, JOB_ROLE: trust(deployment, "JobRole")}
    with_key = [replace(one, resource_policy=of_their_own.get(one.resource)) for one in asked]
    return {request.identity: answer for request, answer in zip(asked, simulate(policies, with_key), strict=True)}


@pytest.mark.parametrize("ask", EVERY_ALLOWED, ids=str)
def test_a_role_may_do_its_work(answers: dict[str, Answer], ask: Ask) -> None:
    answer = answers[ask.request.identity]
    assert (answer.allowed, answer.error, answer.ignored) == (True, "", ())


@pytest.mark.parametrize("ask", EVERY_DENIED, ids=str)
def test_a_role_may_do_nothing_else(answers: dict[str, Answer], ask: Ask) -> None:
    answer = answers[ask.request.identity]
    assert (answer.allowed, answer.error, answer.ignored) == (False, "", ())


def test_the_tables_are_long_enough_and_name_every_role(policies: dict[str, Policies]) -> None:
    for table in (EVERY_ALLOWED, EVERY_DENIED):
        assert len({ask.request.identity for ask in table}) == len(table) >= 60
        assert {role(ask.role) for ask in table} == policies.keys()


def test_every_statement_is_what_allows_some_request_of_the_table(
    policies: dict[str, Policies], answers: dict[str, Answer]
) -> None:
    useful = {
        (ask.request.principal, policy, index)
        for ask in EVERY_ALLOWED
        for policy, index in answers[ask.request.identity].by
    }
    useless = [
        (principal, str(statement.get("Sid", statement["Action"])))
        for principal, of_role in policies.items()
        for policy, document in of_role.items()
        for index, statement in enumerate(document["Statement"])
        if (principal, policy, index) not in useful
    ]
    # The archives' keys are hashes of what is in them: no table can name them.
    assert sorted(useless) == [
        (role("Admission"), "ReadTheAgentAsset"),
        (role("Build"), "ReadTheScript"),
        (role("OwnImages"), "ReadContexts"),
        (role("PlatformBuild"), "ReadTheScript"),
    ]


def test_admission_fetches_the_agents_archive_and_no_other_asset(policies: dict[str, Policies]) -> None:
    statements = [one for document in policies[role("Admission")].values() for one in document["Statement"]]
    (fetch,) = [one for one in statements if one.get("Sid") == "ReadTheAgentAsset"]
    agent = fetch["Resource"]
    other = re.sub("[0-9a-f]{64}", "0" * 64, agent)
    assert other != agent
    asked = [Request(principal=role("Admission"), action="s3:GetObject", resource=one) for one in (agent, other)]
    assert [answer.allowed for answer in simulate(policies, asked)] == [True, False]


def test_no_condition_rests_on_a_key_that_iam_never_fills_in(
    policies: dict[str, Policies], wide_policies: dict[str, Policies]
) -> None:
    """Such a statement looks right and always denies."""
    used = [
        (action, resource, key)
        for each in (policies, wide_policies)
        for of_role in each.values()
        for document in of_role.values()
        for statement in document["Statement"]
        for action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
        if _may_meet(action, resource, statement)
        for condition in statement.get("Condition", {}).values()
        for key in condition
    ]
    known = condition_keys((action, _concrete(resource)) for action, resource, _ in used)
    unknown = [
        one for one, keys_ in zip(used, known, strict=True) if _general(one[2]) not in {*keys_, *IN_EVERY_REQUEST}
    ]
    assert used
    assert unknown == []


def _may_meet(action: str, resource: str, statement: Mapping[str, Any]) -> bool:
    """Whether the action can be asked for the resource: a statement of several services has resources of each."""
    services = {one.partition(":")[0] for one in listed(statement["Action"])}
    return len(services) == 1 or resource == "*" or resource.split(":")[2] == action.partition(":")[0]


def test_a_key_that_iam_never_fills_in_is_noticed(policies: dict[str, Policies]) -> None:
    asked = Request(
        principal=role("Node"), action="s3:GetObject", resource=f"{HOME}/jobs/a", context={"s3:prefix": "x"}
    )
    (answer,) = simulate(policies, [asked])
    assert answer.ignored == ("s3:prefix",)
    assert "s3:prefix" not in condition_keys([("s3:GetObject", f"{HOME}/jobs/a")])[0]


def test_an_action_that_does_not_exist_is_no_answer(policies: dict[str, Policies]) -> None:
    (answer,) = simulate(
        policies, [Request(principal=role("Node"), action="s3:FetchObject", resource=f"{HOME}/jobs/a")]
    )
    assert "invalid.action" in answer.error


def test_data_buckets_are_read_by_what_trains_plans_and_builds_alone(wide_policies: dict[str, Policies]) -> None:
    roles = sorted(wide_policies)
    read = [Request(principal=one, action="s3:GetObject", resource="arn:aws:s3:::imagenet/a.tar") for one in roles]
    write = [Request(principal=one, action="s3:PutObject", resource="arn:aws:s3:::imagenet/a.tar") for one in roles]
    answers = simulate(wide_policies, [*read, *write])
    allowed = {request.principal for request, answer in zip([*read, *write], answers, strict=True) if answer.allowed}
    assert allowed == {*(role(one) for one in ("Admission", "Node", "Build", "ImageBuild", "GridPlan", "Training"))}
    assert not any(answer.allowed for answer in answers[len(read) :])


def test_buckets_are_emptied_by_the_drain_alone_and_only_where_data_is_not_kept(
    policies: dict[str, Policies], wide_policies: dict[str, Policies]
) -> None:
    ours = [
        (action, f"{bucket}/jobs/resnet/x")
        for bucket in (HOME, BYTES)
        for action in ("s3:DeleteObject", "s3:DeleteObjectVersion")
    ]
    ours += [("s3:ListBucketVersions", bucket) for bucket in (HOME, BYTES)]
    asked = [
        Request(principal=role("Drain"), action=action, resource=resource, context=OWN) for action, resource in ours
    ]
    assert not any(answer.allowed for answer in simulate(policies, asked))

    assert all(answer.allowed for answer in simulate(wide_policies, asked))
    theirs = [
        Request(
            principal=role("Drain"), action="s3:DeleteObjectVersion", resource=f"arn:aws:s3:::{bucket}/x", context=OWN
        )
        for bucket in ("imagenet", names.home_bucket("other", ACCOUNT, REGION))
    ]
    others = [
        Request(principal=one, action="s3:DeleteObjectVersion", resource=f"{HOME}/jobs/resnet/x", context=OWN)
        for one in wide_policies
        if one != role("Drain")
    ]
    assert not any(answer.allowed for answer in simulate(wide_policies, [*theirs, *others]))


def _concrete(resource: str) -> str:
    return resource if resource == "*" else resource.replace("*", "x")


def _general(key: str) -> str:
    """`aws:RequestTag/trainyard:deployment` as the reference has it."""
    name, slash, _ = key.partition("/")
    return f"{name}{slash}${{TagKey}}".lower() if slash else name.lower()
