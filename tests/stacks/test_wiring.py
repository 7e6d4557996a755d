"""Who answers custom resources, which role runs what, and what outputs name: a wrong one deploys as well as the right one."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.stacks.synth import every, outputs_of, plain
from tools.synthesis import Synthesised

CUSTOM: dict[str, tuple[str, int]] = {
    "Custom::CatalogueProtection": ("CatalogueSchema", 720),
    "Custom::CatalogueSchema": ("CatalogueSchema", 720),
    "Custom::ClosedDefaultGroup": ("DefaultGroup", 300),
    "Custom::Drain": ("Drain", 3600),
    "Custom::OwnImage": ("OwnImages", 3600),
    "Custom::Regions": ("RegionCheck", 300),
    "Custom::ServiceRoles": ("ServiceRoles", 300),
    "Custom::Zones": ("ZoneLookup", 300),
}
"""Kind to the function that answers CloudFormation, and the seconds for which CloudFormation waits."""
RUNS_WITH: dict[str, tuple[str, str]] = {
    "AWS::CodeBuild::Project": ("ServiceRole", "codebuild"),
    "AWS::Lambda::Function": ("Role", "lambda"),
    "AWS::StepFunctions::StateMachine": ("RoleArn", "states"),
}
"""Kind to the property that has its role, and the service that takes it."""
OUTPUTS = {
    "AttendantDeadLetters": "AttendantLetters",
    "AttendantRoleArn": "AttendantRole",
    "BuildMachine": "ImagesMachine",
    "BytesBucket": "Bytes",
    "Catalogue": "DatabaseCluster",
    "CatalogueKeeper": "Keeper",
    "CatalogueKeeperSecret": "DatabaseKeeper",
    "CatalogueLetters": "KeeperLetters",
    "CatalogueReaderSecret": "DatabaseReader",
    "CleanupDeadLetters": "CleanupLetters",
    "ClusterFunctionRole": "ClusterApiRole",
    "GridCleanupDeadLetters": "GridLetters",
    "GridMachine": "GridMachine",
    "HomeBucket": "Home",
    "NodeRoleId": "NodeRole",
    "NotificationTopic": "Notifications",
    "PageLettersUrl": "PageLetters",
    "PeoplePolicy": "People",
    "ReaperDeadLetters": "Letters",
    "ReaperFunction": "Reaper",
    "SearchDeadLetters": "SearchLetters",
    "SearchMachineArn": "SearchMachine",
    "StartLettersUrl": "StartLetters",
    "StateTable": "State",
    "TrainMachine": "TrainMachine",
    "TrainingRoleArn": "TrainingRole",
    "WorkbenchPolicy": "Workbench",
}
"""Output to the logical id, without its hash, of the resource that it names; outputs of logs have the name of their log."""


def bare(logical: str) -> str:
    """A logical id without its hash."""
    return re.sub(r"[0-9A-F]{8}$", "", logical)


@pytest.mark.parametrize("kind", CUSTOM)
def test_a_custom_resource_is_answered_by_its_function_in_time(
    complete: Synthesised, complying: Synthesised, kind: str
) -> None:
    package, seconds = CUSTOM[kind]
    found = [(name, one) for each in (complete, complying) for name, one in every(each, kind)]
    assert found
    for name, one in found:
        assert re.fullmatch(
            rf"<(\S+:ExportsOutputFnGetAtt)?{package}[0-9A-F]{{8}}\.?Arn\w*>", plain(one["ServiceToken"])
        ), name
        assert one["ServiceTimeout"] == str(seconds), name


@pytest.mark.parametrize("kind", RUNS_WITH)
def test_whatever_runs_has_the_role_of_its_name_and_service(complete: Synthesised, kind: str) -> None:
    field, service = RUNS_WITH[kind]
    found = dict(every(complete, kind))
    assert found
    for name, one in found.items():
        stack, _, logical = name.partition("/")
        role, _ = one[field]["Fn::GetAtt"]
        assert bare(logical).removesuffix("Machine").removesuffix("Project") in bare(role), name
        trusted = complete.stacks[stack]["Resources"][role]["Properties"]["AssumeRolePolicyDocument"]
        assert f'"{service}.amazonaws.com"' in json.dumps(trusted), name


def test_nodes_run_with_the_role_of_nodes(complete: Synthesised) -> None:
    ((_, profile),) = every(complete, "AWS::IAM::InstanceProfile")
    (role,) = profile["Roles"]
    assert bare(role["Ref"]) == "NodeRole"


def test_who_comes_to_the_cluster_as_a_child_is_a_child(complete: Synthesised) -> None:
    found = [one for _, one in every(complete, "AWS::EKS::AccessEntry")]
    assert {bare(one["PrincipalArn"]["Fn::GetAtt"][0]): one["KubernetesGroups"] for one in found} == {
        "ChildRole": ["trainyard-lines-children"],
        "ClusterApiRole": ["trainyard-lines-functions"],
    }


def test_a_network_has_the_addresses_of_the_settings(complete: Synthesised) -> None:
    """Other addresses make another network: CloudFormation replaces it with all that is in it."""
    ((_, network),) = every(complete, "AWS::EC2::VPC")
    assert network["CidrBlock"] == "10.70.0.0/16"
    blocks = {name.partition("/")[2]: one["CidrBlock"] for name, one in every(complete, "AWS::EC2::Subnet")}
    nodes = {block for name, block in blocks.items() if "NodesSubnet" in name}
    assert nodes == {"10.70.0.0/18", "10.70.64.0/18", "10.70.128.0/18"}
    nat = {block for name, block in blocks.items() if "NatSubnet" in name}
    assert nat == {"10.70.192.0/28", "10.70.192.16/28", "10.70.192.32/28"}
    database = {block for name, block in blocks.items() if name.startswith("Database")}
    assert database == {"10.70.192.48/28", "10.70.192.64/28", "10.70.192.80/28"}


def test_every_gateway_has_its_address_and_is_in_a_subnet_with_a_way_out(complete: Synthesised) -> None:
    for name, gateway in every(complete, "AWS::EC2::NatGateway"):
        template: dict[str, Any] = complete.stacks[name.partition("/")[0]]["Resources"]
        address, _ = gateway["AllocationId"]["Fn::GetAtt"]
        assert template[address]["Type"] == "AWS::EC2::EIP"
        assert "NatSubnet" in gateway["SubnetId"]["Ref"]


def test_an_output_names_the_resource_that_people_look_for(complete: Synthesised) -> None:
    named: dict[str, str] = {}
    for name, one in outputs_of(complete).items():
        if isinstance(one["Value"], dict) and (value := one["Value"].get("Ref") or one["Value"].get("Fn::GetAtt")):
            named[name] = bare(value if isinstance(value, str) else value[0])
    logs = {name: logical for name, logical in named.items() if name.endswith("LogGroup")}
    assert {name: one for name, one in logs.items() if not one.endswith(name.removesuffix("Group"))} == {}
    assert {name: one for name, one in named.items() if name not in logs} == OUTPUTS
