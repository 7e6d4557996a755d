"""What IAM asks of a recorded call: every resource, every tag, every right on the side; and what a missing one changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from contract import sessions, tags
from localaws.iam.permissions import granted, judge, needed
from localaws.iam.questions import Untaught, requests
from localaws.iam.simulator import Policies
from localaws.recorder import Call, Session
from tests.security.policies import ACCOUNT, PROFILE, REGION, TOPIC, TOPIC_KEY, role

OURS = {tags.DEPLOYMENT: "trainyard"}
BUCKET = f"trainyard-home-{ACCOUNT}-{REGION}"
ROLE_ID = "AROAEXAMPLE"
HOME = f"arn:aws:s3:::{BUCKET}"


class Account:
    """Everything in it carries the tags, but what is named; instances have our profile, templates ask for IMDSv2, images are AWS's."""

    def __init__(self, **others: Mapping[str, str]) -> None:
        self._others = others
        self.profiles: dict[str, str] = {}
        self.data: dict[str, Any] = {"MetadataOptions": {"HttpTokens": "required"}}
        self.picture: dict[str, Any] = {
            "OwnerId": "898082745236",
            "ImageOwnerAlias": "amazon",
            "BlockDeviceMappings": [
                {"DeviceName": "/dev/xvda", "Ebs": {"Encrypted": False}},
                {"DeviceName": "/dev/sdb", "VirtualName": "ephemeral0"},
            ],
        }

    def instance_profile(self, region: str, instance: str) -> str:  # noqa: ARG002
        return self.profiles.get(instance, PROFILE)

    def template(self, region: str, template: str, version: str) -> Mapping[str, Any]:  # noqa: ARG002
        return self.data

    def image(self, region: str, image: str) -> Mapping[str, Any]:  # noqa: ARG002
        return self.picture

    def tags(self, region: str, resource: str) -> Mapping[str, str]:  # noqa: ARG002
        return self._others.get(resource.partition("-")[0], OURS)

    def role(self, profile: str) -> str:  # noqa: ARG002
        return role("Node")

    def secret(self, region: str, secret: str) -> str:
        return f"arn:aws:secretsmanager:{region}:{ACCOUNT}:secret:{secret}-AbCdEf"

    def machine(self, region: str) -> str:
        return f"arn:aws:states:{region}:{ACCOUNT}:stateMachine:trainyard-train"

    def key_policy(self, key: str) -> Mapping[str, Any]:  # noqa: ARG002
        return {}

    def trust(self, role: str) -> Mapping[str, Any]:
        raise AssertionError(role)

    def role_id(self, role: str) -> str:  # noqa: ARG002
        return ROLE_ID

    def table_keys(self, region: str, table: str) -> tuple[str, ...]:  # noqa: ARG002
        return "pk", "sk"

    def key(self, region: str, topic: str) -> str:  # noqa: ARG002
        return TOPIC_KEY


def call(who: str, name: str, status: int = 200, /, **parameters: Any) -> Call:
    service, action = name.split(":")
    return Call(
        at=0.0, role=role(who), service=service, region=REGION, action=action, status=status, parameters=parameters
    )


def specified(number: int, kind: str) -> dict[str, str]:
    tag = f"TagSpecification.{number}"
    return {
        f"{tag}.ResourceType": kind,
        f"{tag}.Tag.1.Key": tags.DEPLOYMENT,
        f"{tag}.Tag.1.Value": "trainyard",
        f"{tag}.Tag.2.Key": tags.JOB,
        f"{tag}.Tag.2.Value": "resnet",
    }


LAUNCH = call(
    "Launcher",
    "ec2:RunInstances",
    **{
        "ImageId": "ami-1",
        "LaunchTemplate.LaunchTemplateId": "lt-1",
        "IamInstanceProfile.Arn": PROFILE,
        "Placement.GroupName": "group-1",
        "NetworkInterface.1.SubnetId": "subnet-1",
        "NetworkInterface.1.SecurityGroupId.1": "sg-1",
        "NetworkInterface.1.AssociatePublicIpAddress": "false",
        "BlockDeviceMapping.1.DeviceName": "/dev/xvda",
        "BlockDeviceMapping.1.Ebs.Encrypted": "true",
        "BlockDeviceMapping.1.Ebs.VolumeSize": "200",
        **specified(1, "instance"),
        **specified(2, "volume"),
        **specified(3, "network-interface"),
    },
)


