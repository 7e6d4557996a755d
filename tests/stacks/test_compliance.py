"""With `compliance` everything stored has a customer key, and networks and buckets are watched; without it templates say nothing of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from contract import names
from contract.environments import DrainEnvironment
from tests.stacks.synth import every, function, only, outputs_of, place_of, plain, resources, variables
from tools.configurations import WIDE
from tools.synthesis import Synthesised, masked, synthesise

HOME, REGIONS = "eu-central-1", ("eu-central-1", "us-east-1", "ap-south-1")
KEPT, GONE = ("RetainExceptOnCreate", "Retain"), ("Delete", "Delete")
WITH_KEYS = {
    "AWS::Logs::LogGroup": lambda one: one.get("KmsKeyId"),
    "AWS::SQS::Queue": lambda one: one.get("KmsMasterKeyId"),
    "AWS::DynamoDB::Table": lambda one: one.get("SSESpecification", {}).get("KMSMasterKeyId"),
    "AWS::SNS::Topic": lambda one: one.get("KmsMasterKeyId"),
    "AWS::S3::Bucket": lambda one: encryption(one).get("KMSMasterKeyID"),
}
"""Every type that stores something, and where its key stands."""


def encryption(bucket: dict[str, Any]) -> dict[str, Any]:
    (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    found: dict[str, Any] = rule["ServerSideEncryptionByDefault"]
    return found


@pytest.fixture(scope="module")
def complying(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """With everything else that settings can add, and data that is not kept."""
    return synthesise(tmp_path_factory.mktemp("complying"), **WIDE, compliance=True)


@pytest.fixture(scope="module")
def keeping(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    return synthesise(tmp_path_factory.mktemp("keeping"), compliance=True)


def of_type(deployment: Synthesised, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Whole resources, each under `stack/logical id`."""
    for stack, template in deployment.stacks.items():
        yield from ((f"{stack}/{name}", one) for name, one in template["Resources"].items() if one["Type"] == kind)


def is_log_bucket(name: str) -> bool:
    return "/AccessLogs" in name


# Keys


@pytest.mark.parametrize("kind", WITH_KEYS)
def test_everything_that_is_stored_has_a_customer_key(complying: Synthesised, kind: str) -> None:
    found = [(name, one) for name, one in every(complying, kind) if not is_log_bucket(name)]
    assert found
    assert [name for name, one in found if not WITH_KEYS[kind](one)] == []


def test_no_key_of_aws_is_named_beside_it(complying: Synthesised) -> None:
    assert [name for name, one in every(complying, "AWS::SQS::Queue") if one.get("SqsManagedSseEnabled")] == []
    assert [
        name
        for name, one in every(complying, "AWS::S3::Bucket")
        if not is_log_bucket(name) and encryption(one)["SSEAlgorithm"] != "aws:kms"
    ] == []


