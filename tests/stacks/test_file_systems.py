"""What the stacks make of file systems: one group of clients each, rules of both sides on its ports alone, rights on its ARN alone."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract import names
from contract.codec import decode, encode
from contract.mounts import MOST_OF_A_DEPLOYMENT, FileSystems, Kind
from contract.networks import NamedFileSystem
from stacks.settings import BLOCK, BadSettings, Settings
from tests.stacks.synth import only, place_of, plain, resources, rights
from tools.file_systems import CORPUS, EVERY, HOME, IMAGES
from tools.synthesis import CONTEXT, Synthesised, synthesise, synthesise_once

REGION = "region-eu-central-1"
INGRESS, EGRESS = "AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress"
LUSTRE = {(988, 988), (1018, 1023)}
NFS = {(2049, 2049)}


@pytest.fixture(scope="module")
def assembly() -> Synthesised:
    return synthesise_once(file_systems=EVERY)


@pytest.fixture(scope="module")
def template(assembly: Synthesised) -> dict[str, Any]:
    return assembly.template(REGION)


@pytest.fixture(scope="module")
def offered(template: dict[str, Any]) -> FileSystems:
    return published(template)


def published(template: dict[str, Any]) -> FileSystems:
    """What a region says that its jobs may mount."""
    return decode(FileSystems, plain(only(template, "AWS::SSM::Parameter", "FileSystems")["Value"]))


def ports(template: dict[str, Any], kind: str, group: str, other: str) -> set[tuple[int, int]]:
    """Of all rules of a group that name the other."""
    named = "SourceSecurityGroupId" if kind == INGRESS else "DestinationSecurityGroupId"
    found = [
        one
        for one in resources(template, kind).values()
        if (plain(one["GroupId"]), plain(one[named])) == (group, other)
    ]
    assert {one["IpProtocol"] for one in found} <= {"tcp"}
    return {(one["FromPort"], one["ToPort"]) for one in found}


def test_a_region_publishes_what_its_jobs_may_mount(
    assembly: Synthesised, template: dict[str, Any], offered: FileSystems
) -> None:
    parameter = only(template, "AWS::SSM::Parameter", "FileSystems")
    assert parameter["Name"] == names.file_systems_parameter("trainyard", "eu-central-1")
    assert [(one.name, one.kind, one.id, one.mount_name, one.access_point) for one in offered.file_systems] == [
        ("corpus", Kind.FSX, CORPUS["id"], "abcdefgh", ""),
        ("home", Kind.EFS, HOME["id"], "", HOME["access_point"]),
        ("images", Kind.S3FILES, IMAGES["id"], "", ""),
    ]
    clients = [one.clients for one in offered.file_systems]
    assert len({*clients, *place_of(assembly, "eu-central-1").security_groups}) == 3 + 16, "a group of its own"


def test_clients_reach_their_file_system_on_its_ports_and_it_lets_them_in_on_the_same(
    template: dict[str, Any], offered: FileSystems
) -> None:
    for one, setting, wanted in zip(offered.file_systems, EVERY, (LUSTRE, NFS, NFS), strict=True):
        assert ports(template, EGRESS, one.clients, setting["security_group"]) == wanted
        assert ports(template, INGRESS, setting["security_group"], one.clients) == wanted


def test_lustres_servers_alone_may_open_connections_to_clients(template: dict[str, Any], offered: FileSystems) -> None:
    for one, setting, wanted in zip(offered.file_systems, EVERY, (LUSTRE, set(), set()), strict=True):
        assert ports(template, INGRESS, one.clients, setting["security_group"]) == wanted


def test_a_group_of_clients_has_no_other_rule_and_leads_to_no_node(
    template: dict[str, Any], offered: FileSystems
) -> None:
    servers = {one["security_group"] for one in EVERY}
    clients = {one.clients for one in offered.file_systems}
    for kind, other in ((INGRESS, "SourceSecurityGroupId"), (EGRESS, "DestinationSecurityGroupId")):
        named = {plain(one[other]) for one in resources(template, kind).values() if plain(one["GroupId"]) in clients}
        assert named <= servers
    groups = resources(template, "AWS::EC2::SecurityGroup")
    for name, one in groups.items():
        if f"<{name}.GroupId>" in clients:
            assert not {"SecurityGroupIngress", "SecurityGroupEgress"} & one.keys()


def test_a_file_systems_own_group_gets_no_more_than_the_rules_of_its_clients(template: dict[str, Any]) -> None:
    for setting, count in zip(EVERY, (2, 1, 1), strict=True):
        theirs = [one for one in resources(template, INGRESS).values() if one["GroupId"] == setting["security_group"]]
        assert len(theirs) == count
        assert [
            one for one in resources(template, EGRESS).values() if one["GroupId"] == setting["security_group"]
        ] == []


def test_the_launcher_may_use_the_groups_by_the_deployments_tag(template: dict[str, Any]) -> None:
    for one in resources(template, "AWS::EC2::SecurityGroup").values():
        assert {"Key": "trainyard:deployment", "Value": "trainyard"} in one["Tags"]


def test_the_job_role_may_mount_each_file_system_by_its_arn_and_through_its_access_point_alone(
    assembly: Synthesised,
) -> None:
    found = {one.name: one for one in rights(assembly.template("workflow"), "JobRole") if one.name.startswith("Mount")}
    arn = "arn:aws:{}:eu-central-1:111122223333:file-system/{}"
    assert {name: (one.actions, one.resources) for name, one in found.items()} == {
        "MountHome": (
            ("elasticfilesystem:ClientMount", "elasticfilesystem:ClientWrite"),
            (arn.format("elasticfilesystem", HOME["id"]),),
        ),
        "MountImages": (("s3files:ClientMount", "s3files:ClientWrite"), (arn.format("s3files", IMAGES["id"]),)),
    }
    (point,) = found["MountHome"].conditions["StringEquals"].values()
    assert plain(point) == f"arn:aws:elasticfilesystem:eu-central-1:111122223333:access-point/{HOME['access_point']}"
    assert found["MountImages"].conditions == {}


def test_no_function_and_no_instance_may_mount_anything(assembly: Synthesised) -> None:
    for stack, template in assembly.stacks.items():
        for one in rights(template, stack=stack):
            mounting = [action for action in one.actions if re.match(r"(elasticfilesystem|s3files):Client", action)]
            assert not mounting or one.role.startswith("JobRole"), one.name


def test_without_the_setting_there_is_no_group_no_right_and_no_word_of_it(deployment: Synthesised) -> None:
    assert "Nodes of jobs that mount" not in deployment.text(REGION)
    assert "file_systems" not in deployment.text(REGION)
    assert "ClientMount" not in deployment.text("workflow")


def test_as_many_as_a_deployment_takes_fit_the_job_role_and_the_regions_parameter(tmp_path: Path) -> None:
    """A role's own policies have 10,240 characters together, a parameter 4,096."""
    longest = {**HOME, "kind": "s3files", "id": f"fs-{'0' * 40}", "access_point": f"fsap-{'0' * 40}"}
    many = [{**longest, "name": f"name-of-20-letters-{letter}"} for letter in "abcdefghij"]
    assert len(many) == MOST_OF_A_DEPLOYMENT
    largest = synthesise(tmp_path, file_systems=many)
    documents = [
        plain_length(one["PolicyDocument"])
        for one in resources(largest.template("workflow"), "AWS::IAM::Policy").values()
        if one["Roles"][0]["Ref"].startswith("JobRole")
    ]
    assert sum(documents) < 10_240
    found = published(largest.template(REGION))
    real = replace(found, file_systems=tuple(replace(one, clients=f"sg-{'0' * 17}") for one in found.file_systems))
    assert len(encode(real)) < 4096
    assert len(largest.template(REGION)["Resources"]) < 500


