"""What roles may and may not do, asked of the synthesised policies the way IAM asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import pytest

from contract import keys, names, tags
from tests.stacks.synth import Right, Synthesised, resources, rights

ACCOUNT, REGION = "111122223333", "eu-central-1"
HOME = f"arn:aws:s3:::{names.home_bucket('trainyard', ACCOUNT, REGION)}"
BYTES = f"arn:aws:s3:::{names.bytes_bucket('trainyard', ACCOUNT, REGION)}"
EC2 = f"arn:aws:ec2:{REGION}:{ACCOUNT}"
STATES = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine"
SSM = f"arn:aws:ssm:{REGION}"
SECRETS = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret"
OURS = {f"aws:ResourceTag/{tags.DEPLOYMENT}": "trainyard"}
THEIRS = {f"aws:ResourceTag/{tags.DEPLOYMENT}": "other"}
TAGGED = {f"aws:RequestTag/{tags.DEPLOYMENT}": "trainyard"}
LAUNCHING = TAGGED | {"ec2:CreateAction": "RunInstances"}
JOB = keys.JobPrefix("resnet")
HERE = {"aws:RequestedRegion": REGION}


@dataclass(frozen=True)
class Ask:
    """A request as IAM sees it."""

    role: str
    action: str
    resource: str
    context: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.role} {self.action} {self.resource.split(':')[-1]} {sorted(map(str, self.context.values()))}"


ALLOWED = [
    Ask("Admission", "s3:GetObject", f"{HOME}/{keys.UPLOADS}ann/code.zip"),
    Ask("Admission", "s3:PutObject", f"{HOME}/{JOB.description}"),
    Ask("Admission", "s3:ListBucket", HOME),
    Ask("Admission", "ec2:DescribeInstanceTypes", "*", HERE),
    Ask("Admission", "ssm:GetParameter", f"{SSM}:{ACCOUNT}:parameter{names.region_parameter('trainyard', REGION)}"),
    Ask("Admission", "ssm:GetParameter", f"{SSM}::parameter/aws/service/deeplearning/ami/arm64/x/latest/ami-id"),
    Ask("Admission", "secretsmanager:DescribeSecret", f"{SECRETS}:trainyard/trainyard/wandb-AbCdEf"),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:instance/*", TAGGED),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:volume/*", TAGGED),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:network-interface/*", TAGGED),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:subnet/subnet-1", OURS),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:security-group/sg-1", OURS),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:launch-template/lt-1", OURS),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:placement-group/g", OURS),
    Ask("Launcher", "ec2:RunInstances", f"arn:aws:ec2:{REGION}::image/ami-1"),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:spot-instances-request/*"),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:instance/*", LAUNCHING | {"aws:TagKeys": list(tags.AT_LAUNCH)}),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:network-interface/*", LAUNCHING),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:instance/i-1", OURS | {"aws:TagKeys": [tags.MASTER_ADDRESS]}),
    Ask("Launcher", "iam:PassRole", "<NodeRole>", {"iam:PassedToService": "ec2.amazonaws.com"}),
    Ask("Launcher", "s3:PutObject", f"{HOME}/{JOB.intent(1, 1)}"),
    Ask("Attendant", "states:SendTaskHeartbeat", f"{STATES}:trainyard-train"),
    Ask("Attendant", "s3:DeleteObject", f"{HOME}/{keys.TOKENS}resnet/1.json"),
    Ask("Attendant", "s3:PutObject", f"{HOME}/{JOB.order(1)}"),
    Ask("ArtifactCheck", "s3:GetObject", f"{BYTES}/jobs/resnet/commits/artifacts/x.json"),
    Ask("ArtifactCheck", "s3:ListBucket", BYTES),
    Ask("ArtifactCheck", "s3:PutObject", f"{HOME}/{JOB.artifacts(1)}"),
    Ask("Terminator", "ec2:TerminateInstances", f"{EC2}:instance/i-1", OURS),
    Ask("Terminator", "ec2:DescribeInstances", "*", HERE),
    Ask("Node", "s3:GetObject", f"{HOME}/{JOB.description}"),
    Ask("Node", "s3:ListBucket", HOME),
    Ask("Node", "s3:ListBucket", HOME, {"s3:prefix": JOB.root}),
    Ask("Node", "s3:PutObject", f"{HOME}/{JOB.report(1, 0)}"),
    Ask("Node", "s3:PutObject", f"{HOME}/{JOB.urgent(1, 0)}"),
    Ask("Node", "s3:PutObject", f"{HOME}/{JOB.order(1)}"),
    Ask("Node", "s3:DeleteObject", f"{BYTES}/{keys.BytesPrefix('resnet').checkpoint(0, 'f' * 64, 'a/b.pt')}"),
    Ask("Node", "s3:PutObject", f"{BYTES}/{keys.BytesPrefix('resnet').artifact(0, 'model.pt')}"),
    Ask("Node", "s3:PutObject", f"{BYTES}/{keys.BytesPrefix('resnet').commit(keys.Kind.CHECKPOINTS, 1, 5, 0)}"),
    Ask("Node", "secretsmanager:GetSecretValue", f"{SECRETS}:trainyard/trainyard/wandb-AbCdEf"),
    Ask("Node", "logs:PutLogEvents", "<NodeLog.Arn>"),
]
"""Resources in angle brackets are references to what their logical ids begin with."""

DENIED = [
    Ask("Node", "s3:GetObject", f"{HOME}/{keys.TOKENS}resnet/1.json"),
    Ask("Node", "s3:PutObject", f"{HOME}/{keys.TOKENS}resnet/1.json"),
    Ask("Node", "s3:ListBucket", HOME, {"s3:prefix": keys.CONTROL}),
    Ask("Node", "s3:PutObject", f"{HOME}/{JOB.description}"),
    Ask("Node", "s3:PutObject", f"{HOME}/{JOB.intent(1, 1)}"),
    Ask("Node", "s3:PutObject", f"{HOME}/{JOB.artifacts(1)}"),
    Ask("Node", "s3:PutObject", f"{HOME}/{JOB.code('code.zip')}"),
    Ask("Node", "s3:DeleteObject", f"{HOME}/{JOB.report(1, 0)}"),
    Ask("Node", "s3:GetObject", f"{HOME}/{keys.UPLOADS}ann/code.zip"),
    Ask("Node", "s3:GetObject", "arn:aws:s3:::somebody-elses/data"),
    Ask("Node", "s3:GetObject", f"arn:aws:s3:::{names.bytes_bucket('other', ACCOUNT, REGION)}/jobs/a/checkpoints/x"),
    Ask("Node", "s3:GetObject", f"arn:aws:s3:::cdk-hnb659fds-assets-{ACCOUNT}-{REGION}/{'0' * 64}.zip"),
    Ask("Node", "ec2:TerminateInstances", f"{EC2}:instance/i-1", OURS),
    Ask("Node", "ec2:RunInstances", f"{EC2}:instance/*", TAGGED),
    Ask("Node", "ec2:CreateTags", f"{EC2}:instance/i-1", OURS | {"aws:TagKeys": [tags.MASTER_ADDRESS]}),
    Ask("Node", "ec2:DescribeInstances", "*", HERE),
    Ask("Node", "states:SendTaskSuccess", f"{STATES}:trainyard-train"),
    Ask("Node", "iam:PassRole", "<NodeRole>", {"iam:PassedToService": "ec2.amazonaws.com"}),
    Ask("Node", "secretsmanager:GetSecretValue", f"{SECRETS}:trainyard/other/key-AbCdEf"),
    Ask("Node", "secretsmanager:PutSecretValue", f"{SECRETS}:trainyard/trainyard/wandb-AbCdEf"),
    Ask("Node", "logs:DeleteLogStream", "<NodeLog.Arn>"),
    Ask("Node", "logs:PutLogEvents", "<AttendantLog.Arn>"),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:instance/*"),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:instance/*", {f"aws:RequestTag/{tags.DEPLOYMENT}": "other"}),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:subnet/subnet-9", THEIRS),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:subnet/subnet-9"),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:launch-template/lt-9", THEIRS),
    Ask("Launcher", "ec2:RunInstances", f"{EC2}:key-pair/mine"),
    Ask("Launcher", "ec2:RunInstances", f"arn:aws:ec2:eu-west-1:{ACCOUNT}:instance/*", TAGGED),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:instance/i-9", TAGGED | {"aws:TagKeys": [tags.DEPLOYMENT]}),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:instance/i-9", THEIRS | {"aws:TagKeys": [tags.MASTER_ADDRESS]}),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:instance/i-1", OURS | {"aws:TagKeys": [tags.DEADLINE]}),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:instance/i-1", OURS | {"aws:TagKeys": [tags.MASTER_ADDRESS, tags.JOB]}),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:instance/i-1", OURS),
    Ask("Launcher", "ec2:CreateTags", f"{EC2}:subnet/subnet-1", TAGGED | {"aws:TagKeys": [tags.DEPLOYMENT]}),
    Ask("Launcher", "ec2:DeleteTags", f"{EC2}:instance/i-1", OURS | {"aws:TagKeys": [tags.MASTER_ADDRESS]}),
    Ask("Launcher", "ec2:TerminateInstances", f"{EC2}:instance/i-1", OURS),
    Ask("Launcher", "iam:PassRole", "<NodeRole>", {"iam:PassedToService": "lambda.amazonaws.com"}),
    Ask("Launcher", "iam:PassRole", "<NodeRole>"),
    Ask("Launcher", "iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/admin", {"iam:PassedToService": "ec2.amazonaws.com"}),
    Ask("Launcher", "s3:GetObject", f"{HOME}/{keys.TOKENS}resnet/1.json"),
    Ask("Terminator", "ec2:TerminateInstances", f"{EC2}:instance/i-9", THEIRS),
    Ask("Terminator", "ec2:TerminateInstances", f"{EC2}:instance/i-9"),
    Ask("Terminator", "ec2:StopInstances", f"{EC2}:instance/i-1", OURS),
    Ask("Terminator", "ec2:DescribeInstances", "*", {"aws:RequestedRegion": "ap-south-1"}),
    Ask("Terminator", "ec2:RunInstances", f"{EC2}:instance/*", TAGGED),
    Ask("Terminator", "s3:DeleteObject", f"{HOME}/{JOB.result}"),
    Ask("Attendant", "states:SendTaskSuccess", f"{STATES}:other-train"),
    Ask("Attendant", "states:StartExecution", f"{STATES}:trainyard-train"),
    Ask("Attendant", "ec2:TerminateInstances", f"{EC2}:instance/i-1", OURS),
    Ask("Attendant", "s3:DeleteObject", f"{HOME}/{JOB.description}"),
    Ask("Admission", "s3:PutObject", f"{HOME}/{keys.UPLOADS}ann/code.zip"),
    Ask("Admission", "s3:GetObject", "arn:aws:s3:::somebody-elses/code.zip"),
    Ask("Admission", "secretsmanager:GetSecretValue", f"{SECRETS}:trainyard/trainyard/wandb-AbCdEf"),
    Ask("Admission", "ssm:GetParameter", f"{SSM}:{ACCOUNT}:parameter/trainyard/other/regions/{REGION}"),
    Ask("Admission", "ssm:PutParameter", f"{SSM}:{ACCOUNT}:parameter{names.region_parameter('trainyard', REGION)}"),
    Ask("Admission", "ec2:RunInstances", f"{EC2}:instance/*", TAGGED),
    Ask("ArtifactCheck", "s3:PutObject", f"{BYTES}/jobs/resnet/artifacts/rank-0000/model.pt"),
    Ask("ArtifactCheck", "s3:DeleteObject", f"{BYTES}/jobs/resnet/checkpoints/x"),
    Ask("ArtifactCheck", "s3:GetObject", f"{HOME}/{keys.TOKENS}resnet/1.json"),
    Ask("Train", "states:StartExecution", f"{STATES}:trainyard-train"),
]


def fits(pattern: str, resource: str) -> bool:
    if resource.startswith("<"):
        name, _, attribute = resource.strip("<>").partition(".")
        return (
            pattern.startswith((f"<{name}", f"<trainyard-foundation:ExportsOutputFnGetAtt{name}"))
            and attribute in pattern
        )
    return fnmatchcase(resource, pattern)


def holds(conditions: Mapping[str, Mapping[str, Any]], context: Mapping[str, Any]) -> bool:
    """The operators that our policies use, as IAM reads them; any other one fails the test."""
    for operator, wanted in conditions.items():
        for key, allowed in wanted.items():
            values = allowed if isinstance(allowed, list) else [allowed]
            given = context.get(key)
            if operator == "StringEquals":
                met = given in values
            elif operator == "StringLikeIfExists":
                met = given is None or any(fnmatchcase(given, value) for value in values)
            elif operator == "ForAllValues:StringEquals":
                met = set(given or []) <= set(values)
            elif operator == "Null":
                met = (given is None) == (values == ["true"])
            else:
                raise AssertionError(f"an operator that these tests do not know: {operator}")
            if not met:
                return False
    return True


def may(granted: list[Right], ask: Ask) -> bool:
    return any(
        right.policy.startswith(f"{ask.role}Role")
        and ask.action in right.actions
        and any(fits(pattern, ask.resource) for pattern in right.resources)
        and holds(right.conditions, ask.context)
        for right in granted
    )


@pytest.fixture(scope="session")
def granted(deployment: Synthesised) -> list[Right]:
    return list(rights(deployment))


@pytest.mark.parametrize("ask", ALLOWED, ids=str)
def test_a_role_may_do_its_work(granted: list[Right], ask: Ask) -> None:
    assert may(granted, ask)


@pytest.mark.parametrize("ask", DENIED, ids=str)
def test_a_role_may_do_nothing_else(granted: list[Right], ask: Ask) -> None:
    assert not may(granted, ask)


def test_no_action_has_a_wildcard(granted: list[Right]) -> None:
    assert [right for right in granted for action in right.actions if "*" in action] == []


def test_nothing_that_changes_anything_is_allowed_on_everything(granted: list[Right]) -> None:
    on_everything = {action for right in granted if "*" in right.resources for action in right.actions}
    assert {action for action in on_everything if not action.startswith("ec2:Describe")} == set()
    assert [right.name for right in granted if "*" in right.resources and not right.conditions] == []


def test_no_right_crosses_accounts_or_regions_by_a_wildcard(granted: list[Right]) -> None:
    wild = [
        resource
        for right in granted
        for resource in right.resources
        if resource.startswith("arn:") and "*" in "".join(resource.split(":")[2:5])
    ]
    assert wild == []


def test_every_right_has_a_name_but_those_that_cdk_grants(granted: list[Right]) -> None:
    unnamed = {action for right in granted if not right.name for action in right.actions}
    assert unnamed == {"logs:CreateLogStream", "logs:PutLogEvents", "lambda:InvokeFunction"}


def test_no_role_can_be_taken_by_anybody_but_its_service(deployment: Synthesised) -> None:
    for template in deployment.stacks.values():
        for name, role in resources(template, "AWS::IAM::Role").items():
            (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
            assert statement["Principal"].keys() == {"Service"}, name
            assert "ManagedPolicyArns" not in role, name


def test_no_function_of_ours_is_open_to_other_rules(deployment: Synthesised) -> None:
    permissions = resources(deployment.template("workflow"), "AWS::Lambda::Permission").values()
    assert [one for one in permissions if "SourceArn" not in one or one["Principal"] != "events.amazonaws.com"] == []
