"""What the stacks hold: nothing open, nothing public, nothing plain, nothing that a node does not need."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract import (
    agents,
    campaign_environments,
    catalogue_environments,
    cluster_calls,
    environments,
    image_environments,
    keys,
    names,
    page_environments,
    tags,
)
from contract.codec import encode
from contract.places import Place, Zone
from stacks.foundation import CONTEXTS_DAYS
from stacks.network_settings import MOST_SECURITY_GROUPS
from stacks.parts.agent import CONTENTS, archived
from stacks.parts.assembled import LAMBDA
from stacks.region import ENVIRONMENT_DAYS
from tests.stacks.synth import every, function, only, outputs_of, place_of, plain, resources, variables
from tests.stacks.variations import FAST_DISKS
from tools.synthesis import Synthesised

REGION = "region-eu-central-1"
HOMES = (
    environments,
    campaign_environments,
    catalogue_environments,
    cluster_calls,
    image_environments,
    page_environments,
)
"""Where the environments of functions are."""
READS = re.compile(r"\b(\w+Environment)\.read\(\)")
IN_A_NETWORK = {"cluster_api"}
"""Packages of functions that reach what has no public address; what ends machines depends on no network."""
ON_REQUEST = {"default_group"}
"""Packages of functions that only a setting brings."""
ENVIRONMENTS = {
    file.parent.name: READS.findall(file.read_text())
    for file in LAMBDA.glob("*/handler.py")
    if file.parent.name not in ON_REQUEST
}
"""Function to the environment that its handler reads."""


@pytest.fixture(scope="session")
def place(deployment: Synthesised) -> Place:
    parameter = only(deployment.template(REGION), "AWS::SSM::Parameter")
    assert parameter["Name"] == names.region_parameter("trainyard", "eu-central-1")
    return place_of(deployment, "eu-central-1")


@pytest.fixture(scope="session")
def functions(complete: Synthesised) -> dict[str, dict[str, Any]]:
    found = [one for _, one in every(complete, "AWS::Lambda::Function")]
    return {one["Handler"].removesuffix(".handler.handler"): one for one in found}


def test_no_bucket_takes_a_request_without_tls(deployment: Synthesised) -> None:
    buckets = {name for name, _ in every(deployment, "AWS::S3::Bucket")}
    denied = {
        f"{name.split('/')[0]}/{policy['Bucket']['Ref']}"
        for name, policy in every(deployment, "AWS::S3::BucketPolicy")
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny"
        and statement["Action"] == "s3:*"
        and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    }
    assert len(buckets) == 2
    assert buckets - denied == set()


def test_no_bucket_is_public_or_plain(deployment: Synthesised) -> None:
    blocks = ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets")
    for name, bucket in every(deployment, "AWS::S3::Bucket"):
        assert bucket["PublicAccessBlockConfiguration"] == dict.fromkeys(blocks, True), name
        assert "AES256" in json.dumps(bucket["BucketEncryption"]), name


def test_no_bucket_policy_allows_anybody_anything(deployment: Synthesised) -> None:
    effects = {
        statement["Effect"]
        for _, policy in every(deployment, "AWS::S3::BucketPolicy")
        for statement in policy["PolicyDocument"]["Statement"]
    }
    assert effects == {"Deny"}


def test_the_home_bucket_keeps_versions_and_wakes_nothing(deployment: Synthesised) -> None:
    home = only(deployment.template("foundation"), "AWS::S3::Bucket")
    assert home["VersioningConfiguration"] == {"Status": "Enabled"}
    assert "NotificationConfiguration" not in home


def test_every_bucket_is_tidied(deployment: Synthesised) -> None:
    for name, bucket in every(deployment, "AWS::S3::Bucket"):
        rule, *_ = bucket["LifecycleConfiguration"]["Rules"]
        assert "AbortIncompleteMultipartUpload" in rule, name
        assert ("NoncurrentVersionExpiration" in rule) == ("VersioningConfiguration" in bucket), name


def test_no_lifecycle_rule_ends_an_object_that_is_current_but_old_agents_environments_and_contexts(
    deployment: Synthesised,
) -> None:
    rules = [rule for _, one in every(deployment, "AWS::S3::Bucket") for rule in one["LifecycleConfiguration"]["Rules"]]
    ending = [rule for rule in rules if {"ExpirationInDays", "ExpirationDate"} & rule.keys()]
    kept = {keys.AGENTS: agents.KEPT_DAYS, keys.ENVIRONMENTS: ENVIRONMENT_DAYS, keys.CONTEXTS: CONTEXTS_DAYS}
    assert {rule["Prefix"]: rule["ExpirationInDays"] for rule in ending} == kept


def test_the_agents_digest_is_that_of_the_archive_which_a_deploy_uploads(
    deployment: Synthesised, functions: dict[str, dict[str, Any]]
) -> None:
    digest = functions["admission"]["Environment"]["Variables"]["TRAINYARD_AGENT"]
    archive = archived(CONTENTS)
    assert hashlib.sha256(archive).hexdigest() == digest
    assert digest in {hashlib.sha256(file.read_bytes()).hexdigest() for file in deployment.folder.glob("asset.*.zip")}
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        assert {"agent/__main__.py", "contract/__init__.py", "boto3/__init__.py"} <= set(opened.namelist())
        assert [name for name in opened.namelist() if name.endswith(".pyc")] == []


def test_an_agents_archive_is_the_same_bytes_whatever_the_files_times_and_modes_are(tmp_path: Path) -> None:
    for number, (mode, time) in enumerate(((0o600, 1_000_000_000), (0o755, 1_700_000_000))):
        file = tmp_path / str(number) / "a" / "b.py"
        file.parent.mkdir(parents=True)
        file.write_text("b = 1\n")
        file.chmod(mode)
        os.utime(file, (time, time))
    assert archived({"x": tmp_path / "0"}) == archived({"x": tmp_path / "1"})


def test_how_fast_disks_are_is_told_to_admit(varied: Synthesised) -> None:
    told = variables(function(varied.template("workflow"), "admission"))
    assert FAST_DISKS.items() <= json.loads(told["TRAINYARD_LIMITS"]).items()


def test_no_subnet_gives_public_addresses(deployment: Synthesised) -> None:
    assert [name for name, one in every(deployment, "AWS::EC2::Subnet") if one["MapPublicIpOnLaunch"]] == []


def test_no_node_is_placed_in_a_subnet_with_a_way_in(deployment: Synthesised, place: Place) -> None:
    template = deployment.template(REGION)
    tables = {
        plain(one["SubnetId"]): plain(one["RouteTableId"])
        for one in resources(template, "AWS::EC2::SubnetRouteTableAssociation").values()
    }
    open_tables = {
        plain(one["RouteTableId"]) for one in resources(template, "AWS::EC2::Route").values() if "GatewayId" in one
    }
    assert len(open_tables) == 3
    assert {one["DestinationCidrBlock"] for one in resources(template, "AWS::EC2::Route").values()} == {"0.0.0.0/0"}
    assert [zone.subnet for zone in place.zones if tables[zone.subnet] in open_tables] == []


def test_a_region_describes_itself_as_the_contract_says(place: Place) -> None:
    assert [zone.name for zone in place.zones] == ["eu-central-1a", "eu-central-1b", "eu-central-1c"]
    assert place.region == "eu-central-1"
    assert place.launch_template_version.startswith("<NodesTemplate")
    assert "Default" not in place.launch_template_version
    groups = [group for zone in place.zones for group in zone.placement_groups]
    assert len(set(groups)) == 6
    assert len(set(place.security_groups)) == 16
    assert all(group.startswith("<NetworkNodeSecurityGroup") for group in place.security_groups)


@pytest.mark.parametrize(("zones", "groups"), [(3, 10), (6, 5)], ids=["most groups", "most zones"])
def test_a_region_at_its_largest_still_fits_its_parameter(place: Place, zones: int, groups: int) -> None:
    """A parameter holds 4,096 characters; CloudFormation names a group <stack>-<logical id>-<12 or 13 characters>."""
    stack = "a" * 20 + "-region-ap-southeast-1"
    zone = Zone(
        name="ap-southeast-1a",
        subnet="subnet-" + "0" * 17,
        placement_groups=tuple(f"{stack}-Zone3Group{number + 1}-{'A' * 13}" for number in range(groups)),
    )
    security_groups = ("sg-" + "0" * 17,) * MOST_SECURITY_GROUPS
    assert len(encode(replace(place, bucket="b" * 63, zones=(zone,) * zones, security_groups=security_groups))) < 4096


def test_every_placement_group_is_a_cluster(deployment: Synthesised) -> None:
    strategies = [one["Strategy"] for _, one in every(deployment, "AWS::EC2::PlacementGroup")]
    assert strategies == ["cluster"] * 6


def test_no_node_answers_the_first_version_of_the_metadata_service(deployment: Synthesised) -> None:
    options = only(deployment.template(REGION), "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]["MetadataOptions"]
    assert (options["HttpTokens"], options["InstanceMetadataTags"]) == ("required", "enabled")


def test_a_container_of_a_node_reaches_the_metadata_too(deployment: Synthesised) -> None:
    """It is one hop further away than the node's own processes."""
    options = only(deployment.template(REGION), "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]["MetadataOptions"]
    assert (options["HttpEndpoint"], options["HttpPutResponseHopLimit"]) == ("enabled", 2)


def test_the_launch_template_fixes_nothing_that_a_launch_decides(deployment: Synthesised) -> None:
    data = only(deployment.template(REGION), "AWS::EC2::LaunchTemplate")["LaunchTemplateData"]
    assert data.keys() == {"InstanceInitiatedShutdownBehavior", "MetadataOptions"}
    assert data["InstanceInitiatedShutdownBehavior"] == "terminate"


@pytest.mark.parametrize(
    "kind",
    ["SecurityGroup", "Subnet", "PlacementGroup", "LaunchTemplate", "VPC", "NatGateway", "EIP", "InternetGateway"],
)
def test_what_the_launcher_may_use_carries_the_deployments_tag(deployment: Synthesised, kind: str) -> None:
    found = list(every(deployment, f"AWS::EC2::{kind}"))
    wanted = json.dumps({"Key": tags.DEPLOYMENT, "Value": "trainyard"})
    assert found
    assert [name for name, one in found if wanted not in json.dumps(one)] == []


def test_names_of_aws_services_lead_into_the_network_as_its_endpoints_need(deployment: Synthesised) -> None:
    network = only(deployment.template(REGION), "AWS::EC2::VPC")
    assert (network["EnableDnsSupport"], network["EnableDnsHostnames"]) == (True, True)
    assert network["InstanceTenancy"] == "default", "a dedicated host costs by the hour"


def test_no_instance_is_part_of_a_stack(deployment: Synthesised) -> None:
    assert list(every(deployment, "AWS::EC2::Instance")) == []


def test_no_stack_has_a_function_of_somebody_else(complete: Synthesised, functions: dict[str, Any]) -> None:
    assert functions.keys() == ENVIRONMENTS.keys(), "the functions are the packages of lambda/ that have a handler"
    assert len(list(every(complete, "AWS::Lambda::Function"))) == len(ENVIRONMENTS)
    kinds = [one["Type"] for template in complete.stacks.values() for one in template["Resources"].values()]
    customs = {kind for kind in kinds if kind.startswith("Custom::") or "CustomResource" in kind}
    assert customs == {
        *("Custom::Drain", "Custom::Regions", "Custom::OwnImage", "Custom::ServiceRoles", "Custom::Zones"),
        *("Custom::CatalogueSchema", "Custom::CatalogueProtection"),
    }


@pytest.mark.parametrize("package", sorted(ENVIRONMENTS))
def test_a_function_reads_the_environment_that_it_is_given(functions: dict[str, dict[str, Any]], package: str) -> None:
    (kind,) = ENVIRONMENTS[package]
    home = next(one for one in HOMES if hasattr(one, kind))
    environment = getattr(home, kind).read(variables(functions[package]))
    assert getattr(environment, "deployment", "") == "trainyard"


def test_no_function_shares_a_role_reserves_concurrency_or_runs_in_a_network_but_the_clusters(
    functions: dict[str, dict[str, Any]],
) -> None:
    assert len({json.dumps(one["Role"]) for one in functions.values()}) == len(functions)
    for package, one in functions.items():
        assert "ReservedConcurrentExecutions" not in one, package
        assert ("VpcConfig" in one) == (package in IN_A_NETWORK), package
        assert (one["Runtime"], one["Architectures"]) == ("python3.14", ["x86_64"]), package


def test_a_deploy_asks_for_the_service_roles_of_batch_and_ecs(deployment: Synthesised) -> None:
    asked = only(deployment.template("foundation"), "Custom::ServiceRoles")["Roles"]
    assert asked == {"batch.amazonaws.com": "AWSServiceRoleForBatch", "ecs.amazonaws.com": "AWSServiceRoleForECS"}


def test_no_log_is_kept_for_ever(complete: Synthesised) -> None:
    retentions = {name: one.get("RetentionInDays") for name, one in every(complete, "AWS::Logs::LogGroup")}
    others = "one a function, the nodes', both builds', the children's, and the database's"
    assert len(retentions) == len(ENVIRONMENTS) + 5, others
    assert set(retentions.values()) == {30}


def test_the_nodes_log_has_the_contracts_name(deployment: Synthesised) -> None:
    logs = resources(deployment.template("foundation"), "AWS::Logs::LogGroup").values()
    assert names.log_group("trainyard") in {one.get("LogGroupName") for one in logs}


def test_the_attendant_looks_every_minute_and_no_missed_minute_is_made_up(deployment: Synthesised) -> None:
    clock = only(deployment.template("workflow"), "AWS::Events::Rule", "WakesClock")
    assert (clock["ScheduleExpression"], clock["State"], "EventPattern" in clock) == (
        "rate(1 minute)",
        "ENABLED",
        False,
    )
    assert clock["Targets"][0]["RetryPolicy"] == {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}


def test_the_launcher_tries_every_minute_for_jobs_that_wait_and_no_missed_minute_is_made_up(
    deployment: Synthesised,
) -> None:
    rules = [
        rule for _, rule in every(deployment, "AWS::Events::Rule") if "Launcher" in plain(rule["Targets"][0]["Arn"])
    ]
    (rule,) = rules
    assert (rule["ScheduleExpression"], "EventPattern" in rule) == ("rate(1 minute)", False)
    assert rule["Targets"][0]["RetryPolicy"] == {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}


def test_events_wake_nothing_but_the_attendant_the_launcher_and_the_cleanups(deployment: Synthesised) -> None:
    targets = [plain(target["Arn"]) for _, rule in every(deployment, "AWS::Events::Rule") for target in rule["Targets"]]
    assert sorted(target[1:].rstrip(">").partition(".")[0].rstrip("0123456789ABCDEF") for target in targets) == [
        "Cleanup",  # its clock
        "CleanupQueue",
        "Endings",
        "GridQueue",
        "Launcher",
        "PageQueue",
        "SearchQueue",
        "WakesByClock",  # the alias of the attendant
    ]


def test_every_output_says_what_it_is(deployment: Synthesised) -> None:
    outputs = outputs_of(deployment)
    assert {"HomeBucket", "UploadPrefix", "TrainMachine", "Console"} <= outputs.keys()
    assert [name for name, one in outputs.items() if not one.get("Description")] == []


def test_the_topic_takes_nothing_without_tls(deployment: Synthesised) -> None:
    policy = only(deployment.template("foundation"), "AWS::SNS::TopicPolicy")
    assert {"Bool": {"aws:SecureTransport": "false"}} in [
        statement.get("Condition") for statement in policy["PolicyDocument"]["Statement"]
    ]