def plain_length(document: Any) -> int:
    """Characters of a policy that IAM counts, which are those without spaces."""
    if isinstance(document, dict) and document.keys() & {"Ref", "Fn::Join", "Fn::GetAtt", "Fn::Sub"}:
        return len(plain(document)) + 2
    if isinstance(document, dict):
        return 1 + sum(len(name) + 4 + plain_length(value) for name, value in document.items())
    if isinstance(document, list):
        return 1 + sum(1 + plain_length(one) for one in document)
    return len(str(document)) + 2


WRONG: dict[str, tuple[Any, str]] = {
    "a kind that there is not": ({"kind": "nfs"}, "kind"),
    "an id that is none": ({"id": "corpus"}, "the id of a file system, such as fs-"),
    "a name in capitals": ({"name": "Corpus"}, "2 to 20 lower-case letters"),
    "a group that is none": ({"security_group": "default"}, "the id of a security group, such as sg-"),
    "a mount name that is none": ({"mount_name": "a/b"}, "up to 8 letters, digits, _ and -"),
    "an access point that is none": ({"access_point": "fsap"}, "the id of an access point, such as fsap-"),
    "a key that there is not": ({"zone_id": "a"}, "zone_id is not a setting; allowed: access_point, id"),
    "lustre without a mount name": ({"mount_name": ""}, "corpus has no mount_name; allowed: the one that FSx shows"),
    "lustre with an access point": ({"access_point": "fsap-0123456789abcdef0"}, "corpus has an access_point; allowed"),
    "efs with a mount name": ({"kind": "efs"}, "corpus has a mount_name; allowed: none"),
    "another region": ({"region": "eu-west-1"}, "eu-west-1 is not a training region; allowed: eu-central-1"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_file_system_that_does_not_fit_is_refused(what: str) -> None:
    change, says = WRONG[what]
    with pytest.raises(BadSettings, match=re.escape(says)):
        Settings.parse(CONTEXT[BLOCK] | {"file_systems": [{**CORPUS, **change}]})


def test_a_name_stands_for_one_file_system() -> None:
    with pytest.raises(BadSettings, match="file_systems names corpus twice"):
        Settings.parse(CONTEXT[BLOCK] | {"file_systems": [CORPUS, {**CORPUS, "id": "fs-0123456789abcdef3"}]})


def test_a_deployment_takes_no_more_than_its_parameter_and_its_job_role_hold() -> None:
    many = [{**IMAGES, "name": f"images-{n}"} for n in range(MOST_OF_A_DEPLOYMENT + 1)]
    with pytest.raises(BadSettings, match="file_systems has 11 entries; allowed: at most 10 items"):
        Settings.parse(CONTEXT[BLOCK] | {"file_systems": many})


def test_a_deploy_asks_where_file_systems_lie_but_for_those_of_s3_files(assembly: Synthesised) -> None:
    check = only(assembly.template("workflow"), "Custom::Regions")
    asked = [decode(NamedFileSystem, one) for one in check["FileSystems"]]
    assert {(one.name, one.id, one.vpc) for one in asked} == {
        (f"{one['kind']}:{one['name']}", one["id"], "") for one in (CORPUS, HOME)
    }
    (looks,) = [
        one for one in rights(assembly.template("workflow"), "RegionCheck") if one.name == "DescribeFileSystems"
    ]
    assert all(":Describe" in action for action in looks.actions)


def test_without_file_systems_a_deploy_asks_nothing_about_them(deployment: Synthesised) -> None:
    assert "FileSystems" not in only(deployment.template("workflow"), "Custom::Regions")
    assert "fsx:" not in deployment.text("workflow")
