"""Regions whose nodes run in a network that the account has already: nothing is made in it but security groups."""

from __future__ import annotations

import json
from typing import Any

import pytest

from contract import names
from contract.codec import decode
from contract.networks import NamedNetwork
from stacks.network_settings import KEY_CHARACTERS, LEAST_CHARACTERS, MOST_REGIONS, REGION_CHARACTERS, SUBNET_CHARACTERS
from stacks.settings import BLOCK, BadSettings, Settings
from tests.stacks.synth import ROLE_CHARACTERS, Right, only, place_of, resources, rights, size
from tools.configurations import AWAY, EXISTING, HOME, SUBNETS, VPC
from tools.file_systems import CORPUS
from tools.synthesis import CONTEXT, Synthesised, synthesise_once

SUBNET_A, SUBNET_B = SUBNETS.values()
MADE = {
    "AWS::S3::Bucket",
    "AWS::S3::BucketPolicy",
    "AWS::ECR::Repository",
    "AWS::SSM::Parameter",
    "AWS::EC2::SecurityGroup",
    "AWS::EC2::SecurityGroupIngress",
    "AWS::EC2::SecurityGroupEgress",
    "AWS::EC2::PlacementGroup",
    "AWS::EC2::LaunchTemplate",
}
"""Types of everything in such a region: no network, no route, no gateway, no endpoint, no function."""
IN_THE_NETWORK = {"AWS::EC2::SecurityGroup"}


@pytest.fixture(scope="module")
def existing() -> Synthesised:
    return synthesise_once(regions=EXISTING)


@pytest.fixture(scope="module")
def complying() -> Synthesised:
    return synthesise_once(regions=EXISTING, compliance=True, file_systems=[CORPUS])


def parsed(*regions: dict[str, Any], **changes: Any) -> Settings:
    return Settings.parse(CONTEXT[BLOCK] | {"regions": list(regions)} | changes)


def refusal(*regions: dict[str, Any], **changes: Any) -> str:
    with pytest.raises(BadSettings) as problem:
        parsed(*regions, **changes)
    return str(problem.value)


# The settings