def asked(one: Call) -> set[tuple[str, str]]:
    """(action, end of the resource)."""
    return {(request.action, request.resource.split(":", 5)[5]) for request in requests(one, Account())}


def denied(policies: Mapping[str, Policies], one: Call, account: Account | None = None) -> set[str]:
    """Kinds of the resources that a call would be denied for."""
    judged = judge([one], policies, account or Account())
    assert [verdict for verdict in judged if verdict.answer.error or verdict.answer.ignored] == []
    return {verdict.request.resource.split(":", 5)[5].split("/")[0] for verdict in judged if not verdict.answer.allowed}


def test_a_launch_is_asked_for_each_resource_each_tag_and_its_role() -> None:
    assert asked(LAUNCH) == {
        *(("ec2:RunInstances", f"{kind}/*") for kind in ("instance", "volume", "network-interface")),
        *(("ec2:CreateTags", f"{kind}/*") for kind in ("instance", "volume", "network-interface")),
        *(
            ("ec2:RunInstances", one)
            for one in (
                "image/ami-1",
                "subnet/subnet-1",
                "security-group/sg-1",
                "launch-template/lt-1",
                "placement-group/group-1",
            )
        ),
        ("iam:PassRole", "role/NodeRole"),
    }


def test_the_launch_is_allowed(policies: dict[str, Policies]) -> None:
    assert denied(policies, LAUNCH) == set()


@pytest.mark.parametrize(
    ("theirs", "kind"),
    [("subnet", "subnet"), ("sg", "security-group"), ("lt", "launch-template"), ("group", "placement-group")],
)
def test_a_launch_into_what_is_not_ours_is_denied(policies: dict[str, Policies], theirs: str, kind: str) -> None:
    assert denied(policies, LAUNCH, Account(**{theirs: {tags.DEPLOYMENT: "other"}})) == {kind}
    assert denied(policies, LAUNCH, Account(**{theirs: {}})) == {kind}


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_launch_that_leaves_something_untagged_is_denied(policies: dict[str, Policies], number: int) -> None:
    prefix = f"TagSpecification.{number}."
    left = {key: value for key, value in LAUNCH.parameters.items() if not key.startswith(f"{prefix}Tag")}
    kind = LAUNCH.parameters[f"{prefix}ResourceType"]
    assert denied(policies, replace(LAUNCH, parameters=left)) == {kind}


@pytest.mark.parametrize("extra", [{"KeyName": "mine"}, {"BlockDeviceMapping.1.Ebs.SnapshotId": "snap-1"}])
def test_a_launch_with_what_no_launch_of_ours_has_is_denied(
    policies: dict[str, Policies], extra: dict[str, str]
) -> None:
    assert denied(policies, replace(LAUNCH, parameters={**LAUNCH.parameters, **extra})) != set()


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"IamInstanceProfile.Arn": f"arn:aws:iam::{ACCOUNT}:instance-profile/admin"}, "instance"),
        ({"IamInstanceProfile.Arn": ""}, "instance"),
        ({"MetadataOptions.HttpTokens": "optional"}, "instance"),
        ({"BlockDeviceMapping.1.Ebs.Encrypted": "false"}, "volume"),
        ({"BlockDeviceMapping.1.DeviceName": "/dev/sda1"}, "volume"),
        ({"BlockDeviceMapping.2.DeviceName": "/dev/sdf", "BlockDeviceMapping.2.Ebs.VolumeSize": "9"}, "volume"),
        ({"NetworkInterface.1.AssociatePublicIpAddress": "true"}, "network-interface"),
        ({"NetworkInterface.2.SubnetId": "subnet-2"}, "network-interface"),
    ],
)
def test_a_launch_that_asks_for_less_safety_than_ours_is_denied(
    policies: dict[str, Policies], changed: dict[str, str], kind: str
) -> None:
    assert denied(policies, replace(LAUNCH, parameters={**LAUNCH.parameters, **changed})) == {kind}


