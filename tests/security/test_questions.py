"""What IAM asks of a recorded call: every resource, every tag, every right on the side; and what a missing one changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contract import sessions, tags
from localaws.iam.permissions import granted, judge, needed
from localaws.iam.questions import Untaught, requests
from localaws.iam.simulator import Policies
from localaws.recorder import Session
from tests.security.policies import ACCOUNT, REGION, TOPIC, TOPIC_KEY, role
from tests.security.questions import BUCKET, LAUNCH, OURS, Account, call, denied, list_questions


def test_each_instance_is_asked_for_by_its_own_tags(policies: dict[str, Policies]) -> None:
    both = call("Terminator", "ec2:TerminateInstances", **{"InstanceId.1": "i-1", "InstanceId.2": "j-1"})
    assert list_questions(both) == {
        ("ec2:TerminateInstances", "instance/i-1"),
        ("ec2:TerminateInstances", "instance/j-1"),
    }
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
    assert list_questions(ending) == {(f"ec2:{action}", f"{kind}/{thing}")}
    assert denied(policies, ending) == set()
    prefix = thing.partition("-")[0]
    for others in ({}, {tags.DEPLOYMENT: "other"}, OURS | {tags.PROTECTED: "ann"}):
        assert denied(policies, ending, Account(**{prefix: others})) == {kind}


def test_who_publishes_needs_the_right_to_encrypt_as_well() -> None:
    assert list_questions(call("Reaper", "sns:Publish", TopicArn=TOPIC)) == {
        ("sns:Publish", TOPIC.rpartition(":")[2]),
        ("kms:Decrypt", TOPIC_KEY.rpartition(":")[2]),
        ("kms:GenerateDataKey", TOPIC_KEY.rpartition(":")[2]),
    }


def test_a_queue_is_asked_for_by_its_name(policies: dict[str, Policies]) -> None:
    url = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}"
    again = call("Cleanup", "sqs:ChangeMessageVisibility", QueueUrl=f"{url}/CleanupQueue")
    assert list_questions(again) == {("sqs:ChangeMessageVisibility", "CleanupQueue")}
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
    assert list_questions(copy) == {
        ("s3:GetObjectVersion", f"{BUCKET}/uploads/b.zip"),
        ("s3:PutObject", f"{BUCKET}/jobs/a/code/code.zip"),
    }


def test_to_be_told_that_an_object_is_missing_takes_the_right_to_list() -> None:
    missing = call("Node", "s3:GetObject", 404, Bucket=BUCKET, Key="jobs/a/x")
    assert list_questions(missing) == {("s3:GetObject", f"{BUCKET}/jobs/a/x"), ("s3:ListBucket", BUCKET)}
    assert all("s3:prefix" not in request.context for request in requests(missing, Account()))


def test_who_replaces_by_etag_needs_to_read_as_well() -> None:
    replacing = call("Launcher", "s3:PutObject", Bucket=BUCKET, Key="jobs/a/x", **{"If-Match": '"e"'})
    assert list_questions(replacing) == {("s3:PutObject", f"{BUCKET}/jobs/a/x"), ("s3:GetObject", f"{BUCKET}/jobs/a/x")}


@pytest.mark.parametrize("action", ["CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"])
def test_an_upload_in_parts_is_a_put(action: str) -> None:
    assert list_questions(call("Node", f"s3:{action}", Bucket=BUCKET, Key="jobs/a/x")) == {
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