GOOD = {"region": HOME, "vpc": VPC, "subnets": SUBNETS}
OWN = {"region": HOME, "cidr": "10.70.0.0/16"}
WRONG: dict[str, tuple[list[dict[str, Any]], str]] = {
    "a vpc and a cidr": (
        [GOOD | {"cidr": "10.70.0.0/16"}],
        "regions: eu-central-1 has a cidr and a vpc; allowed: a cidr for a new",
    ),
    "a vpc without subnets": (
        [GOOD | {"subnets": {}}],
        f"has a vpc and no subnets; allowed: a private subnet of {VPC} for each",
    ),
    "subnets without a vpc": (
        [OWN | {"subnets": SUBNETS}],
        "has subnets and no vpc; allowed: the vpc to which they belong",
    ),
    "zones beside a vpc": (
        [GOOD | {"zones": ["eu-central-1a"]}],
        "has zones and a vpc; allowed: no zones, because subnets names",
    ),
    "a zone of another region": (
        [GOOD | {"subnets": {"us-east-1a": SUBNET_A}}],
        "subnets of eu-central-1 has us-east-1a, which is in another region; allowed: eu-central-1a and the like",
    ),
    "a subnet for two zones": (
        [GOOD | {"subnets": {"eu-central-1a": SUBNET_A, "eu-central-1b": SUBNET_A}}],
        f"subnets names {SUBNET_A} twice",
    ),
    "a vpc in two regions": (
        [GOOD, {"region": AWAY, "vpc": VPC, "subnets": {"us-east-1a": "subnet-0123456789abcdef9"}}],
        f"vpc names {VPC} twice",
    ),
    "a vpc that is none": ([GOOD | {"vpc": "10.70.0.0/16"}], "allowed: the id of a VPC, such as vpc-0123456789abcdef0"),
    "a list of subnets": ([GOOD | {"subnets": [SUBNET_A]}], "regions.0.subnets is"),
    "a zone by its id": ([GOOD | {"subnets": {"euc1-az1": SUBNET_A}}], "allowed: the name of an availability zone"),
    "a subnet that is none": (
        [GOOD | {"subnets": {"eu-central-1a": VPC}}],
        "allowed: the id of a subnet, such as subnet-",
    ),
    "a key that there is not": (
        [GOOD | {"subnet": SUBNET_A}],
        "regions.0.subnet is not a setting (did you mean subnets?); allowed: ",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_network_that_does_not_fit_is_refused(what: str) -> None:
    regions, words = WRONG[what]
    assert words in refusal(*regions)


def test_endpoints_that_no_network_would_get_are_refused() -> None:
    assert "network.interface_endpoints is for networks that Trainyard makes" in refusal(
        GOOD, network={"interface_endpoints": ["logs"]}
    )
    away = {"region": AWAY, "cidr": "10.71.0.0/16"}
    assert parsed(GOOD, away, network={"interface_endpoints": ["logs"]}).network.interface_endpoints == ("logs",)


def test_more_placement_groups_than_a_parameter_holds_are_refused_by_the_subnets() -> None:
    subnets = {f"eu-central-1{zone}": f"subnet-0123456789abcdef{zone}" for zone in "abcdef"}
    assert parsed(GOOD | {"subnets": subnets}, placement_groups_per_zone=5)
    assert "with 6 zones in eu-central-1; allowed: 5 at most" in refusal(
        GOOD | {"subnets": subnets}, placement_groups_per_zone=6
    )


def test_a_region_with_a_vpc_trains_and_may_be_home() -> None:
    assert parsed(GOOD).training == (HOME,)


REGIONS = [
    HOME,
    AWAY,
    "us-west-2",
    "eu-west-1",
    "ap-south-1",
    "us-east-2",
    "eu-west-2",
    "eu-west-3",
    "eu-north-1",
    "sa-east-1",
]


NUMBER = 4
"""As many regions with six subnets and a key have room."""
EACH = 6 * SUBNET_CHARACTERS + KEY_CHARACTERS


def large(count: int) -> list[dict[str, Any]]:
    """So many regions, each with a key and six subnets."""
    return [
        {
            "region": region,
            "vpc": f"vpc-{number:017x}",
            "subnets": {f"{region}{zone}": f"subnet-{number * 6 + place:017x}" for place, zone in enumerate("abcdef")},
            "volume_key": f"arn:aws:kms:{region}:111122223333:key/{number:08}-1234-1234-1234-123456789012",
        }
        for number, region in enumerate(REGIONS[:count])
    ]


def test_as_many_subnets_and_keys_are_taken_as_the_launchers_role_holds_and_no_more() -> None:
    room = LEAST_CHARACTERS + REGION_CHARACTERS * (MOST_REGIONS - NUMBER - 1)
    said = refusal(*large(NUMBER + 1), placement_groups_per_zone=1)
    assert (
        f"{6 * NUMBER + 6} subnets and {NUMBER + 1} keys take {(NUMBER + 1) * EACH} characters of the launcher's role"
        in said
    )
    assert f"allowed: {room} with {NUMBER + 1} regions that train" in said
    template = synthesise_once(regions=large(NUMBER), placement_groups_per_zone=1, compliance=True).template("workflow")
    further = [one for one in rights(template, "Launcher") if one.name in FURTHER]
    assert {one.name for one in further} == FURTHER, "the CDK makes another policy of what does not fit"
    assert {len(one.resources) for one in further} == {NUMBER, 6 * NUMBER}
    assert resources(template, "AWS::IAM::ManagedPolicy") == {}
    taken = sum(size(statement(one)) for one in further)
    assert taken - 200 * len(FURTHER) < NUMBER * EACH
    assert sum(size(statement(one)) for one in rights(template, "Launcher")) < ROLE_CHARACTERS


FURTHER = {"LaunchIntoSubnetsOfTheSettings", "EncryptVolumesUnderTheSettingsKeys", "LetEc2AttachTheseVolumes"}


def statement(one: Right) -> dict[str, Any]:
    return {
        "Sid": one.name,
        "Effect": "Allow",
        "Action": list(one.actions),
        "Resource": list(one.resources),
        "Condition": one.conditions,
    }


# The region


def test_nothing_is_made_in_the_network_but_security_groups(existing: Synthesised) -> None:
    template = existing.template(f"region-{HOME}")
    assert {one["Type"] for one in template["Resources"].values()} == MADE
    named = {one["Type"] for one in template["Resources"].values() if VPC in json.dumps(one)}
    assert named == {*IN_THE_NETWORK, "AWS::S3::BucketPolicy"}
    groups = resources(template, "AWS::EC2::SecurityGroup").values()
    assert len(groups) == 16
    assert {one["VpcId"] for one in groups} == {VPC}


def test_the_security_groups_have_the_rules_that_they_have_in_a_network_of_ours(
    existing: Synthesised, deployment: Synthesised
) -> None:
    def rules(one: Synthesised) -> list[Any]:
        template = one.template(f"region-{HOME}")
        kinds = ("AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")
        return [
            {key: value for key, value in found.items() if key not in {"VpcId", "Tags"}}
            for kind in kinds
            for found in resources(template, kind).values()
        ]

    assert rules(existing) == rules(deployment)


def test_compliance_makes_no_flow_logs_there_and_leaves_the_default_security_group_alone(
    complying: Synthesised,
) -> None:
    home, away = complying.template(f"region-{HOME}"), complying.template(f"region-{AWAY}")
    forbidden = {"AWS::EC2::FlowLog", "Custom::ClosedDefaultGroup", "AWS::Lambda::Function"}
    assert {one["Type"] for one in home["Resources"].values()} & forbidden == set()
    assert {one["Type"] for one in away["Resources"].values()} >= forbidden
    assert "DefaultSecurityGroup" not in complying.text(f"region-{HOME}")


def test_the_region_describes_itself_with_the_zones_and_subnets_of_the_settings(existing: Synthesised) -> None:
    place = place_of(existing, HOME)
    assert {zone.name: zone.subnet for zone in place.zones} == SUBNETS
    assert all(len(zone.placement_groups) == 2 for zone in place.zones)
    assert len(place.security_groups) == 16
    assert place.launch_template


def test_a_jobs_credentials_are_bound_to_that_network(existing: Synthesised) -> None:
    policy = only(existing.template(f"region-{HOME}"), "AWS::S3::BucketPolicy", "Bytes")["PolicyDocument"]
    (bound,) = [one for one in policy["Statement"] if one.get("Sid") == "JobsInOurNetworkAlone"]
    assert bound["Condition"]["StringNotEquals"] == {"aws:SourceVpc": VPC}


def test_clients_of_file_systems_are_a_group_in_that_network(complying: Synthesised) -> None:
    groups = resources(complying.template(f"region-{HOME}"), "AWS::EC2::SecurityGroup").values()
    (clients,) = [one for one in groups if "mount" in one["GroupDescription"]]
    assert clients["VpcId"] == VPC


def test_children_of_grids_run_in_its_subnets(existing: Synthesised) -> None:
    template = existing.template("grid")
    for one in resources(template, "AWS::Batch::ComputeEnvironment").values():
        assert one["ComputeResources"]["Subnets"] == [SUBNET_A, SUBNET_B]
    assert only(template, "AWS::EC2::SecurityGroup")["VpcId"] == VPC


def test_the_other_region_is_what_it_is_without(existing: Synthesised, three: Synthesised) -> None:
    def kinds(one: Synthesised) -> list[str]:
        return sorted(found["Type"] for found in one.template(f"region-{AWAY}")["Resources"].values())

    # `three` has one more repository.
    assert [kind for kind in kinds(existing) if "ECR" not in kind] == [
        kind for kind in kinds(three) if "ECR" not in kind
    ]


# The check and the rights


def test_a_deploy_asks_about_the_network(existing: Synthesised) -> None:
    check = only(existing.template("workflow"), "Custom::Regions")
    (asked,) = check["Networks"]
    assert decode(NamedNetwork, asked) == NamedNetwork(
        region=HOME, vpc=VPC, subnets=SUBNETS, most_nodes=Settings.parse(CONTEXT[BLOCK]).limits.max_nodes, home=True
    )


def test_a_deploy_asks_again_when_jobs_may_have_more_nodes() -> None:
    asked = [
        only(synthesise_once(regions=EXISTING, limits={"max_nodes": most}).template("workflow"), "Custom::Regions")[
            "Networks"
        ]
        for most in (16, 17)
    ]
    assert asked[0] != asked[1]


def test_the_check_may_look_and_change_nothing(existing: Synthesised) -> None:
    (looks,) = [one for one in rights(existing.template("workflow"), "RegionCheck") if one.name == "DescribeNetworks"]
    assert all(action.startswith("ec2:Describe") for action in looks.actions)
    assert looks.conditions == {"StringEquals": {"aws:RequestedRegion": [HOME, AWAY]}}


def test_only_the_launcher_gets_a_right_on_the_subnets_and_on_no_other(existing: Synthesised) -> None:
    found = [
        one
        for stack, template in existing.stacks.items()
        for one in rights(template, stack=stack)
        if any("subnet-" in resource for resource in one.resources)
    ]
    (into,) = found
    assert into.role.startswith("Launcher")
    assert into.actions == ("ec2:RunInstances",)
    assert set(into.resources) == {f"arn:aws:ec2:{HOME}:*:subnet/{one}" for one in SUBNETS.values()}


def test_without_a_vpc_in_the_settings_nothing_of_this_is_there(deployment: Synthesised) -> None:
    check = only(deployment.template("workflow"), "Custom::Regions")
    assert "Networks" not in check
    assert "DescribeNetworks" not in deployment.text("workflow")
    assert "LaunchIntoSubnetsOfTheSettings" not in deployment.text("workflow")
    assert names.region_stack("trainyard", HOME) in deployment.stacks