@pytest.mark.parametrize(
    "left",
    ["BlockDeviceMapping.1.Ebs.Encrypted", "NetworkInterface.1.AssociatePublicIpAddress", "IamInstanceProfile.Arn"],
)
def test_a_launch_that_leaves_its_safety_to_the_account_is_denied(policies: dict[str, Policies], left: str) -> None:
    less = {key: value for key, value in LAUNCH.parameters.items() if key != left}
    assert denied(policies, replace(LAUNCH, parameters=less)) != set()


def test_the_launch_template_answers_where_the_request_says_nothing(policies: dict[str, Policies]) -> None:
    account = Account()
    account.data = {}
    assert denied(policies, LAUNCH, account) == {"instance"}
    account.data = {"MetadataOptions": {"HttpTokens": "optional"}}
    assert denied(policies, LAUNCH, account) == {"instance"}
    own = {**LAUNCH.parameters, "MetadataOptions.HttpTokens": "required"}
    assert denied(policies, replace(LAUNCH, parameters=own), account) == set()


def test_a_volume_that_only_the_template_adds_is_asked_for_as_well(policies: dict[str, Policies]) -> None:
    account = Account()
    account.data["BlockDeviceMappings"] = [{"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 9}}]
    assert denied(policies, LAUNCH, account) == {"volume"}
    account.data["BlockDeviceMappings"] = [{"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 9, "Encrypted": True}}]
    assert denied(policies, LAUNCH, account) == set()


def test_a_volume_that_only_the_image_adds_is_asked_for_as_well(policies: dict[str, Policies]) -> None:
    account = Account()
    account.picture["BlockDeviceMappings"] = [{"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 9}}]
    assert denied(policies, LAUNCH, account) == {"volume"}


@pytest.mark.parametrize("owner", ["999988887777", "aws-marketplace", "Amazon"])
def test_a_launch_from_somebody_elses_image_is_denied(policies: dict[str, Policies], owner: str) -> None:
    account = Account()
    account.picture |= {"OwnerId": owner, "ImageOwnerAlias": ""} if owner.isdecimal() else {"ImageOwnerAlias": owner}
    assert denied(policies, LAUNCH, account) == {"image"}


def test_a_launch_from_the_accounts_own_image_is_allowed(policies: dict[str, Policies]) -> None:
    account = Account()
    account.picture |= {"OwnerId": ACCOUNT, "ImageOwnerAlias": ""}
    assert denied(policies, LAUNCH, account) == set()


@pytest.mark.parametrize("number", [1, 2, 3])
def test_nothing_is_born_protected(policies: dict[str, Policies], number: int) -> None:
    tag = f"TagSpecification.{number}.Tag.3"
    extra = {f"{tag}.Key": tags.PROTECTED, f"{tag}.Value": "for ever"}
    kind = LAUNCH.parameters[f"TagSpecification.{number}.ResourceType"]
    assert denied(policies, replace(LAUNCH, parameters={**LAUNCH.parameters, **extra})) == {kind}


def test_a_spot_launch_asks_for_the_request_and_for_awss_own_role(policies: dict[str, Policies]) -> None:
    spot = replace(LAUNCH, parameters={**LAUNCH.parameters, "InstanceMarketOptions.MarketType": "spot"})
    assert asked(spot) - asked(LAUNCH) == {
        ("ec2:RunInstances", "spot-instances-request/*"),
        ("iam:CreateServiceLinkedRole", "role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"),
    }
    assert denied(policies, spot) == set()


def test_each_instance_is_asked_for_by_its_own_tags(policies: dict[str, Policies]) -> None:
    both = call("Terminator", "ec2:TerminateInstances", **{"InstanceId.1": "i-1", "InstanceId.2": "j-1"})
    assert asked(both) == {("ec2:TerminateInstances", "instance/i-1"), ("ec2:TerminateInstances", "instance/j-1")}
    assert denied(policies, both) == set()
    assert denied(policies, both, Account(j={})) == {"instance"}


@pytest.mark.parametrize("who", ["Terminator", "Cleanup", "Reaper", "Drain"])
@pytest.mark.parametrize("profile", ["", f"arn:aws:iam::{ACCOUNT}:instance-profile/somebody"])
def test_an_instance_with_our_tag_and_without_our_profile_may_not_be_ended(
    policies: dict[str, Policies], who: str, profile: str
) -> None:
    ending = call(who, "ec2:TerminateInstances", **{"InstanceId.1": "i-1"})
    assert denied(policies, ending) == set()
    account = Account()
    account.profiles["i-1"] = profile
    assert denied(policies, ending, account) == {"instance"}


@pytest.mark.parametrize(
    ("action", "parameter", "thing", "kind"),
    [
        ("DeleteVolume", "VolumeId", "vol-1", "volume"),
        ("DeleteNetworkInterface", "NetworkInterfaceId", "eni-1", "network-interface"),
        ("CancelSpotInstanceRequests", "SpotInstanceRequestId.1", "sir-1", "spot-instances-request"),
    ],
)
def test_what_is_left_behind_is_asked_for_by_its_own_tags(
    policies: dict[str, Policies], action: str, parameter: str, thing: str, kind: str
) -> None:
    ending = call("Reaper", f"ec2:{action}", **{parameter: thing})
    assert asked(ending) == {(f"ec2:{action}", f"{kind}/{thing}")}
    assert denied(policies, ending) == set()
    prefix = thing.partition("-")[0]
    for others in ({}, {tags.DEPLOYMENT: "other"}, OURS | {tags.PROTECTED: "ann"}):
        assert denied(policies, ending, Account(**{prefix: others})) == {kind}


def test_who_publishes_needs_the_right_to_encrypt_as_well() -> None:
    assert asked(call("Reaper", "sns:Publish", TopicArn=TOPIC)) == {
        ("sns:Publish", TOPIC.rpartition(":")[2]),
        ("kms:Decrypt", TOPIC_KEY.rpartition(":")[2]),
        ("kms:GenerateDataKey", TOPIC_KEY.rpartition(":")[2]),
    }


def test_a_queue_is_asked_for_by_its_name(policies: dict[str, Policies]) -> None:
    url = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}"
    again = call("Cleanup", "sqs:ChangeMessageVisibility", QueueUrl=f"{url}/CleanupQueue")
    assert asked(again) == {("sqs:ChangeMessageVisibility", "CleanupQueue")}
    assert denied(policies, again) == set()
    assert denied(policies, replace(again, parameters={"QueueUrl": f"{url}/CleanupLetters"})) == {"CleanupLetters"}


@pytest.mark.parametrize(("action", "allowed"), [("DescribeExecution", True), ("StopExecution", False)])
def test_an_execution_is_asked_for_by_its_arn(policies: dict[str, Policies], action: str, allowed: bool) -> None:
    arn = f"arn:aws:states:{REGION}:{ACCOUNT}:execution:trainyard-train:resnet"
    assert (denied(policies, call("Cleanup", f"states:{action}", executionArn=arn)) == set()) is allowed


@pytest.mark.parametrize(("key", "allowed"), [(tags.MASTER_ADDRESS, True), (tags.DEADLINE, False)])
def test_only_the_tag_that_comes_after_the_launch_may_be_set_then(
    policies: dict[str, Policies], key: str, allowed: bool
) -> None:
    tagging = call("Launcher", "ec2:CreateTags", **{"ResourceId.1": "i-1", "Tag.1.Key": key, "Tag.1.Value": "x"})
    assert (denied(policies, tagging) == set()) is allowed


def test_a_copy_reads_the_version_of_its_source_and_writes_its_target() -> None:
    copy = call(
        "Admission",
        "s3:CopyObject",
        Bucket=BUCKET,
        Key="jobs/a/code/code.zip",
        CopySource=f"{BUCKET}/uploads/b.zip?versionId=7",
    )
    assert asked(copy) == {
        ("s3:GetObjectVersion", f"{BUCKET}/uploads/b.zip"),
        ("s3:PutObject", f"{BUCKET}/jobs/a/code/code.zip"),
    }


def test_to_be_told_that_an_object_is_missing_takes_the_right_to_list() -> None:
    missing = call("Node", "s3:GetObject", 404, Bucket=BUCKET, Key="jobs/a/x")
    assert asked(missing) == {("s3:GetObject", f"{BUCKET}/jobs/a/x"), ("s3:ListBucket", BUCKET)}
    assert all("s3:prefix" not in request.context for request in requests(missing, Account()))


def test_who_replaces_by_etag_needs_to_read_as_well() -> None:
    replacing = call("Launcher", "s3:PutObject", Bucket=BUCKET, Key="jobs/a/x", **{"If-Match": '"e"'})
    assert asked(replacing) == {("s3:PutObject", f"{BUCKET}/jobs/a/x"), ("s3:GetObject", f"{BUCKET}/jobs/a/x")}


@pytest.mark.parametrize("action", ["CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"])
def test_an_upload_in_parts_is_a_put(action: str) -> None:
    assert asked(call("Node", f"s3:{action}", Bucket=BUCKET, Key="jobs/a/x")) == {
        ("s3:PutObject", f"{BUCKET}/jobs/a/x")
    }


def test_a_list_is_asked_for_with_its_prefix(policies: dict[str, Policies]) -> None:
    listing = call("Launcher", "s3:ListObjectsV2", Bucket=BUCKET, prefix="control/")
    assert [request.context["s3:prefix"] for request in requests(listing, Account())] == ["control/"]
    assert denied(policies, listing) == {BUCKET}


def test_what_aws_publishes_belongs_to_no_account() -> None:
    (request,) = requests(call("Admission", "ssm:GetParameter", Name="/aws/service/x"), Account())
    assert request.resource == f"arn:aws:ssm:{REGION}::parameter/aws/service/x"


@pytest.mark.parametrize(
    "name",
    [
        "ec2:StopInstances",
        "s3:PutBucketPolicy",
        "states:UpdateStateMachine",
        "logs:DeleteLogStream",
        "lambda:UpdateFunctionCode",
        "ssm:PutParameter",
        "secretsmanager:PutSecretValue",
        "sts:GetSessionToken",
    ],
)
def test_a_call_that_nobody_has_taught_is_an_error_and_never_allowed(name: str) -> None:
    with pytest.raises(Untaught, match=name):
        requests(call("Node", name), Account())


def test_what_no_call_needed_is_left_over(policies: dict[str, Policies]) -> None:
    verdicts = judge([LAUNCH], policies, Account())
    used = needed(verdicts, policies)
    assert used < granted(policies)
    assert {one.statement for one in used} == {
        "LaunchWithOurTags",
        "MakeEncryptedVolumes",
        "MakePrivateInterfaces",
        "LaunchIntoOurNetwork",
        "LaunchFromImages",
        "TagWhileLaunching",
        "PassTheNodeRole",
    }


def test_a_right_under_a_policy_variable_is_needed_by_the_job_that_it_stands_for(policies: dict[str, Policies]) -> None:
    by = Session(role=role("Job"), tags={sessions.TAG: "resnet"})
    made = replace(call("Job", "s3:GetObject", Bucket=BUCKET, Key="jobs/resnet/job.json"), by=by)
    judged = judge([made], policies, Account())
    assert [one.answer.allowed for one in judged] == [True]
    assert {(one.statement, one.resource.rpartition("/")[2]) for one in needed(judged, policies)} == {
        ("ReadTheJob", "job.json")
    }


def test_a_session_without_its_tag_may_do_nothing(policies: dict[str, Policies]) -> None:
    assert denied(policies, call("Job", "s3:GetObject", Bucket=BUCKET, Key="jobs/resnet/job.json")) != set()


def test_what_the_own_policy_of_a_session_leaves_out_is_denied(policies: dict[str, Policies]) -> None:
    made = call("Job", "secretsmanager:GetSecretValue", SecretId="trainyard/trainyard/wandb")
    arn = Account().secret(REGION, "trainyard/trainyard/wandb")
    tagged = {sessions.TAG: "resnet"}
    for named, allowed in (([arn], True), ([], False), ([arn.replace("wandb", "other")], False)):
        by = Session(role=role("Job"), tags=tagged, policy=sessions.policy(named))
        (verdict,) = judge([replace(made, by=by)], policies, Account())
        assert verdict.answer.allowed is allowed