def test_a_bucket_asks_for_a_key_now_and_then_and_not_for_each_object(complying: Synthesised) -> None:
    for name, one in every(complying, "AWS::S3::Bucket"):
        (rule,) = one["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert is_log_bucket(name) or rule["BucketKeyEnabled"] is True


def test_home_has_one_key_each_region_one_and_the_topic_its_own(complying: Synthesised) -> None:
    keys = sorted(name.partition("/")[0] for name, _ in every(complying, "AWS::KMS::Key"))
    assert keys == sorted(["trainyard-foundation"] * 2 + [f"trainyard-region-{one}" for one in REGIONS])


def test_every_key_is_rotated(complying: Synthesised) -> None:
    assert [name for name, one in every(complying, "AWS::KMS::Key") if one["EnableKeyRotation"] is not True] == []


def test_a_key_outlives_its_stack_as_what_it_encrypts_does(complying: Synthesised, keeping: Synthesised) -> None:
    for deployment, wanted in ((keeping, KEPT), (complying, GONE)):
        found = {
            (one["DeletionPolicy"], one["UpdateReplacePolicy"])
            for name, one in of_type(deployment, "AWS::KMS::Key")
            if "/Key" in name
        }
        assert found == {wanted}


def test_keys_of_kept_data_can_be_told_by_the_deployments_tag(keeping: Synthesised) -> None:
    """What a destroy kept is read again after the next deploy, which has new keys: rights ask for the tag."""
    for name, one in every(keeping, "AWS::KMS::Key"):
        assert {"Key": "trainyard:deployment", "Value": "trainyard"} in one["Tags"], name


def test_launches_name_the_key_of_their_region_and_places_without_nodes_have_none(complying: Synthesised) -> None:
    for region in ("eu-central-1", "us-east-1"):
        assert place_of(complying, region).volume_key.startswith("<Key")
    assert place_of(complying, "ap-south-1").volume_key == ""


def test_trainings_write_with_the_key_of_their_region(complying: Synthesised) -> None:
    aliases = {name.partition("/")[0]: one["AliasName"] for name, one in every(complying, "AWS::KMS::Alias")}
    grid = complying.template("grid")
    for package in ("planner", "grid_collect", "grid_cleanup"):
        alias = variables(function(grid, package))["TRAINYARD_OUTPUT_KEY"]
        assert alias == names.region_key("trainyard")
        assert {aliases[f"trainyard-region-{region}"] for region in REGIONS} == {alias}
    assert aliases["trainyard-foundation"] == names.home_key("trainyard")
    assert {plain(one["TargetKeyId"])[:4] for _, one in every(complying, "AWS::KMS::Alias")} == {"<Key"}, (
        "the topic's is none"
    )


# Networks


def test_every_network_has_flow_logs_of_all_traffic_and_a_closed_default_group(complying: Synthesised) -> None:
    for region in REGIONS:
        template = complying.template(f"region-{region}")
        networks = resources(template, "AWS::EC2::VPC")
        flows = resources(template, "AWS::EC2::FlowLog").values()
        closed = resources(template, "Custom::ClosedDefaultGroup").values()
        assert [plain(one["ResourceId"]) for one in flows] == [f"<{name}>" for name in networks]
        assert [one["TrafficType"] for one in flows] == ["ALL"] * len(networks)
        assert [plain(one["Group"]) for one in closed] == [f"<{name}.DefaultSecurityGroup>" for name in networks]


def test_flow_logs_have_a_record_for_ten_minutes_of_a_flow_in_a_log_of_the_stack(complying: Synthesised) -> None:
    """The longest that EC2 offers: training's few long flows are few records."""
    template = complying.template("region-eu-central-1")
    flows = only(template, "AWS::EC2::FlowLog")
    assert (flows["MaxAggregationInterval"], flows["ResourceType"]) == (600, "VPC")
    assert flows["LogDestinationType"] == "cloud-watch-logs"
    assert flows["LogGroupName"]["Ref"] in resources(template, "AWS::Logs::LogGroup")
    role = template["Resources"][flows["DeliverLogsPermissionArn"]["Fn::GetAtt"][0]]["Properties"]
    assert "vpc-flow-logs.amazonaws.com" in str(role["AssumeRolePolicyDocument"])


def test_a_region_without_a_network_gets_nothing_that_costs_while_idle_but_its_key(complying: Synthesised) -> None:
    kinds = {one["Type"] for one in complying.template("region-ap-south-1")["Resources"].values()}
    assert kinds == {
        "AWS::ECR::Repository",
        "AWS::KMS::Alias",
        "AWS::KMS::Key",
        "AWS::S3::Bucket",
        "AWS::S3::BucketPolicy",
        "AWS::SSM::Parameter",
    }


# Access logs


def test_every_bucket_is_logged_into_a_bucket_of_its_own_stack(complying: Synthesised) -> None:
    for name, one in every(complying, "AWS::S3::Bucket"):
        if is_log_bucket(name):
            assert "LoggingConfiguration" not in one
        else:
            logged = one["LoggingConfiguration"]
            assert f"{name.partition('/')[0]}/{plain(logged['DestinationBucketName'])[1:-1]}" in dict(
                every(complying, "AWS::S3::Bucket")
            )
            assert logged["LogFilePrefix"]


def test_access_logs_take_the_encryption_that_s3_allows_them(complying: Synthesised) -> None:
    logs = [one for name, one in every(complying, "AWS::S3::Bucket") if is_log_bucket(name)]
    assert len(logs) == 1 + len(REGIONS)
    assert {encryption(one)["SSEAlgorithm"] for one in logs} == {"AES256"}


def test_access_logs_outlive_every_destroy_and_are_in_no_deploys_way(complying: Synthesised) -> None:
    logs = [one for name, one in of_type(complying, "AWS::S3::Bucket") if is_log_bucket(name)]
    assert {(one["DeletionPolicy"], one["UpdateReplacePolicy"]) for one in logs} == {KEPT}
    assert [one for one in logs if "BucketName" in one["Properties"]] == []


def test_access_logs_delete_themselves(complying: Synthesised) -> None:
    for name, one in every(complying, "AWS::S3::Bucket"):
        if is_log_bucket(name):
            (rule,) = one["LifecycleConfiguration"]["Rules"]
            assert rule["ExpirationInDays"] == rule["NoncurrentVersionExpiration"]["NoncurrentDays"] == 30


def test_s3_alone_writes_access_logs_and_those_of_one_bucket_under_its_own_prefix(complying: Synthesised) -> None:
    policy = only(complying.template("foundation"), "AWS::S3::BucketPolicy", "AccessLogs")
    (writing,) = [one for one in policy["PolicyDocument"]["Statement"] if one["Effect"] == "Allow"]
    assert writing["Principal"] == {"Service": "logging.s3.amazonaws.com"}
    assert writing["Action"] == "s3:PutObject"
    assert plain(writing["Resource"]).endswith("/home/*")
    assert plain(writing["Condition"]["ArnEquals"]["aws:SourceArn"]) == (
        f"arn:aws:s3:::{names.home_bucket('trainyard', '111122223333', HOME)}"
    )
    assert plain(writing["Condition"]["StringEquals"]["aws:SourceAccount"]) == "111122223333"


def test_the_drain_empties_the_buckets_of_data_and_no_access_log(complying: Synthesised) -> None:
    drain = DrainEnvironment.read(variables(function(complying.template("reaper"), "drain")))
    assert drain.keep_data is False
    assert "accesslogs" not in complying.text("reaper").lower()


# The switch


def test_without_the_switch_no_template_says_anything_of_it(deployment: Synthesised) -> None:
    for stack in deployment.stacks:
        text = deployment.text(stack.removeprefix("trainyard-"))
        assert "volume_key" not in text
        assert "OUTPUT_KEY" not in text
        assert "AccessLogs" not in text
        assert "DefaultGroup" not in text
        assert "AWS::EC2::FlowLog" not in text
    assert len(list(every(deployment, "AWS::KMS::Key"))) == 1, "of the topic"


def test_the_switch_takes_nothing_away(deployment: Synthesised, keeping: Synthesised) -> None:
    for stack, template in deployment.stacks.items():
        assert template["Resources"].keys() <= keeping.stacks[stack]["Resources"].keys()
    assert outputs_of(deployment).keys() <= outputs_of(keeping).keys()


def test_synthesis_with_the_switch_is_the_same_every_time(
    keeping: Synthesised, tmp_path_factory: pytest.TempPathFactory
) -> None:
    again = synthesise(tmp_path_factory.mktemp("again"), compliance=True)
    for stack in keeping.stacks:
        name = stack.removeprefix("trainyard-")
        assert masked(again.text(name)) == masked(keeping.text(name))
